//! Strict verification of one signature under a key with four tables, as two sums side by side ([`super::pair`]).

use super::one_signature::{digits, first};
use super::pair::{Addends, Pair, Row};
use super::scalar::Scalar;
use super::table::{BASE_WINDOWS, BaseTable, KEY_WINDOWS, KeyTable, TABLES_ALONE, stops};
use crate::lanes::{LANES, Lanes, Mask};

/// 2 Z of a row that has Z = 1.
const TWO: [u64; 5] = [2, 0, 0, 0, 0];

/// The encoding of k A + s B, with four tables of the key and four of the base point: see [`super::table::multiply`]. The factors come from lane 0.
///
/// Two sums stand side by side: the lower four lanes have the first two tables of both points, the upper four the last two.
#[inline(always)]
pub(crate) fn multiply_prepared<V: Lanes>(
    k: &Scalar<V>,
    s: &Scalar<V>,
    key: &[KeyTable; TABLES_ALONE],
    base: &[&BaseTable; TABLES_ALONE],
) -> [u64; 4] {
    const HALF: usize = TABLES_ALONE / 2;
    let like = k.0[0];
    let (k, s) = (first(&k.with_windows(KEY_WINDOWS).0), first(&s.with_windows(BASE_WINDOWS).0));
    let mut sum = Pair::neutral(like);
    let mut at = stops(TABLES_ALONE) - 1;
    loop {
        let digits = digits(&k, &s, at);
        for part in 0..HALF {
            let row = |part: usize, size: usize| Row::new(&key[part][size.min(16)]);
            sum = sum.add(&addends(like, &digits, [part, part + HALF], row));
        }
        if at.is_multiple_of(2) {
            for part in TABLES_ALONE..TABLES_ALONE + HALF {
                let row = |part: usize, size: usize| {
                    let mut words = [0; 20];
                    words[..15].copy_from_slice(&base[part - TABLES_ALONE][size.min(512)].0[..15]);
                    words[15..].copy_from_slice(&TWO);
                    Row::new(&words)
                };
                sum = sum.add(&addends(like, &digits, [part, part + HALF], row));
            }
        }
        if at == 0 {
            return sum.encoded_sum();
        }
        at -= 1;
        for _ in 0..KEY_WINDOWS.bits {
            sum = sum.double();
        }
    }
}

/// The rows that two of the digits choose.
#[inline(always)]
fn addends<V: Lanes>(
    like: V,
    digits: &[u64; LANES],
    parts: [usize; 2],
    row: impl Fn(usize, usize) -> Row,
) -> Addends<V> {
    let [low, high] = parts.map(|part| digits[part].cast_signed());
    let rows =
        [(parts[0], low), (parts[1], high)].map(|(part, digit)| row(part, digit.unsigned_abs() as usize));
    let negative = |digit: i64, lanes: Mask| if digit < 0 { lanes } else { 0 };
    Addends::load(like, &rows[0], &rows[1]).negate_where(negative(low, 0x0f) | negative(high, 0xf0))
}
