//! Elements of the field of 2^255 - 19 in general registers of 64 bits, and the encodings of
//! points.
//!
//! No branch and no address depends on an element.

use super::field::{self, Multiply};
use super::{divsteps, euclid};

/// The low 51 bits.
const M51: u64 = (1 << 51) - 1;

/// An element in radix 2^51; limbs are below 2^52, and those of a sum without carries below 2^54,
/// which products take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element64([u64; 5]);

/// The constant d of the curve (RFC 8032, section 5.1).
const D: Element64 = Element64([
    0x3_4dca_1359_78a3,
    0x1_a828_3b15_6ebd,
    0x5_e7a2_6001_c029,
    0x7_39c6_63a0_3cbb,
    0x5_2036_cee2_b6ff,
]);
/// A square root of -1.
const SQRT_M1: Element64 = Element64([
    0x6_1b27_4a0e_a0b0,
    0x0_d5a5_fc8f_189d,
    0x7_ef5e_9cbd_0c60,
    0x7_8595_a680_4c9e,
    0x2_b832_4804_fc1d,
]);
/// The inverse of 2^590, by which [`divsteps::scaled_inverse`] is too large.
const SCALE: Element64 = Element64([
    0x1_9e23_7502_2099,
    0x7_e3a2_64b2_b41f,
    0x6_b149_0aa3_1a3c,
    0x3_0ab6_3644_9c02,
    0x2_7650_8b24_1770,
]);
/// Twice the prime: more than any element, limb by limb.
const TWO_PRIMES: [u64; 5] = [2 * (M51 - 18), 2 * M51, 2 * M51, 2 * M51, 2 * M51];
/// Four times the prime: more than any sum of two elements, limb by limb.
const FOUR_PRIMES: [u64; 5] = [4 * (M51 - 18), 4 * M51, 4 * M51, 4 * M51, 4 * M51];

/// The product of two words.
#[inline(always)]
fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Adds the high part of each limb to the next limb, and 19 times that of the top to the lowest.
#[inline(always)]
fn passed_on(low: &[u64; 5], high: &[u64; 5]) -> [u64; 5] {
    [low[0] + 19 * high[4], low[1] + high[0], low[2] + high[1], low[3] + high[2], low[4] + high[3]]
}

/// The limbs of columns that are sums of products. All carries are computed at once, in two rounds:
/// a chain of squares waits for each of them. The limbs are written out, because `map` would be a
/// call for each product where units of code are not optimized together (`lto = "off"`).
#[inline(always)]
fn carried(z: [u128; 5]) -> Element64 {
    let low = |column: u128| column as u64 & M51;
    let high = |column: u128| (column >> 51) as u64;
    let [z0, z1, z2, z3, z4] = z;
    let t = passed_on(
        &[low(z0), low(z1), low(z2), low(z3), low(z4)],
        &[high(z0), high(z1), high(z2), high(z3), high(z4)],
    );
    let low = [t[0] & M51, t[1] & M51, t[2] & M51, t[3] & M51, t[4] & M51];
    let high = [t[0] >> 51, t[1] >> 51, t[2] >> 51, t[3] >> 51, t[4] >> 51];
    Element64(passed_on(&low, &high))
}

impl Element64 {
    pub(crate) const ZERO: Self = Self([0; 5]);
    pub(crate) const ONE: Self = Self([1, 0, 0, 0, 0]);
    /// x and y of the base point (RFC 8032, section 5.1).
    pub(crate) const BASE: [Self; 2] = [
        Self([
            0x6_2d60_8f25_d51a,
            0x4_12a4_b4f6_592a,
            0x7_5b71_71a4_b31d,
            0x1_ff60_5271_18fe,
            0x2_1693_6d3c_d6e5,
        ]),
        Self([
            0x6_6666_6666_6658,
            0x4_cccc_cccc_cccc,
            0x1_9999_9999_9999,
            0x3_3333_3333_3333,
            0x6_6666_6666_6666,
        ]),
    ];

