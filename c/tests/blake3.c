/* BLAKE3 of bulla.h: the vectors in every way of hashing, and what is wrong use. */
#include "bulla.h"
#include "check.h"

static const char KEY[] = "whats the Elvish word for friend";
static const char CONTEXT[] = "BLAKE3 2019-12-27 16:29:52 test vectors context";
enum { OUT = 131 };

/* One case of the vectors in all modes. */
static struct {
    size_t len;
    uint8_t *input, hash[OUT], keyed[OUT], derived[OUT];
} now;

static void (*check_case)(void);

static void read_case(char **words, int n) {
    CHECK(n == 5);
    now.len = strtoul(words[1], NULL, 10);
    now.input = input_of(now.len);
    CHECK(from_hex(words[2], now.hash, OUT) == OUT && from_hex(words[3], now.keyed, OUT) == OUT);
    CHECK(from_hex(words[4], now.derived, OUT) == OUT);
    check_case();
    free(now.input);
}

static void for_cases(void (*check)(void)) {
    check_case = check;
    CHECK(for_vectors("blake3", read_case) >= 35);
}

static void at_once(void) {
    uint8_t out[OUT];
    CHECK(bulla_blake3(now.input, now.len, out) == BULLA_OK && memcmp(out, now.hash, 32) == 0);
    CHECK(bulla_blake3_keyed((const uint8_t *)KEY, now.input, now.len, out) == BULLA_OK);
    CHECK(memcmp(out, now.keyed, 32) == 0);
    CHECK(bulla_blake3_derive_key(CONTEXT, strlen(CONTEXT), now.input, now.len, out, OUT) == BULLA_OK);
    CHECK(memcmp(out, now.derived, OUT) == 0);
}

static void one_shot(void) { for_cases(at_once); }

static void heap_one(bulla_blake3_hasher *hasher, const uint8_t *expected) {
    uint8_t out[OUT];
    size_t half = now.len / 3;
    CHECK(bulla_blake3_hasher_update(hasher, now.input, half) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update(hasher, now.input + half, now.len - half) == BULLA_OK);
    CHECK(bulla_blake3_hasher_count(hasher) == now.len);
    CHECK(bulla_blake3_hasher_finalize(hasher, 0, out, OUT) == BULLA_OK && memcmp(out, expected, OUT) == 0);
    CHECK(bulla_blake3_hasher_finalize(hasher, 70, out, 60) == BULLA_OK && memcmp(out, expected + 70, 60) == 0);
    CHECK(bulla_blake3_hasher_finalize(hasher, 0, out, 32) == BULLA_OK && memcmp(out, expected, 32) == 0);
    CHECK(bulla_blake3_hasher_reset(hasher) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update_threads(hasher, now.input, now.len) == BULLA_OK);
    CHECK(bulla_blake3_hasher_finalize(hasher, 0, out, OUT) == BULLA_OK && memcmp(out, expected, OUT) == 0);
    bulla_blake3_hasher_free(hasher);
}

static void heap_case(void) {
    bulla_blake3_hasher *hasher = NULL;
    uint8_t key[32];
    CHECK(bulla_blake3_hasher_new(&hasher) == BULLA_OK);
    heap_one(hasher, now.hash);
    CHECK(bulla_blake3_hasher_new_keyed((const uint8_t *)KEY, &hasher) == BULLA_OK);
    heap_one(hasher, now.keyed);
    CHECK(bulla_blake3_hasher_new_derive_key(CONTEXT, strlen(CONTEXT), &hasher) == BULLA_OK);
    heap_one(hasher, now.derived);
    CHECK(bulla_blake3_context_key(CONTEXT, strlen(CONTEXT), key) == BULLA_OK);
    CHECK(bulla_blake3_hasher_new_with(BULLA_BLAKE3_DERIVE_KEY, key, "portable", &hasher) == BULLA_OK);
    heap_one(hasher, now.derived);
}

static void hasher_on_the_heap(void) { for_cases(heap_case); }

