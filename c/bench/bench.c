/* Times BLAKE3 of ours and of others in one process, in a new random order in each round. README.md
 * says how to build and run it.
 *
 *     bench [--records] [--sizes A,B,...|sweep] [--runs N] LIBBULLA LIBBLAKE3 OFFICIAL [RUST]
 *
 * Prints a line of JSON for each size and contender; with --records the records of
 * spec/bench-record.md, for `cargo xtask bench c`.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "blake3_nasm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64, GROUPS = 4 };

static const size_t DEFAULT_SIZES[] = {1024, 8192, 1 << 20};
static const size_t SWEEP[] = {0,    1,    16,   32,    63,    64,    65,    128,   256,    512,    1000,    1024,   1025, 2048,
                               3072, 4096, 5000, 8192, 10240, 15360, 16384, 32768, 65536, 131072, 262144, 1048576, 8388608};

/* A list of sizes in bytes. */
struct sizes {
    size_t n, of[MAX_SIZES];
};

/* The functions of the official library, by two libraries. */
struct names {
    void (*init)(void *);
    void (*update)(void *, const void *, size_t);
    void (*finalize)(const void *, uint8_t *, size_t);
};

static struct names official, drop_in;
static int (*one_shot)(const void *, size_t, uint8_t *);
static int (*state_init)(void *), (*state_update)(void *, const void *, size_t);
static int (*state_finalize)(const void *, uint64_t, uint8_t *, size_t);
static int (*kernel_name)(const char **);
static const char *(*bulla_version)(void), *(*official_version)(void);
static work *rust;

/* The compiler must call each time. */
#define KEEP(out) __asm__ volatile("" : : "r"(out) : "memory")

static void work_names(const struct names *names, const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        uint64_t hasher[239];
        names->init(hasher);
        names->update(hasher, input, len);
        names->finalize(hasher, out, 32);
        KEEP(out);
    }
}

static void work_official(const void *input, size_t len, uint8_t *out, size_t n) {
    work_names(&official, input, len, out, n);
}

static void work_drop_in(const void *input, size_t len, uint8_t *out, size_t n) {
    work_names(&drop_in, input, len, out, n);
}

static void work_one_shot(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        one_shot(input, len, out);
        KEEP(out);
    }
}

static void work_state(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        uint64_t state[240];
        state_init(state);
        state_update(state, input, len);
        state_finalize(state, 0, out, 32);
        KEEP(out);
    }
}

static void work_nasm(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        bulla_nasm_hash(input, len, out);
        KEEP(out);
    }
}

/* The implementations. Those of records are named as users know them. */
enum { OFFICIAL, ONE_SHOT, STATE, NAMES, NASM, RUST };
static struct contender all[MAX_CONTENDERS] = {
    [OFFICIAL] = {"official", work_official, "blake3 (C)", "peer", "", ""},
    [ONE_SHOT] = {"libbulla one-shot", work_one_shot, "bulla c", "ours", "", ""},
    [STATE] = {"libbulla state", work_state, "bulla c", "ours", "", ""},
    [NAMES] = {"libblake3 ours", work_drop_in, "bulla c", "ours", "", ""},
    [NASM] = {"nasm", work_nasm, "bulla nasm", "ours", "", ""},
    [RUST] = {"rust", NULL, "", "", "", ""},
};

/* The cases of records: one of ours each, beside the official library. */
static const struct group {
    const char *name;
    int ours;
} GROUP[GROUPS] = {{"one-shot", ONE_SHOT}, {"state", STATE}, {"names", NAMES}, {"nasm", NASM}};

