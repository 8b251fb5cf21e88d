//! AVX-512 IFMA: eight lanes in a zmm register.

use super::{
    EightLanes, LANES, Lanes, Limbs, Mask, Products51, carry, product, product_51, square, square_51,
};
use core::arch::x86_64::*;

/// Eight lanes. The first one comes from [`Vector::new`], whose caller has checked the CPU.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Vector(__m512i);

impl Vector {
    /// `word` in every lane. This is the only way to make a first vector.
    ///
    /// # Safety
    ///
    /// The CPU has AVX-512 F, BW, DQ, VL and IFMA.
    #[inline(always)]
    pub(crate) unsafe fn new(word: u64) -> Self {
        // SAFETY: the caller promised the features.
        unsafe { Self(_mm512_set1_epi64(word.cast_signed())) }
    }
}

/// Methods that consist of one expression of intrinsics.
macro_rules! forward {
    ($(fn $name:ident $(<const $imm:ident: $kind:ty>)? ($($arg:ident $(: $type:ty)?),*) -> $ret:ty = $body:expr;)*) => { $(
        #[inline(always)]
        fn $name $(<const $imm: $kind>)? ($($arg $(: $type)?),*) -> $ret {
            // SAFETY: vectors exist only on CPUs with these features, by the contract of
            // `Vector::new`.
            unsafe { $body }
        }
    )* };
}

impl Limbs for Vector {
    forward! {
        fn like(self, word: u64) -> Self = Self(_mm512_set1_epi64(word.cast_signed()));
        fn load(self, words: &[u64; LANES]) -> Self = Self(_mm512_loadu_si512(words.as_ptr().cast()));
        fn add(self, other: Self) -> Self = Self(_mm512_add_epi64(self.0, other.0));
        fn and(self, other: Self) -> Self = Self(_mm512_and_si512(self.0, other.0));
        fn shr<const N: u32>(self) -> Self = Self(_mm512_srli_epi64::<N>(self.0));
        fn madd_lo(self, a: Self, b: Self) -> Self = Self(_mm512_madd52lo_epu64(self.0, a.0, b.0));
        fn madd_hi(self, a: Self, b: Self) -> Self = Self(_mm512_madd52hi_epu64(self.0, a.0, b.0));
    }

    /// Not by a multiplication of 64 bits: on some CPUs that is three operations, which take 15
    /// cycles.
    #[inline(always)]
    fn times_19(self) -> Self {
        self.shl::<4>().add(self).add(self.add(self))
    }

    #[inline(always)]
    fn store(self) -> [u64; LANES] {
        let mut words = [0; LANES];
        // SAFETY: the features by the contract of `Vector::new`; 64 bytes are there to be written.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) };
        words
    }
}

impl Lanes for Vector {
    forward! {
        fn sub(self, other: Self) -> Self = Self(_mm512_sub_epi64(self.0, other.0));
        fn or(self, other: Self) -> Self = Self(_mm512_or_si512(self.0, other.0));
        fn xor(self, other: Self) -> Self = Self(_mm512_xor_si512(self.0, other.0));
        fn xor3(self, b: Self, c: Self) -> Self = Self(_mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0));
        fn choose(self, yes: Self, no: Self) -> Self = Self(_mm512_ternarylogic_epi64::<0xca>(self.0, yes.0, no.0));
        fn majority(self, b: Self, c: Self) -> Self = Self(_mm512_ternarylogic_epi64::<0xe8>(self.0, b.0, c.0));
        fn shl<const N: u32>(self) -> Self = Self(_mm512_slli_epi64::<N>(self.0));
        fn sar<const N: u32>(self) -> Self = Self(_mm512_srai_epi64::<N>(self.0));
        fn rotr<const N: i32>(self) -> Self = Self(_mm512_ror_epi64::<N>(self.0));
        fn shl_by(self, count: u32) -> Self = Self(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed())));
        fn shr_by(self, count: u32) -> Self = Self(_mm512_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed())));
        fn swap_bytes(self) -> Self = Self(_mm512_shuffle_epi8(self.0, _mm512_set_epi64(
            0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607,
            0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607,
        )));
        fn select(mask: Mask, yes: Self, no: Self) -> Self = Self(_mm512_mask_blend_epi64(mask, no.0, yes.0));
        fn negate_where(self, mask: Mask) -> Self =
            Self(_mm512_mask_sub_epi64(self.0, mask, _mm512_setzero_si512(), self.0));
        fn equal(self, other: Self) -> Mask = _mm512_cmpeq_epi64_mask(self.0, other.0);
        fn negative(self) -> Mask = _mm512_movepi64_mask(self.0);
        fn odd(self) -> Mask = _mm512_test_epi64_mask(self.0, _mm512_set1_epi64(1));
        fn rotated(self, by: usize) -> Self = Self(_mm512_permutexvar_epi64(
            // Only the low three bits of a lane count.
            _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(by as i64)),
            self.0,
        ));
        fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2] = gather(from).map(Self);
        fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES] = scatter(pair[0].0, pair[1].0);
    }

    #[inline(always)]
    fn product(a: &[Self; 5], b: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        product(a, b, start)
    }
    #[inline(always)]
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        square(a, start)
    }
    #[inline(always)]
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        carry(columns)
    }

    /// Volatile, so that it remains a move through a general register: shuffles would use the ports
    /// of the multiplier, for which everything here waits.
    #[inline(always)]
    fn put(to: &mut u64, word: u64) {
        // SAFETY: an exclusive reference is valid for writes.
        unsafe { std::ptr::write_volatile(to, word) };
    }

    #[inline(always)]
    fn prefetch<T>(self, row: &T) {
        super::prefetch(row);
    }
}

