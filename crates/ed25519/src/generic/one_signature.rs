//! One signature with all eight lanes: each lane takes a part of the factor, and the parts are summed at the end.

use super::comb::{COUNT, Comb, WINDOWS, chosen};
use super::field::Element;
use super::one_element;
use super::point::{AffineAddend, Completed, Point, Projective};
use super::scalar::Scalar;
use crate::lanes::{EightLanes, LANES};

/// The base point times a nonce that is the same in every lane; the result is in every lane. Lane i takes windows i, i + 8 and so on.
///
/// Nothing branches on the nonce or uses it as an address.
#[inline(always)]
pub(crate) fn multiply_nonce<V: EightLanes>(nonce: &Scalar<V>, comb: &Comb) -> Projective<V> {
    let like = nonce.0[0];
    let windows = nonce.halved_odd();
    let mut sum = Completed::identity(like);
    for (round, rows) in comb.chunks(LANES).enumerate() {
        // With this bound, the compiler sees that the window exists, and adds no call that panics.
        let window = |lane: usize| ((round * LANES + lane) as u32).min(COUNT - 1);
        // A lane without a window subtracts nothing and adds the identity.
        let mut digit = like.like(16);
        for lane in 0..rows.len() {
            digit = V::select(1 << lane, WINDOWS.digit(&windows, window(lane)), digit);
        }
        let negative = !digit.shr::<4>().odd();
        let index = V::select(negative, digit.xor(like.like(15)), digit);
        let (zero, one) = (Element::small(like, 0), Element::small(like, 1));
        let mut row = AffineAddend { plus: one, minus: one, t2d: zero };
        for (lane, rows) in rows.iter().enumerate() {
            row = chosen(index, rows).select_where(1 << lane, &row);
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
        sum = point.add(&point.turned(by).addend(), 0);
    }
    sum
}

impl<V: EightLanes> Point<V> {
    /// Lane i has what lane i + `by` had, modulo the number of lanes.
    #[inline(always)]
    fn turned(&self, by: usize) -> Self {
        let like = self.z.0[0];
        let mut from = [0; LANES];
        for (lane, from) in from.iter_mut().enumerate() {
            *from = ((lane + by) % LANES) as u64;
        }
        let from = like.load(&from);
        Self {
            plus: picked(&self.plus, from),
            minus: picked(&self.minus, from),
            z: picked(&self.z, from),
            t: picked(&self.t, from),
        }
    }
}

/// Each lane gets the value of the lane that `from` names.
#[inline(always)]
fn picked<V: EightLanes>(element: &Element<V>, from: V) -> Element<V> {
    let mut limbs = element.0;
    for limb in &mut limbs {
        let mut row = [0; 2 * LANES];
        row[..LANES].copy_from_slice(&limb.store());
        *limb = from.pick(&row);
    }
    Element(limbs)
}

/// Lane 0 of each vector.
#[inline(always)]
pub(super) fn first<V: EightLanes, const N: usize>(vectors: &[V; N]) -> [u64; N] {
    let mut words = [0; N];
    for (word, vector) in words.iter_mut().zip(vectors) {
        *word = vector.store()[0];
    }
    words
}

/// The encoding of the point in lane 0, as little-endian words.
#[inline(always)]
pub(crate) fn encode<V: EightLanes>(point: &Projective<V>) -> [u64; 4] {
    let x = first(&point.x.canonical().to_words());
    let y = first(&point.y.canonical().to_words());
    one_element::encode(&x, &y, &first(&point.z.canonical().to_words()))
}
