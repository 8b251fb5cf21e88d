//! The steps of strict verification of a group of signatures, one in each lane: s B - k A, compared
//! with R as bytes.

use super::field::Element;
use super::field64::{Decoded64, Element64};
use super::point::{DecodedPoint, has_small_order};
use super::scalar::Scalar;
use super::table::{self, BaseTable, HalvedLanes, KeyTable, OwnSum, OwnTables};
use crate::lanes::{EightLanes, LANES, Lanes, Mask};

/// The state of a group's signatures between two steps.
#[derive(Clone, Copy)]
pub(crate) struct Group<V> {
    /// Encodings of the public keys, R, and S, as little-endian words.
    pub(crate) key: [V; 4],
    pub(crate) r: [V; 4],
    pub(crate) s: Scalar<V>,
    /// SHA-512 of R, A and the message, modulo l.
    pub(crate) k: Scalar<V>,
    /// First -A, with `z` unused, then s B - k A without T.
    pub(crate) x: Element<V>,
    pub(crate) y: Element<V>,
    pub(crate) z: Element<V>,
    /// The product of all `z` of the groups before this one.
    before: Element<V>,
    /// The lanes that have passed each test so far.
    pub(crate) passed: Passed,
}

/// One mask for each test.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// S is below l.
    pub(crate) scalar: Mask,
    /// A is a point.
    pub(crate) point: Mask,
    /// A is not of small order.
    pub(crate) large_key: Mask,
    /// R's y does not belong to a point of small order.
    pub(crate) large_r: Mask,
    /// The equation holds, and R is canonical.
    pub(crate) equation: Mask,
}

impl<V: Lanes> Group<V> {
    /// A group of which nothing is computed yet. One function: copies of it would be written out,
    /// vector by vector, for each array of groups.
    #[inline(never)]
    pub(crate) fn new(like: V) -> Self {
        let (words, scalar, element) = ([like; 4], Scalar([like; 5]), Element([like; 5]));
        Self {
            key: words,
            r: words,
            s: scalar,
            k: scalar,
            x: element,
            y: element,
            z: element,
            before: element,
            passed: Passed::default(),
        }
    }

    /// Takes in the words of S and the digest.
    #[inline(always)]
    pub(crate) fn take_scalars(&mut self, s: &[V; 4], digest: &[V; 8]) {
        self.s = Scalar::from_words(s);
        self.passed.scalar = self.s.is_canonical();
        self.k = Scalar::from_digest(digest);
        self.passed.large_r = !has_small_order(&Element::from_words(&self.r).canonical());
    }

    /// The encoding of -A: the other sign.
    #[inline(always)]
    fn negative_key(&self) -> [V; 4] {
        let mut words = self.key;
        words[3] = words[3].xor(words[3].like(1 << 63));
        words
    }

    /// Takes the result of decoding -A. A lane whose key is not a point continues with the neutral
    /// element (0, 1): the formulas are complete only for points of the curve; for other inputs, a
    /// Z may become 0, which would spoil the inversion that groups share.
    #[inline(always)]
    fn take_key(&mut self, (x, y, valid): DecodedPoint<V>) {
        let like = x.0[0];
        self.x = Element::select(valid, &x, &Element::small(like, 0));
        self.y = Element::select(valid, &y, &Element::small(like, 1));
        self.passed.point = valid;
        self.passed.large_key = !has_small_order(&y.canonical());
    }

    /// Multiplies by tables of the group's own points.
    #[inline(always)]
    pub(crate) fn multiply_own(&mut self, tables: &OwnTables, base: &[&BaseTable; 2], shape: &OwnSum) {
        let sum = table::multiply_own(&self.k, &self.s, tables, base, shape);
        (self.x, self.y, self.z) = (sum.x, sum.y, sum.z);
    }

    /// Multiplies by existing tables of each key.
    #[inline(always)]
    pub(crate) fn multiply_prepared(&mut self, keys: &[[&KeyTable; LANES]], base: &[&BaseTable]) {
        let sum = table::multiply(&self.k, &self.s, keys, base);
        (self.x, self.y, self.z) = (sum.x, sum.y, sum.z);
    }

