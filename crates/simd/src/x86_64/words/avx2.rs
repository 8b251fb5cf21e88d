//! AVX2: four 64-bit words in a register, and for the row form four 32-bit words.

use super::{columns32, forward, pin, turns, words32};
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows, Words};
use crate::x86_64::avx2::{U32x8, load_two};
use crate::x86_64::sse41::U32x4 as Narrow;
use core::arch::asm;
use core::arch::x86_64::*;

/// Four words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x4(pub(super) __m256i);

/// Four words in an xmm register: the vector of SSE4.1 but for the loads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(Narrow);

pin!("avx2", ymm_reg, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const I: usize>(a: __m256i) -> __m256i {
    match I {
        0 => _mm256_shuffle_epi32::<0xB1>(a),
        1 => {
            let places = _mm_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10);
            _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(places))
        }
        2 => {
            let places = _mm_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9);
            _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(places))
        }
        _ => _mm256_or_si256(_mm256_srli_epi64::<63>(a), _mm256_add_epi64(a, a)),
    }
}

impl Words for U64x4 {
    type Word = u64;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u64) -> Self = U64x4(_mm256_set1_epi64x(word as i64));
        fn load(from: *const u64) -> Self = U64x4(_mm256_loadu_si256(from.cast()));
        fn add(a: Self, b: Self) -> Self = U64x4(_mm256_add_epi64(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U64x4(_mm256_xor_si256(a.0, b.0));
        fn pin(a: Self) -> Self = U64x4(pin(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised AVX2.
        unsafe { U64x4(rotate::<I>(a.0)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller promised four writable words.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }
}

/// Sixteen words of four blocks.
///
/// # Safety
///
/// As for [`WordColumns::load_blocks`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [__m256i; 16] {
    let mut words = [_mm256_setzero_si256(); 16];
    let mut i = 0;
    while i < 8 {
        // SAFETY: the caller promised four pointers, with 128 readable bytes at the offset of each.
        unsafe {
            let at = |k: usize| (*blocks.add(k)).wrapping_add(offset + 16 * i);
            let (a, b) = (load_two(at(0), at(2)), load_two(at(1), at(3)));
            words[2 * i] = _mm256_unpacklo_epi64(a, b);
            words[2 * i + 1] = _mm256_unpackhi_epi64(a, b);
        }
        i += 1;
    }
    words
}

/// Eight words a lane, one lane after the other.
///
/// # Safety
///
/// 256 bytes must be writable at `to`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_halves(w: [__m256i; 8], to: *mut u8) {
    let mut half = 0;
    while half < 2 {
        let [a, b, c, d] = [w[4 * half], w[4 * half + 1], w[4 * half + 2], w[4 * half + 3]];
        let even = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
        let odd = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
        let lanes = [
            _mm256_permute2x128_si256::<0x20>(even.0, even.1),
            _mm256_permute2x128_si256::<0x20>(odd.0, odd.1),
            _mm256_permute2x128_si256::<0x31>(even.0, even.1),
            _mm256_permute2x128_si256::<0x31>(odd.0, odd.1),
        ];
        let mut lane = 0;
        while lane < 4 {
            // SAFETY: as the caller promised.
            unsafe { _mm256_storeu_si256(to.add(64 * lane + 32 * half).cast(), lanes[lane]) };
            lane += 1;
        }
        half += 1;
    }
}

impl WordColumns for U64x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U64x4; 16]>(load_blocks(blocks, offset));
        fn store_halves(w: [Self; 8], to: *mut u8) =
            store_halves(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), to);
    }
}

impl WordRows for U64x4 {
    turns!(U64x4, _mm256_permute4x64_epi64);
    forward! {
        fn row(w: [u64; 4]) -> Self =
            U64x4(_mm256_setr_epi64x(w[0] as i64, w[1] as i64, w[2] as i64, w[3] as i64));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: the caller promised AVX2, and a block of sixteen words.
        unsafe { U64x4(gather_u64::<A, B, C, D>(m)) }
    }
}

/// Words from anywhere in a block, by loads that fill a register with one word, and blends: shuffles have one port, which the turns of
/// the rows need. In assembly, since the compiler would make shuffles of it.
macro_rules! gather {
    ($name:ident, $class:ident, $register:ty, $($line:literal),*) => {
        /// # Safety
        ///
        /// Sixteen words must be readable at `m`.
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn $name<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> $register {
            let words;
            // SAFETY: reads within the block, and changes the registers named.
            unsafe {
                asm!(
                    $($line,)*
                    words = out($class) words, other = out($class) _, m = in(reg) m,
                    a = const A, b = const B, c = const C, d = const D,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            words
        }
    };
}

gather!(
    gather_u64,
    ymm_reg,
    __m256i,
    "vmovq {words:x}, qword ptr [{m} + 8*{a}]",
    "vpbroadcastq {other}, qword ptr [{m} + 8*{b}]",
    "vpblendd {words}, {words}, {other}, 0x0C",
    "vpbroadcastq {other}, qword ptr [{m} + 8*{c}]",
    "vpblendd {words}, {words}, {other}, 0x30",
    "vpbroadcastq {other}, qword ptr [{m} + 8*{d}]",
    "vpblendd {words}, {words}, {other}, 0xC0"
);

gather!(
    gather_u32,
    xmm_reg,
    __m128i,
    "vmovd {words}, dword ptr [{m} + 4*{a}]",
    "vpbroadcastd {other}, dword ptr [{m} + 4*{b}]",
    "vpblendd {words}, {words}, {other}, 2",
    "vpbroadcastd {other}, dword ptr [{m} + 4*{c}]",
    "vpblendd {words}, {words}, {other}, 4",
    "vpbroadcastd {other}, dword ptr [{m} + 4*{d}]",
    "vpblendd {words}, {words}, {other}, 8"
);

impl Words for U32x4 {
    type Word = u32;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u32) -> Self = U32x4(<Narrow as Words>::splat(word));
        fn load(from: *const u32) -> Self = U32x4(<Narrow as Words>::load(from));
        fn add(a: Self, b: Self) -> Self = U32x4(<Narrow as Words>::add(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x4(<Narrow as Words>::xor(a.0, b.0));
        fn pin(a: Self) -> Self = U32x4(<Narrow as Words>::pin(a.0));
        fn copy_block(from: *const u8, n: usize, to: *mut u8) = <Narrow as Words>::copy_block(from, n, to);
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { U32x4(<Narrow as Words>::rotate::<I>(a.0)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as the caller promised.
        unsafe { <Narrow as Words>::store(self.0, to) }
    }
}

impl WordRows for U32x4 {
    forward! {
        fn row(w: [u32; 4]) -> Self = U32x4(<Narrow as WordRows>::row(w));
        fn turn1(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn1(a.0));
        fn turn2(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn2(a.0));
        fn turn3(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn3(a.0));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: the caller promised AVX2, and a block of sixteen words.
        unsafe { U32x4(Narrow(gather_u32::<A, B, C, D>(m))) }
    }
}

words32!(U32x8);
columns32!(U32x8);
