/* blake3_hasher_update_tbb, which the official library has only if it was built with oneTBB. */
#include "blake3.h"
#include "check.h"

static void threads_agree_with_one(void) {
    const size_t LEN = 4 << 20;
    uint8_t *input = input_of(LEN), one[32], many[32];
    blake3_hasher hasher;
    for (size_t before = 0; before < 3000; before += 1499) {
        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, input, LEN);
        blake3_hasher_finalize(&hasher, one, 32);
        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, input, before);
        blake3_hasher_update_tbb(&hasher, input + before, LEN - before);
        blake3_hasher_finalize(&hasher, many, 32);
        CHECK(memcmp(one, many, 32) == 0);
    }
    free(input);
}

static void null_does_nothing(void) {
    uint8_t out[32] = {9};
    blake3_hasher_init(NULL);
    blake3_hasher_update(NULL, "x", 1);
    blake3_hasher_finalize(NULL, out, 32);
    blake3_hasher_reset(NULL);
    CHECK(out[0] == 9);
}

int main(void) {
    RUN(threads_agree_with_one);
    RUN(null_does_nothing);
    return check_end();
}
