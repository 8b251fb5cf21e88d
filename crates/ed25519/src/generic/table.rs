//! Tables of multiples in memory, one row per multiple, and sums of rows that each lane
//! chooses separately.

use super::field::Element;
use super::point::{Addend, AffineAddend, Completed, Point, Projective};
use super::scalar::{Scalar, Windows};
use crate::lanes::{LANES, Lanes, Mask, Staged};

/// An [`Addend`] of one lane: the limbs of its elements in their order.
pub(crate) type Row = [u64; 20];
/// An [`AffineAddend`] of one lane, on two cache lines; the last word is unused.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct AffineRow(pub(crate) [u64; 16]);

impl AffineRow {
    /// A row before it is filled.
    pub(crate) const EMPTY: Self = Self([0; 16]);
}

/// Multiples 0 to 16 of eight points, one point per lane, as vectors. They are used for one group
/// and then dropped.
pub(crate) type OwnTables = [[Staged; 4]; 17];
/// Multiples 0 to 16 of one point.
pub(crate) type KeyTable = [Row; 17];
/// Multiples 0 to 512 of one fixed point.
pub(crate) type BaseTable = [AffineRow; 513];

/// A key's table before it is filled.
pub(crate) const EMPTY_KEY_TABLE: KeyTable = [[0; 20]; 17];
/// [`OwnTables`] before they are filled.
pub(crate) static EMPTY_OWN_TABLES: OwnTables = [[Staged::EMPTY; 4]; 17];

/// Digits of the factor of A: -16 to 15.
pub(crate) const KEY_WINDOWS: Windows = Windows { bits: 5, count: 51 };
/// Digits of the factor of the base point: -512 to 511; the top one is not signed, because its
/// window is not full.
pub(crate) const BASE_WINDOWS: Windows = Windows { bits: 10, count: 25 };

/// The rows of one sum, on their way to the vectors: each lane's row is copied word by word, lane
/// by lane, long before it is loaded. So the copies do not use the ports that the multiplier and
/// shuffles share.
pub(super) struct StagedRows<const N: usize> {
    elements: [Staged; N],
    digits: [u64; LANES],
    /// The lanes whose row is subtracted: their first two elements are already swapped.
    pub(super) negated: Mask,
}

impl<const N: usize> StagedRows<N> {
    pub(super) const EMPTY: Self = Self { elements: [Staged::EMPTY; N], digits: [0; LANES], negated: 0 };

    /// The digits that choose the rows.
    #[inline(always)]
    pub(super) fn choose<V: Lanes>(&mut self, digit: V) {
        self.digits = digit.store();
        self.negated = digit.negative();
    }

    /// Copies the row of one lane; `word` has limb `n` of element `e` of multiple `m`, which is at
    /// most `most`: that saves bounds checks.
    #[inline(always)]
    pub(super) fn stage<V: Lanes>(
        &mut self,
        _: V,
        lane: usize,
        most: usize,
        word: impl Fn(usize, usize, usize) -> u64,
    ) {
        let digit = self.digits[lane].cast_signed();
        let multiple = (digit.unsigned_abs() as usize).min(most);
        let swapped = usize::from(digit < 0);
        for e in 0..N {
            let from = if e < 2 { e ^ swapped } else { e };
            for n in 0..5 {
                V::put(&mut self.elements[e].0[n][lane], word(multiple, from, n));
            }
        }
    }

    /// An element of the row in every lane.
    #[inline(always)]
    fn element<V: Lanes>(&self, like: V, n: usize) -> Element<V> {
        let mut limbs = [like; 5];
        for (limb, words) in limbs.iter_mut().zip(&self.elements[n].0) {
            *limb = like.load(words);
        }
        Element(limbs)
    }
}

impl StagedRows<4> {
    #[inline(always)]
    pub(super) fn addend<V: Lanes>(&self, like: V) -> Addend<V> {
        Addend {
            plus: self.element(like, 0),
            minus: self.element(like, 1),
            t2d: self.element(like, 2),
            z2: self.element(like, 3),
        }
    }
}

