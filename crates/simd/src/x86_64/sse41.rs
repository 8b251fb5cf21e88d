//! SSE4.1: 128-bit vectors without rotates. Inlined into AVX2 code, the same intrinsics have their
//! three-operand form, so this type is also AVX2's narrow vector.

use super::{forward, pin, transpose4};
use crate::vector::{Columns, Rows, Vector};
use core::arch::x86_64::*;

/// Four words in an xmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(pub __m128i);

pin!("sse4.1", xmm_reg, __m128i);

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate_bytes2(a: __m128i) -> __m128i {
    _mm_shuffle_epi8(a, pin(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)))
}

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate_bytes1(a: __m128i) -> __m128i {
    _mm_shuffle_epi8(a, pin(_mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12)))
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn shuffle_two<const I: i32>(a: __m128i, b: __m128i) -> __m128i {
    _mm_castps_si128(_mm_shuffle_ps::<I>(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
}

#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) fn transpose(r: [__m128i; 4]) -> [__m128i; 4] {
    transpose4!(r, _mm_unpacklo_epi32, _mm_unpackhi_epi32, _mm_unpacklo_epi64, _mm_unpackhi_epi64)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn blend(mask: u32, yes: __m128i, no: __m128i) -> __m128i {
    let bits = _mm_setr_epi32(1, 2, 4, 8);
    let chosen = _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(mask as i32), bits), bits);
    _mm_blendv_epi8(no, yes, chosen)
}

impl Vector for U32x4 {
    type Word = u32;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u32) -> Self = U32x4(_mm_set1_epi32(word as i32));
        fn load(from: *const u32) -> Self = U32x4(_mm_loadu_si128(from.cast()));
        fn add(a: Self, b: Self) -> Self = U32x4(_mm_add_epi32(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x4(_mm_xor_si128(a.0, b.0));
        fn pin(a: Self) -> Self = U32x4(pin(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised SSE4.1.
        unsafe {
            U32x4(match I {
                0 => rotate_bytes2(a.0),
                1 => _mm_or_si128(_mm_srli_epi32::<12>(a.0), _mm_slli_epi32::<20>(a.0)),
                2 => rotate_bytes1(a.0),
                _ => _mm_or_si128(_mm_srli_epi32::<7>(a.0), _mm_slli_epi32::<25>(a.0)),
            })
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller promised four writable words.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }
}

impl Rows for U32x4 {
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x4(_mm_loadu_si128(row.cast()));
        fn splat_halves(low: u64, high: u64) -> Self =
            U32x4(_mm_set_epi64x(high as i64, low as i64));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x4(_mm_loadu_si128((*blocks).wrapping_add(offset).cast()));
        fn turn1(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x39>(a.0));
        fn turn2(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x4E>(a.0));
        fn turn3(a: Self) -> Self = U32x4(_mm_shuffle_epi32::<0x93>(a.0));
        fn pick<const I: i32>(a: Self, b: Self) -> Self = U32x4(shuffle_two::<I>(a.0, b.0));
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised 32 writable bytes.
        unsafe {
            _mm_storeu_si128(to.cast(), first.0);
            _mm_storeu_si128(to.add(16).cast(), second.0);
        }
    }
}

impl Columns for U32x4 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised four pointers, with 64 readable bytes at the offset of each.
        unsafe {
            let at = |i: usize, quarter: usize| (*blocks.add(i)).wrapping_add(offset + 16 * quarter).cast();
            let mut words = [U32x4(_mm_setzero_si128()); 16];
            let mut q = 0;
            while q < 4 {
                let rows = [
                    _mm_loadu_si128(at(0, q)),
                    _mm_loadu_si128(at(1, q)),
                    _mm_loadu_si128(at(2, q)),
                    _mm_loadu_si128(at(3, q)),
                ];
                let [a, b, c, d] = transpose(rows);
                words[4 * q] = U32x4(a);
                words[4 * q + 1] = U32x4(b);
                words[4 * q + 2] = U32x4(c);
                words[4 * q + 3] = U32x4(d);
                q += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(w: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 4 * 32 writable bytes.
        unsafe {
            let first = transpose([w[0].0, w[1].0, w[2].0, w[3].0]);
            let second = transpose([w[4].0, w[5].0, w[6].0, w[7].0]);
            let mut i = 0;
            while i < 4 {
                _mm_storeu_si128(to.add(32 * i).cast(), first[i]);
                _mm_storeu_si128(to.add(32 * i + 16).cast(), second[i]);
                i += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn store_blocks(w: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 4 * 64 writable bytes.
        unsafe {
            let mut q = 0;
            while q < 4 {
                let rows = transpose([w[4 * q].0, w[4 * q + 1].0, w[4 * q + 2].0, w[4 * q + 3].0]);
                let mut i = 0;
                while i < 4 {
                    _mm_storeu_si128(to.add(64 * i + 16 * q).cast(), rows[i]);
                    i += 1;
                }
                q += 1;
            }
        }
    }

    forward! {
        fn unzip(left: Self, right: Self) -> (Self, Self) =
            (U32x4(shuffle_two::<0x88>(left.0, right.0)), U32x4(shuffle_two::<0xDD>(left.0, right.0)));
        fn equal(a: Self, b: Self) -> u32 = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(a.0, b.0))) as u32;
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x4(blend(mask, yes.0, no.0));
    }
}
