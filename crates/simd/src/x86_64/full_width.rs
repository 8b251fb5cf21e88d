//! Sixteen words for CPUs that run 512-bit operations in one piece (Intel's servers, AMD Zen 5).
//! This type builds message blocks from quarters, while `avx512::U32x16` uses halves, and it writes
//! output blocks by quarters.
//!
//! Masked loads read three quarters of a vector. Any vector port can merge them, so the one port
//! with shuffles has 32 shuffles a block instead of 48. On CPUs that run 512-bit operations in two
//! halves (AMD Zen 4), the number of operations counts, and it is 80 instead of 64.

use super::avx512::{U32x16, load_quarters, store_quarters};
use super::{forward, wrapper};
use crate::vector::Columns;

/// Sixteen words in a zmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct FullWidth(U32x16);

wrapper!(FullWidth, U32x16);

impl Columns for FullWidth {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[U32x16; 16], [FullWidth; 16]>(load_quarters(blocks, offset));
        fn store_halves(w: [Self; 8], to: *mut u8) = U32x16::store_halves(core::mem::transmute::<[FullWidth; 8], [U32x16; 8]>(w), to);
        fn store_blocks(w: [Self; 16], to: *mut u8) = store_quarters(core::mem::transmute::<[FullWidth; 16], [U32x16; 16]>(w), to);
        fn unzip(left: Self, right: Self) -> (Self, Self) = {
            let (even, odd) = U32x16::unzip(left.0, right.0);
            (FullWidth(even), FullWidth(odd))
        };
        fn equal(a: Self, b: Self) -> u32 = U32x16::equal(a.0, b.0);
        fn select(mask: u32, yes: Self, no: Self) -> Self = FullWidth(U32x16::select(mask, yes.0, no.0));
    }
}
