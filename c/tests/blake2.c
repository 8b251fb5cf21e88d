/* BLAKE2 of bulla.h: the known answers of the reference code, and what is wrong use. */
#include "bulla.h"
#include "check.h"

/* Words: kind, algorithm, length of the key, length of the input, digest. */
static void known_answer(char **words, int n) {
    uint8_t bytes[256], expected[64], out[64];
    CHECK(n == 5);
    uint32_t algorithm = (uint32_t)strtoul(words[1], NULL, 10);
    size_t key_len = strtoul(words[2], NULL, 10), len = strtoul(words[3], NULL, 10);
    size_t out_len = from_hex(words[4], expected, sizeof expected);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    CHECK(bulla_blake2(algorithm, bytes, key_len, bytes, len, out, out_len) == BULLA_OK);
    CHECK(memcmp(out, expected, out_len) == 0);

    bulla_blake2_params params = {.algorithm = algorithm, .key = bytes, .key_len = key_len};
    bulla_blake2_state state, copy;
    CHECK(bulla_blake2_init(&state, &params) == BULLA_OK);
    CHECK(bulla_blake2_update(&state, bytes, len / 3) == BULLA_OK);
    memcpy(&copy, &state, sizeof copy);
    CHECK(bulla_blake2_update(&state, "other", 5) == BULLA_OK);
    CHECK(bulla_blake2_update(&copy, bytes + len / 3, len - len / 3) == BULLA_OK);
    CHECK(bulla_blake2_finalize(&copy, out, out_len) == BULLA_OK && memcmp(out, expected, out_len) == 0);
    CHECK(bulla_blake2_finalize(&copy, out, out_len - 1) == BULLA_ERROR_LENGTH);
}

static void known_answers(void) { CHECK(for_vectors("blake2", known_answer) == 4 * 2 * 256); }

static void long_input_in_pieces(void) {
    const size_t LEN = 100000;
    uint8_t *input = input_of(LEN), out[64], expected[64];
    for (uint32_t algorithm = BULLA_BLAKE2B; algorithm <= BULLA_BLAKE2SP; algorithm++) {
        size_t out_len = algorithm % 2 ? BULLA_BLAKE2S_OUT_LEN : BULLA_BLAKE2B_OUT_LEN;
        bulla_blake2_params params = {.algorithm = algorithm};
        bulla_blake2_state state;
        CHECK(bulla_blake2(algorithm, NULL, 0, input, LEN, expected, out_len) == BULLA_OK);
        CHECK(bulla_blake2_init(&state, &params) == BULLA_OK);
        for (size_t at = 0, step = 1; at < LEN; at += step, step = step * 2 + 1) {
            size_t piece = step < LEN - at ? step : LEN - at;
            CHECK(bulla_blake2_update(&state, input + at, piece) == BULLA_OK);
        }
        CHECK(bulla_blake2_finalize(&state, out, out_len) == BULLA_OK && memcmp(out, expected, out_len) == 0);
    }
    free(input);
}

static void parameters_change_the_digest(void) {
    uint8_t plain[32], other[32];
    const uint8_t *word = (const uint8_t *)"a word that is long";
    bulla_blake2_state state;
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 0, "x", 1, plain, 32) == BULLA_OK);
    bulla_blake2_params params[] = {
        {.algorithm = BULLA_BLAKE2B, .out_len = 32},
        {.algorithm = BULLA_BLAKE2B, .out_len = 32, .salt = word, .salt_len = 16},
        {.algorithm = BULLA_BLAKE2B, .out_len = 32, .personal = word, .personal_len = 16},
        {.algorithm = BULLA_BLAKE2B, .out_len = 32, .key = word, .key_len = 5},
    };
    for (int i = 0; i < 4; i++) {
        CHECK(bulla_blake2_init(&state, &params[i]) == BULLA_OK);
        CHECK(bulla_blake2_update(&state, "x", 1) == BULLA_OK);
        CHECK(bulla_blake2_finalize(&state, other, 32) == BULLA_OK);
        CHECK((memcmp(other, plain, 32) == 0) == (i == 0));
    }
}

static void wrong_use_is_an_error(void) {
    uint8_t out[65] = {0};
    bulla_blake2_state state;
    bulla_blake2_params params = {.algorithm = BULLA_BLAKE2B};
    memset(&state, 0xaa, sizeof state);
    CHECK(bulla_blake2(4, NULL, 0, NULL, 0, out, 32) == BULLA_ERROR_ARGUMENT);
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 0, NULL, 0, out, 65) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake2(BULLA_BLAKE2S, NULL, 0, NULL, 0, out, 33) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 0, NULL, 0, out, 0) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 1, NULL, 0, out, 64) == BULLA_ERROR_NULL);
    CHECK(bulla_blake2(BULLA_BLAKE2B, out, 65, NULL, 0, out, 64) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake2(BULLA_BLAKE2B, NULL, 0, NULL, 3, out, 64) == BULLA_ERROR_NULL);
    CHECK(bulla_blake2_update(&state, "x", 1) == BULLA_ERROR_STATE);
    CHECK(bulla_blake2_init(NULL, &params) == BULLA_ERROR_NULL);
    CHECK(bulla_blake2_init(&state, NULL) == BULLA_ERROR_NULL);
    params = (bulla_blake2_params){.algorithm = BULLA_BLAKE2SP, .salt = out, .salt_len = 1};
    CHECK(bulla_blake2_init(&state, &params) == BULLA_ERROR_LENGTH && strstr(bulla_last_error(), "salt") != NULL);
    CHECK(bulla_blake2_wipe(&state) == BULLA_OK && bulla_blake2_finalize(&state, out, 64) == BULLA_ERROR_STATE);
}

int main(void) {
    RUN(known_answers);
    RUN(long_input_in_pieces);
    RUN(parameters_change_the_digest);
    RUN(wrong_use_is_an_error);
    return check_end();
}
