/*
 * BLAKE3 under the names of the official C library, version 1.8.7, from the project bulla.
 *
 * A program moves over without a change: this header in the include path, and the link line
 * `-lblake3` or that of `pkg-config libblake3`. A program that is already linked with the official
 * `libblake3.so.0` runs with this one. The structure has the official size, needs no destructor,
 * and a copy of its bytes is another hasher in the same state. Its fields are private, and are not
 * those of the official one.
 *
 * These functions report no errors. NULL does nothing, and input of length 0 may be NULL. They may
 * be called from any threads at the same time; one thread at a time may use a hasher, but
 * blake3_hasher_finalize and blake3_hasher_finalize_seek of one hasher may run at once.
 */
#ifndef BLAKE3_H
#define BLAKE3_H

#include <stddef.h>
#include <stdint.h>

#if !defined(BLAKE3_API)
#if defined(_WIN32) && defined(BLAKE3_DLL)
#define BLAKE3_API __declspec(dllimport)
#else
#define BLAKE3_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define BLAKE3_VERSION_STRING "1.8.7"
#define BLAKE3_KEY_LEN 32
#define BLAKE3_OUT_LEN 32
#define BLAKE3_BLOCK_LEN 64
#define BLAKE3_CHUNK_LEN 1024
#define BLAKE3_MAX_DEPTH 54

/* A hasher: 1912 bytes, to be initialized by one of the functions below. */
typedef struct {
    uint64_t private_state[239];
} blake3_hasher;

/* The version of the official library whose functions these are: BLAKE3_VERSION_STRING. */
BLAKE3_API const char *blake3_version(void);

/*
 * Initializes a hasher: for plain hashing, under a key of 32 bytes, or for key derivation with a
 * context. The context of blake3_hasher_init_derive_key ends with a zero byte. Programs should use
 * hardcoded contexts.
 */
BLAKE3_API void blake3_hasher_init(blake3_hasher *self);
BLAKE3_API void blake3_hasher_init_keyed(blake3_hasher *self, const uint8_t key[BLAKE3_KEY_LEN]);
BLAKE3_API void blake3_hasher_init_derive_key(blake3_hasher *self, const char *context);
BLAKE3_API void blake3_hasher_init_derive_key_raw(blake3_hasher *self, const void *context, size_t context_len);

/* Hashes more input. */
BLAKE3_API void blake3_hasher_update(blake3_hasher *self, const void *input, size_t input_len);

/*
 * Hashes more input, on all threads of the machine. The name is that of the official library, which
 * uses oneTBB; this one needs no other library, and starts threads of its own. A process that fork
 * made may call it, and starts its own threads.
 */
BLAKE3_API void blake3_hasher_update_tbb(blake3_hasher *self, const void *input, size_t input_len);

/*
 * Writes output of any length, from position 0 or `seek` on. The digest is the first 32 bytes. The
 * hasher can take more input.
 */
BLAKE3_API void blake3_hasher_finalize(const blake3_hasher *self, uint8_t *out, size_t out_len);
BLAKE3_API void blake3_hasher_finalize_seek(const blake3_hasher *self, uint64_t seek, uint8_t *out, size_t out_len);

/* Resets a hasher: same mode, same key, no input. */
BLAKE3_API void blake3_hasher_reset(blake3_hasher *self);

#ifdef __cplusplus
}
#endif

#endif /* BLAKE3_H */
