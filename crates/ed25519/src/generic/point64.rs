//! Points in general registers, for one signature on machines without the lanes, and strict
//! verification with them: d s B - c A - d R by the halved factors of [`super::halving`]. Only for
//! public numbers.
//!
//! The formulas are those of [`super::point`].

use super::field64::{Decoded64, Element64, PointDecoder};
use super::halving::HalvedFactors;

/// 2 d (RFC 8032, section 5.1).
const D2: Element64 = Element64::from_limbs([
    0x6_9b94_26b2_f159,
    0x3_5050_762a_dd7a,
    0x3_cf44_c003_8052,
    0x6_738c_c740_7977,
    0x2_406d_9dc5_6dff,
]);

/// X, Y and Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projective {
    pub(crate) x: Element64,
    pub(crate) y: Element64,
    pub(crate) z: Element64,
}

/// X, Y and Z, and T = X Y / Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended {
    pub(crate) projective: Projective,
    t: Element64,
}

/// The result of a doubling or a sum: the factors of the coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    e: Element64,
    f: Element64,
    g: Element64,
    h: Element64,
}

/// A point, ready to be added: Y - X and Y + X, 2dT and 2Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addend {
    sums: [Element64; 2],
    t2d: Element64,
    z2: Element64,
}

/// An [`Addend`] with Z = 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffineAddend {
    sums: [Element64; 2],
    t2d: Element64,
}

/// Whether a point is added or subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus = 0,
    Minus = 1,
}

impl Projective {
    /// The neutral element.
    pub(crate) const NEUTRAL: Self = Self { x: Element64::ZERO, y: Element64::ONE, z: Element64::ONE };

    /// Twice the point.
    #[inline(always)]
    pub(crate) fn double(&self) -> Completed {
        let (xx, yy, zz) = (self.x.square(), self.y.square(), self.z.square());
        let (h, g) = (yy.plus(&xx), yy.minus(&xx));
        let e = self.x.plus(&self.y).square().minus_sum(&h);
        Completed { e, f: zz.plus(&zz).minus_sum(&g), g, h }
    }

    /// Whether this is the neutral element.
    pub(crate) fn is_neutral(&self) -> bool {
        self.x.to_words() == [0; 4] && self.y.sub(&self.z).to_words() == [0; 4]
    }
}

impl Extended {
    /// An affine point.
    pub(crate) fn from_affine([x, y]: &[Element64; 2]) -> Self {
        Self { projective: Projective { x: *x, y: *y, z: Element64::ONE }, t: x.mul(y) }
    }

    /// The point, ready to be added.
    #[inline(always)]
    pub(crate) fn addend(&self) -> Addend {
        let Projective { x, y, z } = &self.projective;
        Addend { sums: [y.minus(x), y.plus(x)], t2d: self.t.mul(&D2), z2: z.plus(z) }
    }

    /// The point with Z = 1, ready to be added.
    pub(crate) fn affine_addend(&self) -> AffineAddend {
        let inverse = self.projective.z.public_inverse();
        let (x, y) = (self.projective.x.mul(&inverse), self.projective.y.mul(&inverse));
        AffineAddend { sums: [y.minus(&x), y.plus(&x)], t2d: x.mul(&y).mul(&D2) }
    }

    /// The sum, or the difference.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Addend, sign: Sign) -> Completed {
        self.add_parts(&other.sums, &other.t2d, self.projective.z.mul(&other.z2), sign)
    }

    /// The sum with an affine point, or the difference.
    #[inline(always)]
    pub(crate) fn add_affine(&self, other: &AffineAddend, sign: Sign) -> Completed {
        self.add_parts(&other.sums, &other.t2d, self.projective.z.plus(&self.projective.z), sign)
    }

    /// The negative point has its sums exchanged, and the negative of T: so F and G are exchanged
    /// too.
    #[inline(always)]
    fn add_parts(&self, sums: &[Element64; 2], t2d: &Element64, d: Element64, sign: Sign) -> Completed {
        let Projective { x, y, .. } = &self.projective;
        let a = y.minus(x).mul(&sums[sign as usize]);
        let b = y.plus(x).mul(&sums[1 - sign as usize]);
        let c = self.t.mul(t2d);
        let both = [d.minus(&c), d.plus(&c)];
        Completed { e: b.minus(&a), f: both[sign as usize], g: both[1 - sign as usize], h: b.plus(&a) }
    }
}

