//! BLAKE3 of input in pieces, by a hasher on the heap.

use crate::args;
use crate::blake3_state::give_saved;
use crate::kernels::{named, ready};
use crate::pool::pool;
use crate::status::{BULLA_ERROR_ARGUMENT, BULLA_ERROR_STATE, Failure, bulla_status, guard};
use bulla_blake3::hazmat::{HasherExt as _, Mode};
use bulla_blake3::{Hasher, hazmat};
use std::ffi::{c_char, c_void};
use zeroize::Zeroize as _;

/// A mode of BLAKE3: plain hashing.
pub const BULLA_BLAKE3_HASH: u32 = 0;
/// A mode of BLAKE3: hashing under a key of 32 bytes.
pub const BULLA_BLAKE3_KEYED_HASH: u32 = 1;
/// A mode of BLAKE3: key derivation; the input is the key material. The key is that of a context:
/// see bulla_blake3_context_key.
pub const BULLA_BLAKE3_DERIVE_KEY: u32 = 2;

/// The most bytes of a saved state.
pub const BULLA_BLAKE3_MAX_SAVED_LEN: usize = 2815;
const _: () = assert!(BULLA_BLAKE3_MAX_SAVED_LEN == bulla_blake3::MAX_STATE_LEN);

/// A BLAKE3 hasher, which bulla_blake3_hasher_free frees. It collects small pieces of input for the
/// widest vectors of the CPU. One thread at a time may use a hasher; calls that take it as const
/// may run at the same time.
pub struct bulla_blake3_hasher {
    pub(crate) inner: Hasher,
}

/// # Safety
///
/// `to` must be NULL or have room for a pointer.
unsafe fn give_hasher(to: *mut *mut bulla_blake3_hasher, inner: Hasher) -> Result<(), Failure> {
    // SAFETY: the caller promised it.
    let to = unsafe { args::object_mut(to) }?;
    *to = Box::into_raw(Box::new(bulla_blake3_hasher { inner }));
    Ok(())
}

/// Makes a hasher for plain hashing. Thread-safe.
///
/// # Safety
///
/// `hasher` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_new(hasher: *mut *mut bulla_blake3_hasher) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised room for a pointer.
        unsafe { give_hasher(hasher, Hasher::new()) }
    })
}

/// Makes a hasher under a key of 32 bytes, which it copies. Thread-safe.
///
/// # Safety
///
/// `key` has 32 bytes, `hasher` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_new_keyed(
    key: *const u8,
    hasher: *mut *mut bulla_blake3_hasher,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the key and room for a pointer.
        unsafe { give_hasher(hasher, Hasher::new_keyed(&args::array(key)?)) }
    })
}

/// Makes a hasher for key derivation: its input is the key material. The context must be UTF-8.
/// Thread-safe.
///
/// # Safety
///
/// `context` has `context_len` bytes, `hasher` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_new_derive_key(
    context: *const c_void,
    context_len: usize,
    hasher: *mut *mut bulla_blake3_hasher,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the context and room for a pointer.
        unsafe {
            let context = str::from_utf8(args::bytes(context, context_len)?)
                .map_err(|error| Failure::new(BULLA_ERROR_ARGUMENT, format!("the context: {error}")))?;
            let key = hazmat::hash_derive_key_context(context);
            give_hasher(hasher, Hasher::new_from_context_key(&key))
        }
    })
}

/// Makes a hasher of any mode (BULLA_BLAKE3_HASH and so on) that uses this kernel, or the process's
/// kernel if `kernel` is NULL. `key` is NULL for plain hashing; it has 32 bytes for the other
/// modes. Thread-safe.
///
/// # Safety
///
/// `kernel` is a C string, `key` has 32 bytes, `hasher` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_new_with(
    mode: u32,
    key: *const u8,
    kernel: *const c_char,
    hasher: *mut *mut bulla_blake3_hasher,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the string, the key and room for a pointer.
        unsafe {
            let kernel = named(kernel)?;
            let inner = match mode {
                BULLA_BLAKE3_HASH if key.is_null() => kernel.hasher(Mode::Hash),
                BULLA_BLAKE3_KEYED_HASH => kernel.hasher(Mode::KeyedHash(&args::array(key)?)),
                BULLA_BLAKE3_DERIVE_KEY => kernel.hasher(Mode::DeriveKeyMaterial(&args::array(key)?)),
                BULLA_BLAKE3_HASH => {
                    return Err(Failure::new(BULLA_ERROR_ARGUMENT, "plain hashing takes no key"));
                }
                _ => return Err(Failure::new(BULLA_ERROR_ARGUMENT, format!("there is no mode {mode}"))),
            };
            give_hasher(hasher, inner)
        }
    })
}

/// Makes a second hasher in the same state. Thread-safe.
///
/// # Safety
///
/// `hasher` is a hasher, `copy` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_clone(
    hasher: *const bulla_blake3_hasher,
    copy: *mut *mut bulla_blake3_hasher,
) -> bulla_status {
    guard(|| {
        args::aligned(copy)?;
        // SAFETY: the caller promised the hasher and room for a pointer.
        unsafe { give_hasher(copy, args::object(hasher)?.inner.clone()) }
    })
}

