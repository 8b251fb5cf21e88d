//! AVX-512 (F, VL, BW, DQ): rotates, masks, and 32 registers of 128, 256 or 512 bits.

use super::avx2::{
    equal as equal8, load_blocks as load_blocks8, load_two, store_eight_words, unwrap8, unzip as unzip8,
};
use super::{forward, transpose4};
use crate::vector::{Columns, Rows, Vector};
use core::arch::x86_64::*;

/// `pin`, and a `vshufps` that the compiler keeps, for a register class.
///
/// LLVM would merge two shuffles into a `vpermt2d`. It takes three cycles, on the port that the
/// latency-bound chain of the row form needs for its one-cycle operations.
macro_rules! opaque {
    ($class:ident, $register:ty) => {
        super::super::pin!("avx512f,avx512vl", $class, $register);

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
    opaque!(xmm_reg, __m128i);
}
mod ymm {
    use core::arch::x86_64::__m256i;
    opaque!(ymm_reg, __m256i);
}
mod zmm {
    use core::arch::x86_64::__m512i;
    opaque!(zmm_reg, __m512i);
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
                fn pin(a: Self) -> Self = $type($width::pin(a.0));
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
            fn turn1(a: Self) -> Self = $type($shuffle::<0x39>(a.0));
            fn turn2(a: Self) -> Self = $type($shuffle::<0x4E>(a.0));
            fn turn3(a: Self) -> Self = $type($shuffle::<0x93>(a.0));
            fn pick<const I: i32>(a: Self, b: Self) -> Self = $type($width::shuffle_two::<I>(a.0, b.0));
        }
    };
}

impl Rows for U32x4 {
    row_shuffles!(U32x4, xmm, _mm_shuffle_epi32);
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x4(_mm_loadu_si128(row.cast()));
        fn splat_halves(low: u64, high: u64) -> Self =
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
        fn splat_halves(low: u64, high: u64) -> Self =
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
        fn splat_halves(low: u64, high: u64) -> Self =
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

/// Like [`Columns::load_blocks`], from quarters of blocks: see [`super::full_width`].
///
/// # Safety
///
/// As there.
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
/// As there.
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
        fn store_halves(w: [Self; 8], to: *mut u8) = store_eight_words(unwrap8!(w, 0), to, 32);
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
    unsafe fn store_halves(w: [Self; 8], to: *mut u8) {
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