impl Completed {
    /// Without T.
    #[inline(always)]
    pub(crate) fn projective(&self) -> Projective {
        Projective { x: self.e.mul(&self.f), y: self.g.mul(&self.h), z: self.f.mul(&self.g) }
    }

    /// With T.
    #[inline(always)]
    pub(crate) fn extended(&self) -> Extended {
        Extended { projective: self.projective(), t: self.e.mul(&self.h) }
    }
}

/// The bits of a window of c and d.
const OWN_BITS: u32 = 5;
/// The bits of a window of the base point's factor.
const BASE_BITS: u32 = 8;
/// The number of odd multiples of a point for windows of `bits` bits.
const fn multiples(bits: u32) -> usize {
    1 << (bits - 2)
}
/// The number of doublings between the base point's two tables.
const BASE_SHIFT: usize = 128;
/// The number of places of digits: the last one is that of a carry.
const MAX_PLACES: usize = HalvedFactors::BITS as usize + 1;

/// Odd multiples of the base point, and of the base point after [`BASE_SHIFT`] doublings.
pub(crate) type BaseTables64 = [[AffineAddend; multiples(BASE_BITS)]; 2];

/// Decodes two points: see [`super::field64::PointDecoder`].
pub(crate) fn decode(words: &[[u64; 4]; 2]) -> [Decoded64; 2] {
    let decoding = PointDecoder::new(words);
    let powers = [decoding.uv7[0].root_power(), decoding.uv7[1].root_power()];
    decoding.finish(&powers)
}

/// The odd multiples of a point, as `row` has them.
fn odd_multiples<T: Copy, const N: usize>(point: Extended, row: impl Fn(&Extended) -> T) -> [T; N] {
    let mut rows = [row(&point); N];
    let mut left = rows[1..].iter_mut();
    each_odd_multiple(point, &mut |point| {
        if let Some(next) = left.next() {
            *next = row(point);
        }
        left.len() > 0
    });
    rows
}

/// Calls `take` with the odd multiples of a point from the third on, as long as it returns `true`.
#[inline(never)]
fn each_odd_multiple(mut point: Extended, take: &mut dyn FnMut(&Extended) -> bool) {
    let twice = point.projective.double().extended().addend();
    loop {
        point = point.add(&twice, Sign::Plus).extended();
        if !take(&point) {
            return;
        }
    }
}

/// The tables of the base point.
pub(crate) fn base_tables() -> BaseTables64 {
    let base = Extended::from_affine(&Element64::BASE);
    let mut shifted = base;
    for _ in 0..BASE_SHIFT {
        shifted = shifted.projective.double().extended();
    }
    [base, shifted].map(|point| odd_multiples(point, Extended::affine_addend))
}

/// The digits at every place: of c, d and both halves of the base point's factor.
struct Digits {
    at: [[i8; 4]; MAX_PLACES],
    /// One above the highest place with a digit.
    top: usize,
}

impl Digits {
    #[inline(never)]
    fn new(halved: &HalvedFactors, base: &[u64; 4]) -> Self {
        let mut this = Self { at: [[0; 4]; MAX_PLACES], top: 0 };
        let sign = if halved.negative { -1 } else { 1 };
        naf_digits(&halved.c, OWN_BITS, |place, digit| this.put(0, place, sign * digit));
        naf_digits(&[halved.d as u64, (halved.d >> 64) as u64], OWN_BITS, |place, digit| {
            this.put(1, place, digit);
        });
        naf_digits(&[base[0], base[1]], BASE_BITS, |place, digit| this.put(2, place, digit));
        naf_digits(&[base[2], base[3]], BASE_BITS, |place, digit| this.put(3, place, digit));
        this
    }

