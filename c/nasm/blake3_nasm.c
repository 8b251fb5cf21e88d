/* BLAKE3 (specification, section 2): the tree and the compression function in C, eight chunks or
 * parents at once in blake3_avx2.asm. */
#include "blake3_nasm.h"

#include <stdatomic.h>
#include <string.h>

#if defined(BULLA_NASM_PORTABLE)
#elif defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif

enum { BLOCK = 64, CHUNK = 1024, OUT = 32, LANES = 8 };
enum { START = 1, END = 2, PARENT = 4, ROOT = 8, KEYED = 16, CONTEXT = 32, MATERIAL = 64 };

/* With fewer chunks or parents, one after the other in C is faster than eight lanes of which most
 * are idle. */
enum { MIN_LANES = 3 };

static const uint32_t IV[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                               0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

/* The words of the message that each of the seven rounds uses, in order: each line permutes the one
 * above (table 2). */
static const uint8_t SCHEDULE[7][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1}, {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4}, {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

static uint32_t load32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void store32(uint8_t *at, uint32_t word) {
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(word >> 8 * i);
    }
}

static inline uint32_t rotate(uint32_t word, int by) { return word >> by | word << (32 - by); }

static inline void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t x, uint32_t y) {
    *a += *b + x;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 12);
    *a += *b + y;
    *d = rotate(*d ^ *a, 8);
    *c += *d;
    *b = rotate(*b ^ *c, 7);
}

#define ROUND(r)                                                                                     \
    do {                                                                                             \
        quarter(&v0, &v4, &v8, &v12, m[SCHEDULE[r][0]], m[SCHEDULE[r][1]]);                          \
        quarter(&v1, &v5, &v9, &v13, m[SCHEDULE[r][2]], m[SCHEDULE[r][3]]);                          \
        quarter(&v2, &v6, &v10, &v14, m[SCHEDULE[r][4]], m[SCHEDULE[r][5]]);                         \
        quarter(&v3, &v7, &v11, &v15, m[SCHEDULE[r][6]], m[SCHEDULE[r][7]]);                         \
        quarter(&v0, &v5, &v10, &v15, m[SCHEDULE[r][8]], m[SCHEDULE[r][9]]);                         \
        quarter(&v1, &v6, &v11, &v12, m[SCHEDULE[r][10]], m[SCHEDULE[r][11]]);                       \
        quarter(&v2, &v7, &v8, &v13, m[SCHEDULE[r][12]], m[SCHEDULE[r][13]]);                        \
        quarter(&v3, &v4, &v9, &v14, m[SCHEDULE[r][14]], m[SCHEDULE[r][15]]);                        \
    } while (0)

/* The compression function: the next chaining value is the first half of `out`; all of it is an
 * output block. */
static void compress(const uint32_t value[8], const uint8_t *block, uint64_t counter, uint32_t len, uint32_t flags,
                     uint32_t out[16]) {
    uint32_t m[16];
    for (int i = 0; i < 16; i++) {
        m[i] = load32(block + 4 * i);
    }
    uint32_t v0 = value[0], v1 = value[1], v2 = value[2], v3 = value[3];
    uint32_t v4 = value[4], v5 = value[5], v6 = value[6], v7 = value[7];
    uint32_t v8 = IV[0], v9 = IV[1], v10 = IV[2], v11 = IV[3];
    uint32_t v12 = (uint32_t)counter, v13 = (uint32_t)(counter >> 32), v14 = len, v15 = flags;
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    const uint32_t low[8] = {v0, v1, v2, v3, v4, v5, v6, v7}, high[8] = {v8, v9, v10, v11, v12, v13, v14, v15};
    for (int i = 0; i < 8; i++) {
        out[i + 8] = high[i] ^ value[i];
        out[i] = low[i] ^ high[i];
    }
}

static void store_value(uint8_t out[OUT], const uint32_t words[8]) {
    for (int i = 0; i < 8; i++) {
        store32(out + 4 * i, words[i]);
    }
}

/* The argument of the assembly, which knows the offsets. */
struct bulla_nasm_job {
    const uint8_t *inputs[LANES];
    const uint32_t *key;
    uint8_t *out;
    uint64_t blocks;
    uint32_t counter_low[LANES], counter_high[LANES];
    uint32_t flags, start, end;
};

