//! Lanes of the tests: lanes with known bounds and unknown values, and lanes with the field
//! arithmetic of [`super::radix51`] over these or the model.
//!
//! The formulas of points, run over intervals, prove the bounds of every limb at every step: no
//! limb overflows 64 bits, and no limb that is read as unsigned is negative.

use super::model::Model;
use super::radix51::{self, SplitProducts};
use super::{EightLanes, LANES, Lanes, Limbs, M52, Mask, Products51};

/// Every lane is at least `low` and at most `high`: as an unsigned number of 64 bits or, if `low`
/// is negative, as a signed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

impl Interval {
    /// An interval. All values in it must fit into 64 bits.
    pub(crate) fn new(low: i128, high: i128) -> Self {
        let end = if low < 0 { 1 << 63 } else { 1 << 64 };
        assert!(low <= high && -(1 << 63) <= low && high < end, "{low:#x} to {high:#x} in 64 bits");
        Self { low, high }
    }

    /// The part that multiply-adds use.
    fn low_52(self) -> Self {
        let all = i128::from(M52);
        if self.low >= 0 && self.high <= all { self } else { Self::new(0, all) }
    }

    fn times(self, other: Self) -> (i128, i128) {
        let (a, b) = (self.low_52(), other.low_52());
        (a.low * b.low, a.high * b.high)
    }

    fn unsigned(self) -> Self {
        assert!(self.low >= 0, "{self:x?} is read as unsigned");
        self
    }
}

const NO_LANES: &str = "an interval has no lanes";

impl Limbs for Interval {
    fn like(self, word: u64) -> Self {
        Self::new(word.into(), word.into())
    }
    fn load(self, words: &[u64; LANES]) -> Self {
        Self::new((*words.iter().min().unwrap()).into(), (*words.iter().max().unwrap()).into())
    }
    fn store(self) -> [u64; LANES] {
        panic!("{NO_LANES}")
    }
    fn add(self, other: Self) -> Self {
        Self::new(self.low + other.low, self.high + other.high)
    }
    fn and(self, other: Self) -> Self {
        assert!(other.low == other.high && (other.high + 1).count_ones() == 1, "a mask of low bits");
        if self.low >= 0 && self.high <= other.high { self } else { Self::new(0, other.high) }
    }
    fn shr<const N: u32>(self) -> Self {
        Self::new(self.unsigned().low >> N, self.high >> N)
    }
    fn madd_lo(self, a: Self, b: Self) -> Self {
        let (low, high) = a.times(b);
        let all = i128::from(M52);
        self.add(if high <= all { Self::new(low, high) } else { Self::new(0, all) })
    }
    fn madd_hi(self, a: Self, b: Self) -> Self {
        let (low, high) = a.times(b);
        self.add(Self::new(low >> 52, high >> 52))
    }
    fn madd_whole(self, a: Self, b: Self) -> Self {
        let (low, high) = a.times(b);
        assert!(high <= i128::from(M52), "{a:x?} times {b:x?} in 52 bits");
        self.add(Self::new(low, high))
    }
    fn times_19(self) -> Self {
        Self::new(19 * self.low, 19 * self.high)
    }
}

impl Lanes for Interval {
    fn sub(self, other: Self) -> Self {
        Self::new(self.low - other.high, self.high - other.low)
    }
    fn or(self, other: Self) -> Self {
        let end = (self.unsigned().high | other.unsigned().high) + 1;
        Self::new(0, (end as u128).next_power_of_two() as i128 - 1)
    }
    fn xor(self, other: Self) -> Self {
        self.or(other)
    }
    fn xor3(self, b: Self, c: Self) -> Self {
        self.or(b).or(c)
    }
    fn choose(self, yes: Self, no: Self) -> Self {
        yes.or(no)
    }
    fn majority(self, b: Self, c: Self) -> Self {
        self.or(b).or(c)
    }
    fn shl<const N: u32>(self) -> Self {
        self.shl_by(N)
    }
    fn sar<const N: u32>(self) -> Self {
        assert!(self.high < 1 << 63, "{self:x?} is read as signed");
        Self::new(self.low >> N, self.high >> N)
    }
    fn rotr<const N: i32>(self) -> Self {
        Self::new(0, u64::MAX.into())
    }
    fn shl_by(self, count: u32) -> Self {
        // Bits shifted out at the top are lost: cutting words into limbs relies on that.
        let all = i128::from(u64::MAX);
        if self.high << count <= all {
            Self::new(self.unsigned().low << count, self.high << count)
        } else {
            Self::new(0, all)
        }
    }
    fn shr_by(self, count: u32) -> Self {
        Self::new(self.unsigned().low >> count, self.high >> count)
    }
    fn swap_bytes(self) -> Self {
        Self::new(0, u64::MAX.into())
    }
    fn madd_small(self, a: Self, b: Self) -> Self {
        assert!(
            a.unsigned().high < 1 << 32 && b.unsigned().high < 1 << 32,
            "{a:x?} times {b:x?} in 32 bits each"
        );
        self.madd_whole(a, b)
    }
    fn select(_: Mask, yes: Self, no: Self) -> Self {
        Self::new(yes.low.min(no.low), yes.high.max(no.high))
    }
    fn negate_where(self, _: Mask) -> Self {
        Self::new(self.low.min(-self.high), self.high.max(-self.low))
    }
    fn equal(self, _: Self) -> Mask {
        0
    }
    fn negative(self) -> Mask {
        0
    }
    fn odd(self) -> Mask {
        0
    }
    fn gather(self, _: [&[u64; 2]; LANES]) -> [Self; 2] {
        panic!("{NO_LANES}")
    }
    fn scatter(_: [Self; 2]) -> [[u64; 2]; LANES] {
        panic!("{NO_LANES}")
    }
}