static void stack_one(bulla_blake3_state *state, const uint8_t *expected) {
    bulla_blake3_state copy;
    uint8_t out[OUT];
    size_t half = now.len / 2 + 1 > now.len ? now.len : now.len / 2 + 1;
    CHECK(bulla_blake3_update(state, now.input, half) == BULLA_OK);
    memcpy(&copy, state, sizeof copy);
    CHECK(bulla_blake3_update(state, "other", 5) == BULLA_OK);
    CHECK(bulla_blake3_update(&copy, now.input + half, now.len - half) == BULLA_OK);
    CHECK(bulla_blake3_count(&copy) == now.len && bulla_blake3_count(state) == half + 5);
    CHECK(bulla_blake3_finalize(&copy, 0, out, OUT) == BULLA_OK && memcmp(out, expected, OUT) == 0);
    CHECK(bulla_blake3_finalize(&copy, 1, out, 130) == BULLA_OK && memcmp(out, expected + 1, 130) == 0);
    CHECK(bulla_blake3_finalize(&copy, 0, out, 32) == BULLA_OK && memcmp(out, expected, 32) == 0);
    CHECK(bulla_blake3_reset(state) == BULLA_OK);
    CHECK(bulla_blake3_update_threads(state, now.input, now.len) == BULLA_OK);
    CHECK(bulla_blake3_finalize(state, 0, out, OUT) == BULLA_OK && memcmp(out, expected, OUT) == 0);
}

static void stack_case(void) {
    bulla_blake3_state state;
    CHECK(bulla_blake3_init(&state) == BULLA_OK);
    stack_one(&state, now.hash);
    CHECK(bulla_blake3_init_keyed(&state, (const uint8_t *)KEY) == BULLA_OK);
    stack_one(&state, now.keyed);
    CHECK(bulla_blake3_init_derive_key(&state, CONTEXT, strlen(CONTEXT)) == BULLA_OK);
    stack_one(&state, now.derived);
    CHECK(bulla_blake3_wipe(&state) == BULLA_OK);
    CHECK(bulla_blake3_update(&state, "x", 1) == BULLA_ERROR_STATE);
}

static void state_on_the_stack(void) { for_cases(stack_case); }

static void saved_case(void) {
    uint8_t saved[BULLA_BLAKE3_MAX_SAVED_LEN], out[OUT];
    size_t len = 0, half = now.len / 2;
    bulla_blake3_hasher *hasher = NULL, *restored = NULL, *copy = NULL;
    CHECK(bulla_blake3_hasher_new_keyed((const uint8_t *)KEY, &hasher) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update(hasher, now.input, half) == BULLA_OK);
    CHECK(bulla_blake3_hasher_save(hasher, saved, 10, &len) == BULLA_ERROR_LENGTH && len >= 64);
    CHECK(bulla_blake3_hasher_save(hasher, saved, sizeof saved, &len) == BULLA_OK);
    CHECK(bulla_blake3_hasher_restore(saved, len - 1, &restored) == BULLA_ERROR_STATE && restored == NULL);
    CHECK(bulla_blake3_hasher_restore(saved, len, &restored) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update(restored, now.input + half, now.len - half) == BULLA_OK);
    CHECK(bulla_blake3_hasher_clone(restored, &copy) == BULLA_OK);
    bulla_blake3_hasher_free(restored);
    CHECK(bulla_blake3_hasher_finalize(copy, 0, out, OUT) == BULLA_OK && memcmp(out, now.keyed, OUT) == 0);
    bulla_blake3_hasher_free(copy);
    bulla_blake3_hasher_free(hasher);
}

static bulla_status start(bulla_blake3_state *state, int mode) {
    return mode == 0   ? bulla_blake3_init(state)
           : mode == 1 ? bulla_blake3_init_keyed(state, (const uint8_t *)KEY)
                       : bulla_blake3_init_derive_key(state, CONTEXT, strlen(CONTEXT));
}

static void saved_state_case(void) {
    const uint8_t *expected[] = {now.hash, now.keyed, now.derived};
    for (int mode = 0; mode < 3; mode++) {
        for (size_t part = 0; part <= 4; part++) {
            uint8_t saved[BULLA_BLAKE3_MAX_SAVED_LEN], out[OUT];
            size_t len = 0, cut = now.len * part / 4;
            bulla_blake3_state state;
            CHECK(start(&state, mode) == BULLA_OK && bulla_blake3_update(&state, now.input, cut) == BULLA_OK);
            CHECK(bulla_blake3_save(&state, saved, sizeof saved, &len) == BULLA_OK && len >= 64);
            CHECK(bulla_blake3_wipe(&state) == BULLA_OK);
            CHECK(bulla_blake3_restore(saved, len, &state) == BULLA_OK && bulla_blake3_count(&state) == cut);
            CHECK(bulla_blake3_update(&state, now.input + cut, now.len - cut) == BULLA_OK);
            CHECK(bulla_blake3_finalize(&state, 0, out, OUT) == BULLA_OK);
            CHECK(memcmp(out, expected[mode], OUT) == 0);
        }
    }
}

