//! AVX-512: four or eight 64-bit words in a register, and the 32-bit vectors; rotates, masks, and
//! 32 registers.

use super::avx2::{
    self, load_blocks as load_blocks4, load_halves as load_halves4, load_halves32,
    store_halves as store_halves4, store_halves32,
};
use super::methods::{columns32, turns};
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows};
use crate::x86_64::avx512::{U32x4, U32x8, U32x16, transpose as transpose32};
use crate::x86_64::{forward, pin, sse41};
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
/// As for [`Vector::copy_padded`].
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

/// The shared methods of both widths of 64-bit words.
macro_rules! words64 {
    ($type:ident, $lanes:literal, $class:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $xor:ident, $ror:ident) => {
        impl Vector for $type {
            type Word = u64;
            const LANES: usize = $lanes;

            forward! {
                fn splat(word: u64) -> Self = $type($splat(word as i64));
                fn load(from: *const u64) -> Self = $type($load(from.cast()));
                fn add(a: Self, b: Self) -> Self = $type($add(a.0, b.0));
                fn xor(a: Self, b: Self) -> Self = $type($xor(a.0, b.0));
                fn pin(a: Self) -> Self = $type($class::pin(a.0));
                fn copy_padded(from: *const u8, n: usize, to: *mut u8) = copy_block(from, n, to);
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
        fn load_halves(halves: *const *mut u64) -> [Self; 8] =
            core::mem::transmute::<[__m256i; 8], [U64x4; 8]>(load_halves4(halves));
        fn store_halves(w: [Self; 8], halves: *const *mut u64) =
            store_halves4(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), halves);
    }
}

/// Four words of eight lanes, or the reverse; each register has the words of lane i and lane i + 4.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    let even = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
    let odd = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
    [
        _mm512_permutex2var_epi64(even.0, low, even.1),
        _mm512_permutex2var_epi64(odd.0, low, odd.1),
        _mm512_permutex2var_epi64(even.0, high, even.1),
        _mm512_permutex2var_epi64(odd.0, high, odd.1),
    ]
}

/// `N` words of the eight blocks, or halves of blocks, at these places.
///
/// # Safety
///
/// As for [`WordColumns::load_blocks`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_words<const N: usize>(blocks: *const *const u8, offset: usize) -> [U64x8; N] {
    let mut words = [U64x8(_mm512_setzero_si512()); N];
    let mut q = 0;
    while q < N / 4 {
        // SAFETY: the caller promised eight pointers, with N words readable at the offset of each.
        let [a, b, c, d] = unsafe {
            let two = |i: usize| {
                let at = |k: usize| (*blocks.add(k)).wrapping_add(offset + 32 * q).cast();
                let first = _mm512_castsi256_si512(_mm256_loadu_si256(at(i)));
                _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(at(i + 4)))
            };
            transpose(two(0), two(1), two(2), two(3))
        };
        words[4 * q] = U64x8(a);
        words[4 * q + 1] = U64x8(b);
        words[4 * q + 2] = U64x8(c);
        words[4 * q + 3] = U64x8(d);
        q += 1;
    }
    words
}

impl WordColumns for U64x8 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] = load_words(blocks, offset);
        fn load_halves(halves: *const *mut u64) -> [Self; 8] = load_words(halves.cast(), 0);
    }

    #[inline(always)]
    unsafe fn store_halves(w: [Self; 8], halves: *const *mut u64) {
        // SAFETY: the caller promised eight pointers at eight words each.
        unsafe {
            let mut half = 0;
            while half < 2 {
                let lanes = transpose(w[4 * half].0, w[4 * half + 1].0, w[4 * half + 2].0, w[4 * half + 3].0);
                let mut i = 0;
                while i < 4 {
                    let at = |i: usize| (*halves.add(i)).add(4 * half).cast();
                    _mm256_storeu_si256(at(i), _mm512_castsi512_si256(lanes[i]));
                    _mm256_storeu_si256(at(i + 4), _mm512_extracti64x4_epi64::<1>(lanes[i]));
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
        fn load_fresh(from: *const u64) -> Self = U64x4(avx2::load_halves_of_row(from));
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

/// Eight words of sixteen lanes.
///
/// # Safety
///
/// As for [`WordColumns::load_halves`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_halves16(halves: *const *mut u32) -> [__m512i; 8] {
    // SAFETY: the caller promised sixteen pointers at eight words each.
    let (u, v) = unsafe {
        let two = |i: usize| {
            let at = |i: usize| _mm256_loadu_si256((*halves.add(i)).cast());
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(at(i)), at(i + 4))
        };
        (transpose32([two(0), two(1), two(2), two(3)]), transpose32([two(8), two(9), two(10), two(11)]))
    };
    let mut words = [_mm512_setzero_si512(); 8];
    let mut w = 0;
    while w < 4 {
        words[w] = _mm512_shuffle_i32x4::<0x88>(u[w], v[w]);
        words[w + 4] = _mm512_shuffle_i32x4::<0xDD>(u[w], v[w]);
        w += 1;
    }
    words
}

/// The reverse.
///
/// # Safety
///
/// As for [`WordColumns::store_halves`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_halves16(w: [__m512i; 8], halves: *const *mut u32) {
    let [a, b] = [transpose32([w[0], w[1], w[2], w[3]]), transpose32([w[4], w[5], w[6], w[7]])];
    let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let mut i = 0;
    while i < 4 {
        // Of lanes i and i + 4, and of i + 8 and i + 12.
        let x = _mm512_permutex2var_epi64(a[i], low, b[i]);
        let y = _mm512_permutex2var_epi64(a[i], high, b[i]);
        // SAFETY: see `load_halves16`.
        unsafe {
            let at = |i: usize| (*halves.add(i)).cast();
            _mm256_storeu_si256(at(i), _mm512_castsi512_si256(x));
            _mm256_storeu_si256(at(i + 4), _mm512_extracti64x4_epi64::<1>(x));
            _mm256_storeu_si256(at(i + 8), _mm512_castsi512_si256(y));
            _mm256_storeu_si256(at(i + 12), _mm512_extracti64x4_epi64::<1>(y));
        }
        i += 1;
    }
}

columns32!(U32x8, __m256i, load_halves32, store_halves32);
columns32!(U32x16, __m512i, load_halves16, store_halves16);

impl WordColumns for U32x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[sse41::U32x4; 16], [U32x4; 16]>(<sse41::U32x4 as Columns>::load_blocks(blocks, offset));
        fn load_halves(halves: *const *mut u32) -> [Self; 8] =
            core::mem::transmute::<[sse41::U32x4; 8], [U32x4; 8]>(<sse41::U32x4 as WordColumns>::load_halves(halves));
        fn store_halves(words: [Self; 8], halves: *const *mut u32) = <sse41::U32x4 as WordColumns>::store_halves(
            core::mem::transmute::<[U32x4; 8], [sse41::U32x4; 8]>(words), halves,
        );
    }
}

impl WordRows for U32x4 {
    forward! {
        fn load_fresh(from: *const u32) -> Self = <U32x4 as Vector>::load(from);
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
