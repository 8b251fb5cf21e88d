//! Strict verification of one signature in general registers: d s B - c A - d R by the halved
//! factors of [`super::halving`]. Only for public numbers.

use super::halving::Halved;
use super::naf;
use super::one_element::{Decoded, Decoding, OneElement};
use super::one_point::{Addend, AffineAddend, Extended, Projective, Sign};

/// The bits of a window of c and d.
const OWN_BITS: u32 = 5;
/// The bits of a window of the base point's factor.
const BASE_BITS: u32 = 8;
/// The odd multiples of a point for windows of so many bits.
const fn multiples(bits: u32) -> usize {
    1 << (bits - 2)
}
/// The number of doublings between the base point's two tables.
const BASE_SHIFT: usize = 128;
/// The number of places of digits: the last one is that of a carry.
const PLACES: usize = Halved::BITS as usize + 1;

/// Odd multiples of the base point, and of the base point after [`BASE_SHIFT`] doublings.
pub(crate) type BaseTables = [[AffineAddend; multiples(BASE_BITS)]; 2];

/// Decodes two points: see [`super::one_element::Decoding`].
pub(crate) fn decode(words: &[[u64; 4]; 2]) -> [Decoded; 2] {
    let decoding = Decoding::new(words);
    let powers = [decoding.uv7[0].root_power(), decoding.uv7[1].root_power()];
    decoding.finish(&powers)
}

/// The odd multiples of a point, as `row` has them.
fn odd_multiples<T: Copy, const N: usize>(mut point: Extended, row: impl Fn(&Extended) -> T) -> [T; N] {
    let twice = point.projective.double().extended().addend();
    let mut rows = [row(&point); N];
    for next in &mut rows[1..] {
        point = point.add(&twice, Sign::Plus).extended();
        *next = row(&point);
    }
    rows
}

/// The tables of the base point.
pub(crate) fn base_tables() -> BaseTables {
    let base = Extended::from_affine(&OneElement::BASE);
    let mut shifted = base;
    for _ in 0..BASE_SHIFT {
        shifted = shifted.projective.double().extended();
    }
    [base, shifted].map(|point| odd_multiples(point, Extended::affine_addend))
}

/// The digits at every place: of c, d and both halves of the base point's factor.
struct Digits {
    at: [[i8; 4]; PLACES],
    /// One above the highest place with a digit.
    top: usize,
}

impl Digits {
    fn new(halved: &Halved, base: &[u64; 4]) -> Self {
        let mut this = Self { at: [[0; 4]; PLACES], top: 0 };
        let sign = if halved.negative { -1 } else { 1 };
        naf::digits(&halved.c, OWN_BITS, |place, digit| this.put(0, place, sign * digit));
        naf::digits(&[halved.d as u64, (halved.d >> 64) as u64], OWN_BITS, |place, digit| {
            this.put(1, place, digit);
        });
        naf::digits(&[base[0], base[1]], BASE_BITS, |place, digit| this.put(2, place, digit));
        naf::digits(&[base[2], base[3]], BASE_BITS, |place, digit| this.put(3, place, digit));
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
    points: &[[OneElement; 2]; 2],
    halved: &Halved,
    base: &[u64; 4],
    tables: &BaseTables,
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
