//! Tables of multiples in memory, one row a multiple, and sums of rows that each lane chooses for itself.

use super::field::Element;
use super::point::{Addend, AffineAddend, Next, Point};
use super::power;
use super::scalar::{Scalar, Windows};
use crate::lanes::{LANES, Lanes};

/// An [`Addend`] of one lane: pairs of limbs as [`pair`] orders them, so that one load of 16 bytes a lane fetches two limbs.
pub(crate) type Row = [[u64; 2]; 10];
/// An [`AffineAddend`] of one lane, on two lines of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct AffineRow(pub(crate) [[u64; 2]; 8]);

/// Multiples 0 to 16 of one point.
pub(crate) type KeyTable = [Row; 17];
/// Multiples 0 to 512 of one point that is known beforehand.
pub(crate) type BaseTable = [AffineRow; 513];

/// What a key's table has before it is filled.
pub(crate) const EMPTY_KEY_TABLE: KeyTable = [[[0; 2]; 10]; 17];

/// Digits of the factor of A: -16 to 15.
pub(crate) const KEY_WINDOWS: Windows = Windows { bits: 5, count: 51 };
/// Digits of the factor of the base point: -512 to 511; the top one is not signed, since its window is not full.
pub(crate) const BASE_WINDOWS: Windows = Windows { bits: 10, count: 25 };

/// The limbs of an addend in the order of rows.
#[inline(always)]
fn pairs<V: Lanes>(a: &Addend<V>) -> [[V; 2]; 10] {
    let (p, m, t, z) = (&a.plus.0, &a.minus.0, &a.t2d.0, &a.z2.0);
    [
        [p[0], p[1]],
        [p[2], p[3]],
        [m[0], m[1]],
        [m[2], m[3]],
        [t[0], t[1]],
        [t[2], t[3]],
        [z[0], z[1]],
        [z[2], z[3]],
        [p[4], m[4]],
        [t[4], z[4]],
    ]
}

/// One pair of limbs of a row for every lane.
#[inline(always)]
fn pair<V: Lanes, const N: usize>(like: V, rows: &[&[[u64; 2]; N]; LANES], n: usize) -> [V; 2] {
    let r = rows;
    like.gather([&r[0][n], &r[1][n], &r[2][n], &r[3][n], &r[4][n], &r[5][n], &r[6][n], &r[7][n]])
}

#[inline(always)]
fn load<V: Lanes>(like: V, rows: &[&Row; LANES]) -> Addend<V> {
    let [p0, p1] = pair(like, rows, 0);
    let [p2, p3] = pair(like, rows, 1);
    let [m0, m1] = pair(like, rows, 2);
    let [m2, m3] = pair(like, rows, 3);
    let [t0, t1] = pair(like, rows, 4);
    let [t2, t3] = pair(like, rows, 5);
    let [z0, z1] = pair(like, rows, 6);
    let [z2, z3] = pair(like, rows, 7);
    let [p4, m4] = pair(like, rows, 8);
    let [t4, z4] = pair(like, rows, 9);
    Addend {
        plus: Element([p0, p1, p2, p3, p4]),
        minus: Element([m0, m1, m2, m3, m4]),
        t2d: Element([t0, t1, t2, t3, t4]),
        z2: Element([z0, z1, z2, z3, z4]),
    }
}

#[inline(always)]
fn load_affine<V: Lanes>(like: V, rows: &[&[[u64; 2]; 8]; LANES]) -> AffineAddend<V> {
    let [p0, p1] = pair(like, rows, 0);
    let [p2, p3] = pair(like, rows, 1);
    let [m0, m1] = pair(like, rows, 2);
    let [m2, m3] = pair(like, rows, 3);
    let [t0, t1] = pair(like, rows, 4);
    let [t2, t3] = pair(like, rows, 5);
    let [p4, m4] = pair(like, rows, 6);
    let [t4, _] = pair(like, rows, 7);
    AffineAddend {
        plus: Element([p0, p1, p2, p3, p4]),
        minus: Element([m0, m1, m2, m3, m4]),
        t2d: Element([t0, t1, t2, t3, t4]),
    }
}

