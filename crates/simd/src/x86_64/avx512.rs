//! AVX-512 (F, VL, BW, DQ): rotates, masks, and 32 registers of 128, 256 or 512 bits.

use super::avx2::{
    self, equal as equal8, load_blocks as load_blocks8, load_two, store_eight_words, unwrap8, unzip as unzip8,
};
use super::{columns32, forward, rotate_words_left, sse41, transpose4};
use crate::vector::{Columns, Rows, Vector, WordColumns, WordRows};
use core::arch::x86_64::*;

/// `opaque`, and a `vshufps` that the compiler keeps, for a register class.
///
/// LLVM would merge two shuffles into a `vpermt2d`. It takes three cycles, on the port that the
/// latency-bound chain of the row form needs for its one-cycle operations.
macro_rules! register_class {
    ($class:ident, $register:ty) => {
        super::super::opaque!("avx512f,avx512vl", $class, $register);

        #[inline]
        #[target_feature(enable = "avx512f,avx512vl")]
        pub(super) fn shuffle_two<const I: i32>(a: $register, b: $register) -> $register {
            let picked;
            // SAFETY: one instruction on registers, of the features enabled here.
            unsafe {
                core::arch::asm!(
                    "vshufps {picked}, {a}, {b}, {i}",
                    picked = lateout($class) picked, a = in($class) a, b = in($class) b, i = const I,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            picked
        }
    };
}

mod xmm {
    use core::arch::x86_64::__m128i;
    register_class!(xmm_reg, __m128i);
}
mod ymm {
    use core::arch::x86_64::__m256i;
    register_class!(ymm_reg, __m256i);
}
mod zmm {
    use core::arch::x86_64::__m512i;
    register_class!(zmm_reg, __m512i);
}

/// Four words in an xmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(pub(super) __m128i);

/// Eight words in a ymm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x8(pub(super) __m256i);

/// Sixteen words in a zmm register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x16(__m512i);

/// One masked load and a store: no branch.
///
/// # Safety
///
/// As for [`Vector::copy_padded`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
unsafe fn copy_padded(from: *const u8, n: usize, to: *mut u8) {
    // SAFETY: the mask has the n bytes that the caller promised; no other is touched.
    unsafe {
        let mask = _bzhi_u64(u64::MAX, n as u32);
        _mm512_storeu_si512(to.cast(), _mm512_maskz_loadu_epi8(mask, from.cast()));
    }
}

/// Masked loads into registers: a copy in memory would be ready 30 cycles later.
///
/// # Safety
///
/// As for [`Rows::padded_rows`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,bmi2")]
unsafe fn padded_rows(block: *const u8, n: usize) -> [__m128i; 4] {
    let mask = _bzhi_u64(u64::MAX, n as u32);
    // SAFETY: the mask has the n bytes that the caller promised; no other is touched. No closure,
    // which would not be inlined.
    unsafe {
        [
            _mm_maskz_loadu_epi8(mask as u16, block.cast()),
            _mm_maskz_loadu_epi8((mask >> 16) as u16, block.wrapping_add(16).cast()),
            _mm_maskz_loadu_epi8((mask >> 32) as u16, block.wrapping_add(32).cast()),
            _mm_maskz_loadu_epi8((mask >> 48) as u16, block.wrapping_add(48).cast()),
        ]
    }
}

macro_rules! vector {
    ($type:ident, $lanes:literal, $width:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $xor:ident, $ror:ident) => {
        impl Vector for $type {
            type Word = u32;
            const LANES: usize = $lanes;

            forward! {
                fn splat(word: u32) -> Self = $type($splat(word as i32));
                fn load(from: *const u32) -> Self = $type($load(from.cast()));
                fn add(a: Self, b: Self) -> Self = $type($add(a.0, b.0));
                fn xor(a: Self, b: Self) -> Self = $type($xor(a.0, b.0));
                fn opaque(a: Self) -> Self = $type($width::opaque(a.0));
                fn copy_padded(from: *const u8, n: usize, to: *mut u8) = copy_padded(from, n, to);
            }

            #[inline(always)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                // SAFETY: the caller promised AVX-512.
                unsafe {
                    $type(match I {
                        0 => $ror::<16>(a.0),
                        1 => $ror::<12>(a.0),
                        2 => $ror::<8>(a.0),
                        _ => $ror::<7>(a.0),
                    })
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u32) {
                // SAFETY: the caller promised room for all lanes.
                unsafe { $store(to.cast(), self.0) }
            }
        }
    };
}

vector!(
    U32x4,
    4,
    xmm,
    _mm_set1_epi32,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_add_epi32,
    _mm_xor_si128,
    _mm_ror_epi32
);
vector!(
    U32x8,
    8,
    ymm,
    _mm256_set1_epi32,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_add_epi32,
    _mm256_xor_si256,
    _mm256_ror_epi32
);
vector!(
    U32x16,
    16,
    zmm,
    _mm512_set1_epi32,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_add_epi32,
    _mm512_xor_si512,
    _mm512_ror_epi32
);

macro_rules! row_shuffles {
    ($type:ident, $width:ident, $shuffle:ident) => {
        forward! {
            fn rotate_words_left<const N: i32>(a: Self) -> Self = $type(rotate_words_left!(N, $shuffle, a.0));
            fn shuffle<const I: i32>(a: Self, b: Self) -> Self = $type($width::shuffle_two::<I>(a.0, b.0));
        }
    };
}

impl Rows for U32x4 {
    row_shuffles!(U32x4, xmm, _mm_shuffle_epi32);
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x4(_mm_loadu_si128(row.cast()));
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x4(_mm_set_epi64x(high as i64, low as i64));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x4(_mm_loadu_si128((*blocks).wrapping_add(offset).cast()));
        fn padded_rows(block: *const u8, n: usize) -> [Self; 4] =
            core::mem::transmute::<[__m128i; 4], [U32x4; 4]>(padded_rows(block, n));
        fn store_row_pairs(first: Self, second: Self, to: *mut u8) = {
            _mm_storeu_si128(to.cast(), first.0);
            _mm_storeu_si128(to.add(16).cast(), second.0);
        };
    }
}

impl Rows for U32x8 {
    row_shuffles!(U32x8, ymm, _mm256_shuffle_epi32);
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x8(_mm256_broadcastsi128_si256(_mm_loadu_si128(row.cast())));
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x8(_mm256_broadcastsi128_si256(_mm_set_epi64x(high as i64, low as i64)));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x8(load_two((*blocks).wrapping_add(offset), (*blocks.add(1)).wrapping_add(offset)));
        fn store_row_pairs(first: Self, second: Self, to: *mut u8) = {
            _mm256_storeu_si256(to.cast(), _mm256_permute2x128_si256::<0x20>(first.0, second.0));
            _mm256_storeu_si256(to.add(32).cast(), _mm256_permute2x128_si256::<0x31>(first.0, second.0));
        };
    }
}

