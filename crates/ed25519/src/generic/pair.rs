//! Two points side by side, each with its four coordinates in four lanes: for one signature, whose
//! doublings wait for each other.
//!
//! A step takes the time in which its longest chain of operations ends. So elements are in radix
//! 2^51 here: limbs have a bit to spare, and all carries are computed at once, while those of radix
//! 2^52 (see [`super::field`]) wait for each other. The formulas are those of [`super::point`].

use super::field::{self, Multiply};
use super::field64::Element64;
use crate::lanes::{EightLanes, LANES, Limbs, Mask, Products51};

/// The low 51 bits.
const M51: u64 = (1 << 51) - 1;
/// The prime.
const PRIME: [u64; 5] = [M51 - 18, M51, M51, M51, M51];
/// 2 d (RFC 8032, section 5.1).
const D2: [u64; 5] =
    [0x6_9b94_26b2_f159, 0x3_5050_762a_dd7a, 0x3_cf44_c003_8052, 0x6_738c_c740_7977, 0x2_406d_9dc5_6dff];

/// The lanes of the first coordinate of both points, and so on.
const FIRST: Mask = 0b0001_0001;
const SECOND: Mask = FIRST << 1;
const THIRD: Mask = FIRST << 2;
const FOURTH: Mask = FIRST << 3;

/// The argument of [`Lanes::shuffle_fours`].
const fn order(lanes: [i32; 4]) -> i32 {
    lanes[0] | lanes[1] << 2 | lanes[2] << 4 | lanes[3] << 6
}
/// Neighbors change places.
const SWAPPED: i32 = order([1, 0, 3, 2]);

/// An element of the field in each lane, ready to be multiplied: limbs in radix 2^51, below 2^52.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coordinates<V>(pub(crate) [V; 5]);

/// Columns of at most 64 bits before their carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<V>(pub(crate) [V; 5]);

/// X, Y, T and Z of two points as columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<V>(pub(crate) Columns<V>);

/// The factors of the product that completes a sum or a doubling.
#[derive(Clone, Copy)]
struct HalfDone<V> {
    left: Coordinates<V>,
    right: Coordinates<V>,
}

impl<V: EightLanes> HalfDone<V> {
    #[inline(always)]
    fn complete(&self) -> Pair<V> {
        Pair(Columns::product(&self.left, &self.right))
    }
}

/// Two points that are added to a pair, in four lanes each: Y - X, Y + X, 2dT and 2Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addends<V>(pub(crate) Coordinates<V>);

/// One [`Addends`] in memory, of a single point: limb by limb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Row(pub(crate) [[u64; 4]; 5]);

impl Row {
    /// The neutral element.
    pub(crate) const NEUTRAL: Self = Self([[1, 1, 0, 2], [0; 4], [0; 4], [0; 4], [0; 4]]);
}

impl<V: Products51> Columns<V> {
    #[inline(always)]
    fn product(a: &Coordinates<V>, b: &Coordinates<V>) -> Self {
        Self(V::product_51(&a.0, &b.0))
    }

    /// All carries at once.
    #[inline(always)]
    fn carry(&self) -> Coordinates<V> {
        let z = &self.0;
        let mask = z[0].like(M51);
        let mut out = [mask; 5];
        for k in 0..5 {
            out[k] = z[k].and(mask);
        }
        out[0] = out[0].madd_whole(z[4].shr::<51>(), mask.like(19));
        for k in 1..5 {
            out[k] = out[k].add(z[k - 1].shr::<51>());
        }
        Coordinates(out)
    }
}