/// The size of a signed digit in every lane; no more than `most`, which saves the look-up its test of bounds.
#[inline(always)]
fn sizes<V: Lanes>(digit: V, most: usize) -> [usize; LANES] {
    let sizes = digit.negate_where(digit.negative()).store();
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = (sizes[lane] as usize).min(most);
    }
    out
}

/// The multiple `digit` of its table for every lane, ready for [`Point::add`].
#[inline(always)]
pub(crate) fn key_multiple<V: Lanes>(tables: &[&KeyTable; LANES], digit: V) -> Addend<V> {
    let size = sizes(digit, 16);
    let mut rows = [&tables[0][0]; LANES];
    for lane in 0..LANES {
        rows[lane] = &tables[lane][size[lane]];
    }
    load(digit, &rows).negate_where(digit.negative())
}

/// The multiple `digit` of the one table for every lane, ready for [`Point::add_affine`].
#[inline(always)]
fn base_multiple<V: Lanes>(table: &BaseTable, digit: V) -> AffineAddend<V> {
    let size = sizes(digit, 512);
    let mut rows = [&table[0].0; LANES];
    for lane in 0..LANES {
        rows[lane] = &table[size[lane]].0;
    }
    load_affine(digit, &rows).negate_where(digit.negative())
}

/// Multiples 0 to 16 of eight points, one table a lane.
#[inline(always)]
pub(crate) fn fill_key_tables<V: Lanes>(point: &Point<V>, tables: &mut [KeyTable; LANES]) {
    #[inline(always)]
    fn put<V: Lanes>(tables: &mut [KeyTable; LANES], entry: usize, addend: &Addend<V>) {
        for (n, pair) in pairs(addend).into_iter().enumerate() {
            for (table, words) in tables.iter_mut().zip(V::scatter(pair)) {
                table[entry][n] = words;
            }
        }
    }
    put(tables, 0, &Point::identity(point.x.0[0]).addend());
    let base = point.addend();
    put(tables, 1, &base);
    let mut points = [*point; 9];
    for half in 1..=8 {
        let mut multiple = points[half];
        multiple.double(Next::Sum);
        put(tables, 2 * half, &multiple.addend());
        if half <= 4 {
            points[2 * half] = multiple;
        }
        if half < 8 {
            multiple.add(&base, 0, Next::Sum);
            put(tables, 2 * half + 1, &multiple.addend());
            if half < 4 {
                points[2 * half + 1] = multiple;
            }
        }
    }
}

/// `doublings` times twice the point, ready for a sum.
#[inline(always)]
pub(crate) fn double_times<V: Lanes>(point: &mut Point<V>, doublings: u32) {
    for _ in 1..doublings {
        point.double(Next::Doubling);
    }
    point.double(Next::Sum);
}

/// Eight consecutive multiples of a point, from `first` on, as rows of a table: `first` is moved on by eight times `step`.
#[inline(always)]
pub(crate) fn eight_rows<V: Lanes>(first: &mut Point<V>, step: &Addend<V>) -> [AffineRow; LANES] {
    let like = first.x.0[0];
    let mut limbs = [[[0; LANES]; 5]; 3];
    for lane in 0..LANES {
        for (limbs, element) in limbs.iter_mut().zip([&first.x, &first.y, &first.z]) {
            for (limb, vector) in limbs.iter_mut().zip(element.masked().0) {
                limb[lane] = vector.store()[lane];
            }
        }
        first.add(step, 0, Next::Sum);
    }
    let mut elements = [first.x; 3];
    for (element, limbs) in elements.iter_mut().zip(&limbs) {
        for (limb, lanes) in element.0.iter_mut().zip(limbs) {
            *limb = like.load(lanes);
        }
    }
    let [x, y, z] = elements;
    let inverse = power::inverse(&z);
    let addend = AffineAddend::new(&x.mul(&inverse).masked(), &y.mul(&inverse).masked());
    affine_rows(&addend)
}

