//! AVX2: four 64-bit words in a register, and for the row form four 32-bit words.

use super::methods::{columns32, turns};
use crate::vector::{Columns, Vector};
use crate::words::{WordColumns, WordRows};
use crate::x86_64::avx2::{U32x8, load_two, transpose};
use crate::x86_64::sse41::U32x4 as Narrow;
use crate::x86_64::{byte_rotation, forward, pin};
use core::arch::x86_64::*;

/// Four words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x4(pub(super) __m256i);

/// Four words in an xmm register: the vector of SSE4.1 with other loads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(Narrow);

pin!("avx2", ymm_reg, __m256i);

/// The mask of a byte shuffle that rotates words right by this many bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn places<const WORD: usize, const BY: usize>() -> __m128i {
    let places = const { &byte_rotation(WORD, BY) };
    // SAFETY: sixteen bytes are readable, and more.
    unsafe { _mm_loadu_si128(places.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const I: usize>(a: __m256i) -> __m256i {
    match I {
        0 => _mm256_shuffle_epi32::<0xB1>(a),
        1 => _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(places::<8, 3>())),
        2 => _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(places::<8, 2>())),
        _ => _mm256_or_si256(_mm256_srli_epi64::<63>(a), _mm256_add_epi64(a, a)),
    }
}

impl Vector for U64x4 {
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

/// Eight words of four lanes.
///
/// # Safety
///
/// As for [`WordColumns::load_halves`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_halves(halves: *const *mut u64) -> [__m256i; 8] {
    let mut words = [_mm256_setzero_si256(); 8];
    let mut i = 0;
    while i < 4 {
        // SAFETY: the caller promised four pointers at eight words each.
        unsafe {
            let at = |k: usize| (*halves.add(k)).add(2 * i).cast::<u8>();
            let (a, b) = (load_two(at(0), at(2)), load_two(at(1), at(3)));
            words[2 * i] = _mm256_unpacklo_epi64(a, b);
            words[2 * i + 1] = _mm256_unpackhi_epi64(a, b);
        }
        i += 1;
    }
    words
}

/// The reverse.
///
/// # Safety
///
/// As for [`WordColumns::store_halves`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_halves(w: [__m256i; 8], halves: *const *mut u64) {
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
            // SAFETY: see `load_halves`.
            unsafe { _mm256_storeu_si256((*halves.add(lane)).add(4 * half).cast(), lanes[lane]) };
            lane += 1;
        }
        half += 1;
    }
}

/// Eight words of eight lanes, or the reverse.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose8(r: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b] = [transpose([r[0], r[1], r[2], r[3]]), transpose([r[4], r[5], r[6], r[7]])];
    let mut out = r;
    let mut i = 0;
    while i < 4 {
        out[i] = _mm256_permute2x128_si256::<0x20>(a[i], b[i]);
        out[i + 4] = _mm256_permute2x128_si256::<0x31>(a[i], b[i]);
        i += 1;
    }
    out
}

/// Eight words of eight lanes.
///
/// # Safety
///
/// As for [`WordColumns::load_halves`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_halves32(halves: *const *mut u32) -> [__m256i; 8] {
    let mut rows = [_mm256_setzero_si256(); 8];
    let mut i = 0;
    while i < 8 {
        // SAFETY: the caller promised eight pointers at eight words each.
        rows[i] = unsafe { _mm256_loadu_si256((*halves.add(i)).cast()) };
        i += 1;
    }
    transpose8(rows)
}

/// The reverse.
///
/// # Safety
///
/// As for [`WordColumns::store_halves`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_halves32(words: [__m256i; 8], halves: *const *mut u32) {
    let rows = transpose8(words);
    let mut i = 0;
    while i < 8 {
        // SAFETY: see `load_halves32`.
        unsafe { _mm256_storeu_si256((*halves.add(i)).cast(), rows[i]) };
        i += 1;
    }
}

impl WordColumns for U64x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U64x4; 16]>(load_blocks(blocks, offset));
        fn load_halves(halves: *const *mut u64) -> [Self; 8] =
            core::mem::transmute::<[__m256i; 8], [U64x4; 8]>(load_halves(halves));
        fn store_halves(w: [Self; 8], halves: *const *mut u64) =
            store_halves(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), halves);
    }
}

