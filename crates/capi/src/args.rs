//! Pointers and lengths from C, checked as far as C allows.
//!
//! Nothing can tell whether memory is really there and really that long: that remains the caller's
//! promise, which the header states. So the functions here are unsafe, and their callers pass that
//! promise on.

use crate::status::{BULLA_ERROR_ARGUMENT, BULLA_ERROR_LENGTH, BULLA_ERROR_NULL, Failure};
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::{ptr, slice};
use zeroize::Zeroize as _;

/// Input of any length. A pointer of an empty input may be NULL.
///
/// # Safety
///
/// If it is not NULL, `len` bytes must be readable, and nobody may write to them meanwhile.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check(at, len)?;
    // SAFETY: not NULL, and of a length that an object may have; the caller promised the rest.
    Ok(unsafe { slice::from_raw_parts(at.cast(), len) })
}

/// Output of any length, also memory that was never written.
///
/// # Safety
///
/// If it is not NULL, `len` bytes must be writable, and nobody else may use them meanwhile.
#[inline(always)]
pub(crate) unsafe fn output<'a>(at: *mut u8, len: usize) -> Result<&'a mut [u8], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    check(at.cast(), len)?;
    // SAFETY: as for `bytes`. Bytes from outside of Rust have some value, and our functions only
    // write to output.
    Ok(unsafe { slice::from_raw_parts_mut(at, len) })
}

/// Input of a fixed length: a copy, so that it may overlap the output.
///
/// # Safety
///
/// If it is not NULL, N bytes must be readable.
#[inline(always)]
pub(crate) unsafe fn array<const N: usize>(at: *const u8) -> Result<[u8; N], Failure> {
    check(at.cast(), N)?;
    // SAFETY: the caller promised N bytes; bytes have no alignment.
    Ok(unsafe { at.cast::<[u8; N]>().read() })
}

/// Writes output of a fixed length.
///
/// # Safety
///
/// If it is not NULL, N bytes must be writable.
#[inline(always)]
pub(crate) unsafe fn write<const N: usize>(at: *mut u8, bytes: &[u8; N]) -> Result<(), Failure> {
    check(at.cast(), N)?;
    // SAFETY: the caller promised N bytes; `bytes` is ours and overlaps nothing of the caller.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, N) }
    Ok(())
}

/// An array of `n` elements.
///
/// # Safety
///
/// If it is not NULL, `n` elements must be readable, and nobody may write to them meanwhile.
pub(crate) unsafe fn elements<'a, T>(at: *const T, n: usize) -> Result<&'a [T], Failure> {
    if n == 0 {
        return Ok(&[]);
    }
    aligned(at)?;
    check(at.cast(), n.checked_mul(size_of::<T>()).ok_or_else(too_long)?)?;
    // SAFETY: not NULL, aligned, and of a size that an object may have; the caller promised the
    // rest.
    Ok(unsafe { slice::from_raw_parts(at, n) })
}

/// An object of ours.
///
/// # Safety
///
/// If it is not NULL, it must be such an object, and nobody may change it meanwhile.
#[inline(always)]
pub(crate) unsafe fn object<'a, T>(at: *const T) -> Result<&'a T, Failure> {
    aligned(at)?;
    // SAFETY: not NULL and aligned; the caller promised the rest.
    Ok(unsafe { &*at })
}

/// An object of ours that changes.
///
/// # Safety
///
/// If it is not NULL, it must be such an object, and nobody else may use it meanwhile.
#[inline(always)]
pub(crate) unsafe fn object_mut<'a, T>(at: *mut T) -> Result<&'a mut T, Failure> {
    aligned(at)?;
    // SAFETY: not NULL and aligned; the caller promised the rest.
    Ok(unsafe { &mut *at })
}

/// Overwrites an object with zeros, in a way that no compiler leaves out.
///
/// # Safety
///
/// If it is not NULL, there must be room for a T, of which zeros are a value, and nobody else may
/// use it meanwhile.
pub(crate) unsafe fn wipe<T>(at: *mut T) -> Result<(), Failure> {
    aligned(at)?;
    // SAFETY: not NULL and aligned; the caller promised the rest. Memory that was never written is
    // no value of a byte yet.
    unsafe { slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), size_of::<T>()) }.zeroize();
    Ok(())
}

/// A C string.
///
/// # Safety
///
/// If it is not NULL, it must end with a zero byte.
pub(crate) unsafe fn string<'a>(at: *const c_char) -> Result<&'a CStr, Failure> {
    if at.is_null() {
        return Err(null());
    }
    // SAFETY: not NULL; the caller promised the rest.
    Ok(unsafe { CStr::from_ptr(at) })
}

/// Checks that a pointer is neither NULL nor unaligned.
#[inline(always)]
pub(crate) fn aligned<T>(at: *const T) -> Result<(), Failure> {
    if at.is_null() {
        return Err(null());
    }
    if !at.is_aligned() {
        return Err(unaligned(align_of::<T>()));
    }
    Ok(())
}

/// Checks that memory can be at an address.
#[inline(always)]
pub(crate) fn check(at: *const c_void, len: usize) -> Result<(), Failure> {
    if at.is_null() {
        return Err(null());
    }
    // No object is longer than this, or goes past the end of the address space.
    if isize::try_from(len).is_err() || at.addr().checked_add(len).is_none() {
        return Err(too_long());
    }
    Ok(())
}

#[cold]
fn null() -> Failure {
    Failure::new(BULLA_ERROR_NULL, "a pointer is NULL")
}

#[cold]
fn too_long() -> Failure {
    Failure::new(BULLA_ERROR_LENGTH, "no object can be that long at that address")
}

#[cold]
fn unaligned(to: usize) -> Failure {
    Failure::new(BULLA_ERROR_ARGUMENT, format!("a pointer is not aligned to {to} bytes"))
}
