/* Times BLAKE3 of ours and of others in one process: interleaved runs, in a new random order each time. Prints a line of JSON for each case
 * and contender. README.md says how to build and run it.
 *
 *     bench [--sizes A,B,...] [--runs N] LIBBULLA LIBBLAKE3 OFFICIAL [RUST]
 */
#define _GNU_SOURCE
#include "blake3_nasm.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RUNS = 100, MOST_SIZES = 64, CONTENDERS = 6 };

/* The time of one sample in nanoseconds. */
static const double SAMPLE = 1e6;

static const size_t DEFAULT_SIZES[] = {1024, 8192, 1 << 20, 0};
static const size_t SWEEP[] = {1,    16,   32,   63,    64,    65,    128,   256,    512,    1000,    1024,    1025,    2048, 3072,
                               4096, 5000, 8192, 10240, 15360, 16384, 32768, 65536, 131072, 262144, 1048576, 8388608, 0};

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
static void (*rust)(const void *, size_t, uint8_t *, size_t);

/* The compiler must call each time. */
#define KEEP(out) __asm__ volatile("" : : "r"(out) : "memory")

static void loop_names(const struct names *names, const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        uint64_t hasher[239];
        names->init(hasher);
        names->update(hasher, input, len);
        names->finalize(hasher, out, 32);
        KEEP(out);
    }
}

static void loop_official(const void *input, size_t len, uint8_t *out, size_t n) {
    loop_names(&official, input, len, out, n);
}

static void loop_drop_in(const void *input, size_t len, uint8_t *out, size_t n) {
    loop_names(&drop_in, input, len, out, n);
}

static void loop_one_shot(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        one_shot(input, len, out);
        KEEP(out);
    }
}

static void loop_state(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        uint64_t state[240];
        state_init(state);
        state_update(state, input, len);
        state_finalize(state, 0, out, 32);
        KEEP(out);
    }
}

static void loop_nasm(const void *input, size_t len, uint8_t *out, size_t n) {
    while (n-- > 0) {
        bulla_nasm_hash(input, len, out);
        KEEP(out);
    }
}