impl<V: EightLanes> Columns<V> {
    #[inline(always)]
    fn add(mut self, other: &Self) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].add(other.0[k]);
        }
        self
    }

    /// The difference; `self` is greater in each column.
    #[inline(always)]
    fn sub(mut self, other: &Self) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].sub(other.0[k]);
        }
        self
    }

    #[inline(always)]
    fn shuffle_fours<const ORDER: i32>(mut self) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].shuffle_fours::<ORDER>();
        }
        self
    }

    /// This one in the lanes of `mask`, and `other` elsewhere.
    #[inline(always)]
    fn where_or(mut self, mask: Mask, other: &Self) -> Self {
        for k in 0..5 {
            self.0[k] = V::select(mask, self.0[k], other.0[k]);
        }
        self
    }

    /// The negative value; each column is below that of `times` the prime.
    #[inline(always)]
    fn negated(&self, times: u64) -> Self {
        Self(multiple(self.0[0], times)).sub(self)
    }

    /// In the lanes of `mask` the neighbor minus the value, elsewhere the neighbor plus the
    /// value.
    #[inline(always)]
    fn sums_and_differences(&self, mask: Mask) -> Self {
        self.negated(BIAS).where_or(mask, self).add(&self.shuffle_fours::<SWAPPED>())
    }
}

/// A multiple of the prime that is above every column of a product; twice that is above every
/// difference of two columns.
const BIAS: u64 = 1 << 10;

/// A multiple of the prime in every lane.
#[inline(always)]
fn multiple<V: EightLanes>(like: V, times: u64) -> [V; 5] {
    let rest = like.like(times * PRIME[1]);
    [like.like(times * PRIME[0]), rest, rest, rest, rest]
}

impl<V: EightLanes> Coordinates<V> {
    #[inline(always)]
    fn shuffle_fours<const ORDER: i32>(&self) -> Self {
        Self(Columns(self.0).shuffle_fours::<ORDER>().0)
    }
}

impl<V: Limbs> Coordinates<V> {
    /// The element of one lane.
    #[inline(always)]
    fn lane(&self, lane: usize) -> Element64 {
        let mut limbs = [0; 5];
        for (limb, words) in limbs.iter_mut().zip(self.stored()) {
            *limb = words[lane];
        }
        Element64::from_limbs(limbs)
    }

    /// The limbs in memory.
    #[inline(always)]
    fn stored(&self) -> [[u64; LANES]; 5] {
        let mut limbs = [[0; LANES]; 5];
        for (limb, vector) in limbs.iter_mut().zip(self.0) {
            *limb = vector.store();
        }
        limbs
    }
}

/// Loads four elements for each half.
#[inline(always)]
fn load<V: Limbs>(like: V, halves: &[[Element64; 4]; 2]) -> [V; 5] {
    let (mut lanes, mut columns) = ([[0; LANES]; 5], [like; 5]);
    for (lane, element) in halves.as_flattened().iter().enumerate() {
        for (lanes, limb) in lanes.iter_mut().zip(element.limbs()) {
            lanes[lane] = *limb;
        }
    }
    for (column, lanes) in columns.iter_mut().zip(&lanes) {
        *column = like.load(lanes);
    }
    columns
}

impl<V: Products51> Multiply for Coordinates<V> {
    #[inline(always)]
    fn squares(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = Columns(V::square_51(&self.0)).carry();
        }
        self
    }

    #[inline(always)]
    fn times(self, other: &Self) -> Self {
        Columns::product(&self, other).carry()
    }
}

/// [`field::root_power`] of up to four elements, which take less time in registers of half the
/// width.
#[inline(always)]
pub(crate) fn root_powers<V: EightLanes>(like: V, elements: &mut [Element64]) {
    let like = like.narrow();
    let mut lanes = [[Element64::ZERO; LANES / 2]; 2];
    for (lane, element) in lanes.as_flattened_mut().iter_mut().zip(&*elements) {
        *lane = *element;
    }
    let powers = field::root_power(Coordinates(load(like, &lanes))).stored();
    for (lane, element) in elements.iter_mut().take(LANES / 2).enumerate() {
        let mut limbs = [0; 5];
        for (limb, words) in limbs.iter_mut().zip(&powers) {
            *limb = words[lane];
        }
        *element = Element64::from_limbs(limbs);
    }
}

impl<V: EightLanes> Pair<V> {
    /// Two affine points.
    #[inline(always)]
    pub(crate) fn from_affine(like: V, points: &[[Element64; 2]; 2]) -> Self {
        let [low, high] = points;
        Self(Columns(load(
            like,
            &[
                [low[0], low[1], low[0].mul(&low[1]), Element64::ONE],
                [high[0], high[1], high[0].mul(&high[1]), Element64::ONE],
            ],
        )))
    }