impl Rows for U32x16 {
    row_shuffles!(U32x16, zmm, _mm512_shuffle_epi32);
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x16(_mm512_broadcast_i32x4(_mm_loadu_si128(row.cast())));
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x16(_mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64)));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self = U32x16(load_four(blocks, 1, offset));
        fn store_row_pairs(first: Self, second: Self, to: *mut u8) = {
            let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi64(first.0, low, second.0));
            _mm512_storeu_si512(to.add(64).cast(), _mm512_permutex2var_epi64(first.0, high, second.0));
        };
    }
}

/// Sixteen bytes from each of the pointers 0, `step`, 2 `step` and 3 `step`. Three loads are merged
/// by mask: no shuffle.
///
/// # Safety
///
/// The pointers must exist, with sixteen readable bytes at the offset of each.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
unsafe fn load_four(blocks: *const *const u8, step: usize, offset: usize) -> __m512i {
    // SAFETY: as the caller promised.
    unsafe {
        let at = |i: usize| (*blocks.add(step * i)).wrapping_add(offset);
        let x = _mm512_castsi128_si512(_mm_loadu_si128(at(0).cast()));
        let x = _mm512_inserti32x4::<1>(x, _mm_loadu_si128(at(1).cast()));
        let x = _mm512_inserti32x4::<2>(x, _mm_loadu_si128(at(2).cast()));
        _mm512_inserti32x4::<3>(x, _mm_loadu_si128(at(3).cast()))
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(r: [__m512i; 4]) -> [__m512i; 4] {
    transpose4!(r, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64)
}

/// Like [`Columns::load_blocks`], from quarters of blocks: see [`super::avx512_by_cpu`].
///
/// # Safety
///
/// As for the trait's method.
#[inline(always)]
pub(super) unsafe fn load_quarters(blocks: *const *const u8, offset: usize) -> [U32x16; 16] {
    // SAFETY: the caller has the instruction set, and promised sixteen pointers with 64 readable
    // bytes at the offset of each.
    unsafe {
        let mut words = [U32x16(_mm512_setzero_si512()); 16];
        let mut q = 0;
        while q < 4 {
            let at = offset + 16 * q;
            let rows = transpose([
                load_four(blocks, 4, at),
                load_four(blocks.add(1), 4, at),
                load_four(blocks.add(2), 4, at),
                load_four(blocks.add(3), 4, at),
            ]);
            let mut w = 0;
            while w < 4 {
                words[4 * q + w] = U32x16(rows[w]);
                w += 1;
            }
            q += 1;
        }
        words
    }
}

/// Like [`Columns::store_blocks`], by quarters of blocks: four times the stores, but no shuffles
/// across vectors.
///
/// # Safety
///
/// As for the trait's method.
#[inline(always)]
pub(super) unsafe fn store_quarters(w: [U32x16; 16], to: *mut u8) {
    // SAFETY: the caller has the instruction set, and promised 16 * 64 writable bytes.
    unsafe {
        let mut q = 0;
        while q < 4 {
            // Words 4q to 4q + 3 of lanes j, j + 4, j + 8 and j + 12.
            let quarters = transpose([w[4 * q].0, w[4 * q + 1].0, w[4 * q + 2].0, w[4 * q + 3].0]);
            let mut j = 0;
            while j < 4 {
                let x = quarters[j];
                let to = to.add(64 * j + 16 * q);
                _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(x));
                _mm_storeu_si128(to.add(256).cast(), _mm512_extracti32x4_epi32::<1>(x));
                _mm_storeu_si128(to.add(512).cast(), _mm512_extracti32x4_epi32::<2>(x));
                _mm_storeu_si128(to.add(768).cast(), _mm512_extracti32x4_epi32::<3>(x));
                j += 1;
            }
            q += 1;
        }
    }
}

impl Columns for U32x8 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[__m256i; 16], [U32x8; 16]>(load_blocks8(blocks, offset));
        fn store_chaining_values(w: [Self; 8], to: *mut u8) = store_eight_words(unwrap8!(w, 0), to, 32);
        fn unzip(left: Self, right: Self) -> (Self, Self) = {
            let (even, odd) = unzip8(left.0, right.0);
            (U32x8(even), U32x8(odd))
        };
        fn equal(a: Self, b: Self) -> u32 = equal8(a.0, b.0);
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x8(_mm256_mask_mov_epi32(no.0, mask as u8, yes.0));
        fn store_blocks(w: [Self; 16], to: *mut u8) = {
            store_eight_words(unwrap8!(w, 0), to, 64);
            store_eight_words(unwrap8!(w, 8), to.add(32), 64);
        };
    }
}