impl EightLanes for Vector {
    type Narrow = Narrow;

    forward! {
        fn narrow(self) -> Narrow = Narrow(_mm512_castsi512_si256(self.0));
        fn shuffle_fours<const ORDER: i32>(self) -> Self = Self(_mm512_permutex_epi64::<ORDER>(self.0));
        fn load_fours(self, low: &[u64; 4], high: &[u64; 4]) -> Self = {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
            Self(_mm512_mask_broadcast_i64x4(low, 0xf0, _mm256_loadu_si256(high.as_ptr().cast())))
        };
        fn look_up(self, row: &[u64; 16]) -> Self = {
            let low = _mm512_loadu_si512(row.as_ptr().cast());
            let high = _mm512_loadu_si512(row.as_ptr().add(8).cast());
            Self(_mm512_permutex2var_epi64(low, self.0, high))
        };
    }
}

/// The products of a vector type, inlined.
macro_rules! products_51 {
    ($($Vector:ty)*) => { $(
        impl Products51 for $Vector {
            #[inline(always)]
            fn product_51(a: &[Self; 5], b: &[Self; 5]) -> [Self; 5] {
                product_51(a, b)
            }
            #[inline(always)]
            fn square_51(a: &[Self; 5]) -> [Self; 5] {
                square_51(a)
            }
        }
    )* };
}

products_51!(Vector Narrow);

/// Four lanes in a ymm register, for chains of products of a few elements: CPUs whose multiplier
/// has half the width of a zmm register, or that have fewer ports for zmm registers, do the same in
/// less time. The first one is half of a [`Vector`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Narrow(__m256i);

impl Limbs for Narrow {
    forward! {
        fn like(self, word: u64) -> Self = Self(_mm256_set1_epi64x(word.cast_signed()));
        fn load(self, words: &[u64; LANES]) -> Self = Self(_mm256_loadu_si256(words.as_ptr().cast()));
        fn add(self, other: Self) -> Self = Self(_mm256_add_epi64(self.0, other.0));
        fn and(self, other: Self) -> Self = Self(_mm256_and_si256(self.0, other.0));
        fn shr<const N: u32>(self) -> Self = Self(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(N.cast_signed())));
        fn madd_lo(self, a: Self, b: Self) -> Self = Self(_mm256_madd52lo_epu64(self.0, a.0, b.0));
        fn madd_hi(self, a: Self, b: Self) -> Self = Self(_mm256_madd52hi_epu64(self.0, a.0, b.0));
    }

    /// As for [`Vector`].
    #[inline(always)]
    fn times_19(self) -> Self {
        // SAFETY: the features by the contract of `Vector::new`.
        let sixteen = unsafe { Self(_mm256_slli_epi64::<4>(self.0)) };
        sixteen.add(self).add(self.add(self))
    }

    #[inline(always)]
    fn store(self) -> [u64; LANES] {
        let mut words = [0; LANES];
        // SAFETY: the features by the contract of `Vector::new`; 32 bytes are there to be written.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
        words
    }
}

/// The pairs of four lanes, `start`, `start + 2` and so on, in one register: by broadcasting loads,
/// merged by mask, because shuffles use the ports of the multiplier.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn every_second(from: [&[u64; 2]; LANES], start: usize) -> __m512i {
    // SAFETY: 16 bytes are readable at each reference.
    unsafe {
        let pair = |lane: usize| _mm_loadu_si128(from[start + lane].as_ptr().cast());
        let all = _mm512_zextsi128_si512(pair(0));
        let all = _mm512_mask_broadcast_i64x2(all, 0x0c, pair(2));
        let all = _mm512_mask_broadcast_i64x2(all, 0x30, pair(4));
        _mm512_mask_broadcast_i64x2(all, 0xc0, pair(6))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn gather(from: [&[u64; 2]; LANES]) -> [__m512i; 2] {
    let (even, odd) = (every_second(from, 0), every_second(from, 1));
    [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn scatter(first: __m512i, second: __m512i) -> [[u64; 2]; LANES] {
    let mut out = [[0; 2]; LANES];
    let (even, odd) = (_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
    macro_rules! put {
        ($($part:literal)*) => { $(
            // SAFETY: each reference has room for 16 bytes.
            unsafe {
                _mm_storeu_si128(out[2 * $part].as_mut_ptr().cast(), _mm512_extracti64x2_epi64::<$part>(even));
                _mm_storeu_si128(out[2 * $part + 1].as_mut_ptr().cast(), _mm512_extracti64x2_epi64::<$part>(odd));
            }
        )* };
    }
    put!(0 1 2 3);
    out
}
