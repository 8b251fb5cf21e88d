//! The steps of strict verification of eight signatures: s B - k A, compared with R as bytes.

use super::alone;
use super::field::Element;
use super::point::has_small_order;
use super::power;
use super::scalar::Scalar;
use super::table::{self, BaseTable, KeyTable, OwnTables, TABLES_ALONE};
use crate::lanes::{LANES, Lanes, Mask};

/// What is known of eight signatures between two steps.
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
    /// Which lanes have not failed which test.
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
    /// R's y is not that of a point of small order.
    pub(crate) large_r: Mask,
    /// The equation holds, and R is canonical.
    pub(crate) equation: Mask,
}

impl<V: Lanes> Group<V> {
    /// A group of which nothing is known.
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

    #[inline(always)]
    fn take_key(&mut self, (x, y, valid): (Element<V>, Element<V>, Mask)) {
        (self.x, self.y) = (x, y);
        self.passed.point = valid;
        self.passed.large_key = !has_small_order(&y.canonical());
    }

    /// Multiplies by tables of the group's own keys.
    #[inline(always)]
    pub(crate) fn multiply_own(&mut self, keys: &OwnTables, base: &BaseTable) {
        let sum = table::multiply_own(&self.k, &self.s, keys, base);
        (self.x, self.y, self.z) = (sum.x, sum.y, sum.z);
    }

    /// Multiplies by tables of each key that are there already.
    #[inline(always)]
    pub(crate) fn multiply_prepared<const S: usize>(
        &mut self,
        keys: &[[&KeyTable; LANES]; S],
        base: &[&BaseTable; S],
    ) {
        let sum = table::multiply(&self.k, &self.s, keys, base);
        (self.x, self.y, self.z) = (sum.x, sum.y, sum.z);
    }

    /// The same for one signature in lane 0, and compares with R: [`alone::multiply`].
    #[inline(always)]
    pub(crate) fn multiply_alone(
        &mut self,
        keys: &[KeyTable; TABLES_ALONE],
        base: &[&BaseTable; TABLES_ALONE],
    ) {
        let encoding = alone::encode(&alone::multiply(&self.k, &self.s, keys, base));
        self.passed.equation = Mask::from(encoding == alone::first(&self.r));
    }

    /// Whether the affine point is the one that R encodes.
    #[inline(always)]
    fn compare(&mut self, x: &Element<V>, y: &Element<V>) {
        let same_y = y.equal(&Element::from_words(&self.r));
        self.passed.equation = same_y & !(x.0[0].odd() ^ self.r[3].negative());
    }

    /// Compares with a decoded R instead, which a single group can have at the price of its idle second chain.
    #[inline(always)]
    pub(crate) fn compare_decoded(&mut self, (x, y, valid): (Element<V>, Element<V>, Mask)) {
        let canonical = y.canonical().equal(&Element::from_words(&self.r));
        let same_x = self.x.canonical().equal(&x.mul(&self.z).canonical());
        let same_y = self.y.canonical().equal(&y.mul(&self.z).canonical());
        self.passed.equation = valid & canonical & same_x & same_y;
    }
}

/// Decodes the keys of `K` groups.
#[inline(always)]
pub(crate) fn decode_keys<V: Lanes, const K: usize>(groups: &mut [Group<V>; K]) {
    let mut words = [groups[0].key; K];
    for k in 0..K {
        words[k] = groups[k].negative_key();
    }
    for (group, decoded) in groups.iter_mut().zip(power::decode(&words)) {
        group.take_key(decoded);
    }
}

/// Decodes the keys of one group, and its R.
#[inline(always)]
pub(crate) fn decode_key_and_r<V: Lanes>(group: &mut Group<V>) -> (Element<V>, Element<V>, Mask) {
    let [key, r] = power::decode(&[group.negative_key(), group.r]);
    group.take_key(key);
    r
}

/// Compares every group with its R: one inversion for all (Montgomery's trick, each lane for itself). Z is never 0: the formulas are
/// complete.
#[inline(always)]
pub(crate) fn compare<V: Lanes>(groups: &mut [Group<V>]) {
    let [first, ..] = groups else { return };
    let mut product = Element::small(first.z.0[0], 1);
    for group in groups.iter_mut() {
        group.before = product;
        product = product.mul(&group.z);
    }
    let mut inverse = power::inverse(&product);
    for group in groups.iter_mut().rev() {
        let own = inverse.mul(&group.before);
        inverse = inverse.mul(&group.z);
        let x = group.x.mul(&own).canonical();
        let y = group.y.mul(&own).canonical();
        group.compare(&x, &y);
    }
}
