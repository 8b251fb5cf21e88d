//! SSE4.1: two 64-bit words in a register, and four in two registers for the row form.

use super::methods::columns32;
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows};
use crate::x86_64::sse41::{U32x4, transpose};
use crate::x86_64::{forward, pin};
use core::arch::x86_64::*;

/// Two words in an xmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x2(__m128i);

/// Four words in two xmm registers: a row of one state.
#[derive(Clone, Copy)]
pub struct U64x4(__m128i, __m128i);

pin!("sse4.1", xmm_reg, __m128i);

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate<const I: usize>(a: __m128i) -> __m128i {
    match I {
        0 => _mm_shuffle_epi32::<0xB1>(a),
        1 => _mm_shuffle_epi8(a, _mm_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10)),
        2 => _mm_shuffle_epi8(a, _mm_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9)),
        _ => _mm_or_si128(_mm_srli_epi64::<63>(a), _mm_add_epi64(a, a)),
    }
}

impl Vector for U64x2 {
    type Word = u64;
    const LANES: usize = 2;

    forward! {
        fn splat(word: u64) -> Self = U64x2(_mm_set1_epi64x(word as i64));
        fn load(from: *const u64) -> Self = U64x2(_mm_loadu_si128(from.cast()));
        fn add(a: Self, b: Self) -> Self = U64x2(_mm_add_epi64(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U64x2(_mm_xor_si128(a.0, b.0));
        fn pin(a: Self) -> Self = U64x2(pin(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised SSE4.1.
        unsafe { U64x2(rotate::<I>(a.0)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller promised two writable words.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }
}

impl WordColumns for U64x2 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised two pointers, with 128 readable bytes at the offset of each.
        unsafe {
            let mut words = [U64x2(_mm_setzero_si128()); 16];
            let mut i = 0;
            while i < 8 {
                let at = |k: usize| (*blocks.add(k)).wrapping_add(offset + 16 * i).cast();
                let (a, b) = (_mm_loadu_si128(at(0)), _mm_loadu_si128(at(1)));
                words[2 * i] = U64x2(_mm_unpacklo_epi64(a, b));
                words[2 * i + 1] = U64x2(_mm_unpackhi_epi64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn load_halves(halves: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let mut words = [U64x2(_mm_setzero_si128()); 8];
            let mut i = 0;
            while i < 4 {
                let at = |k: usize| (*halves.add(k)).add(2 * i).cast();
                let (a, b) = (_mm_loadu_si128(at(0)), _mm_loadu_si128(at(1)));
                words[2 * i] = U64x2(_mm_unpacklo_epi64(a, b));
                words[2 * i + 1] = U64x2(_mm_unpackhi_epi64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(w: [Self; 8], halves: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            // SAFETY: see `load_halves`.
            unsafe {
                let (a, b) = (w[2 * i].0, w[2 * i + 1].0);
                _mm_storeu_si128((*halves).add(2 * i).cast(), _mm_unpacklo_epi64(a, b));
                _mm_storeu_si128((*halves.add(1)).add(2 * i).cast(), _mm_unpackhi_epi64(a, b));
            }
            i += 1;
        }
    }
}

/// Two words from any two places.
///
/// # Safety
///
/// Eight bytes must be readable at each pointer.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn load_two(low: *const u8, high: *const u8) -> __m128i {
    // SAFETY: as the caller promised.
    unsafe { _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64(low.cast())), high.cast())) }
}

impl Vector for U64x4 {
    type Word = u64;
    const LANES: usize = 4;
    const REGISTERS: usize = 2;

    forward! {
        fn splat(word: u64) -> Self = U64x4(_mm_set1_epi64x(word as i64), _mm_set1_epi64x(word as i64));
        fn load(from: *const u64) -> Self =
            U64x4(_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(2).cast()));
        fn add(a: Self, b: Self) -> Self = U64x4(_mm_add_epi64(a.0, b.0), _mm_add_epi64(a.1, b.1));
        fn xor(a: Self, b: Self) -> Self = U64x4(_mm_xor_si128(a.0, b.0), _mm_xor_si128(a.1, b.1));
        fn pin(a: Self) -> Self = U64x4(pin(a.0), pin(a.1));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised SSE4.1.
        unsafe { U64x4(rotate::<I>(a.0), rotate::<I>(a.1)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller promised four writable words.
        unsafe {
            _mm_storeu_si128(to.cast(), self.0);
            _mm_storeu_si128(to.add(2).cast(), self.1);
        }
    }
}

impl WordRows for U64x4 {
    forward! {
        fn load_fresh(from: *const u64) -> Self = Self::load(from);
        fn row(w: [u64; 4]) -> Self =
            U64x4(_mm_set_epi64x(w[1] as i64, w[0] as i64), _mm_set_epi64x(w[3] as i64, w[2] as i64));
        fn turn1(a: Self) -> Self = U64x4(_mm_alignr_epi8::<8>(a.1, a.0), _mm_alignr_epi8::<8>(a.0, a.1));
        fn turn3(a: Self) -> Self = U64x4(_mm_alignr_epi8::<8>(a.0, a.1), _mm_alignr_epi8::<8>(a.1, a.0));
    }

    #[inline(always)]
    unsafe fn turn2(a: Self) -> Self {
        U64x4(a.1, a.0)
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: the caller promised a block of sixteen words.
        unsafe { U64x4(load_two(m.add(8 * A), m.add(8 * B)), load_two(m.add(8 * C), m.add(8 * D))) }
    }
}

/// Eight words of four lanes.
///
/// # Safety
///
/// As for [`WordColumns::load_halves`].
#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) unsafe fn load_halves(halves: *const *mut u32) -> [__m128i; 8] {
    let mut words = [_mm_setzero_si128(); 8];
    let mut half = 0;
    while half < 2 {
        // SAFETY: the caller promised four pointers at eight words each.
        let rows = unsafe {
            let at = |k: usize| (*halves.add(k)).add(4 * half).cast();
            [_mm_loadu_si128(at(0)), _mm_loadu_si128(at(1)), _mm_loadu_si128(at(2)), _mm_loadu_si128(at(3))]
        };
        let [a, b, c, d] = transpose(rows);
        words[4 * half] = a;
        words[4 * half + 1] = b;
        words[4 * half + 2] = c;
        words[4 * half + 3] = d;
        half += 1;
    }
    words
}

/// The reverse.
///
/// # Safety
///
/// As for [`WordColumns::store_halves`].
#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) unsafe fn store_halves(w: [__m128i; 8], halves: *const *mut u32) {
    let mut half = 0;
    while half < 2 {
        let rows = transpose([w[4 * half], w[4 * half + 1], w[4 * half + 2], w[4 * half + 3]]);
        let mut i = 0;
        while i < 4 {
            // SAFETY: the caller promised four pointers at eight words each.
            unsafe { _mm_storeu_si128((*halves.add(i)).add(4 * half).cast(), rows[i]) };
            i += 1;
        }
        half += 1;
    }
}

columns32!(U32x4, __m128i, load_halves, store_halves);

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
        unsafe {
            let word = |i: usize| m.cast::<i32>().add(i).read_unaligned();
            let low = _mm_insert_epi32::<1>(_mm_cvtsi32_si128(word(A)), word(B));
            let high = _mm_insert_epi32::<1>(_mm_cvtsi32_si128(word(C)), word(D));
            U32x4(_mm_unpacklo_epi64(low, high))
        }
    }
}
