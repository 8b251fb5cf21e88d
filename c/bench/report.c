/* Prints what was measured. */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median_ratio(const double *theirs, const double *mine, int rounds) {
    double ratios[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        ratios[i] = theirs[i] / mine[i];
    }
    qsort(ratios, (size_t)rounds, sizeof ratios[0], compare);
    return (ratios[rounds / 2] + ratios[(rounds - 1) / 2]) / 2;
}

void print_summary(const struct test_case *test, const struct result *result) {
    int rounds = result->rounds;
    for (int i = 0; i < test->contenders; i++) {
        const double *mine = result->ns[i];
        double sum = 0, squares = 0, least = mine[0], most = mine[0];
        for (int round = 0; round < rounds; round++) {
            sum += mine[round];
            least = fmin(least, mine[round]);
            most = fmax(most, mine[round]);
        }
        for (int round = 0; round < rounds; round++) {
            squares += (mine[round] - sum / rounds) * (mine[round] - sum / rounds);
        }
        printf("{\"bytes\":%zu,\"contender\":\"%s\",\"runs\":%d,\"mean_ns\":%.1f,\"min_ns\":%.1f,\"max_ns\":%.1f,"
               "\"stddev_ns\":%.1f,\"official_over_ours\":%.3f}\n",
               test->bytes, test->contender[i].name, rounds, sum / rounds, least, most,
               sqrt(squares / (rounds > 1 ? rounds - 1 : 1)), median_ratio(result->ns[0], mine, rounds));
    }
    fflush(stdout);
}

/* Prints a string of JSON. */
static void print_text(const char *name, const char *text) {
    printf("\"%s\":\"", name);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    printf("\",");
}

/* The processor's own name. */
static void print_processor(void) {
    char line[512], *name = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && name == NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "model name", 10) == 0 && (name = strchr(line, ':')) != NULL) {
            name += 1 + strspn(name + 1, " \t");
            name[strcspn(name, "\n")] = '\0';
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    print_text("cpu", name != NULL ? name : "unknown");
}

static void print_features(void) {
    const char *comma = "";
    printf("\"features\":[");
#if defined(__x86_64__)
#define FEATURE(name) \
    if (__builtin_cpu_supports(name)) printf("%s\"%s\"", comma, name), comma = ","
    FEATURE("sse4.1");
    FEATURE("bmi2");
    FEATURE("avx2");
    FEATURE("avx512f");
    FEATURE("avx512bw");
    FEATURE("avx512vl");
#endif
    printf("],");
}

static void print_time(void) {
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    print_text("time", text);
}

/* `cargo xtask` fills in what is empty: that it built ours, and how. */
static void print_build(const struct contender *contender) {
    int is_rust = strcmp(contender->role, "ours") == 0 && strcmp(contender->implementation, "bulla nasm") != 0;
    print_text("toolchain", is_rust ? "" : "cc " __VERSION__);
    print_text("flags", is_rust ? "" : "-O3");
}

static void print_record(const struct test_case *test, const struct result *result, int i, double ghz) {
    const struct contender *contender = &test->contender[i];
    int is_ours = strcmp(contender->role, "ours") == 0;
    double load = 0;
    printf("{\"schema\":2,\"run\":\"\",\"suite\":\"c\",\"case\":\"%s/%zu\",\"bytes\":%zu,", test->group, test->bytes, test->bytes);
    print_time();
    print_text("implementation", contender->implementation);
    print_text("version", contender->version);
    print_text("role", contender->role);
    print_text("kernel", is_ours ? contender->kernel : "");
    printf("\"forced\":%s,", is_ours && getenv("BULLA_BLAKE3_FORCE_KERNEL") != NULL ? "true" : "false");
    printf("\"held_to\":\"\",\"lane\":\"\",");
    print_processor();
    print_features();
    print_build(contender);
    printf("\"ghz\":%.3f,\"commit\":\"\",\"dirty\":false,\"launch\":1,\"iterations\":%zu,\"samples_ns\":[", ghz, result->iterations[i]);
    for (int round = 0; round < result->rounds; round++) {
        printf("%s%.3f", round > 0 ? "," : "", result->ns[i][round]);
    }
    printf("],\"load\":%.2f}\n", getloadavg(&load, 1) == 1 ? load : 0.0);
}

void print_records(const struct test_case *test, const struct result *result, double ghz) {
    for (int i = 0; i < test->contenders; i++) {
        print_record(test, result, i, ghz);
    }
    fflush(stdout);
}
