//! SSE4.1: 128-bit vectors without rotates. Inlined into AVX2 code, the same intrinsics have their
//! three-operand form, so [`U32x4`] is also AVX2's narrow vector.

use super::{columns32, forward, opaque, rotate_words_left, transpose4};
use crate::vector::{Columns, Rows, Vector, WordColumns, WordRows};
use core::arch::x86_64::*;

/// Four words in an xmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(pub __m128i);

opaque!("sse4.1", xmm_reg, __m128i);

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate_bytes2(a: __m128i) -> __m128i {
    _mm_shuffle_epi8(a, opaque(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)))
}

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate_bytes1(a: __m128i) -> __m128i {
    _mm_shuffle_epi8(a, opaque(_mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12)))
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
        fn opaque(a: Self) -> Self = U32x4(opaque(a.0));
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
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x4(_mm_set_epi64x(high as i64, low as i64));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x4(_mm_loadu_si128((*blocks).wrapping_add(offset).cast()));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(rotate_words_left!(N, _mm_shuffle_epi32, a.0));
        fn shuffle<const I: i32>(a: Self, b: Self) -> Self = U32x4(shuffle_two::<I>(a.0, b.0));
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
    unsafe fn store_chaining_values(w: [Self; 8], to: *mut u8) {
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

/// Two words in an xmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x2(__m128i);

/// Four words in two xmm registers: a row of one state.
#[derive(Clone, Copy)]
pub struct U64x4(__m128i, __m128i);

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn rotate64<const I: usize>(a: __m128i) -> __m128i {
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
        fn opaque(a: Self) -> Self = U64x2(opaque(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised SSE4.1.
        unsafe { U64x2(rotate64::<I>(a.0)) }
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
    unsafe fn load_states(states: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let mut words = [U64x2(_mm_setzero_si128()); 8];
            let mut i = 0;
            while i < 4 {
                let at = |k: usize| (*states.add(k)).add(2 * i).cast();
                let (a, b) = (_mm_loadu_si128(at(0)), _mm_loadu_si128(at(1)));
                words[2 * i] = U64x2(_mm_unpacklo_epi64(a, b));
                words[2 * i + 1] = U64x2(_mm_unpackhi_epi64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_states(w: [Self; 8], states: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            // SAFETY: see `load_states`.
            unsafe {
                let (a, b) = (w[2 * i].0, w[2 * i + 1].0);
                _mm_storeu_si128((*states).add(2 * i).cast(), _mm_unpacklo_epi64(a, b));
                _mm_storeu_si128((*states.add(1)).add(2 * i).cast(), _mm_unpackhi_epi64(a, b));
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
        fn opaque(a: Self) -> Self = U64x4(opaque(a.0), opaque(a.1));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised SSE4.1.
        unsafe { U64x4(rotate64::<I>(a.0), rotate64::<I>(a.1)) }
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
        fn load_just_stored(from: *const u64) -> Self = Self::load(from);
        fn from_words(w: [u64; 4]) -> Self =
            U64x4(_mm_set_epi64x(w[1] as i64, w[0] as i64), _mm_set_epi64x(w[3] as i64, w[2] as i64));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = match N {
            1 => U64x4(_mm_alignr_epi8::<8>(a.1, a.0), _mm_alignr_epi8::<8>(a.0, a.1)),
            2 => U64x4(a.1, a.0),
            _ => U64x4(_mm_alignr_epi8::<8>(a.0, a.1), _mm_alignr_epi8::<8>(a.1, a.0)),
        };
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
/// As for [`WordColumns::load_states`].
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn load_states(states: *const *mut u32) -> [__m128i; 8] {
    let mut words = [_mm_setzero_si128(); 8];
    let mut half = 0;
    while half < 2 {
        // SAFETY: the caller promised four pointers at eight words each.
        let rows = unsafe {
            let at = |k: usize| (*states.add(k)).add(4 * half).cast();
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

/// Writes eight words of each lane: the reverse of the load above.
///
/// # Safety
///
/// As for [`WordColumns::store_states`].
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn store_states(w: [__m128i; 8], states: *const *mut u32) {
    let mut half = 0;
    while half < 2 {
        let rows = transpose([w[4 * half], w[4 * half + 1], w[4 * half + 2], w[4 * half + 3]]);
        let mut i = 0;
        while i < 4 {
            // SAFETY: the caller promised four pointers at eight words each.
            unsafe { _mm_storeu_si128((*states.add(i)).add(4 * half).cast(), rows[i]) };
            i += 1;
        }
        half += 1;
    }
}

columns32!(U32x4, __m128i, load_states, store_states);

impl WordRows for U32x4 {
    forward! {
        fn load_just_stored(from: *const u32) -> Self = <U32x4 as Vector>::load(from);
        fn from_words(w: [u32; 4]) -> Self = U32x4(_mm_setr_epi32(w[0] as i32, w[1] as i32, w[2] as i32, w[3] as i32));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(rotate_words_left!(N, _mm_shuffle_epi32, a.0));
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