static void a_state_on_the_stack_is_saved_and_restored(void) { for_cases(saved_state_case); }

static void saved_on_the_heap_case(void) {
    uint8_t saved[BULLA_BLAKE3_MAX_SAVED_LEN], out[OUT];
    size_t len = 0, cut = now.len / 2;
    bulla_blake3_hasher *hasher = NULL;
    bulla_blake3_state state;
    CHECK(bulla_blake3_hasher_new_keyed((const uint8_t *)KEY, &hasher) == BULLA_OK);
    CHECK(bulla_blake3_hasher_update(hasher, now.input, cut) == BULLA_OK);
    CHECK(bulla_blake3_hasher_save(hasher, saved, sizeof saved, &len) == BULLA_OK);
    bulla_blake3_hasher_free(hasher);
    CHECK(bulla_blake3_restore(saved, len, &state) == BULLA_OK);
    CHECK(bulla_blake3_update(&state, now.input + cut, now.len - cut) == BULLA_OK);
    CHECK(bulla_blake3_finalize(&state, 0, out, OUT) == BULLA_OK && memcmp(out, now.keyed, OUT) == 0);
}

static void a_state_on_the_stack_restores_a_hasher(void) { for_cases(saved_on_the_heap_case); }

static void what_is_no_saved_state_is_refused(void) {
    uint8_t saved[BULLA_BLAKE3_MAX_SAVED_LEN], *input = input_of(70000);
    size_t len = 0;
    bulla_blake3_hasher *hasher = NULL;
    bulla_blake3_state state, other;
    CHECK(bulla_blake3_init(&state) == BULLA_OK && bulla_blake3_update(&state, input, 70000) == BULLA_OK);
    CHECK(bulla_blake3_save(&state, saved, 63, &len) == BULLA_ERROR_LENGTH && len > 64);
    CHECK(bulla_blake3_save(&state, NULL, 0, &len) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake3_save(&state, NULL, sizeof saved, &len) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_save(&state, saved, sizeof saved, NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_save(NULL, saved, sizeof saved, &len) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_save(&state, saved, sizeof saved, &len) == BULLA_OK);
    CHECK(bulla_blake3_init(&other) == BULLA_OK && bulla_blake3_update(&other, "abc", 3) == BULLA_OK);
    for (size_t cut = 0; cut < len; cut++) {
        CHECK(bulla_blake3_restore(saved, cut, &other) == BULLA_ERROR_STATE);
    }
    saved[8] = 9;
    CHECK(bulla_blake3_restore(saved, len, &other) == BULLA_ERROR_STATE && bulla_last_error()[0] != '\0');
    saved[8] = 2;
    CHECK(bulla_blake3_count(&other) == 3);
    CHECK(bulla_blake3_restore(NULL, len, &other) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_restore(saved, len, NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_restore(saved, len, &hasher) == BULLA_ERROR_STATE && hasher == NULL);
    CHECK(bulla_blake3_restore(saved, len, &other) == BULLA_OK && bulla_blake3_count(&other) == 70000);
    CHECK(bulla_blake3_wipe(&state) == BULLA_OK);
    CHECK(bulla_blake3_save(&state, saved, sizeof saved, &len) == BULLA_ERROR_STATE);
    free(input);
}

static void save_restore_and_clone(void) { for_cases(saved_case); }

static void many_at_once(void) {
    enum { N = 150 };
    static uint8_t out[N][32], keyed[N][32];
    bulla_bytes inputs[N];
    uint8_t one[32], *input = input_of(N * 41);
    for (size_t i = 0; i < N; i++) {
        inputs[i] = (bulla_bytes){i == 0 ? NULL : input + i, i * 40};
    }
    CHECK(bulla_blake3_many(inputs, N, out[0]) == BULLA_OK);
    CHECK(bulla_blake3_keyed_many((const uint8_t *)KEY, inputs, N, keyed[0]) == BULLA_OK);
    for (size_t i = 0; i < N; i++) {
        CHECK(bulla_blake3(inputs[i].data, inputs[i].len, one) == BULLA_OK && memcmp(one, out[i], 32) == 0);
        CHECK(bulla_blake3_keyed((const uint8_t *)KEY, inputs[i].data, inputs[i].len, one) == BULLA_OK);
        CHECK(memcmp(one, keyed[i], 32) == 0);
    }
    inputs[N - 1].data = NULL;
    memset(out, 7, sizeof out);
    CHECK(bulla_blake3_many(inputs, N, out[0]) == BULLA_ERROR_NULL && out[0][0] == 7);
    CHECK(bulla_blake3_many(NULL, 0, NULL) == BULLA_OK);
    free(input);
}

static void kernels_by_name(void) {
    const char *names[16], *active = NULL;
    uint8_t out[32], expected[32];
    size_t n = bulla_blake3_kernels(names, 16);
    int found = 0;
    CHECK(n >= 1 && n <= 16 && bulla_blake3_kernels(NULL, 0) == n);
    CHECK(strcmp(names[n - 1], "portable") == 0);
    CHECK(bulla_blake3_kernel(&active) == BULLA_OK);
    CHECK(bulla_blake3("abc", 3, expected) == BULLA_OK);
    for (size_t i = 0; i < n; i++) {
        bulla_blake3_hasher *hasher = NULL;
        found += strcmp(names[i], active) == 0;
        CHECK(bulla_blake3_hasher_new_with(BULLA_BLAKE3_HASH, NULL, names[i], &hasher) == BULLA_OK);
        CHECK(bulla_blake3_hasher_update(hasher, "abc", 3) == BULLA_OK);
        CHECK(bulla_blake3_hasher_finalize(hasher, 0, out, 32) == BULLA_OK && memcmp(out, expected, 32) == 0);
        bulla_blake3_hasher_free(hasher);
    }
    CHECK(found == 1);
    CHECK(getenv("BULLA_BLAKE3_FORCE_KERNEL") == NULL || strcmp(getenv("BULLA_BLAKE3_FORCE_KERNEL"), active) == 0);
    bulla_blake3_hasher *hasher = NULL;
    CHECK(bulla_blake3_hasher_new_with(BULLA_BLAKE3_HASH, NULL, "none", &hasher) == BULLA_ERROR_KERNEL);
    CHECK(hasher == NULL && strstr(bulla_last_error(), "portable") != NULL);
}

static void wrong_use_is_an_error(void) {
    uint8_t out[32], byte = 0;
    bulla_blake3_state state, *none = NULL;
    bulla_blake3_hasher *hasher = NULL;
    memset(&state, 0xaa, sizeof state);
    CHECK(bulla_blake3(NULL, 0, out) == BULLA_OK);
    CHECK(bulla_blake3(NULL, 1, out) == BULLA_ERROR_NULL && bulla_last_error()[0] != '\0');
    CHECK(bulla_blake3(&byte, 1, NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3(&byte, SIZE_MAX, out) == BULLA_ERROR_LENGTH);
    CHECK(bulla_blake3_keyed(NULL, &byte, 1, out) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_new(NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_new_with(9, NULL, NULL, &hasher) == BULLA_ERROR_ARGUMENT && hasher == NULL);
    CHECK(bulla_blake3_hasher_new_with(BULLA_BLAKE3_KEYED_HASH, NULL, NULL, &hasher) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_new_derive_key("\xff", 1, &hasher) == BULLA_ERROR_ARGUMENT);
    CHECK(bulla_blake3_hasher_update(NULL, &byte, 1) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_finalize(NULL, 0, out, 32) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_hasher_count(NULL) == 0);
    bulla_blake3_hasher_free(NULL);
    CHECK(bulla_blake3_init(none) == BULLA_ERROR_NULL);
    CHECK(bulla_blake3_init((bulla_blake3_state *)(void *)((char *)&state + 1)) == BULLA_ERROR_ARGUMENT);
    CHECK(bulla_blake3_update(&state, &byte, 1) == BULLA_ERROR_STATE);
    CHECK(bulla_blake3_finalize(&state, 0, out, 32) == BULLA_ERROR_STATE);
    CHECK(bulla_blake3_init(&state) == BULLA_OK && bulla_blake3_update(&state, NULL, 0) == BULLA_OK);
    CHECK(bulla_blake3_update(&state, NULL, 4) == BULLA_ERROR_NULL && bulla_blake3_count(&state) == 0);
    CHECK(bulla_blake3_finalize(&state, 0, NULL, 0) == BULLA_OK);
    CHECK(bulla_equal("same", "same", 4) == 1 && bulla_equal("same", "sane", 4) == 0);
    CHECK(bulla_equal(NULL, "same", 4) == 0 && bulla_equal(NULL, NULL, 0) == 1);
    CHECK(strcmp(bulla_status_text(BULLA_OK), "success") == 0 && bulla_version()[0] == '0');
}

static void output_may_overlap_input(void) {
    uint8_t buffer[100] = {0}, expected[32];
    CHECK(bulla_blake3(buffer, sizeof buffer, expected) == BULLA_OK);
    CHECK(bulla_blake3(buffer, sizeof buffer, buffer + 50) == BULLA_OK);
    CHECK(memcmp(buffer + 50, expected, 32) == 0);
}

static struct progress {
    int calls, cancel_at;
    uint64_t done, total;
} seen;

static int watch(void *user, uint64_t done, uint64_t total) {
    struct progress *progress = user;
    CHECK(done >= progress->done);
    progress->done = done;
    progress->total = total;
    return ++progress->calls == progress->cancel_at;
}

static void files_with_progress(void) {
    const size_t LEN = 3000001;
    uint8_t out[32], expected[32], *input = input_of(LEN);
    char path[] = "blake3-test-XXXXXX";
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(input, 1, LEN, file) == LEN && fclose(file) == 0);
    CHECK(bulla_blake3(input, LEN, expected) == BULLA_OK);
    for (uint32_t threads = BULLA_ONE_THREAD; threads <= BULLA_ALL_THREADS; threads++) {
        seen = (struct progress){0, 0, 0, 0};
        memset(out, 0, sizeof out);
        CHECK(bulla_blake3_file(path, threads, watch, &seen, out) == BULLA_OK);
        CHECK(memcmp(out, expected, 32) == 0);
        CHECK(seen.calls >= 1 && seen.done == LEN && seen.total == LEN);
    }
    seen = (struct progress){0, 2, 0, 0};
    memset(out, 0, sizeof out);
    CHECK(bulla_blake3_file(path, BULLA_ONE_THREAD, watch, &seen, out) == BULLA_ERROR_CANCELED);
    CHECK(seen.calls == 2 && seen.done < LEN && out[0] == 0 && strstr(bulla_last_error(), "canceled") != NULL);
    CHECK(bulla_blake3_file(path, 2, NULL, NULL, out) == BULLA_ERROR_ARGUMENT);
    CHECK(remove(path) == 0);
    CHECK(bulla_blake3_file(path, BULLA_ONE_THREAD, NULL, NULL, out) == BULLA_ERROR_IO);
    CHECK(strstr(bulla_last_error(), path) != NULL);
    CHECK(bulla_blake3_file(".", BULLA_ONE_THREAD, NULL, NULL, out) == BULLA_ERROR_IO);
    CHECK(bulla_blake3_file(NULL, BULLA_ONE_THREAD, NULL, NULL, out) == BULLA_ERROR_NULL);
    free(input);
}

static void long_input_on_threads(void) {
    const size_t LEN = 5 << 20;
    uint8_t out[32], expected[32], *input = input_of(LEN);
    bulla_blake3_state state;
    CHECK(bulla_blake3(input, LEN, expected) == BULLA_OK);
    CHECK(bulla_blake3_init(&state) == BULLA_OK && bulla_blake3_update(&state, input, 5000) == BULLA_OK);
    CHECK(bulla_blake3_update_threads(&state, input + 5000, LEN - 5000) == BULLA_OK);
    CHECK(bulla_blake3_finalize(&state, 0, out, 32) == BULLA_OK && memcmp(out, expected, 32) == 0);
    CHECK(bulla_start_threads(1) == BULLA_ERROR_STATE);
    free(input);
}

int main(void) {
    CHECK(bulla_start_threads(2) == BULLA_OK);
    RUN(one_shot);
    RUN(hasher_on_the_heap);
    RUN(state_on_the_stack);
    RUN(save_restore_and_clone);
    RUN(a_state_on_the_stack_is_saved_and_restored);
    RUN(a_state_on_the_stack_restores_a_hasher);
    RUN(what_is_no_saved_state_is_refused);
    RUN(many_at_once);
    RUN(kernels_by_name);
    RUN(wrong_use_is_an_error);
    RUN(output_may_overlap_input);
    RUN(files_with_progress);
    RUN(long_input_on_threads);
    return check_end();
}