    /// Whether R encodes the affine point.
    #[inline(always)]
    fn compare(&mut self, x: &Element<V>, y: &Element<V>) {
        let same_y = y.equal(&Element::from_words(&self.r));
        self.passed.equation = same_y & !(x.0[0].odd() ^ self.r[3].negative());
    }

    /// Compares with a decoded R instead. A single group can decode R without extra cost, in the
    /// second chain, which is otherwise idle.
    #[inline(always)]
    pub(crate) fn compare_decoded(&mut self, (x, y, valid): DecodedPoint<V>) {
        let canonical = y.canonical().equal(&Element::from_words(&self.r));
        let same_x = self.x.canonical().equal(&x.mul(&self.z).canonical());
        let same_y = self.y.canonical().equal(&y.mul(&self.z).canonical());
        self.passed.equation = valid & canonical & same_x & same_y;
    }
}

impl<V: EightLanes> Group<V> {
    /// The affine coordinates of one lane's -A.
    #[inline(always)]
    pub(crate) fn affine_point(&self, lane: usize) -> [Element64; 2] {
        let mut point = [Element64::ZERO; 2];
        for (out, element) in point.iter_mut().zip([&self.x, &self.y]) {
            let mut words = [0; 4];
            for (word, vector) in words.iter_mut().zip(element.canonical().to_words()) {
                *word = vector.store()[lane % LANES];
            }
            *out = Element64::from_words(&words);
        }
        point
    }
}

/// Decodes encodings by `decode`, which computes [`decode_points`](super::point::decode_points).
#[inline(always)]
fn decoded<V: Lanes, const K: usize>(
    words: &[[V; 4]; K],
    decode: impl FnOnce(&[[V; 4]; K], &mut [DecodedPoint<V>; K]),
) -> [DecodedPoint<V>; K] {
    let nothing = Element([words[0][0]; 5]);
    let mut points = [(nothing, nothing, 0); K];
    decode(words, &mut points);
    points
}

/// Decodes the keys of `K` groups.
#[inline(always)]
pub(crate) fn decode_keys<V: Lanes, const K: usize>(
    groups: &mut [Group<V>; K],
    decode: impl FnOnce(&[[V; 4]; K], &mut [DecodedPoint<V>; K]),
) {
    let mut words = [groups[0].key; K];
    for k in 0..K {
        words[k] = groups[k].negative_key();
    }
    let points = decoded(&words, decode);
    for (group, point) in groups.iter_mut().zip(&points) {
        group.take_key(*point);
    }
}

/// Decodes the points of signatures with two lanes each ([`HalvedLanes`]). `group.key` has A in the
/// lower half of the lanes, and R in the upper half. `passed.equation` gets the lanes with the
/// canonical encoding of a point.
#[inline(always)]
pub(crate) fn decode_halves<V: Lanes>(
    group: &mut Group<V>,
    decode: impl FnOnce(&[[V; 4]; 1], &mut [DecodedPoint<V>; 1]),
) {
    let [point] = decoded(&[group.negative_key()], decode);
    let canonical = point.1.canonical().equal(&Element::from_words(&group.key));
    group.passed.equation = point.2 & canonical;
    group.take_key(point);
}

/// Decodes the keys of one group, and its R.
#[inline(always)]
pub(crate) fn decode_key_and_r<V: Lanes>(
    group: &mut Group<V>,
    decode: impl FnOnce(&[[V; 4]; 2], &mut [DecodedPoint<V>; 2]),
) -> DecodedPoint<V> {
    let [key, r] = decoded(&[group.negative_key(), group.r], decode);
    group.take_key(key);
    r
}

