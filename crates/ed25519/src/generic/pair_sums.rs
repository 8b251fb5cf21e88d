//! Strict verification of one signature, as two sums side by side ([`super::pair`]).
//!
//! Without a prepared key: d s B - c A - d R by the halved factors of [`super::halving`]. The lower
//! four lanes have -c A and the lower half of the base point's factor, the upper four -d R and the
//! upper half.
//!
//! Under a prepared key: s B - k A, whose encoding is compared with R. With so many tables there
//! are few doublings, so the factors are not halved, and R is not decoded. The lower four lanes
//! have the lower halves of both factors.

use super::field64::Element64;
use super::halving::HalvedFactors;
use super::pair::{Addends, Pair, Row};
use crate::lanes::{EightLanes, Mask};

/// The bits of a digit of c and d. HalvedDigits are -8 to 7, or their negatives.
const OWN_BITS: usize = 4;
/// The number of digits of c and d. The top one has no sign and is small.
const OWN_DIGITS: usize = (HalvedFactors::BITS as usize).div_ceil(OWN_BITS);
/// The number of digits of each half of the base point's factor: -128 to 127, of eight bits. The
/// top one of the upper half has no sign.
const BASE_DIGITS: usize = 16;
/// The number of tables of the base point: for one signature under a prepared key; others use the
/// first of each half.
pub(crate) const TABLES: usize = 8;
/// The number of doublings between two tables.
pub(crate) const SPACING: u32 = 32;

/// Multiples 0 to 8 of -A, and of -R.
pub(crate) type OwnRows = [[Row; 9]; 2];
/// Multiples 0 to 128 of the base point, and after each [`SPACING`] doublings.
pub(crate) type BaseRows = [[Row; 129]; TABLES];

/// [`OwnRows`] before they are filled.
pub(crate) const EMPTY_OWN_ROWS: OwnRows = [[Row::NEUTRAL; 9]; 2];

/// The halved factors as digits.
#[derive(Clone, Debug)]
pub(crate) struct HalvedDigits {
    /// Of c and d.
    own: [[i8; OWN_DIGITS]; 2],
    /// Of both halves of the base point's factor.
    base: [[i16; BASE_DIGITS]; 2],
    /// The first digits that are used.
    top: usize,
}

impl HalvedDigits {
    /// The digits of c, of d, and of `base`, which is below l.
    pub(crate) fn new(halved: &HalvedFactors, base: &[u64; 4]) -> Self {
        let d = [halved.d as u64, (halved.d >> 64) as u64, 0];
        let mut own = [own_digits(&halved.c), own_digits(&d)];
        let top = (2 * BASE_DIGITS - 2..OWN_DIGITS).rfind(|at| own.iter().any(|digits| digits[*at] != 0));
        if halved.negative {
            own[0] = own[0].map(|digit| -digit);
        }
        Self { own, base: base_digits(base), top: top.unwrap_or(2 * BASE_DIGITS - 2) }
    }
}

/// Signed digits: half a window is first added to every window but the top one, and then subtracted
/// from each digit.
fn own_digits(words: &[u64; 3]) -> [i8; OWN_DIGITS] {
    const HALVES: u64 = 0x8888_8888_8888_8888;
    const TOP: usize = OWN_DIGITS - 1 - 32;
    let offset = [HALVES, HALVES, HALVES & ((1 << (OWN_BITS * TOP)) - 1)];
    let sum = plus(words, &offset);
    let mut digits = [0; OWN_DIGITS];
    for (n, digit) in digits.iter_mut().enumerate() {
        let half = if n < OWN_DIGITS - 1 { 8 } else { 0 };
        *digit = (sum[n / 16] >> (n % 16 * OWN_BITS) & 15) as i8 - half;
    }
    digits
}

/// Signed digits of eight bits, as [`own_digits`].
fn base_digits(words: &[u64; 4]) -> [[i16; BASE_DIGITS]; 2] {
    const HALVES: u64 = 0x8080_8080_8080_8080;
    let sum = plus(words, &[HALVES, HALVES, HALVES, HALVES >> 8]);
    let mut digits = [[0; BASE_DIGITS]; 2];
    for (n, digit) in digits.as_flattened_mut().iter_mut().enumerate() {
        let half = if n < 2 * BASE_DIGITS - 1 { 128 } else { 0 };
        *digit = (sum[n / 8] >> (n % 8 * 8) & 255) as i16 - half;
    }
    digits
}

fn plus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let (mut out, mut carry) = ([0; N], false);
    for n in 0..N {
        (out[n], carry) = a[n].carrying_add(b[n], carry);
    }
    out
}

