/* A program for the official C library: it hashes its standard input. To move it to ours, change
 * only how it is built:
 *
 *     cc moved.c $(pkg-config --cflags --libs libblake3) -o moved
 */
#include <blake3.h>
#include <stdio.h>

int main(void) {
    static unsigned char buffer[65536];
    uint8_t digest[BLAKE3_OUT_LEN];
    size_t n;
    blake3_hasher hasher;
    blake3_hasher_init(&hasher);
    while ((n = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
        blake3_hasher_update(&hasher, buffer, n);
    }
    if (ferror(stdin)) {
        perror("moved");
        return 1;
    }
    blake3_hasher_finalize(&hasher, digest, sizeof digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        printf("%02x", digest[i]);
    }
    printf("\n");
    return 0;
}
