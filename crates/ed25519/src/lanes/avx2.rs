//! AVX2 with FMA: four lanes in a ymm register, and products by double-precision arithmetic.

use super::radix51::{self, SplitProducts};
use super::{LANES, Lanes, Limbs, Mask};
use core::arch::x86_64::*;

/// Four lanes. The first one comes from [`Vector::new`], whose caller has checked the CPU.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Vector(__m256i);

/// Four numbers below 2^52, as the multiplier takes them.
#[derive(Clone, Copy)]
pub(crate) struct Factor(__m256d);

/// The words of a vector, with those of lanes that it lacks.
#[repr(C, align(32))]
struct Words([u64; 4]);

/// 2^52: the double whose lowest bit counts 1.
const TWO_52: f64 = 4_503_599_627_370_496.0;
/// 2^103: the double whose lowest bit counts 2^51.
const TWO_103: f64 = TWO_52 * (1_u64 << 51) as f64;
/// In the middle of the doubles whose lowest bit counts 1, so that numbers of both signs can be
/// added.
const MIDDLE_52: f64 = 1.5 * TWO_52;
/// Half of the bits of a limb for scalars.
const M26: u64 = (1 << 26) - 1;

impl Vector {
    /// `word` in every lane. This is the only way to make a first vector.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2 and FMA.
    #[inline(always)]
    pub(crate) unsafe fn new(word: u64) -> Self {
        // SAFETY: the caller promised the features.
        unsafe { Self(_mm256_set1_epi64x(word.cast_signed())) }
    }

    /// The low 32 bits of both, multiplied.
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        // SAFETY: vectors exist only on CPUs with these features, by the contract of `Vector::new`.
        unsafe { Self(_mm256_mul_epu32(self.0, other.0)) }
    }

    /// The lower and the upper 52 bits of the product of the low 52 bits of both.
    #[inline(always)]
    fn halves_52(self, other: Self) -> [Self; 2] {
        let mask = self.like(M26);
        let [a, b] = [self, other].map(|x| [x.and(mask), x.shr::<26>().and(mask)]);
        let low = a[0].times(b[0]);
        let middle = a[0].times(b[1]).add(a[1].times(b[0])).add(low.shr::<26>());
        [low.and(mask).or(middle.and(mask).shl::<26>()), a[1].times(b[1]).add(middle.shr::<26>())]
    }

    /// All ones in the lanes of `mask`.
    #[inline(always)]
    fn ones(self, mask: Mask) -> Self {
        // SAFETY: as above.
        unsafe {
            let bits = _mm256_set_epi64x(8, 4, 2, 1);
            Self(_mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask.into()), bits), bits))
        }
    }

    /// The highest bit of every lane.
    #[inline(always)]
    fn highest_bits(self) -> Mask {
        // SAFETY: as above.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) as Mask }
    }

    /// The bytes of every lane in another order: `order` has that of the first one.
    #[inline(always)]
    fn shuffle(self, order: u64) -> Self {
        const SECOND: u64 = 0x0808_0808_0808_0808;
        let [first, second] = [order.cast_signed(), (order + SECOND).cast_signed()];
        // SAFETY: as above.
        unsafe { Self(_mm256_shuffle_epi8(self.0, _mm256_set_epi64x(second, first, second, first))) }
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
        fn like(self, word: u64) -> Self = Self(_mm256_set1_epi64x(word.cast_signed()));
        fn load(self, words: &[u64; LANES]) -> Self = Self(_mm256_loadu_si256(words.as_ptr().cast()));
        fn add(self, other: Self) -> Self = Self(_mm256_add_epi64(self.0, other.0));
        fn and(self, other: Self) -> Self = Self(_mm256_and_si256(self.0, other.0));
    }

    #[inline(always)]
    fn store(self) -> [u64; LANES] {
        let mut words = Words([0; 4]);
        // SAFETY: the features as above; 32 bytes are there to be written.
        unsafe { _mm256_store_si256(words.0.as_mut_ptr().cast(), self.0) };
        let [a, b, c, d] = words.0;
        [a, b, c, d, 0, 0, 0, 0]
    }

    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        self.shr_by(N)
    }

    #[inline(always)]
    fn madd_lo(self, a: Self, b: Self) -> Self {
        self.add(a.halves_52(b)[0])
    }

    #[inline(always)]
    fn madd_hi(self, a: Self, b: Self) -> Self {
        self.add(a.halves_52(b)[1])
    }

    #[inline(always)]
    fn times_19(self) -> Self {
        self.add(self.shl::<1>()).add(self.shl::<4>())
    }
}

impl Lanes for Vector {
    const COUNT: usize = 4;
    const RADIX: u32 = radix51::RADIX;
    const BIAS: [u64; 5] = radix51::BIAS;

