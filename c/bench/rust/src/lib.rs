//! A loop in Rust for the harness in C: it calls the Rust library without the C ABI.

use std::hint::black_box;
use std::slice;

/// Hashes the same input `n` times, and writes the last digest.
///
/// # Safety
///
/// `input` has `len` bytes, `out` has room for 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_loop(input: *const u8, len: usize, out: *mut u8, n: usize) {
    // SAFETY: the caller promised the input.
    let input = unsafe { slice::from_raw_parts(input, len) };
    let mut digest = [0; 32];
    for _ in 0..n {
        digest = *bulla_blake3::hash(black_box(input)).as_bytes();
        black_box(&mut digest);
    }
    // SAFETY: the caller promised the room.
    unsafe { out.cast::<[u8; 32]>().write_unaligned(digest) }
}
