/* The environment names a kernel that no machine has: each function of libbulla says so. */
#include "blake3.h"
#include "bulla.h"
#include "check.h"

static void every_library_has_an_answer(void) {
    uint8_t out[64], key[32] = {0}, abc[32];
    const char *name = NULL;
    bulla_blake3_state state;
    bulla_blake3_hasher *hasher = NULL;
    bulla_ed25519_key *signer = NULL;
    blake3_hasher official;
    CHECK(bulla_blake3("abc", 3, out) == BULLA_ERROR_KERNEL);
    CHECK(strstr(bulla_last_error(), "BULLA_BLAKE3_FORCE_KERNEL") && strstr(bulla_last_error(), "portable"));
    CHECK(bulla_blake3_kernel(&name) == BULLA_ERROR_KERNEL && name == NULL);
    CHECK(bulla_blake3_init(&state) == BULLA_ERROR_KERNEL);
    CHECK(bulla_blake3_hasher_new(&hasher) == BULLA_ERROR_KERNEL && hasher == NULL);
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 0, "abc", 3, out, 64) == BULLA_ERROR_KERNEL);
    CHECK(bulla_ed25519_key_new(key, &signer) == BULLA_ERROR_KERNEL && signer == NULL);
    /* A kernel by its name is still there. */
    CHECK(bulla_blake3_hasher_new_with(BULLA_BLAKE3_HASH, NULL, "portable", &hasher) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update(hasher, "abc", 3) == BULLA_OK);
    CHECK(bulla_blake3_hasher_finalize(hasher, 0, abc, 32) == BULLA_OK);
    bulla_blake3_hasher_free(hasher);
    blake3_hasher_init_derive_key(&official, "context");
    blake3_hasher_init(&official);
    blake3_hasher_update(&official, "abc", 3);
    blake3_hasher_finalize(&official, out, 32);
    CHECK(memcmp(out, abc, 32) == 0);
}

int main(void) {
    RUN(every_library_has_an_answer);
    return check_end();
}
