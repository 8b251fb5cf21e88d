/* The official library's functions. This program knows nothing of ours: it is also linked with the
 * official library, and must then run with
 * ours in its place. */
#include "blake3.h"
#include "check.h"

static const char KEY[] = "whats the Elvish word for friend";
static const char CONTEXT[] = "BLAKE3 2019-12-27 16:29:52 test vectors context";
enum { OUT = 131 };

static void check_mode(blake3_hasher *hasher, const uint8_t *input, size_t len, const uint8_t *expected) {
    uint8_t out[OUT];
    blake3_hasher copy;
    blake3_hasher_update(hasher, input, len);
    blake3_hasher_finalize(hasher, out, OUT);
    CHECK(memcmp(out, expected, OUT) == 0);
    blake3_hasher_finalize(hasher, out, 7);
    CHECK(memcmp(out, expected, 7) == 0);
    blake3_hasher_finalize_seek(hasher, 65, out, 50);
    CHECK(memcmp(out, expected + 65, 50) == 0);
    blake3_hasher_reset(hasher);
    for (size_t at = 0; at < len; at += 1000) {
        blake3_hasher_update(hasher, input + at, len - at < 1000 ? len - at : 1000);
        copy = *hasher;
        *hasher = copy;
    }
    blake3_hasher_finalize(&copy, out, len == 0 ? 0 : 32);
    CHECK(len == 0 || memcmp(out, expected, 32) == 0);
}

static void read_case(char **words, int n) {
    uint8_t expected[OUT];
    size_t len = strtoul(words[1], NULL, 10);
    uint8_t *input = input_of(len);
    blake3_hasher hasher;
    CHECK(n == 5);
    blake3_hasher_init(&hasher);
    from_hex(words[2], expected, OUT);
    check_mode(&hasher, input, len, expected);
    blake3_hasher_init_keyed(&hasher, (const uint8_t *)KEY);
    from_hex(words[3], expected, OUT);
    check_mode(&hasher, input, len, expected);
    from_hex(words[4], expected, OUT);
    blake3_hasher_init_derive_key(&hasher, CONTEXT);
    check_mode(&hasher, input, len, expected);
    blake3_hasher_init_derive_key_raw(&hasher, CONTEXT, strlen(CONTEXT));
    check_mode(&hasher, input, len, expected);
    free(input);
}

static void every_mode(void) { CHECK(for_vectors("blake3", read_case) >= 35); }

/* A caller that allocates a hasher between others: nothing may be written beside it. */
static void the_structure_has_the_official_size(void) {
    struct {
        uint8_t before[64];
        blake3_hasher hasher;
        uint8_t after[64];
    } room;
    uint8_t *input = input_of(1 << 20), out[32];
    CHECK(sizeof(blake3_hasher) == 1912);
    memset(&room, 0x5a, sizeof room);
    blake3_hasher_init(&room.hasher);
    for (size_t at = 0, step = 1; at < 1 << 20; at += step, step = step * 3 / 2 + 1) {
        size_t piece = step < (1 << 20) - at ? step : (1 << 20) - at;
        blake3_hasher_update(&room.hasher, input + at, piece);
        blake3_hasher_finalize(&room.hasher, out, 32);
    }
    for (int i = 0; i < 64; i++) {
        CHECK(room.before[i] == 0x5a && room.after[i] == 0x5a);
    }
    free(input);
}

static void the_version_is_that_of_the_header(void) {
    CHECK(strcmp(blake3_version(), BLAKE3_VERSION_STRING) == 0);
}

int main(void) {
    RUN(every_mode);
    RUN(the_structure_has_the_official_size);
    RUN(the_version_is_that_of_the_header);
    return check_end();
}
