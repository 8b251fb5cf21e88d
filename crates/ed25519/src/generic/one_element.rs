//! One element of the field of 2^255 - 19 in general registers, for inversions. In a chain of squares each square waits for the one before, and
//! one number passes through the chain in less than half of the time that eight numbers take in lanes.
//!
//! No branch and no address depends on an element.

/// The low 51 bits.
const M51: u64 = (1 << 51) - 1;

/// An element in radix 2^51; limbs are below 2^52.
#[derive(Clone, Copy)]
pub(crate) struct OneElement([u64; 5]);

/// The product of two words.
#[inline(always)]
fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// The limbs of columns below 2^116.
#[inline(always)]
fn carried(mut z: [u128; 5]) -> OneElement {
    let mut limbs = [0; 5];
    for k in 0..4 {
        z[k + 1] += z[k] >> 51;
        limbs[k] = z[k] as u64 & M51;
    }
    limbs[4] = z[4] as u64 & M51;
    limbs[0] += (z[4] >> 51) as u64 * 19;
    limbs[1] += limbs[0] >> 51;
    limbs[0] &= M51;
    OneElement(limbs)
}

impl OneElement {
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
        let c = b.map(|limb| 19 * limb);
        carried([
            wide(a[0], b[0]) + wide(a[1], c[4]) + wide(a[2], c[3]) + wide(a[3], c[2]) + wide(a[4], c[1]),
            wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], c[4]) + wide(a[3], c[3]) + wide(a[4], c[2]),
            wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]) + wide(a[3], c[4]) + wide(a[4], c[3]),
            wide(a[0], b[3]) + wide(a[1], b[2]) + wide(a[2], b[1]) + wide(a[3], b[0]) + wide(a[4], c[4]),
            wide(a[0], b[4]) + wide(a[1], b[3]) + wide(a[2], b[2]) + wide(a[3], b[1]) + wide(a[4], b[0]),
        ])
    }

    #[inline(always)]
    fn squares(self, times: u32) -> Self {
        let mut x = self;
        for _ in 0..times {
            let a = &x.0;
            let (twice_0, twice_1) = (2 * a[0], 2 * a[1]);
            let (c3, c4) = (19 * a[3], 19 * a[4]);
            x = carried([
                wide(a[0], a[0]) + wide(twice_1, c4) + wide(2 * a[2], c3),
                wide(twice_0, a[1]) + wide(2 * a[2], c4) + wide(a[3], c3),
                wide(twice_0, a[2]) + wide(a[1], a[1]) + wide(2 * a[3], c4),
                wide(twice_0, a[3]) + wide(twice_1, a[2]) + wide(a[4], c4),
                wide(twice_0, a[4]) + wide(twice_1, a[3]) + wide(a[2], a[2]),
            ]);
        }
        x
    }

    /// The power p - 2: the inverse, and 0 of 0.
    #[inline(always)]
    pub(crate) fn inverse(&self) -> Self {
        let z2 = self.squares(1);
        let z9 = z2.squares(2).mul(self);
        let z11 = z9.mul(&z2);
        // From here on, a name that ends in n is self^(2^n - 1).
        let z_5 = z11.squares(1).mul(&z9);
        let z_10 = z_5.squares(5).mul(&z_5);
        let z_20 = z_10.squares(10).mul(&z_10);
        let z_40 = z_20.squares(20).mul(&z_20);
        let z_50 = z_40.squares(10).mul(&z_10);
        let z_100 = z_50.squares(50).mul(&z_50);
        let z_200 = z_100.squares(100).mul(&z_100);
        z_200.squares(50).mul(&z_50).squares(5).mul(&z11)
    }
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

/// The encoding of the point X/Z, Y/Z (RFC 8032, section 5.1.2), as little-endian words; the coordinates are words too.
#[inline(always)]
pub(crate) fn encode(x: &[u64; 4], y: &[u64; 4], z: &[u64; 4]) -> [u64; 4] {
    let inverse = OneElement::from_words(z).inverse();
    let x = OneElement::from_words(x).mul(&inverse).to_words();
    let mut words = OneElement::from_words(y).mul(&inverse).to_words();
    words[3] |= x[0] << 63;
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field::Element;
    use crate::generic::power;
    use crate::lanes::model::Model;
    use crate::lanes::{LANES, Lanes};

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
            let [a, b] = [pair[0], pair[1]].map(|words| OneElement::from_words(&words));
            let (lanes_a, lanes_b) = (in_lanes(&pair[0]), in_lanes(&pair[1]));
            assert_eq!(a.to_words(), words(&lanes_a), "{:x?}", pair[0]);
            assert_eq!(a.mul(&b).to_words(), words(&lanes_a.mul(&lanes_b)), "{pair:x?}");
            assert_eq!(a.squares(1).to_words(), words(&lanes_a.square()), "{:x?}", pair[0]);
            assert_eq!(a.inverse().to_words(), words(&power::inverse(&lanes_a)), "{:x?}", pair[0]);
        }
    }

    #[test]
    fn the_largest_limbs_do_not_overflow() {
        let largest = OneElement([(1 << 52) - 1; 5]);
        let square = largest.mul(&largest);
        assert_eq!(square.to_words(), largest.squares(1).to_words());
        assert!(square.0.iter().all(|limb| *limb < 1 << 52), "{:x?}", square.0);
        let prime = [M51 - 18, M51, M51, M51, M51];
        assert_eq!(OneElement(prime).to_words(), [0; 4]);
        assert_eq!(OneElement(prime.map(|limb| 2 * limb)).to_words(), [0; 4]);
    }
}
