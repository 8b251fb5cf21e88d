//! AVX-512: four or eight 64-bit words in a register, and the 32-bit vectors; rotates, masks, and 32 registers.

use super::avx2::{self, load_blocks as load_blocks4, store_halves as store_halves4};
use super::{columns32, forward, pin, turns, words32};
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows, Words};
use crate::x86_64::avx512::{U32x4, U32x8, U32x16};
use crate::x86_64::sse41;
use core::arch::x86_64::*;

/// Four words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x4(__m256i);

/// Eight words in a zmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x8(__m512i);

/// Two masked loads and stores: no branch.
///
/// # Safety
///
/// As for [`Words::copy_block`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
unsafe fn copy_block(from: *const u8, n: usize, to: *mut u8) {
    // SAFETY: the masks have the n bytes that the caller promised; no other is touched.
    unsafe {
        let low = _bzhi_u64(u64::MAX, n.min(64) as u32);
        let high = _bzhi_u64(u64::MAX, n.saturating_sub(64) as u32);
        _mm512_storeu_si512(to.cast(), _mm512_maskz_loadu_epi8(low, from.cast()));
        _mm512_storeu_si512(to.add(64).cast(), _mm512_maskz_loadu_epi8(high, from.wrapping_add(64).cast()));
    }
}

/// What both widths of 64-bit words have.
macro_rules! words64 {
    ($type:ident, $lanes:literal, $class:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $xor:ident, $ror:ident) => {
        impl Words for $type {
            type Word = u64;
            const LANES: usize = $lanes;

            forward! {
                fn splat(word: u64) -> Self = $type($splat(word as i64));
                fn load(from: *const u64) -> Self = $type($load(from.cast()));
                fn add(a: Self, b: Self) -> Self = $type($add(a.0, b.0));
                fn xor(a: Self, b: Self) -> Self = $type($xor(a.0, b.0));
                fn pin(a: Self) -> Self = $type($class::pin(a.0));
                fn copy_block(from: *const u8, n: usize, to: *mut u8) = copy_block(from, n, to);
            }

            #[inline(always)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                // SAFETY: the caller promised AVX-512.
                unsafe {
                    $type(match I {
                        0 => $ror::<32>(a.0),
                        1 => $ror::<24>(a.0),
                        2 => $ror::<16>(a.0),
                        _ => $ror::<63>(a.0),
                    })
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u64) {
                // SAFETY: the caller promised room for all lanes.
                unsafe { $store(to.cast(), self.0) }
            }
        }
    };
}

mod ymm {
    use core::arch::x86_64::__m256i;
    super::pin!("avx512f,avx512vl", ymm_reg, __m256i);
}
mod zmm {
    use core::arch::x86_64::__m512i;
    super::pin!("avx512f,avx512vl", zmm_reg, __m512i);
}

words64!(
    U64x4,
    4,
    ymm,
    _mm256_set1_epi64x,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_add_epi64,
    _mm256_xor_si256,
    _mm256_ror_epi64
);
words64!(
    U64x8,
    8,
    zmm,
    _mm512_set1_epi64,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_add_epi64,
    _mm512_xor_si512,
    _mm512_ror_epi64
);

impl WordColumns for U64x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U64x4; 16]>(load_blocks4(blocks, offset));
        fn store_halves(w: [Self; 8], to: *mut u8) =
            store_halves4(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), to);
    }
}

impl WordColumns for U64x8 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised eight pointers, with 128 readable bytes at the offset of each.
        unsafe {
            let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            let mut words = [U64x8(_mm512_setzero_si512()); 16];
            let mut q = 0;
            while q < 4 {
                let two = |i: usize| {
                    let at = |k: usize| (*blocks.add(k)).wrapping_add(offset + 32 * q).cast();
                    let first = _mm512_castsi256_si512(_mm256_loadu_si256(at(i)));
                    _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(at(i + 4)))
                };
                let (a, b, c, d) = (two(0), two(1), two(2), two(3));
                let even = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
                let odd = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
                words[4 * q] = U64x8(_mm512_permutex2var_epi64(even.0, low, even.1));
                words[4 * q + 1] = U64x8(_mm512_permutex2var_epi64(odd.0, low, odd.1));
                words[4 * q + 2] = U64x8(_mm512_permutex2var_epi64(even.0, high, even.1));
                words[4 * q + 3] = U64x8(_mm512_permutex2var_epi64(odd.0, high, odd.1));
                q += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(w: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 8 * 64 writable bytes.
        unsafe {
            let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            let mut half = 0;
            while half < 2 {
                let [a, b, c, d] = [w[4 * half].0, w[4 * half + 1].0, w[4 * half + 2].0, w[4 * half + 3].0];
                let even = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
                let odd = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
                // Each holds lane i and lane i + 4.
                let lanes = [
                    _mm512_permutex2var_epi64(even.0, low, even.1),
                    _mm512_permutex2var_epi64(odd.0, low, odd.1),
                    _mm512_permutex2var_epi64(even.0, high, even.1),
                    _mm512_permutex2var_epi64(odd.0, high, odd.1),
                ];
                let mut i = 0;
                while i < 4 {
                    let at = to.add(64 * i + 32 * half);
                    _mm256_storeu_si256(at.cast(), _mm512_castsi512_si256(lanes[i]));
                    _mm256_storeu_si256(at.add(256).cast(), _mm512_extracti64x4_epi64::<1>(lanes[i]));
                    i += 1;
                }
                half += 1;
            }
        }
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
        // SAFETY: the caller promised a block of sixteen words.
        unsafe { U64x4(avx2::U64x4::gather::<A, B, C, D>(m).0) }
    }
}

impl U64x4 {
    /// The register, for assembly.
    #[inline(always)]
    pub fn register(self) -> __m256i {
        self.0
    }

    /// The vector in a register.
    #[inline(always)]
    pub fn from_register(register: __m256i) -> Self {
        Self(register)
    }
}

words32!(U32x4);
words32!(U32x8);
words32!(U32x16);
columns32!(U32x8);
columns32!(U32x16);

impl WordColumns for U32x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[sse41::U32x4; 16], [U32x4; 16]>(<sse41::U32x4 as Columns>::load_blocks(blocks, offset));
        fn store_halves(words: [Self; 8], to: *mut u8) =
            <sse41::U32x4 as Columns>::store_halves(core::mem::transmute::<[U32x4; 8], [sse41::U32x4; 8]>(words), to);
    }
}

impl WordRows for U32x4 {
    forward! {
        fn row(w: [u32; 4]) -> Self = U32x4(_mm_setr_epi32(w[0] as i32, w[1] as i32, w[2] as i32, w[3] as i32));
        fn turn1(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x39>(a.0));
        fn turn2(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x4E>(a.0));
        fn turn3(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x93>(a.0));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: the caller promised a block of sixteen words.
        unsafe { U32x4(sse41::U32x4::gather::<A, B, C, D>(m).0) }
    }
}

impl U32x4 {
    /// The register, for assembly.
    #[inline(always)]
    pub fn register(self) -> __m128i {
        self.0
    }

    /// The vector in a register.
    #[inline(always)]
    pub fn from_register(register: __m128i) -> Self {
        Self(register)
    }
}