impl Columns for U32x16 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised sixteen pointers, with 64 readable bytes at the offset of
        // each.
        unsafe {
            let mut words = [U32x16(_mm512_setzero_si512()); 16];
            let mut half = 0;
            while half < 2 {
                let at = offset + 32 * half;
                let two = |a: usize, b: usize| {
                    let l = |k: usize| _mm256_loadu_si256((*blocks.add(k)).wrapping_add(at).cast());
                    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(l(a)), l(b))
                };
                let u = transpose([two(0, 4), two(1, 5), two(2, 6), two(3, 7)]);
                let v = transpose([two(8, 12), two(9, 13), two(10, 14), two(11, 15)]);
                let mut w = 0;
                while w < 4 {
                    words[8 * half + w] = U32x16(_mm512_shuffle_i32x4::<0x88>(u[w], v[w]));
                    words[8 * half + 4 + w] = U32x16(_mm512_shuffle_i32x4::<0xDD>(u[w], v[w]));
                    w += 1;
                }
                half += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_chaining_values(w: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 16 * 32 writable bytes.
        unsafe {
            // a[j] and b[j] hold the two halves of lanes j, j + 4, j + 8 and j + 12.
            let a = transpose([w[0].0, w[1].0, w[2].0, w[3].0]);
            let b = transpose([w[4].0, w[5].0, w[6].0, w[7].0]);
            let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            let mut j = 0;
            while j < 4 {
                let x = _mm512_permutex2var_epi64(a[j], low, b[j]);
                let y = _mm512_permutex2var_epi64(a[j], high, b[j]);
                _mm256_storeu_si256(to.add(32 * j).cast(), _mm512_castsi512_si256(x));
                _mm256_storeu_si256(to.add(32 * (j + 4)).cast(), _mm512_extracti64x4_epi64::<1>(x));
                _mm256_storeu_si256(to.add(32 * (j + 8)).cast(), _mm512_castsi512_si256(y));
                _mm256_storeu_si256(to.add(32 * (j + 12)).cast(), _mm512_extracti64x4_epi64::<1>(y));
                j += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn store_blocks(w: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 16 * 64 writable bytes.
        unsafe {
            // quarters[q][j]: words 4q to 4q + 3 of lanes j, j + 4, j + 8 and j + 12.
            let mut quarters = [[_mm512_setzero_si512(); 4]; 4];
            let mut q = 0;
            while q < 4 {
                quarters[q] = transpose([w[4 * q].0, w[4 * q + 1].0, w[4 * q + 2].0, w[4 * q + 3].0]);
                q += 1;
            }
            let mut j = 0;
            while j < 4 {
                let [a, b, c, d] = [quarters[0][j], quarters[1][j], quarters[2][j], quarters[3][j]];
                let (ab, cd) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
                _mm512_storeu_si512(to.add(64 * j).cast(), _mm512_shuffle_i32x4::<0x88>(ab, cd));
                _mm512_storeu_si512(to.add(64 * (j + 4)).cast(), _mm512_shuffle_i32x4::<0xDD>(ab, cd));
                let (ab, cd) = (_mm512_shuffle_i32x4::<0xEE>(a, b), _mm512_shuffle_i32x4::<0xEE>(c, d));
                _mm512_storeu_si512(to.add(64 * (j + 8)).cast(), _mm512_shuffle_i32x4::<0x88>(ab, cd));
                _mm512_storeu_si512(to.add(64 * (j + 12)).cast(), _mm512_shuffle_i32x4::<0xDD>(ab, cd));
                j += 1;
            }
        }
    }

    forward! {
        fn unzip(left: Self, right: Self) -> (Self, Self) = {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (
                U32x16(_mm512_permutex2var_epi32(left.0, even, right.0)),
                U32x16(_mm512_permutex2var_epi32(left.0, odd, right.0)),
            )
        };
        fn equal(a: Self, b: Self) -> u32 = u32::from(_mm512_cmpeq_epi32_mask(a.0, b.0));
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x16(_mm512_mask_mov_epi32(no.0, mask as u16, yes.0));
    }
}

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
unsafe fn copy_padded128(from: *const u8, n: usize, to: *mut u8) {
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
                fn opaque(a: Self) -> Self = $type($class::opaque(a.0));
                fn copy_padded(from: *const u8, n: usize, to: *mut u8) = copy_padded128(from, n, to);
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
            core::mem::transmute::<[__m256i; 16], [U64x4; 16]>(avx2::load_blocks64(blocks, offset));
        fn load_states(states: *const *mut u64) -> [Self; 8] =
            core::mem::transmute::<[__m256i; 8], [U64x4; 8]>(avx2::load_states64(states));
        fn store_states(w: [Self; 8], states: *const *mut u64) =
            avx2::store_states64(core::mem::transmute::<[U64x4; 8], [__m256i; 8]>(w), states);
    }
}

/// Four words of eight lanes, or the reverse; each register has the words of lane i and lane i + 4.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose64(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
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
            transpose64(two(0), two(1), two(2), two(3))
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
        fn load_states(states: *const *mut u64) -> [Self; 8] = load_words(states.cast(), 0);
    }

    #[inline(always)]
    unsafe fn store_states(w: [Self; 8], states: *const *mut u64) {
        // SAFETY: the caller promised eight pointers at eight words each.
        unsafe {
            let mut half = 0;
            while half < 2 {
                let lanes =
                    transpose64(w[4 * half].0, w[4 * half + 1].0, w[4 * half + 2].0, w[4 * half + 3].0);
                let mut i = 0;
                while i < 4 {
                    let at = |i: usize| (*states.add(i)).add(4 * half).cast();
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
    forward! {
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U64x4(rotate_words_left!(N, _mm256_permute4x64_epi64, a.0));
        fn load_just_stored(from: *const u64) -> Self = U64x4(avx2::load_row_in_halves(from));
        fn from_words(w: [u64; 4]) -> Self =
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
/// As for [`WordColumns::load_states`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_states16(states: *const *mut u32) -> [__m512i; 8] {
    // SAFETY: the caller promised sixteen pointers at eight words each.
    let (u, v) = unsafe {
        let two = |i: usize| {
            let at = |i: usize| _mm256_loadu_si256((*states.add(i)).cast());
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(at(i)), at(i + 4))
        };
        (transpose([two(0), two(1), two(2), two(3)]), transpose([two(8), two(9), two(10), two(11)]))
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

/// Writes eight words of each lane: the reverse of the load above.
///
/// # Safety
///
/// As for [`WordColumns::store_states`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_states16(w: [__m512i; 8], states: *const *mut u32) {
    let [a, b] = [transpose([w[0], w[1], w[2], w[3]]), transpose([w[4], w[5], w[6], w[7]])];
    let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let mut i = 0;
    while i < 4 {
        // Of lanes i and i + 4, and of i + 8 and i + 12.
        let x = _mm512_permutex2var_epi64(a[i], low, b[i]);
        let y = _mm512_permutex2var_epi64(a[i], high, b[i]);
        // SAFETY: see `load_states16`.
        unsafe {
            let at = |i: usize| (*states.add(i)).cast();
            _mm256_storeu_si256(at(i), _mm512_castsi512_si256(x));
            _mm256_storeu_si256(at(i + 4), _mm512_extracti64x4_epi64::<1>(x));
            _mm256_storeu_si256(at(i + 8), _mm512_castsi512_si256(y));
            _mm256_storeu_si256(at(i + 12), _mm512_extracti64x4_epi64::<1>(y));
        }
        i += 1;
    }
}

columns32!(U32x8, __m256i, avx2::load_states32, avx2::store_states32);
columns32!(U32x16, __m512i, load_states16, store_states16);

impl WordColumns for U32x4 {
    forward! {
        fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
            core::mem::transmute::<[sse41::U32x4; 16], [U32x4; 16]>(<sse41::U32x4 as Columns>::load_blocks(blocks, offset));
        fn load_states(states: *const *mut u32) -> [Self; 8] =
            core::mem::transmute::<[sse41::U32x4; 8], [U32x4; 8]>(<sse41::U32x4 as WordColumns>::load_states(states));
        fn store_states(words: [Self; 8], states: *const *mut u32) = <sse41::U32x4 as WordColumns>::store_states(
            core::mem::transmute::<[U32x4; 8], [sse41::U32x4; 8]>(words), states,
        );
    }
}

impl WordRows for U32x4 {
    forward! {
        fn load_just_stored(from: *const u32) -> Self = <U32x4 as Vector>::load(from);
        fn from_words(w: [u32; 4]) -> Self = U32x4(_mm_setr_epi32(w[0] as i32, w[1] as i32, w[2] as i32, w[3] as i32));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(rotate_words_left!(N, _mm_shuffle_epi32, a.0));
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
