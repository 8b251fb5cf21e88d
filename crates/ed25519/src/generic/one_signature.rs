//! One signature with all eight lanes: each lane takes a part of the factor, and the parts are
//! summed at the end.

use super::comb::{COUNT, Comb, WINDOWS, chosen};
use super::field::Element;
use super::one_element;
use super::point::{AffineAddend, Completed, Point, Projective};
use super::power::of_lane_0;
use super::scalar::Scalar;
use crate::lanes::{EightLanes, LANES};

/// The base point times a nonce that is the same in every lane; the result is in every lane. Lane i
/// takes windows i, i + 8 and so on.
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
        let turned = Point {
            plus: point.plus.turned(by),
            minus: point.minus.turned(by),
            z: point.z.turned(by),
            t: point.t.turned(by),
        };
        sum = point.add(&turned.addend(), 0);
    }
    sum
}

/// The encoding of the point in lane 0, as little-endian words.
#[inline(always)]
pub(crate) fn encode<V: EightLanes>(point: &Projective<V>) -> [u64; 4] {
    one_element::encode(&[of_lane_0(&point.x), of_lane_0(&point.y), of_lane_0(&point.z)])
}