impl StagedRows<3> {
    #[inline(always)]
    fn addend<V: Lanes>(&self, like: V) -> AffineAddend<V> {
        AffineAddend { plus: self.element(like, 0), minus: self.element(like, 1), t2d: self.element(like, 2) }
    }
}

/// One pair of words of a row for every lane.
#[inline(always)]
fn pair<V: Lanes, const N: usize>(like: V, rows: &[&[u64; N]; LANES], n: usize) -> [V; 2] {
    let mut from = [&[0; 2]; LANES];
    for lane in 0..V::COUNT {
        from[lane] = &rows[lane].as_chunks().0[n];
    }
    like.gather(from)
}

/// The absolute value of a signed digit in every lane, at most `most`, which saves the look-up its
/// bounds check.
#[inline(always)]
fn sizes<V: Lanes>(digit: V, most: usize) -> [usize; LANES] {
    let sizes = digit.negate_where(digit.negative()).store();
    let mut out = [0; LANES];
    for lane in 0..V::COUNT {
        out[lane] = (sizes[lane] as usize).min(most);
    }
    out
}

/// The multiple `digit` of its table for every lane, ready for [`Point::add`].
#[inline(always)]
fn key_multiple<V: Lanes>(tables: &[&KeyTable; LANES], digit: V) -> Addend<V> {
    let size = sizes(digit, 16);
    let mut rows = [&tables[0][0]; LANES];
    for lane in 0..V::COUNT {
        rows[lane] = &tables[lane][size[lane]];
    }
    let mut all = [[digit; 2]; 10];
    for (n, both) in all.iter_mut().enumerate() {
        *both = pair(digit, &rows, n);
    }
    let [plus, minus, t2d, z2] = elements(&all);
    Addend { plus, minus, t2d, z2 }.swap_where(digit.negative())
}

/// The multiple `digit` of the one table for every lane, ready for [`Point::add_affine`].
#[inline(always)]
fn base_multiple<V: Lanes>(table: &BaseTable, digit: V) -> AffineAddend<V> {
    let size = sizes(digit, 512);
    let mut rows = [&table[0].0; LANES];
    for lane in 0..V::COUNT {
        rows[lane] = &table[size[lane]].0;
    }
    let mut all = [[digit; 2]; 10];
    for (n, both) in all.iter_mut().enumerate().take(8) {
        *both = pair(digit, &rows, n);
    }
    let [plus, minus, t2d, _] = elements(&all);
    AffineAddend { plus, minus, t2d }.swap_where(digit.negative())
}

/// The limbs of elements as pairs: those of `elements[0]` first.
#[inline(always)]
pub(crate) fn pairs<V: Lanes>(elements: [&Element<V>; 4]) -> [[V; 2]; 10] {
    let mut pairs = [[elements[0].0[0]; 2]; 10];
    for n in 0..20 {
        pairs[n / 2][n % 2] = elements[n / 5].0[n % 5];
    }
    pairs
}

/// The elements of limbs as pairs: the reverse of [`pairs`].
#[inline(always)]
pub(crate) fn elements<V: Lanes>(pairs: &[[V; 2]; 10]) -> [Element<V>; 4] {
    let mut elements = [Element([pairs[0][0]; 5]); 4];
    for n in 0..20 {
        elements[n / 5].0[n % 5] = pairs[n / 2][n % 2];
    }
    elements
}

#[inline(always)]
fn put<V: Lanes>(tables: &mut OwnTables, multiple: usize, addend: &Addend<V>) {
    let elements = [&addend.plus, &addend.minus, &addend.t2d, &addend.z2];
    for (staged, element) in tables[multiple].iter_mut().zip(elements) {
        for (words, limb) in staged.0.iter_mut().zip(element.0) {
            *words = limb.store();
        }
    }
}

