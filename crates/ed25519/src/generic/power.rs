//! Powers: inversion, and the root that decoding a point needs. Several chains run in lock step,
//! because a single one waits for its multiplications.

use super::chain::{Multiply, root_power};
use super::field::{D, Element, SQRT_M1};
use super::one_element::OneElement;
use crate::lanes::{Lanes, Mask};

impl<V: Lanes, const K: usize> Multiply for [Element<V>; K] {
    #[inline(always)]
    fn squares(mut self, times: u32) -> Self {
        for _ in 0..times {
            for element in &mut self {
                *element = element.square();
            }
        }
        self
    }

    #[inline(always)]
    fn times(mut self, other: &Self) -> Self {
        for k in 0..K {
            self[k] = self[k].mul(&other[k]);
        }
        self
    }
}

/// The inverse in every lane, and 0 of 0: the product of all lanes is inverted in general
/// registers. A chain of squares in lanes would take several times as long.
///
/// No branch and no address depends on a lane. A lane with 0 takes part as 1, so that it changes no
/// other.
#[inline(always)]
pub(crate) fn inverse<V: Lanes>(z: &Element<V>) -> Element<V> {
    let like = z.0[0];
    let (zero, one) = (Element::small(like, 0), Element::small(like, 1));
    let zeros = z.canonical().equal(&zero);
    let z = Element::select(zeros, &one, z);
    // Of as many neighbors as the name says.
    let of_two = z.mul(&z.turned(1));
    let of_four = of_two.mul(&of_two.turned(2));
    let eight = V::COUNT == 8;
    let of_all = if eight { of_four.mul(&of_four.turned(4)) } else { of_four };
    let inverse = of_lane_0(&of_all).inverse().to_words();
    let inverse = Element::splat(like, &inverse);
    // The inverse of some neighbors' product, times the product of half of them, is the inverse of
    // the other half's.
    let inverse = if eight { inverse.mul(&of_four.turned(4)) } else { inverse };
    let inverse = inverse.mul(&of_two.turned(2));
    Element::select(zeros, &zero, &inverse.mul(&z.turned(1)))
}

/// The element in lane 0.
#[inline(always)]
pub(super) fn of_lane_0<V: Lanes>(element: &Element<V>) -> OneElement {
    let [a, b, c, d] = element.canonical().to_words();
    OneElement::from_words(&[a.store()[0], b.store()[0], c.store()[0], d.store()[0]])
}

/// Decodes `K` times eight encodings (RFC 8032, section 5.1.3), and returns which lanes are points
/// at all.
///
/// x is canonical. As in ed25519-dalek, y may be 2^255 - 19 or more, and x = 0 may have the sign
/// bit.
#[inline(always)]
pub(crate) fn decode<V: Lanes, const K: usize>(words: &[[V; 4]; K]) -> [(Element<V>, Element<V>, Mask); K] {
    let like = words[0][0];
    let one = Element::small(like, 1);
    let (mut y, mut u, mut v) = ([one; K], [one; K], [one; K]);
    for k in 0..K {
        y[k] = Element::from_words(&words[k]);
        let yy = y[k].square().masked();
        u[k] = yy.sub(&one);
        v[k] = yy.mul(&Element::splat(like, &D)).masked().add(&one);
    }
    // x = u v^3 (u v^7)^((p-5)/8), or that times the root of -1
    let v2 = v.squares(1);
    let uv3 = v2.times(&v).times(&u);
    let root = root_power(v2.times(&v2).times(&uv3)).times(&uv3);
    let mut out = [(one, one, 0); K];
    for k in 0..K {
        let (x, valid) = signed_root(&root[k], &u[k], &v[k], words[k][3].negative());
        out[k] = (x, y[k], valid);
    }
    out
}

/// The root of u / v with the wanted parity, from a candidate that is right except for a factor
/// that is a root of ±1.
#[inline(always)]
fn signed_root<V: Lanes>(
    root: &Element<V>,
    u: &Element<V>,
    v: &Element<V>,
    sign: Mask,
) -> (Element<V>, Mask) {
    let square = root.square().mul(v).canonical();
    let u = u.canonical();
    let right = square.equal(&u);
    let turned = square.equal(&u.negate().canonical());
    let other = root.mul(&Element::splat(u.0[0], &SQRT_M1));
    let x = Element::select(right, root, &other).canonical();
    (Element::select(sign ^ x.0[0].odd(), &x.negate().canonical(), &x), right | turned)
}
