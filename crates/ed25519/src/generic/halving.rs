//! Halves the factors of one strict verification: lattice reduction in two dimensions, on public
//! numbers.
//!
//! Strict verification asks whether T = s B - k A - R is the neutral element. All points of the
//! curve have an order that divides 8 l, so the pairs (c, d) with c = d k modulo 8 l give d T = d s
//! B - c A - d R. If d is odd and not a multiple of l, it is invertible modulo 8 l, and d T is
//! neutral exactly when T is: also for points with a part of small order. Short pairs have about
//! 128 bits instead of 253.

use super::euclid::{Round, bits, difference};

/// 8 l, little-endian words.
pub(crate) const EIGHT_L: [u64; 4] =
    [0xc093_18d2_e7ae_9f68, 0xa6f7_cef5_17bc_e6b2, 0x0000_0000_0000_0000, 0x8000_0000_0000_0000];

/// The number of bits of the first number at which the reduction ends.
const TARGET_BITS: u32 = 128;
/// The maximum number of subtractions of the last number that make an odd multiplier.
const MAX_ODD_STEPS: u32 = 64;

/// A pair with c = d k modulo 8 l, and odd d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HalvedFactors {
    /// The absolute value of c, below 2^[`HalvedFactors::BITS`].
    pub(crate) c: [u64; 3],
    /// Whether c is negative.
    pub(crate) negative: bool,
    /// d, positive.
    pub(crate) d: u128,
}

impl HalvedFactors {
    /// c is shorter than this. 128 bits are usual. Longer ones are rare, unless somebody searches
    /// for messages that have them.
    pub(crate) const BITS: u32 = 150;
    /// Both factors 0, for lanes without a signature.
    pub(crate) const ZERO: Self = Self { c: [0; 3], negative: false, d: 0 };

    /// A pair for `k`, which is below l. `None` if c would be too long.
    pub(crate) fn of(k: &[u64; 4]) -> Option<Self> {
        let mut pair = Reduction { r: [EIGHT_L, *k], t: [0, 1], positive: true };
        while bits(&pair.r[1]) > TARGET_BITS {
            pair.round()?;
        }
        if pair.t[1].is_multiple_of(2) {
            pair.make_odd();
        }
        let [c @ .., _] = pair.r[1];
        let short = bits(&pair.r[1]) <= Self::BITS && !pair.t[1].is_multiple_of(2);
        short.then_some(Self { c: [c[0], c[1], c[2]], negative: !pair.positive, d: pair.t[1] })
    }

    /// c and d as little-endian words, and the number of bits of the longer one.
    #[cfg(any(test, lanes))]
    pub(crate) fn words(&self) -> ([[u64; 4]; 2], u32) {
        let c = [self.c[0], self.c[1], self.c[2], 0];
        let d = [self.d as u64, (self.d >> 64) as u64, 0, 0];
        ([c, d], bits(&c).max(bits(&d)))
    }
}

/// Two consecutive numbers r of Euclid's sequence from 8 l and k, and their multipliers t: r is t k
/// or -t k modulo 8 l, and signs alternate.
struct Reduction {
    r: [[u64; 4]; 2],
    t: [u128; 2],
    /// Whether the second number is +t k.
    positive: bool,
}

impl Reduction {
    /// Some steps of Euclid's algorithm. `None` if the next quotient is too long for one round.
    fn round(&mut self) -> Option<()> {
        let round = Round::of(&self.r, TARGET_BITS)?;
        self.r = round.numbers(&self.r)?;
        self.t = round.multipliers(self.t, |x, first, y, second| {
            let product = |factor: u64, t: u128| t.checked_mul(factor.into());
            product(x, first)?.checked_add(product(y, second)?)
        })?;
        self.positive ^= round.changes_signs();
        Some(())
    }