/// Decodes two points in two lanes, for one signature: a chain of squares in lanes takes less time
/// than two in general registers.
#[inline(always)]
pub(crate) fn decode_pair<V: Lanes>(
    like: V,
    words: &[[u64; 4]; 2],
    decode: impl FnOnce(&[[V; 4]; 1], &mut [DecodedPoint<V>; 1]),
) -> [Decoded64; 2] {
    let mut lanes = [like; 4];
    for n in 0..4 {
        let mut both = [0; LANES];
        (both[0], both[1]) = (words[0][n], words[1][n]);
        lanes[n] = like.load(&both);
    }
    let [(x, _, valid)] = decoded(&[lanes], decode);
    let mut out = [(Element64::ZERO, Element64::ZERO, false); 2];
    for (lane, out) in out.iter_mut().enumerate() {
        let mut x_words = [0; 4];
        for (word, vector) in x_words.iter_mut().zip(x.to_words()) {
            *word = vector.store()[lane];
        }
        *out = (Element64::from_words(&x_words), Element64::from_words(&words[lane]), valid >> lane & 1 == 1);
    }
    out
}

/// Multiplies the points of signatures with two lanes each. Leaves in `passed.equation` those lanes
/// of the lower half whose R is canonical and whose two points have the neutral element as sum.
/// `multiply` computes [`Group::multiply_own`].
#[inline(always)]
pub(crate) fn multiply_halved<V: Lanes>(
    group: &mut Group<V>,
    factors: &HalvedLanes<V>,
    multiply: impl FnOnce(&mut Group<V>, &OwnSum),
) {
    (group.k, group.s) = (Scalar::from_words(&factors.own), Scalar::from_words(&factors.base));
    multiply(group, &OwnSum::halved(factors));
    let half = V::COUNT / 2;
    let (x, y, z) = (group.x.rotated(half), group.y.rotated(half), group.z.rotated(half));
    let x_sum = group.x.mul(&z).add(&x.mul(&group.z)).canonical();
    let y_is_equal = group.y.mul(&z).canonical().equal(&y.mul(&group.z).canonical());
    let is_neutral = x_sum.equal(&Element::small(x.0[0], 0)) & y_is_equal;
    group.passed.equation = group.passed.equation >> half & is_neutral;
}