/// Copies the multiples of each point into a table that is kept.
#[inline(always)]
pub(crate) fn scatter<V: Lanes>(like: V, own: &OwnTables, tables: &mut [KeyTable; LANES]) {
    for (multiple, elements) in own.iter().enumerate() {
        for n in 0..10 {
            let limb = |n: usize| like.load(&elements[n / 5].0[n % 5]);
            for (table, words) in tables.iter_mut().zip(V::scatter([limb(2 * n), limb(2 * n + 1)])) {
                table[multiple].as_chunks_mut().0[n] = words;
            }
        }
    }
}

/// Multiples 0 to 16 of eight points.
#[inline(always)]
pub(crate) fn fill<V: Lanes>(point: &Point<V>, tables: &mut OwnTables) {
    put(tables, 0, &Point::identity(point.z.0[0]).addend());
    let base = point.addend();
    put(tables, 1, &base);
    let mut points = [point.projective(); 9];
    for half in 1..=8 {
        let doubled = points[half].double();
        put(tables, 2 * half, &doubled.addend());
        if half <= 4 {
            points[2 * half] = doubled.projective();
        }
        if half < 8 {
            let sum = doubled.point().add(&base, 0);
            put(tables, 2 * half + 1, &sum.addend());
            if half < 4 {
                points[2 * half + 1] = sum.projective();
            }
        }
    }
}

/// Doubles the point `doublings` times; at least once.
#[inline(always)]
pub(crate) fn double_times<V: Lanes>(mut point: Projective<V>, doublings: u32) -> Completed<V> {
    let mut left = doublings;
    loop {
        let sum = point.double();
        if left <= 1 {
            return sum;
        }
        left -= 1;
        point = sum.projective();
    }
}

/// Consecutive multiples of a point, from `first` on, as rows of a table: one for each lane.
/// `advance` adds the point to it once, and `invert` computes
/// [`field::inverse`](super::field::inverse).
#[inline(always)]
pub(crate) fn next_rows<V: Lanes>(
    first: &mut Point<V>,
    advance: impl Fn(&mut Point<V>),
    invert: impl FnOnce(&mut Element<V>),
) -> [AffineRow; LANES] {
    let like = first.z.0[0];
    let mut limbs = [[[0; LANES]; 5]; 3];
    for lane in 0..V::COUNT {
        let point = first.projective();
        for (limbs, element) in limbs.iter_mut().zip([&point.x, &point.y, &point.z]) {
            for (limb, vector) in limbs.iter_mut().zip(element.masked().0) {
                limb[lane] = vector.store()[lane];
            }
        }
        advance(first);
    }
    let mut elements = [first.z; 3];
    for (element, limbs) in elements.iter_mut().zip(&limbs) {
        for (limb, lanes) in element.0.iter_mut().zip(limbs) {
            *limb = like.load(lanes);
        }
    }
    let [x, y, mut inverse] = elements;
    invert(&mut inverse);
    affine_rows(&AffineAddend::new(&x.mul(&inverse), &y.mul(&inverse)))
}

/// An addend of each lane as a row.
#[inline(always)]
pub(crate) fn affine_rows<V: Lanes>(addend: &AffineAddend<V>) -> [AffineRow; LANES] {
    let mut rows = [AffineRow::EMPTY; LANES];
    // The last element is a placeholder for a fourth one, which rows do not have.
    for (n, pair) in
        pairs([&addend.plus, &addend.minus, &addend.t2d, &addend.t2d]).into_iter().take(8).enumerate()
    {
        for (row, words) in rows.iter_mut().zip(V::scatter(pair)) {
            row.0.as_chunks_mut().0[n] = words;
        }
    }
    rows
}

/// The factors of the points of half as many signatures as there are lanes: see
/// [`super::halving`]. A signature has a lane in the lower half of the lanes, with -A, and one in
/// the upper half, with -R.
pub(crate) struct HalvedLanes<V> {
    /// |c| and d, as little-endian words.
    pub(crate) own: [V; 4],
    /// d s modulo l, in both lanes. The lower lane takes its lower half.
    pub(crate) base: [V; 4],
    /// The lanes in which c is negative.
    pub(crate) negative: Mask,
    /// The number of bits of the longest c or d.
    pub(crate) bits: u32,
}

