//! Strict verification of one signature: d s B - c A - d R by the halved factors of
//! [`super::halving`], as two sums side by side ([`super::pair`]).
//!
//! The lower four lanes have -c A and the lower half of the base point's factor, the upper four -d
//! R and the upper half.

use super::halving::Halved;
use super::one_element::OneElement;
use super::pair::{Addends, Pair, Row};
use crate::lanes::{EightLanes, Mask};

/// The bits of a digit of c and d. Factors are -8 to 7, or their negatives.
const BITS: usize = 4;
/// The number of digits of c and d. The top one has no sign and is small.
const COUNT: usize = (Halved::BITS as usize).div_ceil(BITS);
/// The number of digits of each half of the base point's factor: -128 to 127, of eight bits. The
/// top one of the upper half has no sign.
pub(super) const BASE_COUNT: usize = 16;
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

/// The factors as digits.
#[derive(Clone, Debug)]
pub(crate) struct Factors {
    /// Of c and d.
    own: [[i8; COUNT]; 2],
    /// Of both halves of the base point's factor.
    base: [[i16; BASE_COUNT]; 2],
    /// The first digits that are used.
    top: usize,
}

impl Factors {
    /// The digits of c, of d, and of `base`, which is below l.
    pub(crate) fn new(halved: &Halved, base: &[u64; 4]) -> Self {
        let d = [halved.d as u64, (halved.d >> 64) as u64, 0];
        let mut own = [own_digits(&halved.c), own_digits(&d)];
        let top = (2 * BASE_COUNT - 2..COUNT).rfind(|at| own.iter().any(|digits| digits[*at] != 0));
        if halved.negative {
            own[0] = own[0].map(|digit| -digit);
        }
        Self { own, base: base_digits(base), top: top.unwrap_or(2 * BASE_COUNT - 2) }
    }
}

/// Signed digits: half a window is first added to every window but the top one, and then subtracted
/// from each digit.
fn own_digits(words: &[u64; 3]) -> [i8; COUNT] {
    const HALVES: u64 = 0x8888_8888_8888_8888;
    const TOP: usize = COUNT - 1 - 32;
    let offset = [HALVES, HALVES, HALVES & ((1 << (BITS * TOP)) - 1)];
    let sum = plus(words, &offset);
    let mut digits = [0; COUNT];
    for (n, digit) in digits.iter_mut().enumerate() {
        let half = if n < COUNT - 1 { 8 } else { 0 };
        *digit = (sum[n / 16] >> (n % 16 * BITS) & 15) as i8 - half;
    }
    digits
}

/// The same for eight bits.
pub(super) fn base_digits(words: &[u64; 4]) -> [[i16; BASE_COUNT]; 2] {
    const HALVES: u64 = 0x8080_8080_8080_8080;
    let sum = plus(words, &[HALVES, HALVES, HALVES, HALVES >> 8]);
    let mut digits = [[0; BASE_COUNT]; 2];
    for (n, digit) in digits.as_flattened_mut().iter_mut().enumerate() {
        let half = if n < 2 * BASE_COUNT - 1 { 128 } else { 0 };
        *digit = (sum[n / 8] >> (n % 8 * 8) & 255) as i16 - half;
    }
    digits
}

pub(super) fn plus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
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
pub(crate) fn fill_own<V: EightLanes>(points: &Pair<V>, rows: &mut OwnRows) {
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

/// A point, and the same after the doublings of half of the [`TABLES`].
#[inline(always)]
pub(crate) fn apart<V: EightLanes>(like: V, point: [OneElement; 2]) -> Pair<V> {
    let points = Pair::from_affine(like, &[point; 2]);
    let shifted = points.double_times(SPACING * TABLES as u32 / 2);
    let (mut low, mut high, mut unused) = (Row::NEUTRAL, Row::NEUTRAL, Row::NEUTRAL);
    points.addends().store(&mut low, &mut unused);
    shifted.addends().store(&mut unused, &mut high);
    Pair::neutral(like).add(&Addends::load(like, &low, &high))
}

/// Fills the multiples of the base point, whose affine coordinates these are.
#[inline(always)]
pub(crate) fn fill_base<V: EightLanes>(like: V, base: [OneElement; 2], rows: &mut BaseRows) {
    let mut points = apart(like, base);
    let (lows, highs) = rows.split_at_mut(TABLES / 2);
    for (lows, highs) in lows.iter_mut().zip(highs) {
        let (mut sum, step) = (Pair::neutral(like), points.addends());
        for (low, high) in lows.iter_mut().zip(highs) {
            sum.addends().store(low, high);
            sum = sum.add(&step);
        }
        points = points.double_times(SPACING);
    }
}

/// The rows of two digits.
#[inline(always)]
pub(super) fn chosen<V: EightLanes, const ROWS: usize>(
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

/// Whether the sum is neutral: of the multiples of -A and -R in `rows` and of the base point's, by
/// the digits.
#[inline(always)]
pub(crate) fn is_neutral<V: EightLanes>(like: V, factors: &Factors, rows: &OwnRows, base: &BaseRows) -> bool {
    let base = [&base[0], &base[TABLES / 2]];
    let mut sum = Pair::neutral(like);
    let mut at = factors.top.min(COUNT - 1);
    loop {
        let digits = [factors.own[0][at].into(), factors.own[1][at].into()];
        sum = sum.add(&chosen(like, [&rows[0], &rows[1]], digits));
        if at.is_multiple_of(2) && at / 2 < BASE_COUNT {
            let digits = [factors.base[0][at / 2].into(), factors.base[1][at / 2].into()];
            sum = sum.add(&chosen(like, base, digits));
        }
        if at == 0 {
            return sum.is_opposite();
        }
        at -= 1;
        sum = sum.double_times(BITS as u32);
    }
}
