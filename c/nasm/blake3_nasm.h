/*
 * A freestanding BLAKE3 in C11 with a kernel for AVX2 in NASM. It needs no other library, no heap,
 * and of the C library only memcpy and memset. Build it with
 *
 *     nasm -f elf64 -o blake3_avx2.o blake3_avx2.asm        (or -f win64)
 *     cc -O3 -c blake3_nasm.c
 *
 * Where the CPU has no AVX2, or with -DBULLA_NASM_PORTABLE and without the object of the assembler,
 * C alone does the work.
 *
 * All functions may be called from any threads at the same time; one thread at a time may change a
 * hasher. A hasher needs no destructor, and a copy of its bytes is another hasher in the same
 * state. No pointer may be NULL, except that of an input of length 0.
 */
#ifndef BULLA_BLAKE3_NASM_H
#define BULLA_BLAKE3_NASM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BULLA_NASM_OUT_LEN 32
#define BULLA_NASM_KEY_LEN 32

/* A hasher. Its fields are private. */
typedef struct {
    uint32_t key[8];
    uint32_t value[8];                /* the unfinished chunk before its last block */
    uint64_t chunks;                  /* the finished chunks, which are on the stack */
    uint8_t stack[55][32];            /* the chaining values of finished subtrees, the largest first */
    uint8_t block[64];                /* the last block of the unfinished chunk, padded with zeros */
    uint8_t stack_len, block_len, blocks, flags;
} bulla_nasm_hasher;

/* Initializes a hasher: for plain hashing, under a key of 32 bytes, or for key derivation with a
 * context. */
void bulla_nasm_init(bulla_nasm_hasher *self);
void bulla_nasm_init_keyed(bulla_nasm_hasher *self, const uint8_t *key);
void bulla_nasm_init_derive_key(bulla_nasm_hasher *self, const void *context, size_t context_len);

/* Hashes more input. */
void bulla_nasm_update(bulla_nasm_hasher *self, const void *input, size_t len);

/* Writes `out_len` bytes of output from position `seek` on: the digest is the first 32 bytes. The
 * hasher can take more input. */
void bulla_nasm_finalize(const bulla_nasm_hasher *self, uint64_t seek, uint8_t *out, size_t out_len);

/* The digest of `len` bytes. */
void bulla_nasm_hash(const void *input, size_t len, uint8_t out[BULLA_NASM_OUT_LEN]);

/* What does the work: "avx2" or "portable". */
const char *bulla_nasm_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