/// The number of windows of half of the base point's factor.
const HALF_BASE_WINDOWS: u32 = base_step(2);

/// The shape of a sum of multiples of a group's own points and of the base point.
pub(crate) struct OwnSum {
    /// The first window of the own points' factors.
    top: u32,
    /// The lanes in which those factors are negative.
    negated: Mask,
    /// The number of the base point's windows in the lower half of the lanes. The upper half has
    /// the windows `upper` places above them.
    base_windows: u32,
    upper: u32,
}

impl OwnSum {
    /// Whole factors in each lane.
    pub(crate) const WHOLE: Self =
        Self { top: KEY_WINDOWS.count - 1, negated: 0, base_windows: BASE_WINDOWS.count + 1, upper: 0 };

    /// Halved factors. The upper half of the lanes takes the base point after as many doublings as
    /// [`HALF_BASE_WINDOWS`] have bits.
    pub(crate) fn halved<V>(factors: &HalvedLanes<V>) -> Self {
        // The digit above the top window is a carry, unless that window has a bit to spare.
        let top = (factors.bits + 1) / KEY_WINDOWS.bits;
        Self {
            top: top.clamp(2 * (HALF_BASE_WINDOWS - 1), KEY_WINDOWS.count - 1),
            negated: factors.negative,
            base_windows: HALF_BASE_WINDOWS,
            upper: HALF_BASE_WINDOWS,
        }
    }

    /// Whether a stop adds a multiple of the base point.
    #[inline(always)]
    fn has_base(&self, at: u32) -> bool {
        at.is_multiple_of(2) && at < 2 * self.base_windows
    }

    /// The digits of the base point's factor for a stop.
    #[inline(always)]
    fn base_digit<V: Lanes>(&self, s: &Scalar<V>, at: u32) -> V {
        let upper = BASE_WINDOWS.digit(s, at / 2 + self.upper);
        V::select(lower_half::<V>(), BASE_WINDOWS.digit(s, at / 2), upper)
    }
}

/// The lower half of the lanes.
#[inline(always)]
const fn lower_half<V: Lanes>() -> Mask {
    (1 << (V::COUNT / 2)) - 1
}

/// The sum of the multiples of a group's own points by the digits of `k`, and of the base point by
/// those of `s`. The lower half of the lanes takes the first table of the base point, and the upper
/// half the second one.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "tables and digits of a lane have the same index")]
pub(crate) fn multiply_own<V: Lanes>(
    k: &Scalar<V>,
    s: &Scalar<V>,
    points: &OwnTables,
    base: &[&BaseTable; 2],
    shape: &OwnSum,
) -> Projective<V> {
    const STEPS: usize = KEY_WINDOWS.bits as usize - 1;
    let at_once = V::COUNT / STEPS;
    let (k, s) = (k.with_windows(KEY_WINDOWS), s.with_windows(BASE_WINDOWS));
    let like = k.0[0];
    let mut bases = [base[0]; LANES];
    bases[V::COUNT / 2..].fill(base[1]);
    let (mut key, mut other) = (StagedRows::<4>::EMPTY, StagedRows::<3>::EMPTY);
    let mut sum = Completed::identity(like);
    let mut at = shape.top;
    loop {
        let with_base = shape.has_base(at);
        key.choose(KEY_WINDOWS.digit(&k, at).negate_where(shape.negated));
        if with_base {
            other.choose(shape.base_digit(&s, at));
        }
        // Copy a few lanes during each doubling, so that there is room for the stores, and they are
        // long done when the sums load them.
        let mut point = sum.projective();
        let first = at == shape.top;
        for step in 0..STEPS {
            #[allow(clippy::needless_range_loop, reason = "the lane is also a place in the vectors")]
            for lane in at_once * step..at_once * (step + 1) {
                key.stage(like, lane, 16, |multiple, e, n| points[multiple][e].0[n][lane]);
                if with_base {
                    other.stage(like, lane, 512, |multiple, e, n| bases[lane][multiple].0[5 * e + n]);
                }
            }
            if !first {
                point = point.double().projective();
            }
        }
        if !first {
            sum = point.double();
        }
        sum = sum.point().add(&key.addend(like), key.negated);
        if with_base {
            sum = sum.add_affine(&other.addend(like), other.negated);
        }
        if at == 0 {
            return sum.projective();
        }
        at -= 1;
        if shape.has_base(at) {
            prefetch_rows(shape.base_digit(&s, at), &bases);
        }
    }
}

