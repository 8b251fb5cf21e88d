/* Times a case. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The nanoseconds of n calls. */
static double timed(work *work, const uint8_t *input, size_t len, size_t n) {
    uint8_t out[DIGEST];
    double start = now();
    work(input, len, out, n);
    return now() - start;
}

/* How many calls take as long as a sample. */
static size_t iterations(work *work, const uint8_t *input, size_t len, double sample) {
    size_t n = 1;
    double time;
    while ((time = timed(work, input, len, n)) < sample / 4) {
        n *= 2;
    }
    double all = sample / time * (double)n;
    return all > 1 ? (size_t)all : 1;
}

static void check(const struct test_case *test, const uint8_t *input) {
    uint8_t expected[DIGEST], out[DIGEST];
    for (int i = 0; i < test->contenders; i++) {
        test->contender[i].work(input, test->bytes, out, 1);
        if (i == 0) {
            memcpy(expected, out, DIGEST);
        } else if (memcmp(expected, out, DIGEST) != 0) {
            fprintf(stderr, "%s has another digest of %zu bytes\n", test->contender[i].name, test->bytes);
            exit(1);
        }
    }
}

void measure(const struct test_case *test, const uint8_t *input, struct settings settings, struct result *result) {
    check(test, input);
    result->rounds = settings.rounds;
    for (int i = 0; i < test->contenders; i++) {
        result->iterations[i] = iterations(test->contender[i].work, input, test->bytes, settings.sample);
    }
    for (int round = 0; round < settings.rounds; round++) {
        int order[MAX_CONTENDERS];
        for (int i = 0; i < test->contenders; i++) {
            int at = rand() % (i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        for (int k = 0; k < test->contenders; k++) {
            int i = order[k];
            size_t n = result->iterations[i];
            /* Warms the branch predictors. */
            timed(test->contender[i].work, input, test->bytes, (n + 7) / 8);
            result->ns[i][round] = timed(test->contender[i].work, input, test->bytes, n) / (double)n;
        }
    }
}

/* An addition and a rotation of one cycle each, which wait for each other. */
#define STEP(x, y) ((x) += (y), (x) = (x) << 7 | (x) >> 57)
#define STEPS(x, y) (STEP(x, y), STEP(x, y), STEP(x, y), STEP(x, y))

double core_clock(void) {
    enum { TURNS = 20000, MORE = 16 };
    volatile uint64_t addend = 0x9E3779B97F4A7C15;
    uint64_t x = 1, y = addend;
    double few = 1e18, many = 1e18;
    /* The difference between long and short chains does not contain the cost of the loop. */
    for (int i = 0; i < 20; i++) {
        double start = now();
        for (int turn = 0; turn < TURNS; turn++) {
            STEPS(x, y);
            __asm__ volatile("" : "+r"(x));
        }
        double middle = now();
        for (int turn = 0; turn < TURNS; turn++) {
            STEPS(x, y);
            STEPS(x, y);
            STEPS(x, y);
            __asm__ volatile("" : "+r"(x));
        }
        double end = now();
        few = middle - start < few ? middle - start : few;
        many = end - middle < many ? end - middle : many;
    }
    addend = x;
    return many > few ? TURNS * MORE / (many - few) : 0;
}