    /// The neutral element twice.
    #[inline(always)]
    pub(crate) fn neutral(like: V) -> Self {
        let zero = like.like(0);
        Self(Columns([like.load(&[0, 1, 0, 1, 0, 1, 0, 1]), zero, zero, zero, zero]))
    }

    /// Twice each point.
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.doubling().complete()
    }

    /// [`Pair::double`] of each pair, side by side.
    #[inline(always)]
    pub(crate) fn double_each<const K: usize>(pairs: &[Self; K]) -> [Self; K] {
        let (mut halves, mut out) = ([pairs[0].doubling(); K], *pairs);
        for k in 1..K {
            halves[k] = pairs[k].doubling();
        }
        for k in 0..K {
            out[k] = halves[k].complete();
        }
        out
    }

    /// A doubling up to the factors of its last product.
    #[inline(always)]
    fn doubling(&self) -> HalfDone<V> {
        // X X, Y Y, Z T and Z Z
        let right = self.0.carry();
        let z = right.shuffle_fours::<{ order([0, 1, 3, 3]) }>();
        let squares = Columns::product(&z, &right);
        // G = YY - XX, H = XX + YY, E = 2 ZT, C = 2 ZZ
        let twice = squares.add(&squares);
        let sums = squares.sums_and_differences(FIRST).where_or(FIRST | SECOND, &twice);
        // F = C - G
        let g = sums.shuffle_fours::<{ order([0, 0, 0, 0]) }>();
        let f = Columns(multiple(g.0[0], 2 * BIAS)).add(&twice).sub(&g);
        let factors = f.where_or(FOURTH, &sums).carry();
        // E F, G H, E H and F G
        let left = factors.shuffle_fours::<{ order([2, 0, 2, 3]) }>();
        HalfDone { left, right: factors.shuffle_fours::<{ order([3, 1, 1, 0]) }>() }
    }

    /// [`Pair::double`], any number of times.
    #[inline(always)]
    pub(crate) fn double_times(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.double();
        }
        self
    }

    /// The sum of each point and its addend.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Addends<V>) -> Self {
        self.addition(other).complete()
    }

    /// [`Pair::add`] of each pair, side by side.
    #[inline(always)]
    pub(crate) fn add_each<const K: usize>(pairs: &[Self; K], others: &[Addends<V>; K]) -> [Self; K] {
        let (mut halves, mut out) = ([pairs[0].addition(&others[0]); K], *pairs);
        for k in 1..K {
            halves[k] = pairs[k].addition(&others[k]);
        }
        for k in 0..K {
            out[k] = halves[k].complete();
        }
        out
    }

    /// A sum up to the factors of its last product.
    #[inline(always)]
    fn addition(&self, other: &Addends<V>) -> HalfDone<V> {
        // (Y - X) (Y' - X'), (Y + X) (Y' + X'), 2d T T' and 2 Z Z'
        let products = Columns::product(&self.sums(), &other.0);
        // E, H, F and G
        let factors = products.sums_and_differences(FIRST | THIRD).carry();
        let left = factors.shuffle_fours::<{ order([0, 3, 0, 2]) }>();
        HalfDone { left, right: factors.shuffle_fours::<{ order([2, 1, 1, 3]) }>() }
    }

    /// Y - X, Y + X, T and Z.
    #[inline(always)]
    fn sums(&self) -> Coordinates<V> {
        self.0.sums_and_differences(FIRST).where_or(FIRST | SECOND, &self.0).carry()
    }

    /// The pair, ready to be added.
    #[inline(always)]
    pub(crate) fn addends(&self) -> Addends<V> {
        let sums = self.sums();
        let mut factors = [sums.0[0]; 5];
        for (n, factor) in factors.iter_mut().enumerate() {
            let (one, two) = if n == 0 { (1, 2) } else { (0, 0) };
            *factor = sums.0[0].load(&[one, one, D2[n], two, one, one, D2[n], two]);
        }
        Addends(Columns::product(&sums, &Coordinates(factors)).carry())
    }

    /// X, Y and Z of the sum of both points.
    #[inline(always)]
    pub(crate) fn sum(&self) -> [Element64; 3] {
        let (mut low, mut high) = (Row::NEUTRAL, Row::NEUTRAL);
        self.addends().store(&mut low, &mut high);
        let sum = self.add(&Addends::load(self.0.0[0], &high, &low)).0.carry();
        [sum.lane(0), sum.lane(1), sum.lane(3)]
    }

    /// Whether the sum of both points is the neutral element: one is the negative of the other.
    #[inline(always)]
    pub(crate) fn is_opposite(&self) -> bool {
        let all = self.0.carry();
        let [x, y, z] = [[all.lane(0), all.lane(4)], [all.lane(1), all.lane(5)], [all.lane(3), all.lane(7)]];
        let [left, right] = [x[0].mul(&z[1]), x[1].mul(&z[0])];
        left.add(&right).to_words() == [0; 4] && y[0].mul(&z[1]).to_words() == y[1].mul(&z[0]).to_words()
    }
}

