//! The steps of eight signatures, or of one with all eight lanes. No branch and no address depends
//! on a nonce or a key: rows of the table are chosen by permutations of whole rows, signs by masks.

use super::field::{self, Element, lane_0};
use super::field64;
use super::point::{AffineAddend, Completed, Point, Projective};
use super::scalar::{Scalar, Windows};
use crate::lanes::{EightLanes, LANES};

/// The number of windows of a nonce.
const NONCE_WINDOWS: u32 = 51;
/// Windows of five bits, which give odd digits from -31 to 31. No digit is 0, and half a table is
/// enough.
const NONCE_DIGITS: Windows = Windows { bits: 5, count: 0 };

/// For each window, the odd multiples 1, 3, ... 31 of the base point times 32^window. The words are
/// those of [`AffineRow`](super::table::AffineRow); the sixteen multiples of each word are side by
/// side.
pub(crate) type Comb = [[[u64; 16]; 15]; NONCE_WINDOWS as usize];

/// The row that `index` chooses, separately in every lane.
#[inline(always)]
fn select_row<V: EightLanes>(index: V, row: &[[u64; 16]; 15]) -> AffineAddend<V> {
    let mut words = [index; 15];
    for n in 0..15 {
        words[n] = index.look_up(&row[n]);
    }
    let element = |n: usize| Element([words[n], words[n + 1], words[n + 2], words[n + 3], words[n + 4]]);
    AffineAddend { plus: element(0), minus: element(5), t2d: element(10) }
}

/// Eight unfinished signatures.
#[derive(Clone, Copy)]
pub(crate) struct Signing<V> {
    /// The secret scalars of the keys, as little-endian words.
    pub(crate) key: [V; 4],
    /// The nonces.
    nonce: Scalar<V>,
    /// X, Y and Z of R.
    point: Projective<V>,
    /// The product of the Z of all groups before this one.
    before: Element<V>,
    /// R, as little-endian words.
    pub(crate) r: [V; 4],
    /// S, as little-endian words.
    pub(crate) s: [V; 4],
}

impl<V: EightLanes> Signing<V> {
    /// Signatures of which nothing is computed yet.
    pub(crate) fn new(like: V) -> Self {
        let (words, scalar, element) = ([like; 4], Scalar([like; 5]), Element([like; 5]));
        let point = Projective { x: element, y: element, z: element, sum: element };
        Self { key: words, nonce: scalar, point, before: element, r: words, s: words }
    }

    /// The nonce from its digest, and its multiple of the base point.
    #[inline(always)]
    pub(crate) fn multiply(&mut self, digest: &[V; 8], comb: &Comb) {
        self.nonce = Scalar::from_digest(digest);
        let windows = self.nonce.halved_odd();
        let mut sum = Completed::identity(digest[0]);
        for (window, row) in comb.iter().enumerate() {
            let digit = NONCE_DIGITS.digit(&windows, window as u32);
            let negative = !digit.shr::<4>().odd();
            let index = V::select(negative, digit.xor(digit.like(15)), digit);
            sum = sum.add_affine(&select_row(index, row).swap_where(negative), negative);
        }
        self.point = sum.projective();
    }

    /// Like [`Signing::multiply`], for one digest that is in every lane.
    #[inline(always)]
    pub(crate) fn multiply_one(&mut self, digest: &[V; 8], comb: &Comb) {
        self.nonce = Scalar::from_digest(digest);
        self.point = multiply_in_parts(&self.nonce, comb);
    }

    /// R of the point in lane 0.
    #[inline(always)]
    pub(crate) fn encode_one(&self) -> [u64; 4] {
        encode_lane_0(&self.point)
    }

    /// S from the digest of R, A and the message.
    #[inline(always)]
    pub(crate) fn finish(&mut self, digest: &[V; 8]) {
        let key = Scalar::from_words(&self.key);
        self.s = Scalar::from_digest(digest).multiply_add(&key, &self.nonce).to_words();
    }
}

/// Encodes R of every group from its point, with one inversion for all.
#[inline(always)]
pub(crate) fn encode<V: EightLanes>(all: &mut [Signing<V>]) {
    let [first, ..] = all else { return };
    let mut product = Element::small(first.point.z.0[0], 1);
    for signing in all.iter_mut() {
        signing.before = product;
        product = product.mul(&signing.point.z);
    }
    let mut inverse = field::inverse(&product);
    for signing in all.iter_mut().rev() {
        let own = inverse.mul(&signing.before);
        inverse = inverse.mul(&signing.point.z);
        let x = signing.point.x.mul(&own).canonical();
        signing.r = signing.point.y.mul(&own).canonical().to_words();
        signing.r[3] = signing.r[3].or(x.0[0].shl::<63>());
    }
}

/// The base point times a nonce that is the same in every lane; the result is in every lane. Lane i
/// takes windows i, i + 8 and so on.
///
/// Nothing branches on the nonce or uses it as an address.
#[inline(always)]
fn multiply_in_parts<V: EightLanes>(nonce: &Scalar<V>, comb: &Comb) -> Projective<V> {
    let like = nonce.0[0];
    let windows = nonce.halved_odd();
    let mut sum = Completed::identity(like);
    for (round, rows) in comb.chunks(LANES).enumerate() {
        // With this bound, the compiler sees that the window exists, and adds no call that panics.
        let window = |lane: usize| ((round * LANES + lane) as u32).min(NONCE_WINDOWS - 1);
        // A lane without a window subtracts nothing and adds the identity.
        let mut digit = like.like(16);
        for lane in 0..rows.len() {
            digit = V::select(1 << lane, NONCE_DIGITS.digit(&windows, window(lane)), digit);
        }
        let negative = !digit.shr::<4>().odd();
        let index = V::select(negative, digit.xor(like.like(15)), digit);
        let (zero, one) = (Element::small(like, 0), Element::small(like, 1));
        let mut row = AffineAddend { plus: one, minus: one, t2d: zero };
        for (lane, rows) in rows.iter().enumerate() {
            row = select_row(index, rows).select_where(1 << lane, &row);
        }
        sum = sum.add_affine(&row.swap_where(negative), negative);
    }
    sum_of_lanes(sum).projective()
}

/// The sum of the points of all lanes, in every lane.
#[inline(always)]
fn sum_of_lanes<V: EightLanes>(mut sum: Completed<V>) -> Completed<V> {
    for by in [4, 2, 1] {
        let point = sum.point();
        let rotated = Point {
            plus: point.plus.rotated(by),
            minus: point.minus.rotated(by),
            z: point.z.rotated(by),
            t: point.t.rotated(by),
        };
        sum = point.add(&rotated.addend(), 0);
    }
    sum
}

/// The encoding of the point in lane 0, as little-endian words.
#[inline(always)]
fn encode_lane_0<V: EightLanes>(point: &Projective<V>) -> [u64; 4] {
    field64::encode(&[lane_0(&point.x), lane_0(&point.y), lane_0(&point.z)])
}