/// k A + s B by some tables of each key, and as many of the base point: table j holds multiples of
/// its point doubled as often as `j` times [`key_step`] or [`base_step`] windows have bits.
#[inline(always)]
pub(crate) fn multiply<V: Lanes>(
    k: &Scalar<V>,
    s: &Scalar<V>,
    keys: &[[&KeyTable; LANES]],
    base: &[&BaseTable],
) -> Projective<V> {
    let of_tables = (key_step(keys.len()), base_step(keys.len()));
    let (k, s) = (k.with_windows(KEY_WINDOWS), s.with_windows(BASE_WINDOWS));
    let mut sum = Completed::identity(k.0[0]);
    let mut at = of_tables.0.max(2 * of_tables.1 - 1) - 1;
    loop {
        for (j, tables) in keys.iter().enumerate() {
            let window = at + j as u32 * of_tables.0;
            if window < KEY_WINDOWS.count {
                let digit = KEY_WINDOWS.digit(&k, window);
                sum = sum.point().add(&key_multiple(tables, digit), digit.negative());
            }
        }
        if at.is_multiple_of(2) {
            for (j, table) in base.iter().enumerate() {
                let window = at / 2 + j as u32 * of_tables.1;
                if window <= BASE_WINDOWS.count {
                    let digit = BASE_WINDOWS.digit(&s, window);
                    sum = sum.add_affine(&base_multiple(table, digit), digit.negative());
                }
            }
        }
        if at == 0 {
            return sum.projective();
        }
        at -= 1;
        prefetch((&k, &s), (keys, base), of_tables, at);
        sum = double_times(sum.projective(), KEY_WINDOWS.bits);
    }
}

/// Prefetches the rows for a stop of [`multiply`] while the sum is doubled: the tables of many keys
/// do not fit into near caches.
#[inline(always)]
fn prefetch<V: Lanes>(
    (k, s): (&Scalar<V>, &Scalar<V>),
    (keys, base): (&[[&KeyTable; LANES]], &[&BaseTable]),
    (key_step, base_step): (u32, u32),
    at: u32,
) {
    for (j, tables) in keys.iter().enumerate() {
        let window = at + j as u32 * key_step;
        if window < KEY_WINDOWS.count {
            prefetch_rows(KEY_WINDOWS.digit(k, window), tables);
        }
    }
    if !at.is_multiple_of(2) {
        return;
    }
    for (j, table) in base.iter().enumerate() {
        let window = at / 2 + j as u32 * base_step;
        if window <= BASE_WINDOWS.count {
            prefetch_rows(BASE_WINDOWS.digit(s, window), &[*table; LANES]);
        }
    }
}

/// Prefetches the multiple `digit` of its table for every lane.
#[inline(always)]
fn prefetch_rows<V: Lanes, T, const ROWS: usize>(digit: V, tables: &[&[T; ROWS]; LANES]) {
    let size = sizes(digit, ROWS - 1);
    for lane in 0..V::COUNT {
        digit.prefetch(&tables[lane][size[lane]]);
    }
}

/// How many windows of a key's factor each of `tables` tables covers.
pub(crate) const fn key_step(tables: usize) -> u32 {
    KEY_WINDOWS.count.div_ceil(tables as u32)
}

/// How many windows of the base point's factor each of `tables` tables covers.
pub(crate) const fn base_step(tables: usize) -> u32 {
    (BASE_WINDOWS.count + 1).div_ceil(tables as u32)
}