/// Compares every group with its R, with one inversion for all groups (Montgomery's trick,
/// separately in each lane).
///
/// A Z of 0 in one group would make the product 0, and with it the inverse of every other group in
/// that lane. None is 0: each lane has a sum of multiples of the base point and of the point from
/// [`Group::take_key`]. Both are on the curve, and there the formulas are complete, because d is
/// not a square (Hisil, Wong, Carter, Dawson 2008, section 3).
///
/// `invert` computes [`field::inverse`](super::field::inverse).
#[inline(always)]
pub(crate) fn compare<V: Lanes>(groups: &mut [Group<V>], invert: impl FnOnce(&mut Element<V>)) {
    let [first, ..] = groups else { return };
    let mut product = Element::small(first.z.0[0], 1);
    for group in groups.iter_mut() {
        group.before = product;
        product = product.mul(&group.z);
    }
    let mut inverse = product;
    invert(&mut inverse);
    for group in groups.iter_mut().rev() {
        let own = inverse.mul(&group.before);
        inverse = inverse.mul(&group.z);
        let x = group.x.mul(&own).canonical();
        let y = group.y.mul(&own).canonical();
        group.compare(&x, &y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field::inverse;
    use crate::generic::point::{Point, decode_points};
    use crate::lanes::model::Model;
    use curve25519_dalek::EdwardsPoint;

    const LIKE: Model = Model([0; LANES]);

    /// The words of an encoding, in every lane.
    fn words(bytes: &[u8; 32]) -> [Model; 4] {
        std::array::from_fn(|n| Model([u64::from_le_bytes(bytes.as_chunks().0[n]); LANES]))
    }

    fn element(number: u64) -> Element<Model> {
        Element::small(LIKE, number)
    }

    /// The lanes in which the element is 0.
    fn zero(element: &Element<Model>) -> Mask {
        element.canonical().equal(&self::element(0))
    }

    /// An encoding that is not a point. PointDecoder leaves coordinates whose fourth multiple, by
    /// the formulas for points, has Z = 0.
    const OFF_THE_CURVE: [u8; 32] = [
        0xef, 0x29, 0x45, 0xcc, 0x53, 0x83, 0xc1, 0x54, 0xc6, 0xaf, 0x59, 0x56, 0xa5, 0xd7, 0x2e, 0xdc, 0x9a,
        0xfe, 0x26, 0x30, 0x5e, 0x08, 0xb9, 0x55, 0xb5, 0xae, 0xf9, 0x40, 0x77, 0xb8, 0xe6, 0x08,
    ];

    #[test]
    fn a_key_that_is_no_point_goes_on_as_the_neutral_element() {
        let [(x, y, valid)] = decode_points(&[words(&OFF_THE_CURVE)]);
        let four = Point::from_affine(&x, &y).projective().double().projective().double().projective();
        assert_eq!((valid, zero(&four.z)), (0, Mask::MAX), "what decoding leaves would make Z = 0");

        let mut random = fastrand::Rng::with_seed(13);
        let mut without_a_point = 0;
        for n in 0..200 {
            let mut key = OFF_THE_CURVE;
            if n > 1 {
                random.fill(&mut key);
            }
            key[31] ^= (n as u8) << 7;
            let mut groups = [Group::new(LIKE); 2];
            groups[0].key = words(&key);
            decode_keys(&mut groups, |words, points| *points = decode_points(words));
            let is_point = curve25519_dalek::edwards::CompressedEdwardsY(key).decompress().is_some();
            assert_eq!(groups[0].passed.point, if is_point { Mask::MAX } else { 0 });
            let neutral = zero(&groups[0].x) & zero(&groups[0].y.sub(&element(1)));
            assert_eq!(neutral, if is_point { 0 } else { Mask::MAX }, "{key:x?}");
            without_a_point += u32::from(!is_point);
        }
        assert!(without_a_point > 50);
    }

    /// Whether the sum that a point encodes is accepted as the one that `r` encodes.
    fn accepts(sum: &EdwardsPoint, r: &[u8; 32]) -> bool {
        let mut group = Group::new(LIKE);
        let sum = sum.compress().to_bytes();
        let [(x, y, _)] = decode_points(&[words(&sum)]);
        // With a Z that is not 1.
        (group.x, group.y, group.z) = (x.mul(&element(5)), y.mul(&element(5)), element(5));
        group.r = words(r);
        let [decoded] = decode_points(&[group.r]);
        let mut alone = group;
        alone.compare_decoded(decoded);
        let mut groups = [group; 2];
        compare(&mut groups, |element| *element = inverse(element));
        assert_eq!(alone.passed.equation, groups[1].passed.equation);
        assert!([0, Mask::MAX].contains(&alone.passed.equation));
        alone.passed.equation != 0
    }

    #[test]
    fn r_is_compared_in_all_its_bytes() {
        let sum = EdwardsPoint::mul_base(&7_u64.into());
        let r = sum.compress().to_bytes();
        assert!(accepts(&sum, &r));
        for bit in 0..256 {
            let mut other = r;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!accepts(&sum, &other), "bit {bit}");
        }
        assert!(!accepts(&sum, &OFF_THE_CURVE));
    }

    /// Not every small y belongs to a point. Those that do have a second encoding, which no signer
    /// writes.
    #[test]
    fn an_r_that_is_not_canonical_is_refused() {
        let mut points = 0;
        for y in 2..19_u8 {
            let (mut canonical, mut other) = ([0; 32], [0xff; 32]);
            canonical[0] = y;
            (other[0], other[31]) = (0xed + y, 0x7f);
            if let Some(point) = curve25519_dalek::edwards::CompressedEdwardsY(canonical).decompress() {
                assert!(accepts(&point, &canonical), "{y}");
                assert!(!accepts(&point, &other), "{y}");
                points += 1;
            }
        }
        assert!(points > 3);
    }
}