    /// Limbs with signs, whose absolute values are below 2^52; the result has no carries.
    #[inline(always)]
    fn from_signed(limbs: &[i64; 5]) -> Self {
        let mut z = TWO_PRIMES;
        for (limb, signed) in z.iter_mut().zip(limbs) {
            *limb = limb.wrapping_add_signed(*signed);
        }
        Self(z)
    }

    /// Limbs below 2^52.
    #[inline(always)]
    pub(crate) const fn from_limbs(limbs: [u64; 5]) -> Self {
        Self(limbs)
    }

    #[inline(always)]
    pub(crate) fn limbs(&self) -> &[u64; 5] {
        &self.0
    }

    /// The sum, with carries.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let z = self.plus(other).0;
        Self(carry_down(z, z[4] >> 51))
    }

    /// The difference, with carries.
    #[inline(always)]
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let z = self.minus_sum(other).0;
        Self(carry_down(z, z[4] >> 51))
    }

    /// The sum without carries.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut z = self.0;
        for (limb, other) in z.iter_mut().zip(other.0) {
            *limb += other;
        }
        Self(z)
    }

    /// The difference from an element, without carries.
    #[inline(always)]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.and_less(TWO_PRIMES, other)
    }

    /// The difference from a sum of two elements or a difference of two, without carries.
    #[inline(always)]
    pub(crate) fn minus_sum(&self, other: &Self) -> Self {
        self.and_less(FOUR_PRIMES, other)
    }

    /// The sum less `other`, whose limbs are at most those of `bias`.
    #[inline(always)]
    fn and_less(&self, bias: [u64; 5], other: &Self) -> Self {
        let mut z = bias;
        for (limb, (own, other)) in z.iter_mut().zip(self.0.iter().zip(other.0)) {
            *limb = *limb + own - other;
        }
        Self(z)
    }

    /// 255 bits as little-endian words.
    #[inline(always)]
    pub(crate) fn from_words(w: &[u64; 4]) -> Self {
        Self([
            w[0] & M51,
            (w[0] >> 51 | w[1] << 13) & M51,
            (w[1] >> 38 | w[2] << 26) & M51,
            (w[2] >> 25 | w[3] << 39) & M51,
            w[3] >> 12 & M51,
        ])
    }

    /// The number below the prime, as little-endian words.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [u64; 4] {
        let mut z = self.0;
        // Twice: the first round may leave a few units above 2^255.
        for _ in 0..2 {
            z = carry_down(z, z[4] >> 51);
        }
        // (z + 19) / 2^255 is 1 for what is left from the prime on, else 0.
        let over = z.iter().fold(19, |carry, limb| (limb + carry) >> 51);
        let z = carry_down(z, over);
        [z[0] | z[1] << 51, z[1] >> 13 | z[2] << 38, z[2] >> 26 | z[3] << 25, z[3] >> 39 | (z[4] & M51) << 12]
    }

    #[inline(always)]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let c = [19 * b[0], 19 * b[1], 19 * b[2], 19 * b[3], 19 * b[4]];
        carried([
            wide(a[0], b[0]) + wide(a[1], c[4]) + wide(a[2], c[3]) + wide(a[3], c[2]) + wide(a[4], c[1]),
            wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], c[4]) + wide(a[3], c[3]) + wide(a[4], c[2]),
            wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]) + wide(a[3], c[4]) + wide(a[4], c[3]),
            wide(a[0], b[3]) + wide(a[1], b[2]) + wide(a[2], b[1]) + wide(a[3], b[0]) + wide(a[4], c[4]),
            wide(a[0], b[4]) + wide(a[1], b[3]) + wide(a[2], b[2]) + wide(a[3], b[1]) + wide(a[4], b[0]),
        ])
    }

    #[inline(always)]
    pub(crate) fn square(&self) -> Self {
        let a = &self.0;
        let (twice_0, twice_1) = (2 * a[0], 2 * a[1]);
        let (c3, c4) = (19 * a[3], 19 * a[4]);
        carried([
            wide(a[0], a[0]) + wide(twice_1, c4) + wide(2 * a[2], c3),
            wide(twice_0, a[1]) + wide(2 * a[2], c4) + wide(a[3], c3),
            wide(twice_0, a[2]) + wide(a[1], a[1]) + wide(2 * a[3], c4),
            wide(twice_0, a[3]) + wide(twice_1, a[2]) + wide(a[4], c4),
            wide(twice_0, a[4]) + wide(twice_1, a[3]) + wide(a[2], a[2]),
        ])
    }

    /// The inverse, and 0 of 0.
    #[inline(always)]
    pub(crate) fn inverse(&self) -> Self {
        Self::from_signed(&divsteps::scaled_inverse(&self.to_words())).mul(&SCALE)
    }

    /// The inverse of a public element, in two thirds of the time; 0 of 0.
    pub(crate) fn public_inverse(&self) -> Self {
        euclid::inverse(&self.to_words()).map_or_else(|| self.inverse(), |words| Self::from_words(&words))
    }

    /// [`field::root_power`].
    pub(crate) fn root_power(&self) -> Self {
        field::root_power(*self)
    }
}

