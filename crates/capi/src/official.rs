//! The functions of the official C library, with its names and its ABI.
//!
//! Its functions report no errors, and its callers have no place for one. So here, as there, a
//! wrong pointer is the caller's error. NULL does nothing. Nothing here unwinds: a panic, which
//! only an error in this library can cause, ends the process, because a wrong digest would be
//! worse.

use crate::pool::pool;
use bulla_blake3::CompactHasher;
use bulla_blake3::hazmat::Mode;
use bulla_blake3::kernel::{self, FORCE_VARIABLE, Kernel};
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::OnceLock;

/// The official header's structure: its callers allocate it and copy it, and nobody frees anything
/// of it.
#[repr(C)]
pub struct blake3_hasher {
    room: [u64; 239],
}

const _: () = assert!(
    size_of::<blake3_hasher>() == 1912
        && size_of::<CompactHasher>() <= size_of::<blake3_hasher>()
        && align_of::<CompactHasher>() <= align_of::<blake3_hasher>()
        && !std::mem::needs_drop::<CompactHasher>()
);

/// The process's kernel. If the environment names one that this machine does not have, a line says
/// so, and the best one is used: there is no place to report it.
#[inline(always)]
fn kernel() -> Kernel {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    *KERNEL.get_or_init(|| match kernel::forced() {
        Ok(_) => kernel::active(),
        Err(unknown) => {
            eprintln!("libblake3: {FORCE_VARIABLE} is ignored: {unknown}");
            kernel::available().next().expect("there is always the portable kernel")
        }
    })
}

/// # Safety
///
/// If it is not NULL, there must be room for a hasher.
#[inline(always)]
unsafe fn place<'a>(at: *mut blake3_hasher) -> Option<&'a mut MaybeUninit<CompactHasher>> {
    // SAFETY: the caller promised the room; memory that may be uninitialized is a value of this
    // type.
    unsafe { at.cast::<MaybeUninit<CompactHasher>>().as_mut() }
}

/// # Safety
///
/// If it is not NULL, it must be an initialized hasher that nobody else uses meanwhile.
#[inline(always)]
unsafe fn hasher<'a>(at: *mut blake3_hasher) -> Option<&'a mut CompactHasher> {
    // SAFETY: the caller promised it.
    unsafe { at.cast::<CompactHasher>().as_mut() }
}

/// # Safety
///
/// If it is not NULL, `len` bytes must be readable.
#[inline(always)]
unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Option<&'a [u8]> {
    if len == 0 {
        return Some(&[]);
    }
    // SAFETY: the caller promised it; no object is longer than this.
    (!at.is_null() && isize::try_from(len).is_ok()).then(|| unsafe { slice::from_raw_parts(at.cast(), len) })
}

/// The version of the official library whose functions are here.
#[unsafe(no_mangle)]
pub extern "C" fn blake3_version() -> *const c_char {
    c"1.8.7".as_ptr()
}

/// Initializes a hasher for plain hashing.
///
/// # Safety
///
/// `this` has room for a hasher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_init(this: *mut blake3_hasher) {
    // SAFETY: the caller promised the room.
    if let Some(place) = unsafe { place(this) } {
        CompactHasher::init(place, Mode::Hash);
    }
}

/// Initializes a hasher under a key of 32 bytes.
///
/// # Safety
///
/// `this` has room for a hasher, `key` has 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_init_keyed(this: *mut blake3_hasher, key: *const u8) {
    // SAFETY: the caller promised the room and the key.
    if let (Some(place), Some(key)) = unsafe { (place(this), key.cast::<[u8; 32]>().as_ref()) } {
        CompactHasher::init(place, Mode::KeyedHash(key));
    }
}

/// Initializes a hasher for key derivation with a context that ends with a zero byte.
///
/// # Safety
///
/// `this` has room for a hasher, `context` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_init_derive_key(this: *mut blake3_hasher, context: *const c_char) {
    if !context.is_null() {
        // SAFETY: the caller promised the room and the string.
        unsafe {
            let context = CStr::from_ptr(context).to_bytes();
            blake3_hasher_init_derive_key_raw(this, context.as_ptr().cast(), context.len());
        }
    }
}

/// Initializes a hasher for key derivation with a context of any bytes.
///
/// # Safety
///
/// `this` has room for a hasher, `context` has `context_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_init_derive_key_raw(
    this: *mut blake3_hasher,
    context: *const c_void,
    context_len: usize,
) {
    // SAFETY: the caller promised the room and the context.
    if let (Some(place), Some(context)) = unsafe { (place(this), bytes(context, context_len)) } {
        CompactHasher::init_derive_key_raw(place, kernel(), context);
    }
}

/// Hashes more input.
///
/// # Safety
///
/// `this` was initialized, `input` has `input_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_update(
    this: *mut blake3_hasher,
    input: *const c_void,
    input_len: usize,
) {
    // SAFETY: the caller promised the hasher and the input.
    if let (Some(hasher), Some(input)) = unsafe { (hasher(this), bytes(input, input_len)) } {
        hasher.update_by(kernel(), input);
    }
}

/// Hashes more input, on all threads. The official library uses oneTBB for it; this one has threads
/// of its own. A process that `fork` makes starts its own.
///
/// # Safety
///
/// `this` was initialized, `input` has `input_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_update_tbb(
    this: *mut blake3_hasher,
    input: *const c_void,
    input_len: usize,
) {
    // SAFETY: the caller promised the hasher and the input.
    if let (Some(hasher), Some(input)) = unsafe { (hasher(this), bytes(input, input_len)) } {
        match pool(input.len()) {
            Some(pool) => hasher.update_in_pool_by(kernel(), pool, input),
            None => hasher.update_by(kernel(), input),
        };
    }
}

/// Writes the first `out_len` bytes of output. The hasher can take more input.
///
/// # Safety
///
/// `this` was initialized, `out` has room for `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_finalize(this: *const blake3_hasher, out: *mut u8, out_len: usize) {
    // SAFETY: the caller promised the hasher and the room.
    unsafe { blake3_hasher_finalize_seek(this, 0, out, out_len) }
}

/// Writes `out_len` bytes of output from position `seek` on. The hasher can take more input.
///
/// # Safety
///
/// `this` was initialized, `out` has room for `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_finalize_seek(
    this: *const blake3_hasher,
    seek: u64,
    out: *mut u8,
    out_len: usize,
) {
    // SAFETY: the caller promised the hasher.
    let Some(hasher) = (unsafe { this.cast::<CompactHasher>().as_ref() }) else { return };
    if out.is_null() || out_len == 0 || isize::try_from(out_len).is_err() {
        return;
    }
    // SAFETY: the caller promised the room. Bytes from outside of Rust have some value, and they
    // are only written.
    let out = unsafe { slice::from_raw_parts_mut(out, out_len) };
    if seek == 0
        && let Ok(digest) = <&mut [u8; 32]>::try_from(&mut *out)
    {
        return hasher.finalize_into(kernel(), digest);
    }
    if seek == 0 && out_len < 32 {
        return out.copy_from_slice(&hasher.finalize_by(kernel()).as_bytes()[..out_len]);
    }
    let mut reader = hasher.finalize_xof_by(kernel());
    reader.set_position(seek);
    reader.fill(out);
}

/// Resets a hasher: same mode, same key, no input.
///
/// # Safety
///
/// `this` was initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blake3_hasher_reset(this: *mut blake3_hasher) {
    // SAFETY: the caller promised the hasher.
    if let Some(hasher) = unsafe { hasher(this) } {
        hasher.reset();
    }
}