    forward! {
        fn sub(self, other: Self) -> Self = Self(_mm256_sub_epi64(self.0, other.0));
        fn or(self, other: Self) -> Self = Self(_mm256_or_si256(self.0, other.0));
        fn xor(self, other: Self) -> Self = Self(_mm256_xor_si256(self.0, other.0));
        fn shl_by(self, count: u32) -> Self = Self(_mm256_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed())));
        fn shr_by(self, count: u32) -> Self = Self(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed())));
        fn select(mask: Mask, yes: Self, no: Self) -> Self =
            Self(_mm256_blendv_epi8(no.0, yes.0, no.ones(mask).0));
        fn equal(self, other: Self) -> Mask = Self(_mm256_cmpeq_epi64(self.0, other.0)).highest_bits();
        fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2] = {
            let half = |low: usize| {
                let low_pair = _mm256_castsi128_si256(_mm_loadu_si128(from[low].as_ptr().cast()));
                _mm256_inserti128_si256::<1>(low_pair, _mm_loadu_si128(from[low + 2].as_ptr().cast()))
            };
            let (even, odd) = (half(0), half(1));
            [Self(_mm256_unpacklo_epi64(even, odd)), Self(_mm256_unpackhi_epi64(even, odd))]
        };
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        self.xor(b).xor(c)
    }
    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        no.xor(self.and(yes.xor(no)))
    }
    #[inline(always)]
    fn majority(self, b: Self, c: Self) -> Self {
        self.and(b).or(c.and(self.or(b)))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        self.shl_by(N)
    }
    #[inline(always)]
    fn sar<const N: u32>(self) -> Self {
        // SAFETY: as above.
        let negative = unsafe { Self(_mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0)) };
        self.shr::<N>().or(negative.shl_by(64 - N))
    }
    #[inline(always)]
    fn rotr<const N: i32>(self) -> Self {
        if N == 8 {
            return self.shuffle(0x0007_0605_0403_0201);
        }
        self.shr_by(N.cast_unsigned()).or(self.shl_by(64 - N.cast_unsigned()))
    }
    #[inline(always)]
    fn swap_bytes(self) -> Self {
        self.shuffle(0x0001_0203_0405_0607)
    }

    #[inline(always)]
    fn madd_small(self, a: Self, b: Self) -> Self {
        self.add(a.times(b))
    }
    #[inline(always)]
    fn negate_where(self, mask: Mask) -> Self {
        let ones = self.ones(mask);
        self.xor(ones).sub(ones)
    }
    #[inline(always)]
    fn negative(self) -> Mask {
        self.highest_bits()
    }
    #[inline(always)]
    fn odd(self) -> Mask {
        self.shl::<63>().highest_bits()
    }

    #[inline(always)]
    fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES] {
        let (first, second) = (pair[0].store(), pair[1].store());
        let mut out = [[0; 2]; LANES];
        for lane in 0..Self::COUNT {
            out[lane] = [first[lane], second[lane]];
        }
        out
    }

    /// Volatile, as for AVX-512: otherwise the compiler would assemble vectors by shuffles.
    #[inline(always)]
    fn put(to: &mut u64, word: u64) {
        // SAFETY: an exclusive reference is valid for writes.
        unsafe { std::ptr::write_volatile(to, word) };
    }

    #[inline(always)]
    fn prefetch<T>(self, row: &T) {
        super::prefetch(row);
    }

    #[inline(always)]
    fn product(a: &[Self; 5], b: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        radix51::product(a, b, start)
    }
    #[inline(always)]
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        radix51::square(a, start)
    }
    #[inline(always)]
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        radix51::carry(columns)
    }
    #[inline(always)]
    fn masked(limbs: [Self; 5]) -> [Self; 5] {
        limbs
    }
}

/// A double of 53 bits cannot hold a product of 102. Two roundings divide it without loss: a sum
/// with [`TWO_103`] keeps the bits from 51 on, and what it lost is the other half, which the second
/// multiply-add computes exactly. This holds in every rounding mode: the lost part is always
/// smaller than 2^51. The halves are read from the doubles' bits, as integers.
impl SplitProducts for Vector {
    type Factor = Factor;
    const LOW: u64 = MIDDLE_52.to_bits();
    const HIGH: u64 = TWO_103.to_bits();

    #[inline(always)]
    fn factor(self) -> Factor {
        let ones = self.like(TWO_52.to_bits());
        // SAFETY: vectors exist only on CPUs with these features, by the contract of `Vector::new`.
        unsafe { Factor(_mm256_sub_pd(_mm256_castsi256_pd(self.or(ones).0), _mm256_castsi256_pd(ones.0))) }
    }

    #[inline(always)]
    fn add_halves(low: &mut Self, high: &mut Self, a: Factor, b: Factor) {
        // SAFETY: as above.
        unsafe {
            let upper = _mm256_fmadd_pd(a.0, b.0, _mm256_set1_pd(TWO_103));
            let rest = _mm256_sub_pd(_mm256_set1_pd(TWO_103 + MIDDLE_52), upper);
            let lower = _mm256_fmadd_pd(a.0, b.0, rest);
            *high = high.add(Self(_mm256_castpd_si256(upper)));
            *low = low.add(Self(_mm256_castpd_si256(lower)));
        }
    }
}