#if !defined(BULLA_NASM_PORTABLE)
_Static_assert(sizeof(void *) == 8 && offsetof(struct bulla_nasm_job, key) == 64 &&
                   offsetof(struct bulla_nasm_job, counter_low) == 88 && offsetof(struct bulla_nasm_job, end) == 160,
               "the assembly knows these offsets");

void bulla_nasm_avx2_8(const struct bulla_nasm_job *job);

/* Whether the CPU has AVX2, and the operating system saves its registers. */
static int detect(void) {
#if defined(_MSC_VER)
    int info[4];
    __cpuidex(info, 1, 0);
    if ((info[2] >> 27 & 1) == 0 || (_xgetbv(0) & 6) != 6) {
        return 0;
    }
    __cpuidex(info, 0, 0);
    if (info[0] < 7) {
        return 0;
    }
    __cpuidex(info, 7, 0);
    return info[1] >> 5 & 1;
#else
    unsigned a, b, c, d, state, ignored;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c >> 27 & 1) == 0) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(state), "=d"(ignored) : "c"(0));
    return (state & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 5 & 1);
#endif
}

/* All threads find the same, so that a race between them is harmless. */
static int has_avx2(void) {
    /* 0: not known yet, 1: no, 2: yes. */
    static atomic_int known;
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now == 0) {
        now = 1 + (detect() != 0);
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == 2;
}
#else
static void bulla_nasm_avx2_8(const struct bulla_nasm_job *job) { (void)job; }
static int has_avx2(void) { return 0; }
#endif

const char *bulla_nasm_kernel(void) { return has_avx2() ? "avx2" : "portable"; }

/* What the inputs of one level of the tree have in common. */
struct level {
    size_t blocks, stride;
    uint32_t flags, start, end;
    uint64_t counter, step;
};

static void one(const uint8_t *input, const uint32_t key[8], const struct level *level, uint64_t counter, uint8_t *out) {
    uint32_t words[16];
    memcpy(words, key, OUT);
    for (size_t i = 0; i < level->blocks; i++) {
        uint32_t flags = level->flags | (i == 0 ? level->start : 0) | (i + 1 == level->blocks ? level->end : 0);
        uint32_t value[8];
        memcpy(value, words, OUT);
        compress(value, input + BLOCK * i, counter, BLOCK, flags, words);
    }
    store_value(out, words);
}

/* The chaining values of n neighbors of a level. `out` may be the beginning of the input, if that
 * has one block each. */
static void many(const uint8_t *input, size_t n, const uint32_t key[8], const struct level *level, uint8_t *out) {
    size_t done = 0;
    while (has_avx2() && n - done >= MIN_LANES) {
        struct bulla_nasm_job job = {.key = key, .blocks = level->blocks};
        uint8_t room[LANES * OUT];
        size_t lanes = n - done < LANES ? n - done : LANES;
        job.flags = level->flags;
        job.start = level->start;
        job.end = level->end;
        for (size_t i = 0; i < LANES; i++) {
            /* Idle lanes repeat the last input. */
            size_t at = done + (i < lanes ? i : lanes - 1);
            uint64_t counter = level->counter + at * level->step;
            job.inputs[i] = input + level->stride * at;
            job.counter_low[i] = (uint32_t)counter;
            job.counter_high[i] = (uint32_t)(counter >> 32);
        }
        job.out = lanes == LANES ? out + OUT * done : room;
        bulla_nasm_avx2_8(&job);
        if (lanes < LANES) {
            memcpy(out + OUT * done, room, OUT * lanes);
        }
        done += lanes;
    }
    for (; done < n; done++) {
        one(input + level->stride * done, key, level, level->counter + done * level->step, out + OUT * done);
    }
}

static void chunks(const uint8_t *input, size_t n, const uint32_t key[8], uint32_t flags, uint64_t counter, uint8_t *out) {
    const struct level level = {CHUNK / BLOCK, CHUNK, flags, START, END, counter, 1};
    many(input, n, key, &level, out);
}

/* Replaces n values by their parents, an odd last value by itself. Returns how many there are
 * then. */
