/* Hashes a file with BLAKE3 on all threads, and shows the progress.
 *
 *     cc hash_file.c $(pkg-config --cflags --libs bulla) -o hash_file
 */
#include <bulla.h>
#include <stdio.h>

/* Another value than 0 would cancel. */
static int show(void *user, uint64_t done, uint64_t total) {
    (void)user;
    if (total > 0) {
        fprintf(stderr, "\r%3d %%", (int)(100.0 * (double)done / (double)total));
    }
    return 0;
}

int main(int argc, char **argv) {
    uint8_t digest[BULLA_BLAKE3_OUT_LEN];
    if (argc != 2) {
        fprintf(stderr, "usage: hash_file FILE\n");
        return 2;
    }
    bulla_status status = bulla_blake3_file(argv[1], BULLA_ALL_THREADS, show, NULL, digest);
    fprintf(stderr, "\n");
    if (status != BULLA_OK) {
        fprintf(stderr, "hash_file: %s: %s\n", bulla_status_text(status), bulla_last_error());
        return 1;
    }
    for (size_t i = 0; i < sizeof digest; i++) {
        printf("%02x", digest[i]);
    }
    printf("  %s\n", argv[1]);
    return 0;
}