impl<V: EightLanes> Addends<V> {
    /// A row for each point.
    #[inline(always)]
    pub(crate) fn load(like: V, low: &Row, high: &Row) -> Self {
        let mut limbs = [like; 5];
        for (limb, (low, high)) in limbs.iter_mut().zip(low.0.iter().zip(&high.0)) {
            *limb = like.load_fours(low, high);
        }
        Self(Coordinates(limbs))
    }

    /// As rows.
    #[inline(always)]
    pub(crate) fn store(&self, low: &mut Row, high: &mut Row) {
        for n in 0..5 {
            let words = self.0.0[n].store();
            low.0[n].copy_from_slice(&words[..4]);
            high.0[n].copy_from_slice(&words[4..]);
        }
    }

    /// The negative points in the lanes of `mask`, which has all or none of each four. Not for sums
    /// of addends: limbs become as large as multiplications allow.
    #[inline(always)]
    pub(crate) fn negate_where(&self, mask: Mask) -> Self {
        let columns = Columns(self.0.0);
        let swapped = columns.shuffle_fours::<SWAPPED>().where_or(mask & (FIRST | SECOND), &columns);
        Self(Coordinates(columns.negated(2).where_or(mask & THIRD, &swapped).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field64::{PointDecoder, encode_public};
    use crate::lanes::model::Model;
    use crate::lanes::test_lanes::Interval;
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::{EdwardsPoint, Scalar};

    const LIKE: Model = Model([0; LANES]);

    fn words(point: &EdwardsPoint) -> [u64; 4] {
        std::array::from_fn(|n| u64::from_le_bytes(point.compress().as_bytes().as_chunks().0[n]))
    }

    fn pair(points: &[EdwardsPoint; 2]) -> Pair<Model> {
        let decoding = PointDecoder::new(&points.each_ref().map(words));
        let mut powers = decoding.uv7;
        root_powers(LIKE, &mut powers);
        let decoded = decoding.finish(&powers);
        Pair::from_affine(
            LIKE,
            &decoded.map(|(x, y, valid)| {
                assert!(valid);
                [x, y]
            }),
        )
    }

    /// Whether both points of a pair are these.
    fn assert_points(name: &str, pair: &Pair<Model>, points: &[EdwardsPoint; 2]) {
        let all = pair.0.carry();
        for (half, point) in points.iter().enumerate() {
            let [x, y, t, z] = [0, 1, 2, 3].map(|n| all.lane(4 * half + n));
            assert_eq!(x.mul(&y).to_words(), t.mul(&z).to_words(), "{name}: T");
            let inverse = z.inverse();
            let (x, mut y) = (x.mul(&inverse).to_words(), y.mul(&inverse).to_words());
            y[3] |= x[0] << 63;
            assert_eq!(y, words(point), "{name}: point {half}");
        }
    }

    /// Points of the group of the base point, with torsion, and of small order.
    fn samples() -> Vec<EdwardsPoint> {
        let mut random = fastrand::Rng::with_seed(51);
        let mut all = EIGHT_TORSION.to_vec();
        for n in 0..40 {
            let mut wide = [0; 64];
            random.fill(&mut wide);
            let point = EdwardsPoint::mul_base(&Scalar::from_bytes_mod_order_wide(&wide));
            all.push(if n < 20 { point } else { point + EIGHT_TORSION[n % 8] });
        }
        all
    }

    #[test]
    fn sums_and_doublings_are_those_of_the_curve() {
        let samples = samples();
        for (n, a) in samples.iter().enumerate() {
            let [b, c, d] = [1, 5, 13].map(|step| samples[(n + step) % samples.len()]);
            let (both, others) = (pair(&[*a, b]), pair(&[c, d]));
            assert_points("points", &both, &[*a, b]);
            assert_points("doubled", &both.double().double(), &[a + a + a + a, b + b + b + b]);
            let addends = others.double().addends();
            assert_points("sums", &both.add(&addends), &[a + c + c, b + d + d]);
            assert_points("difference", &both.add(&addends.negate_where(0x0f)), &[a - c - c, b + d + d]);
            assert_points(
                "difference",
                &both.double().add(&addends.negate_where(0xf0)),
                &[a + a + c + c, b + b - d - d],
            );
            let neutral = Pair::<Model>::neutral(LIKE).double();
            assert_points("neutral", &both.add(&neutral.addends()), &[*a, b]);
            assert_points("neutral", &neutral.add(&both.addends()), &[*a, b]);
            let (mut low, mut high) = (Row::NEUTRAL, Row::NEUTRAL);
            assert_points("rows", &both.add(&Addends::load(LIKE, &low, &high)), &[*a, b]);
            addends.store(&mut low, &mut high);
            assert_points("rows", &both.add(&Addends::load(LIKE, &high, &low)), &[a + d + d, b + c + c]);
            assert_eq!(encode_public(&both.double().sum()), words(&(a + a + b + b)));
        }
    }

    #[test]
    fn only_opposite_points_have_the_neutral_sum() {
        let samples = samples();
        for (n, a) in samples.iter().enumerate() {
            let b = samples[(n + 1) % samples.len()];
            assert!(pair(&[*a, -a]).double().is_opposite());
            // The three points whose coordinates agree with those of -a but for a sign or an order,
            // and another.
            let [half, quarter] = [4, 2].map(|order| EIGHT_TORSION[order]);
            for other in [half - a, quarter - a, -quarter - a, *a, a + half, b] {
                let opposite = (a + other) == EIGHT_TORSION[0];
                assert_eq!(pair(&[*a, other]).is_opposite(), opposite, "{n}");
            }
        }
    }

    /// A limb as after carries: the largest one is the first, with 19 times the last carry.
    fn carried() -> Interval {
        Interval::new(0, (1 << 51) + (1 << 17))
    }

    fn assert_carried(columns: &Columns<Interval>) {
        for limb in columns.carry().0 {
            assert!(limb.low >= 0 && limb.high <= carried().high, "{limb:x?}");
        }
    }

    #[test]
    fn bounds_of_sums_and_doublings_hold_forever() {
        let any = Coordinates([carried(); 5]);
        let longest = Coordinates([Interval::new(0, (1 << 52) - 1); 5]);
        // The columns of a pair are always those of a product.
        let pair = Pair(Columns::product(&any, &any));
        let least = BIAS * PRIME[0];
        assert!(pair.0.0.iter().all(|column| column.low >= 0 && column.high < least.into()), "{pair:x?}");
        for limb in Addends(any).negate_where(0).0.0 {
            assert!(limb.low >= 0 && limb.high < 1 << 52, "{limb:x?}");
        }
        for next in
            [pair.double(), pair.add(&Addends(any)), pair.add(&Addends(longest)), pair.add(&pair.addends())]
        {
            assert_carried(&next.0);
            for (next, column) in next.0.0.iter().zip(pair.0.0) {
                assert!(next.low >= 0 && next.high <= column.high, "{next:x?}");
            }
        }
        for sums in [pair.0.sums_and_differences(FIRST), pair.0, Columns(longest.0)] {
            assert_carried(&sums);
        }
        assert!(pair.addends().0.0.iter().all(|limb| limb.high <= carried().high));
    }
}
