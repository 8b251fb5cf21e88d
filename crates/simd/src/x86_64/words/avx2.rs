//! AVX2: four 64-bit words in a register. The narrow vectors are those of [`super::sse41`].

use super::{columns32, forward, pin, turns, words32};
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows, Words};
use crate::x86_64::avx2::{U32x8, load_two};
use core::arch::x86_64::*;

/// Four words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x4(pub(super) __m256i);

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
        // SAFETY: the caller promised a block of sixteen words.
        unsafe {
            let two = |low: usize, high: usize| {
                let low = _mm_castsi128_pd(_mm_loadl_epi64(m.add(8 * low).cast()));
                _mm_castpd_si128(_mm_loadh_pd(low, m.add(8 * high).cast()))
            };
            U64x4(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(A, B)), two(C, D)))
        }
    }
}

words32!(U32x8);
columns32!(U32x8);