impl Multiply for Element64 {
    #[inline(always)]
    fn squares(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.square();
        }
        self
    }

    #[inline(always)]
    fn times(self, other: &Self) -> Self {
        self.mul(other)
    }
}

/// x and y, and whether the encoding was that of a point.
pub(crate) type Decoded64 = (Element64, Element64, bool);

/// Decodes points (RFC 8032, section 5.1.3). This is the state before their roots: x = u v^3 (u
/// v^7)^((p-5)/8), or that times a root of -1.
#[derive(Clone, Copy)]
pub(crate) struct PointDecoder<const N: usize> {
    sign: [u64; N],
    y: [Element64; N],
    u: [Element64; N],
    v: [Element64; N],
    uv3: [Element64; N],
    /// To be raised to the power (p - 5) / 8.
    pub(crate) uv7: [Element64; N],
}

impl<const N: usize> PointDecoder<N> {
    #[inline(always)]
    pub(crate) fn new(words: &[[u64; 4]; N]) -> Self {
        let zero = [Element64::ZERO; N];
        let mut this = Self { sign: [0; N], y: zero, u: zero, v: zero, uv3: zero, uv7: zero };
        for (n, words) in words.iter().enumerate() {
            let y = Element64::from_words(words);
            let yy = y.square();
            let (u, v) = (yy.sub(&Element64::ONE), yy.mul(&D).add(&Element64::ONE));
            let vv = v.square();
            let uv3 = vv.mul(&v).mul(&u);
            (this.sign[n], this.y[n], this.u[n], this.v[n]) = (words[3] >> 63, y, u, v);
            (this.uv3[n], this.uv7[n]) = (uv3, vv.square().mul(&uv3));
        }
        this
    }

    /// The points. As in ed25519-dalek, y may be 2^255 - 19 or more, and x = 0 may have the sign
    /// bit.
    #[inline(always)]
    pub(crate) fn finish(&self, powers: &[Element64; N]) -> [Decoded64; N] {
        let mut out = [(Element64::ZERO, Element64::ONE, false); N];
        for n in 0..N {
            let root = powers[n].mul(&self.uv3[n]);
            let (x, valid) = signed_root(&root, &self.u[n], &self.v[n], self.sign[n]);
            out[n] = (x, self.y[n], valid);
        }
        out
    }
}

/// The root of u / v with the wanted parity, from a candidate that is right except for a factor
/// that is a root of ±1. Only for public numbers.
#[inline(always)]
fn signed_root(root: &Element64, u: &Element64, v: &Element64, sign: u64) -> (Element64, bool) {
    let square = root.square().mul(v);
    let right = square.sub(u).to_words() == [0; 4];
    let rotated = square.add(u).to_words() == [0; 4];
    let x = if right { *root } else { root.mul(&SQRT_M1) };
    let words = x.to_words();
    let x = if words[0] & 1 == sign { x } else { Element64::ZERO.sub(&x) };
    (x, right || rotated)
}

