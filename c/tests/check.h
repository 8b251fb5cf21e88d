/* A harness of a few lines, which prints what the harness of Rust prints, so that `cargo xtask`
 * counts the tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_passed, check_failed, check_broken;

#define CHECK(what)                                                                                  \
    do {                                                                                             \
        if (!(what)) {                                                                               \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #what);                              \
            check_broken = 1;                                                                        \
        }                                                                                            \
    } while (0)

#define RUN(test) check_run(#test, test)

static void check_count(const char *name) {
    printf("test %s ... %s\n", name, check_broken ? "FAILED" : "ok");
    fflush(stdout);
    check_broken ? check_failed++ : check_passed++;
    check_broken = 0;
}

/* A check that failed outside of a test counts as one. */
static void check_outside(void) {
    if (check_broken) {
        check_count("outside_of_a_test");
    }
}

static void check_run(const char *name, void (*test)(void)) {
    check_outside();
    test();
    check_count(name);
}

/* Prints the summary, and returns the exit status. */
static int check_end(void) {
    check_outside();
    printf("\ntest result: %s. %d passed; %d failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
           check_failed ? "FAILED" : "ok", check_passed, check_failed);
    return check_failed != 0;
}

/* The input of the vectors: 0, 1, ... 250, 0, 1, ... */
static inline uint8_t *input_of(size_t len) {
    uint8_t *input = (uint8_t *)malloc(len + 1);
    if (input == NULL) {
        exit(2);
    }
    for (size_t i = 0; i < len; i++) {
        input[i] = (uint8_t)(i % 251);
    }
    return input;
}

/* Writes the bytes of hexadecimal digits, at most `room`, and returns how many there are. A dash
 * means none. */
static inline size_t from_hex(const char *hex, uint8_t *out, size_t room) {
    size_t n = 0;
    if (hex[0] == '-') {
        return 0;
    }
    while (n < room && hex[2 * n] != '\0') {
        unsigned byte;
        if (sscanf(hex + 2 * n, "%2x", &byte) != 1) {
            exit(2);
        }
        out[n++] = (uint8_t)byte;
    }
    return n;
}

/* Calls `use` with the words of each line of the vectors that begins with `kind`; returns how many
 * there were. `cargo xtask` writes that
 * file from spec/vectors, and names it in the environment. */
static inline int for_vectors(const char *kind, void (*use)(char **words, int n)) {
    static char line[1 << 16];
    const char *path = getenv("BULLA_TEST_VECTORS");
    FILE *file = path ? fopen(path, "r") : NULL;
    int found = 0;
    if (file == NULL) {
        printf("BULLA_TEST_VECTORS names no file\n");
        exit(2);
    }
    while (fgets(line, sizeof line, file)) {
        char *words[8];
        int n = 0;
        for (char *word = strtok(line, " \n"); word != NULL && n < 8; word = strtok(NULL, " \n")) {
            words[n++] = word;
        }
        if (n > 0 && strcmp(words[0], kind) == 0) {
            use(words, n);
            found++;
        }
    }
    fclose(file);
    return found;
}

#endif