impl Products51 for Interval {}

impl EightLanes for Interval {
    type Narrow = Self;

    fn narrow(self) -> Self {
        self
    }
    fn shuffle_fours<const ORDER: i32>(self) -> Self {
        self
    }
    fn load_fours(self, low: &[u64; 4], high: &[u64; 4]) -> Self {
        let all = low.iter().chain(high);
        Self::new((*all.clone().min().unwrap()).into(), (*all.max().unwrap()).into())
    }
    fn look_up(self, _: &[u64; 16]) -> Self {
        panic!("{NO_LANES}")
    }
}

/// The number of bits of a lower half, without its sign.
const SPLIT_BITS: u32 = radix51::RADIX;

/// The lanes `V` with field arithmetic in radix 2^51. As for AVX2, four of them are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Radix51<V>(pub(crate) V);

/// Lanes of tests that split products.
pub(crate) trait SplitsInTests: Lanes {
    /// The lower and the upper half of the product of factors below 2^52.
    fn split(a: Self, b: Self) -> [Self; 2];
}

impl SplitsInTests for Model {
    /// The upper half is rounded to the nearest, and to the even one of two.
    fn split(a: Self, b: Self) -> [Self; 2] {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let product = u128::from(a.0[lane]) * u128::from(b.0[lane]);
            assert!(product < 1 << 103);
            let (whole, rest) = ((product >> SPLIT_BITS) as u64, product as u64 & ((1 << SPLIT_BITS) - 1));
            let half = 1 << (SPLIT_BITS - 1);
            high[lane] = whole + u64::from(rest > half || rest == half && whole % 2 == 1);
            low[lane] = (product as u64).wrapping_sub(high[lane] << SPLIT_BITS);
        }
        [Self(low), Self(high)]
    }
}

impl SplitsInTests for Interval {
    /// The upper half is rounded in any way.
    fn split(a: Self, b: Self) -> [Self; 2] {
        for factor in [a, b] {
            assert!(factor.low >= 0 && factor.high < 1 << 52, "{factor:x?} as a factor");
        }
        let (least, most) = (a.low * b.low, a.high * b.high);
        assert!(most < 1 << 103, "{a:x?} times {b:x?}");
        let rest = (1 << SPLIT_BITS) - 1;
        [Self::new(-rest, rest), Self::new(least >> SPLIT_BITS, (most + rest) >> SPLIT_BITS)]
    }
}

impl<V: SplitsInTests> SplitProducts for Radix51<V> {
    type Factor = V;
    const LOW: u64 = 0;
    const HIGH: u64 = 0;

    fn factor(self) -> V {
        self.0
    }
    fn add_halves(low: &mut Self, high: &mut Self, a: V, b: V) {
        let halves = V::split(a, b);
        (low.0, high.0) = (low.0.add(halves[0]), high.0.add(halves[1]));
    }
}

/// Methods that `V` has as they are.
macro_rules! forward {
    ($(fn $name:ident $(<const $imm:ident: $kind:ty>)? (self $(, $other:ident)*);)*) => { $(
        fn $name $(<const $imm: $kind>)? (self $(, $other: Self)*) -> Self {
            Self(self.0.$name $(::<$imm>)? ($($other.0),*))
        }
    )* };
}

impl<V: SplitsInTests> Limbs for Radix51<V> {
    forward! {
        fn add(self, other);
        fn and(self, other);
        fn shr<const N: u32>(self);
        fn madd_lo(self, a, b);
        fn madd_hi(self, a, b);
        fn madd_whole(self, a, b);
        fn times_19(self);
    }

    fn like(self, word: u64) -> Self {
        Self(self.0.like(word))
    }
    fn load(self, words: &[u64; LANES]) -> Self {
        Self(self.0.load(words))
    }
    fn store(self) -> [u64; LANES] {
        self.0.store()
    }
}

impl<V: SplitsInTests> Lanes for Radix51<V> {
    const COUNT: usize = 4;
    const RADIX: u32 = radix51::RADIX;
    const BIAS: [u64; 5] = radix51::BIAS;

    forward! {
        fn sub(self, other);
        fn or(self, other);
        fn xor(self, other);
        fn xor3(self, b, c);
        fn choose(self, yes, no);
        fn majority(self, b, c);
        fn shl<const N: u32>(self);
        fn sar<const N: u32>(self);
        fn rotr<const N: i32>(self);
        fn swap_bytes(self);
        fn madd_small(self, a, b);
    }

    fn shl_by(self, count: u32) -> Self {
        Self(self.0.shl_by(count))
    }
    fn shr_by(self, count: u32) -> Self {
        Self(self.0.shr_by(count))
    }
    fn select(mask: Mask, yes: Self, no: Self) -> Self {
        Self(V::select(mask, yes.0, no.0))
    }
    fn negate_where(self, mask: Mask) -> Self {
        Self(self.0.negate_where(mask))
    }
    fn equal(self, other: Self) -> Mask {
        self.0.equal(other.0)
    }
    fn negative(self) -> Mask {
        self.0.negative()
    }
    fn odd(self) -> Mask {
        self.0.odd()
    }
    fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2] {
        self.0.gather(from).map(Self)
    }
    fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES] {
        V::scatter(pair.map(|half| half.0))
    }
    fn product(a: &[Self; 5], b: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        radix51::product(a, b, start)
    }
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        radix51::square(a, start)
    }
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        radix51::carry(columns)
    }
    fn masked(limbs: [Self; 5]) -> [Self; 5] {
        limbs
    }
}