static size_t ascend(uint8_t *values, size_t n, const uint32_t key[8], uint32_t flags) {
    const struct level level = {1, BLOCK, flags | PARENT, 0, 0, 0, 0};
    many(values, n / 2, key, &level, values);
    if (n % 2) {
        memmove(values + OUT * (n / 2), values + OUT * (n - 1), OUT);
    }
    return (n + 1) / 2;
}

/* The values of a complete subtree of n chunks, a power of two: up to 8 of them, but at least 2 for
 * several chunks. */
static size_t subtree(const uint8_t *input, size_t n, const uint32_t key[8], uint32_t flags, uint64_t counter,
                      uint8_t out[LANES * OUT]) {
    if (n <= LANES) {
        chunks(input, n, key, flags, counter, out);
        return n;
    }
    uint8_t values[2 * LANES * OUT];
    size_t half = n / 2;
    size_t left = subtree(input, half, key, flags, counter, values);
    size_t right = subtree(input + CHUNK * half, half, key, flags, counter + half, values + OUT * left);
    size_t all = ascend(values, left + right, key, flags);
    memcpy(out, values, OUT * all);
    return all;
}

static void parent(const uint8_t values[2 * OUT], const uint32_t key[8], uint32_t flags, uint8_t out[OUT]) {
    uint32_t words[16];
    compress(key, values, 0, BLOCK, flags | PARENT, words);
    store_value(out, words);
}

static unsigned ones(uint64_t word) {
    unsigned n = 0;
    for (; word != 0; word &= word - 1) {
        n++;
    }
    return n;
}

/* Merges neighbors of equal size. The last subtree stays as it is until another one follows,
 * because its parent may be the root. */
static void merge(bulla_nasm_hasher *self) {
    while (self->stack_len > ones(self->chunks)) {
        uint8_t *left = self->stack[self->stack_len - 2];
        parent(left, self->key, self->flags, left);
        self->stack_len--;
    }
}

static void push(bulla_nasm_hasher *self, const uint8_t value[OUT], uint64_t n) {
    merge(self);
    memcpy(self->stack[self->stack_len++], value, OUT);
    self->chunks += n;
}

/* Takes n whole chunks, of which at least one chunk precedes or several are here. */
static void absorb(bulla_nasm_hasher *self, const uint8_t *input, size_t n) {
    uint8_t values[LANES * OUT];
    while (n > 0) {
        size_t size = 1;
        while (2 * size <= n && self->chunks % (2 * size) == 0) {
            size *= 2;
        }
        if (n < LANES && size < n) {
            /* Not one subtree, but hashed at once. */
            chunks(input, n, self->key, self->flags, self->chunks, values);
            for (size_t i = 0; i < n; i++) {
                push(self, values + OUT * i, 1);
            }
            return;
        }
        size_t count = subtree(input, size, self->key, self->flags, self->chunks, values);
        while (count > 2) {
            count = ascend(values, count, self->key, self->flags);
        }
        for (size_t i = 0; i < count; i++) {
            push(self, values + OUT * i, size / count);
        }
        input += CHUNK * size;
        n -= size;
    }
}

static size_t chunk_len(const bulla_nasm_hasher *self) { return (size_t)self->blocks * BLOCK + self->block_len; }

/* Compresses the block of the unfinished chunk. */
static void compress_block(const bulla_nasm_hasher *self, uint64_t counter, uint32_t more_flags, uint32_t words[16]) {
    uint32_t start = self->blocks == 0 ? START : 0;
    compress(self->value, self->block, counter, self->block_len, self->flags | start | more_flags, words);
}

/* Takes more bytes of the unfinished chunk, at most those that it lacks. The last block waits: it
 * may be the end. */
static void fill_chunk(bulla_nasm_hasher *self, const uint8_t *input, size_t len) {
    if (chunk_len(self) == 0) {
        memcpy(self->value, self->key, OUT);
        memset(self->block, 0, BLOCK);
    }
    while (len > 0) {
        if (self->block_len == BLOCK) {
            uint32_t words[16];
            compress_block(self, self->chunks, 0, words);
            memcpy(self->value, words, OUT);
            memset(self->block, 0, BLOCK);
            self->block_len = 0;
            self->blocks++;
        }
        size_t room = BLOCK - (size_t)self->block_len, now = len < room ? len : room;
        memcpy(self->block + self->block_len, input, now);
        self->block_len = (uint8_t)(self->block_len + now);
        input += now;
        len -= now;
    }
}

