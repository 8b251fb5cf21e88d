//! AVX-512 vectors for one kind of CPU each.
//!
//! [`FullWidth`] is for CPUs that run 512-bit operations in one piece (Intel's servers, AMD Zen 5).
//! [`SlowRotate`] is for CPUs whose rotates take two cycles (AMD Zen 4), in latency-bound code.

use super::avx512::{U32x4, U32x8, U32x16, load_quarters, store_quarters};
use super::{forward, wrapper};
use crate::vector::{Columns, Rows};
use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i};

/// Sixteen words in a zmm register. This type builds message blocks from quarters, while [`U32x16`]
/// uses halves, and it writes output blocks by quarters.
///
/// Masked loads read three quarters of a vector. Any vector port can merge them, so the one port
/// with shuffles has 32 shuffles a block instead of 48. On CPUs that run 512-bit operations in two
/// halves (AMD Zen 4), the number of operations counts, and it is 80 instead of 64.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct FullWidth(U32x16);

wrapper!(FullWidth, U32x16);

impl Columns for FullWidth {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[U32x16; 16], [FullWidth; 16]>(load_quarters(blocks, offset));
        fn store_chaining_values(w: [Self; 8], to: *mut u8) = U32x16::store_chaining_values(core::mem::transmute::<[FullWidth; 8], [U32x16; 8]>(w), to);
        fn store_blocks(w: [Self; 16], to: *mut u8) = store_quarters(core::mem::transmute::<[FullWidth; 16], [U32x16; 16]>(w), to);
        fn unzip(left: Self, right: Self) -> (Self, Self) = {
            let (even, odd) = U32x16::unzip(left.0, right.0);
            (FullWidth(even), FullWidth(odd))
        };
        fn equal(a: Self, b: Self) -> u32 = U32x16::equal(a.0, b.0);
        fn select(mask: u32, yes: Self, no: Self) -> Self = FullWidth(U32x16::select(mask, yes.0, no.0));
    }
}

/// A vector whose rotate is slower than two shifts side by side.
///
/// `rotr(a ^ b)` is `rotr(a) ^ (b >> n) ^ (b << 32 - n)`, and the three-way exclusive or is one
/// instruction. The path from b, the later operand, to the result is a shift and an exclusive or:
/// two cycles. An exclusive or and a rotate take three. So a quarter round takes 12 cycles, not 16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct SlowRotate<V>(V);

/// A vector with a shorter path from `b` to `rotr(a ^ b)`.
pub trait XorRotate: Rows {
    /// `rotr(a ^ b)` by R bits; L is 32 - R.
    ///
    /// # Safety
    ///
    /// As for all methods of [`Vector`](crate::Vector).
    unsafe fn xor_rotate<const R: i32, const L: i32>(a: Self, b: Self) -> Self;
}

macro_rules! xor_rotate {
    ($type:ident, $function:ident, $class:ident, $register:ty) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl")]
        fn $function<const R: i32, const L: i32>(a: $register, b: $register) -> $register {
            let result;
            // SAFETY: four instructions on registers, of the features enabled here. It is assembly,
            // because the compiler would combine the shifts into a rotate again. Overwriting the
            // shifted b is 4 % faster than overwriting the rotated a.
            unsafe {
                asm!(
                    "vpsrld {result}, {b}, {r}",
                    "vpslld {left}, {b}, {l}",
                    "vprord {old}, {a}, {r}",
                    "vpternlogd {result}, {left}, {old}, 0x96",
                    a = in($class) a, b = in($class) b,
                    result = out($class) result, left = out($class) _, old = out($class) _,
                    r = const R, l = const L,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            result
        }

        impl XorRotate for $type {
            forward! {
                fn xor_rotate<const R: i32, const L: i32>(a: Self, b: Self) -> Self = $type($function::<R, L>(a.0, b.0));
            }
        }
    };
}

xor_rotate!(U32x4, xor_rotate4, xmm_reg, __m128i);
xor_rotate!(U32x8, xor_rotate8, ymm_reg, __m256i);

wrapper!(SlowRotate<V>, V, V: XorRotate);

impl<V: XorRotate> Rows for SlowRotate<V> {
    forward! {
        fn splat_row(row: *const u32) -> Self = SlowRotate(V::splat_row(row));
        fn splat_u64_pair(low: u64, high: u64) -> Self = SlowRotate(V::splat_u64_pair(low, high));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self = SlowRotate(V::gather_rows(blocks, offset));
        fn padded_rows(block: *const u8, n: usize) -> [Self; 4] = {
            let [a, b, c, d] = V::padded_rows(block, n);
            [SlowRotate(a), SlowRotate(b), SlowRotate(c), SlowRotate(d)]
        };
        fn rotate_words_left<const N: i32>(a: Self) -> Self = SlowRotate(V::rotate_words_left::<N>(a.0));
        fn shuffle<const I: i32>(a: Self, b: Self) -> Self = SlowRotate(V::shuffle::<I>(a.0, b.0));
        fn store_row_pairs(first: Self, second: Self, to: *mut u8) = V::store_row_pairs(first.0, second.0, to);
        fn xor_rotr16(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<16, 16>(a.0, b.0));
        fn xor_rotr12(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<12, 20>(a.0, b.0));
        fn xor_rotr8(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<8, 24>(a.0, b.0));
        fn xor_rotr7(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<7, 25>(a.0, b.0));
    }
}