    fn put(&mut self, which: usize, place: usize, digit: i16) {
        self.at[place][which] = digit as i8;
        self.top = self.top.max(place + 1);
    }
}

/// The row of a digit that is not 0.
#[inline(always)]
fn chosen<T>(table: &[T], digit: i8) -> (&T, Sign) {
    let sign = if digit < 0 { Sign::Minus } else { Sign::Plus };
    (&table[usize::from(digit.unsigned_abs()) / 2], sign)
}

/// Whether d s B + c P + d Q is neutral, for `points` P and Q and `base`, which is d s modulo l.
pub(crate) fn is_neutral(
    points: &[[Element64; 2]; 2],
    halved: &HalvedFactors,
    base: &[u64; 4],
    tables: &BaseTables64,
) -> bool {
    let own_table = |point| -> [Addend; multiples(OWN_BITS)] {
        odd_multiples(Extended::from_affine(point), Extended::addend)
    };
    let own = [own_table(&points[0]), own_table(&points[1])];
    let digits = Digits::new(halved, base);
    let mut sum = Projective::NEUTRAL;
    for digits in digits.at[..digits.top].iter().rev() {
        let mut all = sum.double();
        if *digits != [0; 4] {
            for (table, digit) in own.iter().zip(digits) {
                if *digit != 0 {
                    let (row, sign) = chosen(table, *digit);
                    all = all.extended().add(row, sign);
                }
            }
            for (table, digit) in tables.iter().zip(&digits[2..]) {
                if *digit != 0 {
                    let (row, sign) = chosen(table, *digit);
                    all = all.extended().add_affine(row, sign);
                }
            }
        }
        sum = all.projective();
    }
    sum.is_neutral()
}

/// Calls `put` with the position and the digit of each window of `bits` bits: odd, in size below 2
/// to the power of `bits - 1`. A number in this form has few digits, so sums of points are short.
#[inline(always)]
pub(crate) fn naf_digits<const N: usize>(words: &[u64; N], bits: u32, mut put: impl FnMut(usize, i16)) {
    let (mut left, mut position) = (*words, 0);
    while let Some(word) = left.iter().position(|word| *word != 0) {
        if word > 0 {
            left.copy_within(word.., 0);
            left[N - word..].fill(0);
            position += 64 * word;
        }
        let zeros = left[0].trailing_zeros();
        shift_right(&mut left, zeros);
        position += zeros as usize;
        let window = (left[0] & ((1 << bits) - 1)) as i16;
        let negative = window >> (bits - 1);
        put(position, window - (negative << bits));
        shift_right(&mut left, bits);
        // A carry of a number that fills its words has a position of its own.
        let mut carry = negative != 0;
        for word in &mut left {
            (*word, carry) = word.overflowing_add(u64::from(carry));
        }
        position += bits as usize;
    }
}

/// Shifts right by less than a word.
#[inline(always)]
fn shift_right<const N: usize>(words: &mut [u64; N], by: u32) {
    for n in 0..N {
        let above = if n + 1 < N { words[n + 1] } else { 0 };
        words[n] = ((u128::from(above) << 64 | u128::from(words[n])) >> by) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_odd_small_apart_and_make_the_number() {
        let mut random = fastrand::Rng::with_seed(71);
        for n in 0..2000_u64 {
            let shifts = n % 64;
            let number: u128 = match n {
                0..64 => u128::MAX - u128::from(n),
                64..128 => u128::from(n - 64),
                _ => random.u128(..) >> shifts >> shifts,
            };
            for bits in 2..12 {
                let (mut sum, mut next) = (0_u128, 0);
                naf_digits(&[number as u64, (number >> 64) as u64], bits, |position, digit| {
                    assert!(
                        position >= next && digit % 2 != 0 && digit.abs() < 1 << (bits - 1),
                        "{number:x}"
                    );
                    next = position + bits as usize;
                    let part = i128::from(digit).cast_unsigned();
                    sum = sum.wrapping_add(if position < 128 { part << position } else { 0 });
                });
                assert_eq!(sum, number);
            }
        }
    }
}