static void begin(bulla_nasm_hasher *self, const uint32_t key[8], uint8_t flags) {
    memcpy(self->key, key, sizeof self->key);
    self->chunks = 0;
    self->stack_len = self->block_len = self->blocks = 0;
    self->flags = flags;
    memcpy(self->value, key, sizeof self->value);
    memset(self->block, 0, BLOCK);
}

static void begin_with_bytes(bulla_nasm_hasher *self, const uint8_t key[32], uint8_t flags) {
    uint32_t words[8];
    for (int i = 0; i < 8; i++) {
        words[i] = load32(key + 4 * i);
    }
    begin(self, words, flags);
}

void bulla_nasm_init(bulla_nasm_hasher *self) { begin(self, IV, 0); }

void bulla_nasm_init_keyed(bulla_nasm_hasher *self, const uint8_t *key) { begin_with_bytes(self, key, KEYED); }

void bulla_nasm_init_derive_key(bulla_nasm_hasher *self, const void *context, size_t context_len) {
    uint8_t key[32];
    begin(self, IV, CONTEXT);
    bulla_nasm_update(self, context, context_len);
    bulla_nasm_finalize(self, 0, key, sizeof key);
    begin_with_bytes(self, key, MATERIAL);
}

void bulla_nasm_update(bulla_nasm_hasher *self, const void *data, size_t len) {
    const uint8_t *input = data;
    size_t held = chunk_len(self);
    if (len == 0) {
        return;
    }
    if (held > 0) {
        size_t now = len < CHUNK - held ? len : CHUNK - held;
        fill_chunk(self, input, now);
        input += now;
        len -= now;
        if (len == 0) {
            return;
        }
        /* More follows, so this chunk is not the root. */
        uint32_t words[16];
        uint8_t value[OUT];
        compress_block(self, self->chunks, END, words);
        store_value(value, words);
        push(self, value, 1);
        self->block_len = self->blocks = 0;
    }
    if (self->chunks > 0 || len > CHUNK) {
        absorb(self, input, len / CHUNK);
        input += len / CHUNK * CHUNK;
        len %= CHUNK;
    }
    if (len > 0) {
        fill_chunk(self, input, len);
    }
}

void bulla_nasm_finalize(const bulla_nasm_hasher *self, uint64_t seek, uint8_t *out, size_t out_len) {
    uint32_t value[8], words[16], len = self->block_len, flags = self->flags;
    uint8_t block[BLOCK], bytes[BLOCK];
    if (self->chunks == 0) {
        memcpy(value, self->value, sizeof value);
        memcpy(block, self->block, BLOCK);
        flags |= (self->blocks == 0 ? START : 0) | END;
    } else {
        /* The parents from the right to the left; the topmost is the root. */
        bulla_nasm_hasher rest = *self;
        if (self->block_len > 0) {
            compress_block(self, self->chunks, END, words);
            store_value(block + OUT, words);
            merge(&rest);
        } else {
            memcpy(block + OUT, rest.stack[--rest.stack_len], OUT);
        }
        while (rest.stack_len > 1) {
            memcpy(block, rest.stack[--rest.stack_len], OUT);
            parent(block, self->key, self->flags, block + OUT);
        }
        memcpy(block, rest.stack[0], OUT);
        memcpy(value, self->key, sizeof value);
        len = BLOCK;
        flags |= PARENT;
    }
    size_t within = (size_t)(seek % BLOCK);
    for (uint64_t counter = seek / BLOCK; out_len > 0; counter++) {
        size_t now = out_len < BLOCK - within ? out_len : BLOCK - within;
        compress(value, block, counter, len, flags | ROOT, words);
        for (int i = 0; i < 16; i++) {
            store32(bytes + 4 * i, words[i]);
        }
        memcpy(out, bytes + within, now);
        out += now;
        out_len -= now;
        within = 0;
    }
}

void bulla_nasm_hash(const void *input, size_t len, uint8_t out[BULLA_NASM_OUT_LEN]) {
    bulla_nasm_hasher hasher;
    bulla_nasm_init(&hasher);
    bulla_nasm_update(&hasher, input, len);
    bulla_nasm_finalize(&hasher, 0, out, BULLA_NASM_OUT_LEN);
}
