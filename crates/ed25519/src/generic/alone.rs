//! Strict verification of one signature under a prepared key, in two sums side by side
//! ([`super::pair`]): s B - k A, whose encoding is compared with R.
//!
//! With so many tables there are few doublings, so the factors are not halved, and R is not
//! decoded. The lower four lanes have the lower halves of both factors.

use super::one_element::OneElement;
use super::pair::{Pair, Row};
use super::single::{self, BASE_COUNT, BaseRows, EMPTY_OWN_ROWS, SPACING, TABLES};
use crate::lanes::EightLanes;

/// The bits of a digit of k: -8 to 7.
const BITS: u32 = 4;
/// The number of digits of k for one table.
const STOPS: usize = (SPACING / BITS) as usize;
/// The number of digits of each half of k.
const HALF: usize = STOPS * TABLES / 2;

/// Multiples 0 to 8 of -A, and after each [`SPACING`] doublings.
pub(crate) type KeyRows = [[Row; 9]; TABLES];
/// [`KeyRows`] before they are filled.
pub(crate) const EMPTY_KEY_ROWS: KeyRows = [[Row::NEUTRAL; 9]; TABLES];

/// Fills the multiples of the point, whose affine coordinates these are.
#[inline(always)]
pub(crate) fn fill<V: EightLanes>(like: V, point: [OneElement; 2], rows: &mut KeyRows) {
    let mut points = single::apart(like, point);
    let (lows, highs) = rows.split_at_mut(TABLES / 2);
    for (low, high) in lows.iter_mut().zip(highs) {
        let mut both = EMPTY_OWN_ROWS;
        single::fill_own(&points, &mut both);
        [*low, *high] = both;
        points = points.double_times(SPACING);
    }
}

/// The factors as digits, in halves.
#[derive(Clone, Debug)]
pub(crate) struct Factors {
    key: [[i8; HALF]; 2],
    base: [[i16; BASE_COUNT]; 2],
}

impl Factors {
    /// The digits of k and s, which are below l.
    pub(crate) fn new(k: &[u64; 4], s: &[u64; 4]) -> Self {
        let sum = single::plus(k, &[0x8888_8888_8888_8888; 4]);
        let mut key = [[0; HALF]; 2];
        for (n, digit) in key.as_flattened_mut().iter_mut().enumerate() {
            *digit = (sum[n / 16] >> (n % 16 * 4) & 15) as i8 - 8;
        }
        Self { key, base: single::base_digits(s) }
    }
}

/// X, Y and Z of the sum by the digits.
#[inline(always)]
pub(crate) fn multiply<V: EightLanes>(
    like: V,
    factors: &Factors,
    rows: &KeyRows,
    base: &BaseRows,
) -> [OneElement; 3] {
    let mut sum = Pair::neutral(like);
    let mut at = STOPS - 1;
    loop {
        for table in 0..TABLES / 2 {
            let digits =
                [factors.key[0][STOPS * table + at].into(), factors.key[1][STOPS * table + at].into()];
            sum = sum.add(&single::chosen(like, [&rows[table], &rows[table + TABLES / 2]], digits));
        }
        if at.is_multiple_of(2) {
            for table in 0..TABLES / 2 {
                let place = STOPS / 2 * table + at / 2;
                let digits = [factors.base[0][place].into(), factors.base[1][place].into()];
                sum = sum.add(&single::chosen(like, [&base[table], &base[table + TABLES / 2]], digits));
            }
        }
        if at == 0 {
            return sum.sum();
        }
        at -= 1;
        sum = sum.double_times(BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::one_by_one;
    use crate::generic::one_element::encode_public;
    use crate::lanes::LANES;
    use crate::lanes::model::Model;
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::{EdwardsPoint, Scalar};

    const LIKE: Model = Model([0; LANES]);

    fn words(bytes: &[u8; 32]) -> [u64; 4] {
        std::array::from_fn(|n| u64::from_le_bytes(bytes.as_chunks().0[n]))
    }

    #[test]
    fn sums_are_those_of_the_curve() {
        let mut base = Box::new([[Row::NEUTRAL; 129]; TABLES]);
        single::fill_base(LIKE, OneElement::BASE, &mut base);
        let mut random = fastrand::Rng::with_seed(91);
        let mut scalar = || {
            let mut wide = [0; 64];
            random.fill(&mut wide);
            Scalar::from_bytes_mod_order_wide(&wide)
        };
        let few = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, scalar(), scalar()];
        let points = EIGHT_TORSION.map(|torsion| [torsion, EdwardsPoint::mul_base(&scalar()) + torsion]);
        for point in points.as_flattened() {
            let mut rows = Box::new(EMPTY_KEY_ROWS);
            let [(x, y, valid), _] = one_by_one::decode(&[words(point.compress().as_bytes()); 2]);
            assert!(valid);
            fill(LIKE, [x, y], &mut rows);
            for k in &few {
                for s in &few {
                    let factors = Factors::new(&words(k.as_bytes()), &words(s.as_bytes()));
                    let sum = encode_public(&multiply(LIKE, &factors, &rows, &base));
                    let expected = EdwardsPoint::mul_base(s) + point * k;
                    assert_eq!(sum, words(expected.compress().as_bytes()), "{point:?} {k:?} {s:?}");
                }
            }
        }
    }
}
