//! AVX2: 256-bit vectors without rotates. The narrow vector of the row forms is that of
//! [`super::sse41`].

use super::sse41::U32x4 as Narrow;
use super::{byte_rotation, columns32, forward, opaque, rotate_words_left, transpose4};
use crate::vector::{Columns, Rows, Vector, WordColumns, WordRows};
use core::arch::x86_64::*;

/// Eight words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x8(pub __m256i);

opaque!("avx2", ymm_reg, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_bytes2(a: __m256i) -> __m256i {
    let places = _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    _mm256_shuffle_epi8(a, opaque(_mm256_broadcastsi128_si256(places)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_bytes1(a: __m256i) -> __m256i {
    let places = _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
    _mm256_shuffle_epi8(a, opaque(_mm256_broadcastsi128_si256(places)))
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
        fn opaque(a: Self) -> Self = U32x8(opaque(a.0));
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
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x8(_mm256_broadcastsi128_si256(_mm_set_epi64x(high as i64, low as i64)));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x8(load_two((*blocks).wrapping_add(offset), (*blocks.add(1)).wrapping_add(offset)));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x8(rotate_words_left!(N, _mm256_shuffle_epi32, a.0));
        fn shuffle<const I: i32>(a: Self, b: Self) -> Self = U32x8(shuffle_two::<I>(a.0, b.0));
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
        fn store_chaining_values(w: [Self; 8], to: *mut u8) = store_eight_words(unwrap8!(w, 0), to, 32);
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

/// Four words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x4(pub(super) __m256i);

/// Four words in an xmm register: the vector of SSE4.1 with other loads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(Narrow);

/// The mask of a byte shuffle that rotates words right by this many bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn byte_rotation_mask<const WORD: usize, const BY: usize>() -> __m128i {
    let places = const { &byte_rotation(WORD, BY) };
    // SAFETY: sixteen bytes are readable, and more.
    unsafe { _mm_loadu_si128(places.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate64<const I: usize>(a: __m256i) -> __m256i {
    match I {
        0 => _mm256_shuffle_epi32::<0xB1>(a),
        1 => _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(byte_rotation_mask::<8, 3>())),
        2 => _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(byte_rotation_mask::<8, 2>())),
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
        fn opaque(a: Self) -> Self = U64x4(opaque(a.0));
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised AVX2.
        unsafe { U64x4(rotate64::<I>(a.0)) }
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
pub(super) unsafe fn load_blocks64(blocks: *const *const u8, offset: usize) -> [__m256i; 16] {
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
/// As for [`WordColumns::load_states`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_states64(states: *const *mut u64) -> [__m256i; 8] {
    let mut words = [_mm256_setzero_si256(); 8];
    let mut i = 0;
    while i < 4 {
        // SAFETY: the caller promised four pointers at eight words each.
        unsafe {
            let at = |k: usize| (*states.add(k)).add(2 * i).cast::<u8>();
            let (a, b) = (load_two(at(0), at(2)), load_two(at(1), at(3)));
            words[2 * i] = _mm256_unpacklo_epi64(a, b);
            words[2 * i + 1] = _mm256_unpackhi_epi64(a, b);
        }
        i += 1;
    }
    words
}

/// Writes eight words of each lane: the reverse of the load above.
///
/// # Safety
///
/// As for [`WordColumns::store_states`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_states64(w: [__m256i; 8], states: *const *mut u64) {
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
            // SAFETY: see `load_states64`.
            unsafe { _mm256_storeu_si256((*states.add(lane)).add(4 * half).cast(), lanes[lane]) };
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
/// As for [`WordColumns::load_states`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_states32(states: *const *mut u32) -> [__m256i; 8] {
    let mut rows = [_mm256_setzero_si256(); 8];
    let mut i = 0;
    while i < 8 {
        // SAFETY: the caller promised eight pointers at eight words each.
        rows[i] = unsafe { _mm256_loadu_si256((*states.add(i)).cast()) };
        i += 1;
    }
    transpose8(rows)
}

/// Writes eight words of each lane: the reverse of the load above.
///
/// # Safety
///
/// As for [`WordColumns::store_states`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_states32(words: [__m256i; 8], states: *const *mut u32) {
    let rows = transpose8(words);
    let mut i = 0;
    while i < 8 {
        // SAFETY: see `load_states32`.
        unsafe { _mm256_storeu_si256((*states.add(i)).cast(), rows[i]) };
        i += 1;
    }
}

impl WordColumns for U64x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U64x4; 16]>(load_blocks64(blocks, offset));
        fn load_states(states: *const *mut u64) -> [Self; 8] =
            core::mem::transmute::<[__m256i; 8], [U64x4; 8]>(load_states64(states));
        fn store_states(w: [Self; 8], states: *const *mut u64) =
            store_states64(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), states);
    }
}

/// Loads four words with two loads, which the compiler would otherwise merge.
///
/// # Safety
///
/// Four words must be readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_row_in_halves(from: *const u64) -> __m256i {
    // SAFETY: as the caller promised.
    let [low, high] = unsafe { [_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(2).cast())] };
    let low = opaque(_mm256_castsi128_si256(low));
    _mm256_inserti128_si256::<1>(low, high)
}

impl WordRows for U64x4 {
    forward! {
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U64x4(rotate_words_left!(N, _mm256_permute4x64_epi64, a.0));
        fn load_just_stored(from: *const u64) -> Self = U64x4(load_row_in_halves(from));
        fn from_words(w: [u64; 4]) -> Self =
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
        fn opaque(a: Self) -> Self = U32x4(<Narrow as Vector>::opaque(a.0));
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
        fn load_just_stored(from: *const u32) -> Self = U32x4(<Narrow as Vector>::load(from));
        fn from_words(w: [u32; 4]) -> Self = U32x4(<Narrow as WordRows>::from_words(w));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(<Narrow as WordRows>::rotate_words_left::<N>(a.0));
    }

    #[inline(always)]
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(m: *const u8) -> Self {
        // SAFETY: as the caller promised.
        unsafe { U32x4(<Narrow as WordRows>::gather::<A, B, C, D>(m)) }
    }
}

/// For assembly: a vector as a register, and the byte shuffle masks for two of its rotates.
macro_rules! registers {
    ($type:ident, $register:ty, |$vector:ident| $inner:expr, $wrap:expr, $($mask:ident: $rotate:literal = $value:expr;)*) => {
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
                    $value
                }
            )*
        }
    };
}

registers!(
    U64x4, __m256i, |vector| vector.0, U64x4,
    mask1: 1 = _mm256_broadcastsi128_si256(byte_rotation_mask::<8, 3>());
    mask2: 2 = _mm256_broadcastsi128_si256(byte_rotation_mask::<8, 2>());
);
registers!(
    U32x4, __m128i, |vector| vector.0.0, |register| U32x4(Narrow(register)),
    mask0: 0 = byte_rotation_mask::<4, 2>();
    mask2: 2 = byte_rotation_mask::<4, 1>();
);

columns32!(U32x8, __m256i, load_states32, store_states32);