/// An addend of each lane as a row.
#[inline(always)]
pub(crate) fn affine_rows<V: Lanes>(addend: &AffineAddend<V>) -> [AffineRow; LANES] {
    let (p, m, t) = (&addend.plus.0, &addend.minus.0, &addend.t2d.0);
    let pairs = [
        [p[0], p[1]],
        [p[2], p[3]],
        [m[0], m[1]],
        [m[2], m[3]],
        [t[0], t[1]],
        [t[2], t[3]],
        [p[4], m[4]],
        [t[4], t[4].like(0)],
    ];
    let mut rows = [AffineRow([[0; 2]; 8]); LANES];
    for (n, pair) in pairs.into_iter().enumerate() {
        for (row, words) in rows.iter_mut().zip(V::scatter(pair)) {
            row.0[n] = words;
        }
    }
    rows
}

/// k A + s B by `S` tables of each key and of the base point: table j holds multiples of its point doubled as often as
/// `j` times [`key_step`] or [`base_step`] windows have bits.
#[inline(always)]
pub(crate) fn multiply<V: Lanes, const S: usize>(
    k: &Scalar<V>,
    s: &Scalar<V>,
    keys: &[[&KeyTable; LANES]; S],
    base: &[&BaseTable; S],
) -> Point<V> {
    let (k, s) = (k.with_windows(KEY_WINDOWS), s.with_windows(BASE_WINDOWS));
    let mut sum = Point::identity(k.0[0]);
    let mut at = stops(S) - 1;
    loop {
        let (key_digit, base_digit) = (KEY_WINDOWS.digit(&k, at), BASE_WINDOWS.digit(&s, at / 2));
        // Looked up before the last doubling, so that the loads pass beside its products.
        let key = key_multiple(&keys[0], key_digit);
        let other = base_multiple(base[0], base_digit);
        if at + 1 < stops(S) {
            sum.double(Next::Sum);
        }
        let after_keys = if at.is_multiple_of(2) { Next::Sum } else { Next::Doubling };
        sum.add(&key, key_digit.negative(), if S > 1 { Next::Sum } else { after_keys });
        for (j, tables) in keys.iter().enumerate().skip(1) {
            let window = at + j as u32 * key_step(S);
            if window < KEY_WINDOWS.count {
                let digit = KEY_WINDOWS.digit(&k, window);
                let last = j + 1 == S;
                let next = if last { after_keys } else { Next::Sum };
                sum.add(&key_multiple(tables, digit), digit.negative(), next);
            }
        }
        if at.is_multiple_of(2) {
            sum.add_affine(&other, base_digit.negative(), if S > 1 { Next::Sum } else { Next::Doubling });
            for (j, table) in base.iter().enumerate().skip(1) {
                let window = at / 2 + j as u32 * base_step(S);
                if window <= BASE_WINDOWS.count {
                    let digit = BASE_WINDOWS.digit(&s, window);
                    let next = if j + 1 == S { Next::Doubling } else { Next::Sum };
                    sum.add_affine(&base_multiple(table, digit), digit.negative(), next);
                }
            }
        }
        if at == 0 {
            return sum;
        }
        at -= 1;
        for _ in 1..KEY_WINDOWS.bits {
            sum.double(Next::Doubling);
        }
    }
}

/// How many windows of a key's factor one of `tables` tables serves.
pub(crate) const fn key_step(tables: usize) -> u32 {
    KEY_WINDOWS.count.div_ceil(tables as u32)
}

/// How many windows of the base point's factor one of `tables` tables serves.
pub(crate) const fn base_step(tables: usize) -> u32 {
    (BASE_WINDOWS.count + 1).div_ceil(tables as u32)
}

/// How many times the sum pauses for look-ups: every five doublings.
const fn stops(tables: usize) -> u32 {
    let (key, base) = (key_step(tables), 2 * base_step(tables) - 1);
    if key > base { key } else { base }
}