#[inline(always)]
fn put<V: EightLanes>([low, high]: &mut OwnRows, multiple: usize, addends: &Addends<V>) {
    addends.store(&mut low[multiple], &mut high[multiple]);
}

/// Fills the multiples of both points.
#[inline(always)]
pub(crate) fn fill_own_rows<V: EightLanes>(points: &Pair<V>, rows: &mut OwnRows) {
    let mut all = [*points; 5];
    let one = points.addends();
    put(rows, 1, &one);
    for half in 1..=4 {
        let doubled = all[half].double();
        put(rows, 2 * half, &doubled.addends());
        if half <= 2 {
            all[2 * half] = doubled;
        }
        if half < 4 {
            let sum = doubled.add(&one);
            put(rows, 2 * half + 1, &sum.addends());
            if half == 1 {
                all[3] = sum;
            }
        }
    }
}

/// A point, and beside it the point after the doublings of half of the [`TABLES`].
#[inline(always)]
pub(crate) fn apart<V: EightLanes>(like: V, point: [Element64; 2]) -> Pair<V> {
    let points = Pair::from_affine(like, &[point; 2]);
    let shifted = points.double_times(SPACING * TABLES as u32 / 2);
    let (mut low, mut high, mut unused) = (Row::NEUTRAL, Row::NEUTRAL, Row::NEUTRAL);
    points.addends().store(&mut low, &mut unused);
    shifted.addends().store(&mut unused, &mut high);
    Pair::neutral(like).add(&Addends::load(like, &low, &high))
}

/// Fills the multiples of the base point, which is [`apart`]. `double` computes
/// [`Pair::double_times`].
#[inline(always)]
pub(crate) fn fill_base_rows<V: EightLanes>(
    mut points: Pair<V>,
    rows: &mut BaseRows,
    double: impl Fn(&mut Pair<V>, u32),
) {
    let like = points.0.0[0];
    let (lows, highs) = rows.split_at_mut(TABLES / 2);
    for (lows, highs) in lows.iter_mut().zip(highs) {
        let (mut sum, step) = (Pair::neutral(like), points.addends());
        for (low, high) in lows.iter_mut().zip(highs) {
            sum.addends().store(low, high);
            sum = sum.add(&step);
        }
        double(&mut points, SPACING);
    }
}

/// The rows of two digits.
#[inline(always)]
fn select_rows<V: EightLanes, const ROWS: usize>(
    like: V,
    rows: [&[Row; ROWS]; 2],
    digits: [i32; 2],
) -> Addends<V> {
    // With this bound, the compiler sees that the row exists.
    let row = |half: usize| &rows[half][(digits[half].unsigned_abs() as usize).min(ROWS - 1)];
    let low = if digits[0] < 0 { Mask::MAX } else { 0 };
    let high = if digits[1] < 0 { Mask::MAX } else { 0 };
    Addends::load(like, row(0), row(1)).negate_where(low & 0x0f | high & 0xf0)
}

/// Whether the sum of the multiples of -A and -R in `rows` and of the base point's, by the digits,
/// is neutral, for each of `K` signatures. They go side by side: while one waits for the results of
/// its products, the other has work.
#[inline(always)]
pub(crate) fn are_neutral<V: EightLanes, const K: usize>(
    like: V,
    factors: &[HalvedDigits; K],
    rows: &[OwnRows; K],
    base: &BaseRows,
) -> [bool; K] {
    let base = [&base[0], &base[TABLES / 2]];
    let mut sums = [Pair::neutral(like); K];
    let mut at = 0;
    for factors in factors {
        at = factors.top.min(OWN_DIGITS - 1).max(at);
    }
    loop {
        let mut addends = [own_addends(like, &factors[0], &rows[0], at); K];
        for k in 1..K {
            addends[k] = own_addends(like, &factors[k], &rows[k], at);
        }
        sums = Pair::add_each(&sums, &addends);
        if at.is_multiple_of(2) && at / 2 < BASE_DIGITS {
            for k in 0..K {
                let digits = [factors[k].base[0][at / 2].into(), factors[k].base[1][at / 2].into()];
                addends[k] = select_rows(like, base, digits);
            }
            sums = Pair::add_each(&sums, &addends);
        }
        if at == 0 {
            let mut neutral = [false; K];
            for k in 0..K {
                neutral[k] = sums[k].is_opposite();
            }
            return neutral;
        }
        at -= 1;
        for _ in 0..OWN_BITS {
            sums = Pair::double_each(&sums);
        }
    }
}