    /// Makes the second multiplier odd, which the first one is then: consecutive multipliers have
    /// no common divisor. The second number is subtracted from the first one until that is short
    /// enough too.
    fn make_odd(&mut self) {
        let [mut r, less] = self.r;
        let mut t = self.t[0];
        for _ in 0..MAX_ODD_STEPS {
            let Some(next) = t.checked_add(self.t[1]) else { break };
            if bits(&r) <= TARGET_BITS {
                break;
            }
            let Some(rest) = difference(1, &r, 1, &less) else { break };
            (r, t) = (rest, next);
        }
        (self.r[1], self.t[1]) = (r, t);
        self.positive = !self.positive;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::Scalar;

    /// `d k - c` modulo 8 l, by additions only.
    fn remainder(k: &[u64; 4], halved: &HalvedFactors) -> [u64; 4] {
        let mut sum = [0; 4];
        for bit in (0..128).rev() {
            sum = add(&sum, &sum);
            if halved.d >> bit & 1 == 1 {
                sum = add(&sum, k);
            }
        }
        let c = [halved.c[0], halved.c[1], halved.c[2], 0];
        add(&sum, &if halved.negative { c } else { difference(1, &EIGHT_L, 1, &c).unwrap() })
    }

    /// The sum of two numbers below 8 l, modulo 8 l.
    fn add(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
        let (mut out, mut carry) = ([0; 4], false);
        for n in 0..4 {
            (out[n], carry) = a[n].carrying_add(b[n], carry);
        }
        match difference(1, &out, 1, &EIGHT_L) {
            _ if carry => std::array::from_fn({
                let mut borrow = false;
                move |n| {
                    let word;
                    (word, borrow) = out[n].borrowing_sub(EIGHT_L[n], borrow);
                    word
                }
            }),
            Some(less) => less,
            None => out,
        }
    }

    fn words(scalar: &Scalar) -> [u64; 4] {
        std::array::from_fn(|n| u64::from_le_bytes(scalar.as_bytes().as_chunks().0[n]))
    }

    fn assert_halved(k: &[u64; 4]) -> Option<u32> {
        let halved = HalvedFactors::of(k)?;
        assert_eq!(remainder(k, &halved), [0; 4], "{k:x?} {halved:x?}");
        assert_eq!(halved.d % 2, 1, "{k:x?} {halved:x?}");
        let [a, b, c] = halved.c;
        let length = bits(&[a, b, c, 0]);
        assert!(length <= HalvedFactors::BITS, "{k:x?} {halved:x?}");
        Some(length)
    }

    #[test]
    fn eight_l_is_eight_times_the_order() {
        let order = words(&-Scalar::ONE);
        let shifted: [u64; 4] =
            std::array::from_fn(|n| order[n] << 3 | if n > 0 { order[n - 1] >> 61 } else { 0 });
        assert_eq!(difference(1, &EIGHT_L, 1, &shifted), Some([8, 0, 0, 0]));
    }

    #[test]
    fn pairs_of_hashes_are_short_odd_and_right() {
        let mut random = fastrand::Rng::with_seed(41);
        let (mut long, mut none, mut d_bits) = (0, 0, 0);
        const COUNT: u32 = 20_000;
        for _ in 0..COUNT {
            let mut wide = [0; 64];
            random.fill(&mut wide);
            let k = words(&Scalar::from_bytes_mod_order_wide(&wide));
            match assert_halved(&k) {
                Some(length) => long += u32::from(length > TARGET_BITS),
                None => none += 1,
            }
            d_bits += HalvedFactors::of(&k).map_or(0, |halved| 128 - halved.d.leading_zeros());
        }
        assert!(long < COUNT / 6 && none == 0, "{long} are longer, {none} too long");
        assert!(d_bits / COUNT <= 127, "{d_bits}");
    }

    #[test]
    fn numbers_that_are_short_already_and_their_neighbors_have_pairs() {
        for k in [0_u64, 1, 2, 3, 8, u64::MAX] {
            assert_eq!(assert_halved(&[k, 0, 0, 0]), Some(64 - k.leading_zeros()));
        }
        let negative = [1_u64, 2, 3, 1 << 40].map(|number| -Scalar::from(number));
        for k in negative {
            assert!(assert_halved(&words(&k)).is_none_or(|length| length <= HalvedFactors::BITS));
        }
        for shift in 0..252 {
            let k: [u64; 4] = std::array::from_fn(|n| if shift / 64 == n { 1 << (shift % 64) } else { 0 });
            assert_halved(&k);
        }
    }

    /// Sixteen times (l + 1) / 2 is 8 modulo 8 l: the short pairs are multiples of (8, 16), and all
    /// with an odd multiplier are very long.
    #[test]
    fn a_number_whose_odd_pairs_are_long_has_none() {
        let half = Scalar::from(2_u64).invert();
        assert_eq!(HalvedFactors::of(&words(&half)), None);
        // Multiples of an eighth of l and their neighbors are of the same kind.
        let parts = (1..64_u64)
            .flat_map(|n| [4_u64, 8, 16, 64, 1 << 20].map(|of| Scalar::from(n) * Scalar::from(of).invert()));
        let long = parts.filter(|k| assert_halved(&words(k)).is_none());
        assert!(long.count() > 10);
    }
}