/// Loads four words with two loads, which the compiler would otherwise merge.
///
/// # Safety
///
/// Four words must be readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_halves_of_row(from: *const u64) -> __m256i {
    // SAFETY: as the caller promised.
    let [low, high] = unsafe { [_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(2).cast())] };
    let low = pin(_mm256_castsi128_si256(low));
    _mm256_inserti128_si256::<1>(low, high)
}

impl WordRows for U64x4 {
    turns!(U64x4, _mm256_permute4x64_epi64);
    forward! {
        fn load_fresh(from: *const u64) -> Self = U64x4(load_halves_of_row(from));
        fn row(w: [u64; 4]) -> Self =
            U64x4(_mm256_setr_epi64x(w[0] as i64, w[1] as i64, w[2] as i64, w[3] as i64));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: the caller promised AVX2, and a block of sixteen words.
        unsafe {
            let word = |i: usize| m.cast::<i64>().add(i).read_unaligned();
            U64x4(_mm256_setr_epi64x(word(A), word(B), word(C), word(D)))
        }
    }
}

impl Vector for U32x4 {
    type Word = u32;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u32) -> Self = U32x4(<Narrow as Vector>::splat(word));
        fn load(from: *const u32) -> Self = U32x4(<Narrow as Vector>::load(from));
        fn add(a: Self, b: Self) -> Self = U32x4(<Narrow as Vector>::add(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x4(<Narrow as Vector>::xor(a.0, b.0));
        fn pin(a: Self) -> Self = U32x4(<Narrow as Vector>::pin(a.0));
        fn copy_padded(from: *const u8, n: usize, to: *mut u8) = <Narrow as Vector>::copy_padded(from, n, to);
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { U32x4(<Narrow as Vector>::rotate::<I>(a.0)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as the caller promised.
        unsafe { <Narrow as Vector>::store(self.0, to) }
    }
}

impl WordRows for U32x4 {
    forward! {
        fn load_fresh(from: *const u32) -> Self = U32x4(<Narrow as Vector>::load(from));
        fn row(w: [u32; 4]) -> Self = U32x4(<Narrow as WordRows>::row(w));
        fn turn1(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn1(a.0));
        fn turn2(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn2(a.0));
        fn turn3(a: Self) -> Self = U32x4(<Narrow as WordRows>::turn3(a.0));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: as the caller promised.
        unsafe { U32x4(<Narrow as WordRows>::gather::<A, B, C, D>(m)) }
    }
}

/// For assembly: a vector as a register, and the byte shuffle masks for two of its rotates.
macro_rules! registers {
    ($type:ident, $register:ty, |$vector:ident| $inner:expr, $wrap:expr, $($mask:ident: $rotate:literal = $places:expr;)*) => {
        impl $type {
            /// The register.
            #[inline(always)]
            pub fn register(self) -> $register {
                let $vector = self;
                $inner
            }

            /// The vector in a register.
            #[inline(always)]
            pub fn from_register(register: $register) -> Self {
                ($wrap)(register)
            }

            $(
                #[doc = concat!("The mask for `vpshufb` that does rotate number ", $rotate, ".")]
                ///
                /// # Safety
                ///
                /// The CPU must have AVX2.
                #[inline]
                #[target_feature(enable = "avx2")]
                pub fn $mask() -> $register {
                    $places
                }
            )*
        }
    };
}

registers!(
    U64x4, __m256i, |vector| vector.0, U64x4,
    mask1: 1 = _mm256_broadcastsi128_si256(places::<8, 3>());
    mask2: 2 = _mm256_broadcastsi128_si256(places::<8, 2>());
);
registers!(
    U32x4, __m128i, |vector| vector.0.0, |register| U32x4(Narrow(register)),
    mask0: 0 = places::<4, 2>();
    mask2: 2 = places::<4, 1>();
);

columns32!(U32x8, __m256i, load_halves32, store_halves32);
