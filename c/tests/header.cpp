// The headers in C++: they compile without a warning, and the functions have the names that C gives them.
#include "blake3.h"
#include "bulla.h"
#include "check.h"

namespace {

void both_libraries_agree() {
    uint8_t ours[32], theirs[32];
    bulla_blake3_state state;
    blake3_hasher hasher;
    CHECK(bulla_blake3_init(&state) == BULLA_OK);
    CHECK(bulla_blake3_update(&state, "abc", 3) == BULLA_OK);
    CHECK(bulla_blake3_finalize(&state, 0, ours, sizeof ours) == BULLA_OK);
    blake3_hasher_init(&hasher);
    blake3_hasher_update(&hasher, "abc", 3);
    blake3_hasher_finalize(&hasher, theirs, sizeof theirs);
    CHECK(memcmp(ours, theirs, sizeof ours) == 0);
    bulla_blake2_state blake2;
    bulla_blake2_params params = {};
    CHECK(bulla_blake2_init(&blake2, &params) == BULLA_OK);
}

}  // namespace

int main() {
    RUN(both_libraries_agree);
    return check_end();
}