static void *symbol(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

/* A pointer to a function from a pointer to data, which POSIX allows and ISO C does not know. */
#define TAKE(to, library, name) (*(void **)(void *)&(to) = symbol(library, name))

static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

static void names_of(struct names *names, void *library) {
    TAKE(names->init, library, "blake3_hasher_init");
    TAKE(names->update, library, "blake3_hasher_update");
    TAKE(names->finalize, library, "blake3_hasher_finalize");
}

/* Opens the libraries and names what is in them. */
static void take(int n, char **paths) {
    const char *kernel = NULL;
    void *bulla = open_library(paths[0]), *theirs = open_library(paths[2]);
    TAKE(one_shot, bulla, "bulla_blake3");
    TAKE(state_init, bulla, "bulla_blake3_init");
    TAKE(state_update, bulla, "bulla_blake3_update");
    TAKE(state_finalize, bulla, "bulla_blake3_finalize");
    TAKE(kernel_name, bulla, "bulla_blake3_kernel");
    TAKE(bulla_version, bulla, "bulla_version");
    names_of(&drop_in, open_library(paths[1]));
    names_of(&official, theirs);
    TAKE(official_version, theirs, "blake3_version");
    if (n > 3) {
        TAKE(rust, open_library(paths[3]), "rust_loop");
        all[RUST].work = rust;
    }
    if (kernel_name(&kernel) != 0) {
        fprintf(stderr, "the machine lacks the kernel of BULLA_BLAKE3_FORCE_KERNEL\n");
        exit(2);
    }
    all[OFFICIAL].version = official_version();
    for (int i = ONE_SHOT; i <= NASM; i++) {
        all[i].version = bulla_version();
        all[i].kernel = kernel;
    }
    all[NASM].kernel = strcmp(bulla_nasm_kernel(), "avx2") == 0 ? "x86_64/avx2" : "portable";
}

/* Adds the numbers of a list with commas. */
static void read_sizes(struct sizes *sizes, const char *text) {
    sizes->n = 0;
    for (const char *at = text; *at != '\0' && sizes->n < MAX_SIZES; at += *at == ',') {
        char *end;
        sizes->of[sizes->n++] = strtoul(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0')) {
            fprintf(stderr, "bench: no sizes: %s\n", text);
            exit(2);
        }
        at = end;
    }
}

/* Whether a variable is not set, or its list has the word, or for names: the beginning of the word.
static int wanted(const char *variable, const char *word, int is_name) {
    const char *at = getenv(variable);
    if (at == NULL || *at == '\0') {
        return 1;
    }
    for (; *at != '\0'; at += *at == ',') {
        size_t len = strcspn(at, ",");
        const char *end = is_name ? word + strnlen(word, len) : word + strlen(word);
        if ((size_t)(end - word) == len && strncmp(at, word, len) == 0) {
            return 1;
        }
        at += len;
    }
    return 0;
}

/* Whether the user wants a case. */
static int is_wanted(const char *group, size_t size) {
    char text[32], name[64], full[sizeof name + 2];
    snprintf(text, sizeof text, "%zu", size);
    snprintf(name, sizeof name, "%s/%zu", group, size);
    snprintf(full, sizeof full, "c/%s", name);
    return wanted("BULLA_BENCH_SIZES", text, 0) && (wanted("BULLA_BENCH_CASES", name, 1) || wanted("BULLA_BENCH_CASES", full, 1));
}

/* All contenders side by side, at each size. */
static void summaries(const uint8_t *input, const struct sizes *sizes, struct settings settings) {
    static struct result result;
    struct test_case test = {"all", 0, all[RUST].work != NULL ? RUST + 1 : RUST, {{0}}};
    memcpy(test.contender, all, sizeof all);
    for (size_t i = 0; i < sizes->n; i++) {
        test.bytes = sizes->of[i];
        measure(&test, input, settings, &result);
        print_summary(&test, &result);
    }
}

/* Each of ours beside the official library, which has a second instance as the control. */
static void records(const uint8_t *input, const struct sizes *sizes, struct settings settings) {
    static struct result result;
    struct contender control = all[OFFICIAL];
    control.role = "control";
    for (int group = 0; group < GROUPS; group++) {
        int ours = GROUP[group].ours;
        if (ours == NASM && getenv("BULLA_BLAKE3_FORCE_KERNEL") != NULL) {
            continue; /* It has one kernel. */
        }
        struct test_case test = {GROUP[group].name, 0, 3, {all[ours], all[OFFICIAL], control}};
        for (size_t i = 0; i < sizes->n; i++) {
            test.bytes = sizes->of[i];
            if (is_wanted(test.group, test.bytes)) {
                double ghz = core_clock();
                measure(&test, input, settings, &result);
                print_records(&test, &result, ghz);
            }
        }
    }
}

static int usage(void) {
    fprintf(stderr, "usage: bench [--records] [--sizes A,B,...|sweep] [--runs N] LIBBULLA LIBBLAKE3 OFFICIAL [RUST]\n");
    return 2;
}

int main(int argc, char **argv) {
    const struct sizes sweep = {sizeof SWEEP / sizeof SWEEP[0], {0}};
    struct sizes sizes = {sizeof DEFAULT_SIZES / sizeof DEFAULT_SIZES[0], {0}};
    int rounds = 0, at = 1, are_records = 0;
    memcpy(sizes.of, DEFAULT_SIZES, sizeof DEFAULT_SIZES);
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *value = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(argv[at], "--records") == 0) {
            are_records = 1;
            sizes = sweep;
            memcpy(sizes.of, SWEEP, sizeof SWEEP);
            continue;
        }
        if (strcmp(argv[at], "--runs") == 0) {
            rounds = atoi(value);
        } else if (strcmp(argv[at], "--sizes") == 0 && strcmp(value, "sweep") == 0) {
            sizes = sweep;
            memcpy(sizes.of, SWEEP, sizeof SWEEP);
        } else if (strcmp(argv[at], "--sizes") == 0) {
            read_sizes(&sizes, value);
        } else {
            return usage();
        }
        at++;
    }
    rounds = rounds != 0 ? rounds : are_records ? 51 : 10;
    if (argc - at < 3 || rounds < 1 || rounds > MAX_ROUNDS) {
        return usage();
    }
    take(argc - at, argv + at);
    size_t most = 1;
    for (size_t i = 0; i < sizes.n; i++) {
        most = sizes.of[i] > most ? sizes.of[i] : most;
    }
    uint8_t *input = malloc(most);
    if (input == NULL) {
        return 2;
    }
    for (size_t i = 0; i < most; i++) {
        input[i] = (uint8_t)(i % 251);
    }
    const char *launch = getenv("BULLA_BENCH_LAUNCH");
    srand(launch != NULL ? (unsigned)atoi(launch) : 1);
    (are_records ? records : summaries)(input, &sizes, (struct settings){rounds, are_records ? 2e5 : 1e6});
    free(input);
    return 0;
}
