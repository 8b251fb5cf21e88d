/* Processes that fork after the threads have started, as prefork servers do: threads do not exist
 * in the new process. */
#define _POSIX_C_SOURCE 200809L
#include "blake3.h"
#include "bulla.h"
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 1 << 20, THREADS = 3 };

static uint8_t *input, expected[32];
static char path[] = "fork-XXXXXX";

/* Whether every function with threads gives the digest. */
static int all_functions_agree(void) {
    uint8_t out[4][32] = {{0}};
    blake3_hasher official;
    bulla_blake3_state state;
    bulla_blake3_hasher *hasher = NULL;
    blake3_hasher_init(&official);
    blake3_hasher_update_tbb(&official, input, LEN);
    blake3_hasher_finalize(&official, out[0], 32);
    if (bulla_blake3_init(&state) || bulla_blake3_update_threads(&state, input, LEN) ||
        bulla_blake3_finalize(&state, 0, out[1], 32) || bulla_blake3_hasher_new(&hasher) ||
        bulla_blake3_hasher_update_threads(hasher, input, LEN) ||
        bulla_blake3_hasher_finalize(hasher, 0, out[2], 32) ||
        bulla_blake3_file(path, BULLA_ALL_THREADS, NULL, NULL, out[3])) {
        return 0;
    }
    bulla_blake3_hasher_free(hasher);
    for (int i = 0; i < 4; i++) {
        if (memcmp(out[i], expected, 32) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Whether `work` returns true in a new process. If it hangs, the alarm ends that process. It never
 * exits: valgrind would
 * report what only the threads of the parent process point to. */
static int in_child(int (*work)(void)) {
    int pipes[2];
    char answer = 0;
    if (pipe(pipes) != 0) {
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        answer = (char)work();
        if (write(pipes[1], &answer, 1) == 1) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    close(pipes[1]);
    int answered = read(pipes[0], &answer, 1) == 1;
    close(pipes[0]);
    return child > 0 && waitpid(child, NULL, 0) == child && answered && answer == 1;
}

static int agree_in_child(void) { return all_functions_agree() && in_child(all_functions_agree); }

/* The threads of this process. */
static int count_threads(void) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return -1;
    }
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        found += task->d_name[0] != '.';
    }
    closedir(tasks);
    return found;
}

static int has_as_many_threads(void) {
    bulla_blake3_state state;
    return count_threads() == 1 && bulla_blake3_init(&state) == BULLA_OK &&
           bulla_blake3_update_threads(&state, input, LEN) == BULLA_OK && count_threads() == 1 + THREADS &&
           bulla_start_threads(THREADS) == BULLA_ERROR_STATE;
}

static int starts_others(void) {
    return bulla_start_threads(THREADS + 1) == BULLA_OK && count_threads() == 1 + THREADS + 1 &&
           bulla_start_threads(1) == BULLA_ERROR_STATE && all_functions_agree();
}

static void the_threads_start_once(void) {
    CHECK(bulla_start_threads(THREADS) == BULLA_OK);
    CHECK(bulla_start_threads(THREADS) == BULLA_ERROR_STATE);
}

static void a_child_and_its_child_hash_on_threads(void) {
    CHECK(all_functions_agree());
    CHECK(in_child(agree_in_child));
    CHECK(all_functions_agree());
}

static void a_child_has_as_many_threads_as_its_parent(void) { CHECK(in_child(has_as_many_threads)); }

static void a_child_may_choose_its_threads(void) { CHECK(in_child(starts_others)); }

int main(void) {
    blake3_hasher hasher;
    int file = mkstemp(path);
    input = input_of(LEN);
    if (file < 0 || write(file, input, LEN) != LEN || close(file) != 0) {
        return 2;
    }
    blake3_hasher_init(&hasher);
    blake3_hasher_update(&hasher, input, LEN);
    blake3_hasher_finalize(&hasher, expected, 32);
    RUN(the_threads_start_once);
    RUN(a_child_and_its_child_hash_on_threads);
    RUN(a_child_has_as_many_threads_as_its_parent);
    RUN(a_child_may_choose_its_threads);
    unlink(path);
    free(input);
    return check_end();
}
