//! AVX2: 256-bit vectors without rotates. The narrow vector is the one of [`super::sse41`].

use super::{forward, pin, transpose4};
use crate::vector::{Columns, Rows, Vector};
use core::arch::x86_64::*;

/// Eight words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x8(pub __m256i);

pin!("avx2", ymm_reg, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_bytes2(a: __m256i) -> __m256i {
    let places = _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    _mm256_shuffle_epi8(a, pin(_mm256_broadcastsi128_si256(places)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_bytes1(a: __m256i) -> __m256i {
    let places = _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
    _mm256_shuffle_epi8(a, pin(_mm256_broadcastsi128_si256(places)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn shuffle_two<const I: i32>(a: __m256i, b: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_shuffle_ps::<I>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn transpose(r: [__m256i; 4]) -> [__m256i; 4] {
    transpose4!(r, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64)
}

/// # Safety
///
/// Sixteen bytes must be readable at each pointer.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_two(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: as the caller promised.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(low.cast()));
        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(high.cast()))
    }
}

/// Sixteen words of eight blocks.
///
/// # Safety
///
/// As for [`Columns::load_blocks`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [__m256i; 16] {
    let mut words = [_mm256_setzero_si256(); 16];
    let mut q = 0;
    while q < 4 {
        let mut rows = [_mm256_setzero_si256(); 4];
        let mut j = 0;
        while j < 4 {
            // SAFETY: the caller promised eight pointers, with 64 readable bytes at the offset of
            // each.
            rows[j] = unsafe {
                let at = offset + 16 * q;
                load_two((*blocks.add(j)).wrapping_add(at), (*blocks.add(j + 4)).wrapping_add(at))
            };
            j += 1;
        }
        let [a, b, c, d] = transpose(rows);
        words[4 * q] = a;
        words[4 * q + 1] = b;
        words[4 * q + 2] = c;
        words[4 * q + 3] = d;
        q += 1;
    }
    words
}

/// Stores 32 bytes per lane from four vectors, `stride` bytes apart from lane to lane.
///
/// # Safety
///
/// 32 bytes must be writable at each of the eight places.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_eight_words(w: [__m256i; 8], to: *mut u8, stride: usize) {
    let a = transpose([w[0], w[1], w[2], w[3]]);
    let b = transpose([w[4], w[5], w[6], w[7]]);
    let mut j = 0;
    while j < 4 {
        // SAFETY: as the caller promised.
        unsafe {
            _mm256_storeu_si256(to.add(stride * j).cast(), _mm256_permute2x128_si256::<0x20>(a[j], b[j]));
            _mm256_storeu_si256(
                to.add(stride * (j + 4)).cast(),
                _mm256_permute2x128_si256::<0x31>(a[j], b[j]),
            );
        }
        j += 1;
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn unzip(left: __m256i, right: __m256i) -> (__m256i, __m256i) {
    let even = shuffle_two::<0x88>(left, right);
    let odd = shuffle_two::<0xDD>(left, right);
    (_mm256_permute4x64_epi64::<0xD8>(even), _mm256_permute4x64_epi64::<0xD8>(odd))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn equal(a: __m256i, b: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u32
}

#[inline]
#[target_feature(enable = "avx2")]
fn blend(mask: u32, yes: __m256i, no: __m256i) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let chosen = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits);
    _mm256_blendv_epi8(no, yes, chosen)
}

impl Vector for U32x8 {
    type Word = u32;
    const LANES: usize = 8;

    forward! {
        fn splat(word: u32) -> Self = U32x8(_mm256_set1_epi32(word as i32));
        fn load(from: *const u32) -> Self = U32x8(_mm256_loadu_si256(from.cast()));
        fn add(a: Self, b: Self) -> Self = U32x8(_mm256_add_epi32(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x8(_mm256_xor_si256(a.0, b.0));
        fn pin(a: Self) -> Self = U32x8(pin(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised AVX2.
        unsafe {
            U32x8(match I {
                0 => rotate_bytes2(a.0),
                1 => _mm256_or_si256(_mm256_srli_epi32::<12>(a.0), _mm256_slli_epi32::<20>(a.0)),
                2 => rotate_bytes1(a.0),
                _ => _mm256_or_si256(_mm256_srli_epi32::<7>(a.0), _mm256_slli_epi32::<25>(a.0)),
            })
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller promised eight writable words.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }
}

impl Rows for U32x8 {
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x8(_mm256_broadcastsi128_si256(_mm_loadu_si128(row.cast())));
        fn splat_halves(low: u64, high: u64) -> Self =
            U32x8(_mm256_broadcastsi128_si256(_mm_set_epi64x(high as i64, low as i64)));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x8(load_two((*blocks).wrapping_add(offset), (*blocks.add(1)).wrapping_add(offset)));
        fn turn1(a: Self) -> Self = U32x8(_mm256_shuffle_epi32::<0x39>(a.0));
        fn turn2(a: Self) -> Self = U32x8(_mm256_shuffle_epi32::<0x4E>(a.0));
        fn turn3(a: Self) -> Self = U32x8(_mm256_shuffle_epi32::<0x93>(a.0));
        fn pick<const I: i32>(a: Self, b: Self) -> Self = U32x8(shuffle_two::<I>(a.0, b.0));
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised 64 writable bytes.
        unsafe {
            _mm256_storeu_si256(to.cast(), _mm256_permute2x128_si256::<0x20>(first.0, second.0));
            _mm256_storeu_si256(to.add(32).cast(), _mm256_permute2x128_si256::<0x31>(first.0, second.0));
        }
    }
}

macro_rules! unwrap8 {
    ($w:ident, $at:expr) => {
        [
            $w[$at].0,
            $w[$at + 1].0,
            $w[$at + 2].0,
            $w[$at + 3].0,
            $w[$at + 4].0,
            $w[$at + 5].0,
            $w[$at + 6].0,
            $w[$at + 7].0,
        ]
    };
}
pub(super) use unwrap8;

impl Columns for U32x8 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U32x8; 16]>(load_blocks(blocks, offset));
        fn store_halves(w: [Self; 8], to: *mut u8) = store_eight_words(unwrap8!(w, 0), to, 32);
        fn unzip(left: Self, right: Self) -> (Self, Self) = {
            let (even, odd) = unzip(left.0, right.0);
            (U32x8(even), U32x8(odd))
        };
        fn equal(a: Self, b: Self) -> u32 = equal(a.0, b.0);
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x8(blend(mask, yes.0, no.0));
    }

    #[inline(always)]
    unsafe fn store_blocks(w: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 8 * 64 writable bytes.
        unsafe {
            store_eight_words(unwrap8!(w, 0), to, 64);
            store_eight_words(unwrap8!(w, 8), to.add(32), 64);
        }
    }
}
