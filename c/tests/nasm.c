/* The freestanding BLAKE3 of c/nasm: the vectors, and on both ABIs that the assembly keeps the
 * registers that it must. */
#include "blake3_nasm.h"
#include "check.h"

static const char KEY[] = "whats the Elvish word for friend";
static const char CONTEXT[] = "BLAKE3 2019-12-27 16:29:52 test vectors context";
enum { OUT = 131 };

static void check_mode(bulla_nasm_hasher *hasher, const uint8_t *input, size_t len, const char *hex) {
    uint8_t out[OUT], expected[OUT];
    bulla_nasm_hasher pieces = *hasher;
    CHECK(from_hex(hex, expected, OUT) == OUT);
    bulla_nasm_update(hasher, input, len);
    bulla_nasm_finalize(hasher, 0, out, OUT);
    CHECK(memcmp(out, expected, OUT) == 0);
    bulla_nasm_finalize(hasher, 67, out, 60);
    CHECK(memcmp(out, expected + 67, 60) == 0);
    for (size_t at = 0, step = 1; at < len; at += step, step = step * 3 / 2 + 1) {
        bulla_nasm_update(&pieces, input + at, step < len - at ? step : len - at);
    }
    bulla_nasm_finalize(&pieces, 0, out, 32);
    CHECK(memcmp(out, expected, 32) == 0);
}

static void read_case(char **words, int n) {
    size_t len = strtoul(words[1], NULL, 10);
    uint8_t *input = input_of(len);
    bulla_nasm_hasher hasher;
    CHECK(n == 5);
    bulla_nasm_init(&hasher);
    check_mode(&hasher, input, len, words[2]);
    bulla_nasm_init_keyed(&hasher, (const uint8_t *)KEY);
    check_mode(&hasher, input, len, words[3]);
    bulla_nasm_init_derive_key(&hasher, CONTEXT, strlen(CONTEXT));
    check_mode(&hasher, input, len, words[4]);
    free(input);
}

static void every_mode(void) { CHECK(for_vectors("blake3", read_case) >= 35); }

/* The hash of the digests of 1024 lengths, as in spec/vectors/blake3-lengths.json. */
static void read_run(char **words, int n) {
    size_t from = strtoul(words[1], NULL, 10), to = strtoul(words[2], NULL, 10);
    uint8_t *input = input_of(to), digest[32], expected[32];
    bulla_nasm_hasher all;
    CHECK(n == 4 && from_hex(words[3], expected, 32) == 32);
    bulla_nasm_init(&all);
    for (size_t len = from; len <= to; len++) {
        bulla_nasm_hash(input, len, digest);
        bulla_nasm_update(&all, digest, 32);
    }
    bulla_nasm_finalize(&all, 0, digest, 32);
    CHECK(memcmp(digest, expected, 32) == 0);
    free(input);
}

static void every_length(void) { CHECK(for_vectors("lengths", read_run) >= 36); }

static void the_kernel_is_the_wanted_one(void) {
    const char *wanted = getenv("BULLA_TEST_NASM_KERNEL");
    CHECK(wanted != NULL && strcmp(bulla_nasm_kernel(), wanted) == 0);
}

#if !defined(BULLA_NASM_PORTABLE)
/* registers.asm: fills every register that a function must keep, calls the kernel, and returns a
 * bit for each one that it changed. */
extern uint64_t bulla_nasm_changed_registers(const void *job);

static void the_kernel_keeps_registers(void) {
    static const uint32_t KEY_WORDS[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct {
        const uint8_t *inputs[8];
        const uint32_t *key;
        uint8_t *out;
        uint64_t blocks;
        uint32_t counters[16], flags, start, end;
    } job = {.key = KEY_WORDS, .blocks = 16};
    uint8_t *input = input_of(8 * 1024 + 1), *out = input_of(8 * 32 + 1);
    for (int i = 0; i < 8; i++) {
        /* No alignment. */
        job.inputs[i] = input + 1 + 1024 * i;
    }
    job.out = out + 1;
    CHECK(bulla_nasm_changed_registers(&job) == 0);
    free(input);
    free(out);
}
#endif

int main(void) {
    RUN(the_kernel_is_the_wanted_one);
    RUN(every_mode);
    RUN(every_length);
#if !defined(BULLA_NASM_PORTABLE)
    if (strcmp(bulla_nasm_kernel(), "avx2") == 0) {
        RUN(the_kernel_keeps_registers);
    }
#endif
    return check_end();
}