/// 19 times `top` into the lowest limb, and all carries; the top limb is cut.
#[inline(always)]
fn carry_down(mut z: [u64; 5], top: u64) -> [u64; 5] {
    z[4] &= M51;
    z[0] += 19 * top;
    for k in 0..4 {
        z[k + 1] += z[k] >> 51;
        z[k] &= M51;
    }
    z
}

/// The encoding of the point X/Z, Y/Z (RFC 8032, section 5.1.2), as little-endian words.
#[inline(always)]
pub(crate) fn encode([x, y, z]: &[Element64; 3]) -> [u64; 4] {
    encoded([x, y], &z.inverse())
}

/// Like [`encode`], in less time, for a point that is public.
pub(crate) fn encode_public([x, y, z]: &[Element64; 3]) -> [u64; 4] {
    encoded([x, y], &z.public_inverse())
}

#[inline(always)]
fn encoded([x, y]: [&Element64; 2], inverse: &Element64) -> [u64; 4] {
    let mut words = y.mul(inverse).to_words();
    words[3] |= x.mul(inverse).to_words()[0] << 63;
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field::Element;
    use crate::generic::point::decode_points;
    use crate::lanes::model::Model;
    use crate::lanes::{LANES, Limbs};

    /// Words at the ends of their range and in between.
    fn samples() -> Vec<[u64; 4]> {
        let mut random = fastrand::Rng::with_seed(31);
        let p_and_near = |low: u64| [low, u64::MAX, u64::MAX, u64::MAX >> 1];
        let ends = [[0; 4], [1, 0, 0, 0], [u64::MAX; 4].map(|word| word >> 1)];
        let near = (0..40).map(|n| p_and_near(u64::MAX - n));
        let patterns =
            (0..16).map(|bits| std::array::from_fn(|n| if bits >> n & 1 == 1 { u64::MAX } else { 0 }));
        let mut all: Vec<[u64; 4]> = ends.into_iter().chain(near).chain(patterns).collect();
        all.extend((0..200).map(|_| std::array::from_fn(|_| random.u64(..))));
        for words in &mut all {
            words[3] &= u64::MAX >> 1;
        }
        all
    }

    fn in_lanes(words: &[u64; 4]) -> Element<Model> {
        Element::from_words(&words.map(|word| Model([word; LANES])))
    }

    fn words(element: &Element<Model>) -> [u64; 4] {
        element.canonical().to_words().map(|word| word.store()[0])
    }

    #[test]
    fn products_squares_and_inverses_are_those_of_the_lanes() {
        let samples = samples();
        for pair in samples.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|words| Element64::from_words(&words));
            let (lanes_a, lanes_b) = (in_lanes(&pair[0]), in_lanes(&pair[1]));
            assert_eq!(a.to_words(), words(&lanes_a), "{:x?}", pair[0]);
            assert_eq!(a.mul(&b).to_words(), words(&lanes_a.mul(&lanes_b)), "{pair:x?}");
            assert_eq!(a.square().to_words(), words(&lanes_a.square()), "{:x?}", pair[0]);
            assert_eq!(a.inverse().to_words(), words(&field::inverse(&lanes_a)), "{:x?}", pair[0]);
        }
    }

    #[test]
    fn each_lane_has_its_own_inverse_beside_zeros() {
        let samples = samples();
        for lanes in samples.chunks_exact(LANES) {
            let mut words = [Model([0; LANES]); 4];
            for (lane, sample) in lanes.iter().enumerate() {
                for (word, sample) in words.iter_mut().zip(sample) {
                    word.0[lane] = *sample;
                }
            }
            let inverses = field::inverse(&Element::from_words(&words)).canonical().to_words();
            for (lane, sample) in lanes.iter().enumerate() {
                let expected = Element64::from_words(sample).inverse().to_words();
                assert_eq!(inverses.map(|word| word.store()[lane]), expected, "{lane}: {sample:x?}");
            }
        }
    }

    #[test]
    fn an_inverse_times_its_element_is_one() {
        for words in samples() {
            let element = Element64::from_words(&words);
            let zero = element.to_words() == [0; 4];
            let expected = if zero { [0; 4] } else { [1, 0, 0, 0] };
            assert_eq!(element.mul(&element.inverse()).to_words(), expected, "{words:x?}");
        }
    }

    #[test]
    fn sums_differences_and_points_are_those_of_the_lanes() {
        let samples = samples();
        for pair in samples.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|words| Element64::from_words(&words));
            let (lanes_a, lanes_b) = (in_lanes(&pair[0]), in_lanes(&pair[1]));
            assert_eq!(a.add(&b).to_words(), words(&lanes_a.add(&lanes_b)), "{pair:x?}");
            assert_eq!(a.sub(&b).to_words(), words(&lanes_a.sub(&lanes_b)), "{pair:x?}");
            assert_eq!(a.plus(&b).to_words(), a.add(&b).to_words(), "{pair:x?}");
            assert_eq!(a.minus(&b).to_words(), a.sub(&b).to_words(), "{pair:x?}");
            assert_eq!(b.minus_sum(&a.minus(&b)).to_words(), b.sub(&a.sub(&b)).to_words(), "{pair:x?}");
        }
        let powers = |z: [Element64; 2]| {
            z.map(|z| {
                // (p - 5) / 8 = (p - 2 - 3) / 8: 2^252 - 3
                let (mut power, bits) = (Element64::ONE, [u64::MAX - 2, u64::MAX, u64::MAX, (1 << 60) - 1]);
                for bit in (0..252).rev() {
                    power = power.square();
                    if bits[bit / 64] >> (bit % 64) & 1 == 1 {
                        power = power.mul(&z);
                    }
                }
                power
            })
        };
        let signed = samples
            .iter()
            .flat_map(|words| [0, 1 << 63].map(|sign| [words[0], words[1], words[2], words[3] | sign]));
        let mut points = 0;
        for encoding in signed {
            let decoding = PointDecoder::new(&[encoding, samples[1]]);
            let [(x, y, valid), other] = decoding.finish(&powers(decoding.uv7));
            let [(lanes_x, lanes_y, lanes)] = decode_points(&[encoding.map(|word| Model([word; LANES]))]);
            assert_eq!(valid, lanes != 0, "{encoding:x?}");
            assert!(other.2);
            if valid {
                assert_eq!((x.to_words(), y.to_words()), (words(&lanes_x), words(&lanes_y)), "{encoding:x?}");
                points += 1;
            }
        }
        assert!(points > 100, "{points}");
    }

    #[test]
    fn the_largest_limbs_do_not_overflow() {
        let largest = Element64([(1 << 52) - 1; 5]);
        let square = largest.mul(&largest);
        assert_eq!(square.to_words(), largest.square().to_words());
        assert!(square.0.iter().all(|limb| *limb < 1 << 52), "{:x?}", square.0);
        let sum = Element64([(1 << 54) - 1; 5]);
        let carried = Element64::from_words(&sum.to_words());
        let products = [sum.mul(&sum), sum.square(), carried.mul(&carried)];
        assert!(products.iter().all(|product| product.0.iter().all(|limb| *limb < 1 << 52)), "{products:x?}");
        assert!(products.iter().all(|product| product.to_words() == products[2].to_words()));
        let prime = [M51 - 18, M51, M51, M51, M51];
        assert_eq!(Element64(prime).to_words(), [0; 4]);
        assert_eq!(Element64(prime.map(|limb| 2 * limb)).to_words(), [0; 4]);
    }
}
