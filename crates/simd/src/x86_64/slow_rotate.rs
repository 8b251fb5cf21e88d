//! AVX-512 vectors for CPUs whose rotates take two cycles (AMD Zen 4), in latency-bound code.
//!
//! `rotr(a ^ b)` is `rotr(a) ^ (b >> n) ^ (b << 32 - n)`, and the three-way exclusive or is one
//! instruction. The path from b, the later operand, to the result is a shift and an exclusive or:
//! two cycles. An exclusive or and a rotate take three. So a quarter round takes 12 cycles, not 16.

use super::avx512::{U32x4, U32x8};
use super::{forward, wrapper};
use crate::vector::Rows;
use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i};

/// A vector whose rotate is slower than two shifts side by side.
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
        fn splat_halves(low: u64, high: u64) -> Self = SlowRotate(V::splat_halves(low, high));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self = SlowRotate(V::gather_rows(blocks, offset));
        fn padded_rows(block: *const u8, n: usize) -> [Self; 4] = {
            let [a, b, c, d] = V::padded_rows(block, n);
            [SlowRotate(a), SlowRotate(b), SlowRotate(c), SlowRotate(d)]
        };
        fn turn1(a: Self) -> Self = SlowRotate(V::turn1(a.0));
        fn turn2(a: Self) -> Self = SlowRotate(V::turn2(a.0));
        fn turn3(a: Self) -> Self = SlowRotate(V::turn3(a.0));
        fn pick<const I: i32>(a: Self, b: Self) -> Self = SlowRotate(V::pick::<I>(a.0, b.0));
        fn store_row_pairs(first: Self, second: Self, to: *mut u8) = V::store_row_pairs(first.0, second.0, to);
        fn xor_rotr16(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<16, 16>(a.0, b.0));
        fn xor_rotr12(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<12, 20>(a.0, b.0));
        fn xor_rotr8(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<8, 24>(a.0, b.0));
        fn xor_rotr7(a: Self, b: Self) -> Self = SlowRotate(V::xor_rotate::<7, 25>(a.0, b.0));
    }
}
