/* What the files of the harness share. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_ROUNDS = 100, MAX_CONTENDERS = 6, DIGEST = 32 };

/* Hashes `len` bytes `n` times, one call after the other, and leaves the last digest in `out`. */
typedef void work(const void *input, size_t len, uint8_t *out, size_t n);

/* One of the implementations in a case. */
struct contender {
    const char *name; /* in the lines of the summary */
    work *work;
    const char *implementation, *role; /* those of a record */
    const char *version, *kernel;
};

/* What several contenders do with the same input. */
struct test_case {
    const char *group;
    size_t bytes;
    int contenders;
    struct contender contender[MAX_CONTENDERS];
};

/* How a case is measured. */
struct settings {
    int rounds;
    double sample; /* the time of one sample in nanoseconds */
};

/* What a case gave. */
struct result {
    int rounds;
    size_t iterations[MAX_CONTENDERS];
    double ns[MAX_CONTENDERS][MAX_ROUNDS]; /* of one call */
};

/* Takes a sample of each contender in each round, in a new random order. Ends the process if two
 * contenders have different digests. */
void measure(const struct test_case *test, const uint8_t *input, struct settings settings, struct result *result);

/* The frequency of the core in GHz. */
double core_clock(void);

/* Prints a line of JSON for each contender: the times, and their ratios to the first one. */
void print_summary(const struct test_case *test, const struct result *result);

/* Prints the records of a case: spec/bench-record.md. */
void print_records(const struct test_case *test, const struct result *result, double ghz);

#endif