/// The rows of a signature's points.
#[inline(always)]
fn own_addends<V: EightLanes>(like: V, factors: &HalvedDigits, rows: &OwnRows, at: usize) -> Addends<V> {
    select_rows(like, [&rows[0], &rows[1]], [factors.own[0][at].into(), factors.own[1][at].into()])
}

/// The bits of a digit of k: -8 to 7.
const KEY_BITS: u32 = 4;
/// The number of digits of k for one table.
const KEY_STOPS: usize = (SPACING / KEY_BITS) as usize;
/// The number of digits of each half of k.
const KEY_DIGITS: usize = KEY_STOPS * TABLES / 2;

/// Multiples 0 to 8 of -A, and after each [`SPACING`] doublings.
pub(crate) type KeyRows = [[Row; 9]; TABLES];
/// [`KeyRows`] before they are filled.
pub(crate) const EMPTY_KEY_ROWS: KeyRows = [[Row::NEUTRAL; 9]; TABLES];

/// Fills the multiples of a point that is [`apart`]. `fill` and `double` compute [`fill_own_rows`]
/// and [`Pair::double_times`].
pub(crate) fn fill_key_rows<V: EightLanes>(
    mut points: Pair<V>,
    rows: &mut KeyRows,
    fill: impl Fn(&Pair<V>, &mut OwnRows),
    double: impl Fn(&mut Pair<V>, u32),
) {
    let (lows, highs) = rows.split_at_mut(TABLES / 2);
    for (low, high) in lows.iter_mut().zip(highs) {
        let mut both = EMPTY_OWN_ROWS;
        fill(&points, &mut both);
        [*low, *high] = both;
        double(&mut points, SPACING);
    }
}

/// The factors for a prepared key as digits, in halves.
#[derive(Clone, Debug)]
pub(crate) struct PreparedDigits {
    key: [[i8; KEY_DIGITS]; 2],
    base: [[i16; BASE_DIGITS]; 2],
}

impl PreparedDigits {
    /// The digits of k and s, which are below l.
    pub(crate) fn new(k: &[u64; 4], s: &[u64; 4]) -> Self {
        let sum = plus(k, &[0x8888_8888_8888_8888; 4]);
        let mut key = [[0; KEY_DIGITS]; 2];
        for (n, digit) in key.as_flattened_mut().iter_mut().enumerate() {
            *digit = (sum[n / 16] >> (n % 16 * 4) & 15) as i8 - 8;
        }
        Self { key, base: base_digits(s) }
    }
}

/// X, Y and Z of the sum by the digits.
#[inline(always)]
pub(crate) fn multiply_prepared<V: EightLanes>(
    like: V,
    factors: &PreparedDigits,
    rows: &KeyRows,
    base: &BaseRows,
) -> [Element64; 3] {
    let mut sum = Pair::neutral(like);
    let mut at = KEY_STOPS - 1;
    loop {
        for table in 0..TABLES / 2 {
            let digits = [
                factors.key[0][KEY_STOPS * table + at].into(),
                factors.key[1][KEY_STOPS * table + at].into(),
            ];
            sum = sum.add(&select_rows(like, [&rows[table], &rows[table + TABLES / 2]], digits));
        }
        if at.is_multiple_of(2) {
            for table in 0..TABLES / 2 {
                let place = KEY_STOPS / 2 * table + at / 2;
                let digits = [factors.base[0][place].into(), factors.base[1][place].into()];
                sum = sum.add(&select_rows(like, [&base[table], &base[table + TABLES / 2]], digits));
            }
        }
        if at == 0 {
            return sum.sum();
        }
        at -= 1;
        sum = sum.double_times(KEY_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field64::encode_public;
    use crate::generic::point64;
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
        let double = |points: &mut Pair<Model>, times| *points = points.double_times(times);
        let mut base = Box::new([[Row::NEUTRAL; 129]; TABLES]);
        fill_base_rows(apart(LIKE, Element64::BASE), &mut base, double);
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
            let [(x, y, valid), _] = point64::decode(&[words(point.compress().as_bytes()); 2]);
            assert!(valid);
            fill_key_rows(apart(LIKE, [x, y]), &mut rows, fill_own_rows, double);
            for k in &few {
                for s in &few {
                    let factors = PreparedDigits::new(&words(k.as_bytes()), &words(s.as_bytes()));
                    let sum = encode_public(&multiply_prepared(LIKE, &factors, &rows, &base));
                    let expected = EdwardsPoint::mul_base(s) + point * k;
                    assert_eq!(sum, words(expected.compress().as_bytes()), "{point:?} {k:?} {s:?}");
                }
            }
        }
    }
}
