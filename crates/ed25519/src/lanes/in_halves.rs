//! Lanes of the tests whose field arithmetic is that of [`super::halves`], so that it runs on the
//! model and over intervals.

use super::halves::{self, Halves};
use super::interval::Interval;
use super::model::Model;
use super::{LANES, Lanes, Mask};

/// The number of bits of a lower half, without its sign.
const BITS: u32 = halves::RADIX;

/// The same lanes with other field arithmetic. As for AVX2, four of them are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InHalves<V>(pub(crate) V);

/// Lanes that divide products.
pub(crate) trait Divides: Lanes {
    /// The lower and the upper half of the product of factors below 2^52.
    fn halves(a: Self, b: Self) -> [Self; 2];
}

impl Divides for Model {
    /// The upper half is rounded to the nearest, and to the even one of two.
    fn halves(a: Self, b: Self) -> [Self; 2] {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let product = u128::from(a.0[lane]) * u128::from(b.0[lane]);
            assert!(product < 1 << 103);
            let (whole, rest) = ((product >> BITS) as u64, product as u64 & ((1 << BITS) - 1));
            let half = 1 << (BITS - 1);
            high[lane] = whole + u64::from(rest > half || rest == half && whole % 2 == 1);
            low[lane] = (product as u64).wrapping_sub(high[lane] << BITS);
        }
        [Self(low), Self(high)]
    }
}

impl Divides for Interval {
    /// The upper half is rounded in any way.
    fn halves(a: Self, b: Self) -> [Self; 2] {
        for factor in [a, b] {
            assert!(factor.low >= 0 && factor.high < 1 << 52, "{factor:x?} as a factor");
        }
        let (least, most) = (a.low * b.low, a.high * b.high);
        assert!(most < 1 << 103, "{a:x?} times {b:x?}");
        let rest = (1 << BITS) - 1;
        [Self::new(-rest, rest), Self::new(least >> BITS, (most + rest) >> BITS)]
    }
}

impl<V: Divides> Halves for InHalves<V> {
    type Factor = V;
    const LOW: u64 = 0;
    const HIGH: u64 = 0;

    fn factor(self) -> V {
        self.0
    }
    fn add_halves(low: &mut Self, high: &mut Self, a: V, b: V) {
        let halves = V::halves(a, b);
        (low.0, high.0) = (low.0.add(halves[0]), high.0.add(halves[1]));
    }
}

/// Methods of the lanes themselves.
macro_rules! forward {
    ($(fn $name:ident $(<const $imm:ident: $kind:ty>)? (self $(, $other:ident)*);)*) => { $(
        fn $name $(<const $imm: $kind>)? (self $(, $other: Self)*) -> Self {
            Self(self.0.$name $(::<$imm>)? ($($other.0),*))
        }
    )* };
}

impl<V: Divides> Lanes for InHalves<V> {
    const COUNT: usize = 4;
    const RADIX: u32 = halves::RADIX;
    const BIAS: [u64; 5] = halves::BIAS;

    forward! {
        fn add(self, other);
        fn sub(self, other);
        fn and(self, other);
        fn or(self, other);
        fn xor(self, other);
        fn xor3(self, b, c);
        fn choose(self, yes, no);
        fn majority(self, b, c);
        fn shl<const N: u32>(self);
        fn shr<const N: u32>(self);
        fn sar<const N: u32>(self);
        fn rotr<const N: i32>(self);
        fn swap_bytes(self);
        fn madd_lo(self, a, b);
        fn madd_hi(self, a, b);
        fn madd_whole(self, a, b);
        fn madd_small(self, a, b);
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
        halves::product(a, b, start)
    }
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        halves::square(a, start)
    }
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        halves::carry(columns)
    }
    fn masked(limbs: [Self; 5]) -> [Self; 5] {
        limbs
    }
}