/// Clears and frees a hasher. NULL is allowed. No other thread may use it any more.
///
/// # Safety
///
/// `hasher` is a hasher that was not freed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_free(hasher: *mut bulla_blake3_hasher) {
    if hasher.is_null() {
        return;
    }
    let _ = guard(|| {
        // SAFETY: it came from `Box::into_raw`, and the caller promised that it was not freed.
        let mut hasher = unsafe { Box::from_raw(hasher) };
        hasher.inner.zeroize();
        Ok(())
    });
}

/// Hashes more input, on this thread. One thread at a time for each hasher.
///
/// # Safety
///
/// `hasher` is a hasher, `input` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_update(
    hasher: *mut bulla_blake3_hasher,
    input: *const c_void,
    len: usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher and the input.
        unsafe { args::object_mut(hasher)?.inner.update(args::bytes(input, len)?) };
        Ok(())
    })
}

/// Hashes more input, on all threads of the pool: see bulla_start_threads. Input under 64 KiB is
/// hashed on this thread. One thread at a time for each hasher.
///
/// # Safety
///
/// `hasher` is a hasher, `input` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_update_threads(
    hasher: *mut bulla_blake3_hasher,
    input: *const c_void,
    len: usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher and the input.
        let (hasher, input) = unsafe { (&mut args::object_mut(hasher)?.inner, args::bytes(input, len)?) };
        update_threads(hasher, input);
        Ok(())
    })
}

/// Hashes more input on this thread and those of the pool, if it is long enough.
pub(crate) fn update_threads<'h>(hasher: &'h mut Hasher, input: &[u8]) -> &'h mut Hasher {
    match pool(input.len()) {
        Some(pool) => hasher.update_in_pool(pool, input),
        None => hasher.update(input),
    }
}

/// Writes `out_len` bytes of output from position `seek` on. The digest is the first 32 bytes from
/// position 0. The hasher does not change, and can take more input. Several threads may call this
/// at once.
///
/// # Safety
///
/// `hasher` is a hasher, `out` has room for `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_finalize(
    hasher: *const bulla_blake3_hasher,
    seek: u64,
    out: *mut u8,
    out_len: usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher and the room.
        let (hasher, out) = unsafe { (&args::object(hasher)?.inner, args::output(out, out_len)?) };
        match <&mut [u8; 32]>::try_from(&mut *out) {
            Ok(digest) if seek == 0 => *digest = hasher.finalize().into(),
            _ => {
                let mut reader = hasher.finalize_xof();
                reader.set_position(seek);
                reader.fill(out);
            }
        }
        Ok(())
    })
}

/// Resets the hasher: same mode, same key, no input. One thread at a time for each hasher.
///
/// # Safety
///
/// `hasher` is a hasher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_reset(hasher: *mut bulla_blake3_hasher) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher.
        unsafe { args::object_mut(hasher) }?.inner.reset();
        Ok(())
    })
}

/// The number of bytes hashed so far; 0 if `hasher` is NULL. Several threads may call this at once.
///
/// # Safety
///
/// `hasher` is a hasher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_count(hasher: *const bulla_blake3_hasher) -> u64 {
    // SAFETY: the caller promised the hasher.
    unsafe { args::object(hasher) }.map_or(0, |hasher| hasher.inner.count())
}

/// Saves the state, which any implementation of this project can restore, on any machine: version 1
/// of `spec/blake3-state.md`. Writes its length to `saved_len`, and the state to `saved`, which has
/// room for `room` bytes; BULLA_BLAKE3_MAX_SAVED_LEN is always enough. Fails with
/// BULLA_ERROR_LENGTH if there is too little room, and then still writes the length.
///
/// **The state contains the key of a keyed hash and the last bytes of the input.** Several threads
/// may call this at once.
///
/// # Safety
///
/// `hasher` is a hasher, `saved` has room for `room` bytes, `saved_len` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_save(
    hasher: *const bulla_blake3_hasher,
    saved: *mut u8,
    room: usize,
    saved_len: *mut usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher, the room and the number.
        unsafe { give_saved(args::object(hasher)?.inner.save(), saved, room, saved_len) }
    })
}

/// Makes a hasher from a state that bulla_blake3_hasher_save has saved. Fails with
/// BULLA_ERROR_STATE if the bytes are not exactly one. Thread-safe.
///
/// # Safety
///
/// `saved` has `len` bytes, `hasher` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_restore(
    saved: *const u8,
    len: usize,
    hasher: *mut *mut bulla_blake3_hasher,
) -> bulla_status {
    guard(|| {
        ready()?;
        args::aligned(hasher)?;
        // SAFETY: the caller promised the bytes and room for a pointer.
        unsafe {
            let restored = Hasher::restore(args::bytes(saved.cast(), len)?)
                .map_err(|error| Failure::new(BULLA_ERROR_STATE, error.to_string()))?;
            give_hasher(hasher, restored)
        }
    })
}