static const struct contender {
    const char *name;
    void (*loop)(const void *, size_t, uint8_t *, size_t);
} CONTENDER[CONTENDERS] = {
    {"official", loop_official}, {"libbulla one-shot", loop_one_shot}, {"libbulla state", loop_state},
    {"libblake3 ours", loop_drop_in}, {"nasm", loop_nasm}, {"rust", NULL},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void loop(int contender, const void *input, size_t len, uint8_t *out, size_t n) {
    if (CONTENDER[contender].loop != NULL) {
        CONTENDER[contender].loop(input, len, out, n);
    } else {
        rust(input, len, out, n);
    }
}

/* The nanoseconds of one call. */
static double sample(int contender, const void *input, size_t len, size_t n) {
    uint8_t out[32];
    double start = now();
    loop(contender, input, len, out, n);
    return (now() - start) / (double)n;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void report(size_t len, int contender, double times[][MOST_RUNS], int runs) {
    double sum = 0, squares = 0, ratios[MOST_RUNS], *mine = times[contender];
    double least = mine[0], most = mine[0];
    for (int run = 0; run < runs; run++) {
        sum += mine[run];
        least = fmin(least, mine[run]);
        most = fmax(most, mine[run]);
        ratios[run] = times[0][run] / mine[run];
    }
    double mean = sum / runs;
    for (int run = 0; run < runs; run++) {
        squares += (mine[run] - mean) * (mine[run] - mean);
    }
    qsort(ratios, (size_t)runs, sizeof ratios[0], compare);
    double median = (ratios[runs / 2] + ratios[(runs - 1) / 2]) / 2;
    printf("{\"bytes\":%zu,\"contender\":\"%s\",\"runs\":%d,\"mean_ns\":%.1f,\"min_ns\":%.1f,\"max_ns\":%.1f,"
           "\"stddev_ns\":%.1f,\"official_over_ours\":%.3f}\n",
           len, CONTENDER[contender].name, runs, mean, least, most, sqrt(squares / (runs > 1 ? runs - 1 : 1)), median);
}

static void measure(const uint8_t *input, size_t len, int runs, int contenders) {
    static double times[CONTENDERS][MOST_RUNS];
    size_t n[CONTENDERS];
    uint8_t expected[32], out[32];
    for (int i = 0; i < contenders; i++) {
        loop(i, input, len, out, 1);
        if (i == 0) {
            memcpy(expected, out, 32);
        } else if (memcmp(expected, out, 32) != 0) {
            fprintf(stderr, "%s has another digest of %zu bytes\n", CONTENDER[i].name, len);
            exit(1);
        }
        n[i] = 1;
        for (double time = 0; (time = sample(i, input, len, n[i]) * (double)n[i]) < SAMPLE / 4; n[i] *= 2) {
        }
        double each = sample(i, input, len, n[i]);
        n[i] = each < SAMPLE ? (size_t)(SAMPLE / each) : 1;
    }
    for (int run = 0; run < runs; run++) {
        int order[CONTENDERS];
        for (int i = 0; i < contenders; i++) {
            int at = rand() % (i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        for (int i = 0; i < contenders; i++) {
            times[order[i]][run] = sample(order[i], input, len, n[order[i]]);
        }
    }
    for (int i = 0; i < contenders; i++) {
        report(len, i, times, runs);
    }
}

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

static void names_of(struct names *names, const char *path) {
    void *library = open_library(path);
    TAKE(names->init, library, "blake3_hasher_init");
    TAKE(names->update, library, "blake3_hasher_update");
    TAKE(names->finalize, library, "blake3_hasher_finalize");
}

int main(int argc, char **argv) {
    size_t sizes[MOST_SIZES], most = 0;
    int runs = 10, at = 1, contenders = CONTENDERS;
    memcpy(sizes, DEFAULT_SIZES, sizeof DEFAULT_SIZES);
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--runs") == 0) {
            runs = atoi(argv[at + 1]);
        } else if (strcmp(argv[at + 1], "sweep") == 0) {
            memcpy(sizes, SWEEP, sizeof SWEEP);
        } else {
            int n = 0;
            for (char *word = strtok(argv[at + 1], ","); word != NULL && n + 1 < MOST_SIZES; word = strtok(NULL, ",")) {
                sizes[n++] = strtoul(word, NULL, 10);
            }
            sizes[n] = 0;
        }
    }
    if (argc - at < 3 || runs < 1 || runs > MOST_RUNS) {
        fprintf(stderr, "usage: bench [--sizes A,B,...|sweep] [--runs N] LIBBULLA LIBBLAKE3 OFFICIAL [RUST]\n");
        return 2;
    }
    void *bulla = open_library(argv[at]);
    TAKE(one_shot, bulla, "bulla_blake3");
    TAKE(state_init, bulla, "bulla_blake3_init");
    TAKE(state_update, bulla, "bulla_blake3_update");
    TAKE(state_finalize, bulla, "bulla_blake3_finalize");
    names_of(&drop_in, argv[at + 1]);
    names_of(&official, argv[at + 2]);
    if (argc - at > 3) {
        TAKE(rust, open_library(argv[at + 3]), "rust_loop");
    } else {
        contenders--;
    }
    for (int i = 0; sizes[i] != 0; i++) {
        most = sizes[i] > most ? sizes[i] : most;
    }
    uint8_t *input = malloc(most);
    if (input == NULL) {
        return 2;
    }
    for (size_t i = 0; i < most; i++) {
        input[i] = (uint8_t)(i % 251);
    }
    for (int i = 0; sizes[i] != 0; i++) {
        measure(input, sizes[i], runs, contenders);
    }
    free(input);
    return 0;
}
