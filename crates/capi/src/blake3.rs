//! BLAKE3 of complete input: one or many.

use crate::args;
use crate::kernels::ready;
use crate::status::{Failure, bulla_status, guard};
use bulla_blake3::{Hash, hash_into, hash_many, hazmat, kernel, keyed_hash, keyed_hash_many};
use std::ffi::c_void;

/// Bytes in a BLAKE3 digest.
pub const BULLA_BLAKE3_OUT_LEN: usize = 32;
/// Bytes in a BLAKE3 key.
pub const BULLA_BLAKE3_KEY_LEN: usize = 32;

/// One of many inputs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_bytes {
    /// The first byte. May be NULL if `len` is 0.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
}

/// How many inputs are passed on at once: as many as the Rust library hashes side by side at most.
const BATCH_LEN: usize = 64;

/// The BLAKE3 digest of `len` bytes at `input`. `out` may be a part of the input. Thread-safe.
///
/// # Safety
///
/// `input` has `len` bytes, `out` has room for 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3(input: *const c_void, len: usize, out: *mut u8) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the input and the room.
        unsafe {
            let input = args::bytes(input, len)?;
            args::check(out.cast(), BULLA_BLAKE3_OUT_LEN)?;
            // Not by references: the output may be a part of the input.
            hash_into(input.as_ptr(), input.len(), out);
        }
        Ok(())
    })
}

/// The BLAKE3 digest under a key of 32 bytes: a message authentication code. Compare codes with
/// bulla_equal. Thread-safe.
///
/// # Safety
///
/// `key` has 32 bytes, `input` has `len`, `out` has room for 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_keyed(
    key: *const u8,
    input: *const c_void,
    len: usize,
    out: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the key, the input and the room.
        unsafe { args::write(out, keyed_hash(&args::array(key)?, args::bytes(input, len)?).as_bytes()) }
    })
}

/// Derives `out_len` bytes of key from key material.
///
/// The context says what the key is for: hardcoded, globally unique, for example "example.com
/// 2026-11-24 session tokens". It should be text, and need not end with a zero byte. Thread-safe.
///
/// # Safety
///
/// `context` has `context_len` bytes, `material` has `material_len`, `out` has room for `out_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_derive_key(
    context: *const c_void,
    context_len: usize,
    material: *const c_void,
    material_len: usize,
    out: *mut u8,
    out_len: usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the context, the material and the room. The input is not used
        // any more when the output is made.
        unsafe {
            let mut place = std::mem::MaybeUninit::uninit();
            let context = args::bytes(context, context_len)?;
            let hasher =
                bulla_blake3::CompactHasher::init_derive_key_raw(&mut place, kernel::active(), context);
            let mut reader = hasher.update(args::bytes(material, material_len)?).finalize_xof();
            zeroize::Zeroize::zeroize(hasher);
            reader.fill(args::output(out, out_len)?);
        }
        Ok(())
    })
}

/// The key of a context: the first step of key derivation. bulla_blake3_hasher_new_with takes it.
/// Thread-safe.
///
/// # Safety
///
/// `context` has `context_len` bytes of UTF-8, `out` has room for 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_context_key(
    context: *const c_void,
    context_len: usize,
    out: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the context and the room.
        unsafe {
            let context = str::from_utf8(args::bytes(context, context_len)?).map_err(|error| {
                Failure::new(crate::status::BULLA_ERROR_ARGUMENT, format!("the context: {error}"))
            })?;
            args::write(out, &hazmat::hash_derive_key_context(context))
        }
    })
}

/// The BLAKE3 digests of `n` inputs, side by side in the vectors of the CPU: 32 bytes each, at
/// `out`, in order.
///
/// This is several times as fast as one call for each, if the inputs are short. `out` must not
/// overlap the inputs. Thread-safe.
///
/// # Safety
///
/// `inputs` has `n` elements, each with its bytes; `out` has room for 32 `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_many(
    inputs: *const bulla_bytes,
    n: usize,
    out: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the inputs and the room.
        unsafe { in_batches(inputs, n, out, hash_many) }
    })
}

/// Like bulla_blake3_many, under a key of 32 bytes. Thread-safe.
///
/// # Safety
///
/// `key` has 32 bytes; `inputs` has `n` elements, each with its bytes; `out` has room for 32 `n`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_keyed_many(
    key: *const u8,
    inputs: *const bulla_bytes,
    n: usize,
    out: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the key, the inputs and the room.
        unsafe {
            let key = args::array(key)?;
            in_batches(inputs, n, out, |inputs, out| keyed_hash_many(&key, inputs, out))
        }
    })
}

/// # Safety
///
/// `inputs` must have `n` elements with their bytes, and `out` room for as many digests.
unsafe fn in_batches(
    inputs: *const bulla_bytes,
    n: usize,
    out: *mut u8,
    hash: impl Fn(&[&[u8]], &mut [Hash]),
) -> Result<(), Failure> {
    // SAFETY: the caller promised it.
    let inputs = unsafe { args::elements(inputs, n) }?;
    // No input is hashed before all are checked. The elements are larger than half a digest, so
    // this cannot overflow.
    for input in inputs {
        // SAFETY: as above.
        unsafe { args::bytes(input.data, input.len) }?;
    }
    // SAFETY: as above.
    let out = unsafe { args::output(out, n.saturating_mul(BULLA_BLAKE3_OUT_LEN)) }?;
    for (inputs, out) in inputs.chunks(BATCH_LEN).zip(out.chunks_mut(BATCH_LEN * BULLA_BLAKE3_OUT_LEN)) {
        let mut slices: [&[u8]; BATCH_LEN] = [&[]; BATCH_LEN];
        let mut digests = [Hash::from_bytes([0; BULLA_BLAKE3_OUT_LEN]); BATCH_LEN];
        for (slice, input) in slices.iter_mut().zip(inputs) {
            // SAFETY: as above.
            *slice = unsafe { args::bytes(input.data, input.len) }?;
        }
        hash(&slices[..inputs.len()], &mut digests[..inputs.len()]);
        for (out, digest) in out.as_chunks_mut().0.iter_mut().zip(&digests) {
            *out = *digest.as_bytes();
        }
    }
    Ok(())
}

/// Whether `len` bytes are the same: 1 if they are, 0 if not or if a pointer is NULL. The time does
/// not depend on where they differ: use it for codes and keys. Thread-safe.
///
/// # Safety
///
/// Both have `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_equal(left: *const c_void, right: *const c_void, len: usize) -> i32 {
    // SAFETY: the caller promised both.
    let both = unsafe { (args::bytes(left, len), args::bytes(right, len)) };
    let (Ok(left), Ok(right)) = both else { return 0 };
    i32::from(constant_time_eq::constant_time_eq(left, right))
}
