//! Points of the curve, one in each lane: extended coordinates, complete formulas for a = -1
//! (Hisil, Wong, Carter, Dawson 2008), and the decoding of points.

use super::field::{Constant, D, D2, Element, Multiply, SQRT_M1, Wide, bias, root_power};
use crate::lanes::{Lanes, Mask};

/// The base point's x (RFC 8032, section 5.1).
const BASE_X: Constant =
    [0xc956_2d60_8f25_d51a, 0x692c_c760_9525_a7b2, 0xc0a4_e231_fdd6_dc5c, 0x2169_36d3_cd6e_53fe];
/// The base point's y: 4/5.
const BASE_Y: Constant =
    [0x6666_6666_6666_6658, 0x6666_6666_6666_6666, 0x6666_6666_6666_6666, 0x6666_6666_6666_6666];

/// The five y coordinates of the points whose order divides 8, canonical.
const SMALL_ORDER_Y: [Constant; 5] = [
    [0, 0, 0, 0],
    [1, 0, 0, 0],
    [0xffff_ffff_ffff_ffec, 0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff],
    [0xb027_b2c2_8f95_e826, 0xf098_eff2_89f4_c345, 0x3933_c6d3_05ac_dfd5, 0x05fc_536d_8802_38b1],
    [0x4fd8_4d3d_706a_17c7, 0x0f67_100d_760b_3cba, 0xc6cc_392c_fa53_202a, 0x7a03_ac92_77fd_c74e],
];

/// A point with x = X/Z, y = Y/Z and xy = T/Z, in the form for a sum: Y + X and Y - X instead of X
/// and Y.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<V> {
    pub(crate) plus: Element<V>,
    pub(crate) minus: Element<V>,
    pub(crate) z: Element<V>,
    pub(crate) t: Element<V>,
}

/// A point in the form for a doubling: X, Y, Z, and X + Y.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projective<V> {
    pub(crate) x: Element<V>,
    pub(crate) y: Element<V>,
    pub(crate) z: Element<V>,
    pub(crate) sum: Element<V>,
}

/// The result of a sum or a doubling: X = EF, Y = GH, Z = FG and T = EH. The next step decides
/// which products, and which sums of them, are computed before their carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed<V> {
    e: Element<V>,
    f: Element<V>,
    g: Element<V>,
    h: Element<V>,
}

/// A point prepared to be added: Y + X, Y - X, 2dT, and 2Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addend<V> {
    pub(crate) plus: Element<V>,
    pub(crate) minus: Element<V>,
    pub(crate) t2d: Element<V>,
    pub(crate) z2: Element<V>,
}

/// An [`Addend`] with Z = 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffineAddend<V> {
    pub(crate) plus: Element<V>,
    pub(crate) minus: Element<V>,
    pub(crate) t2d: Element<V>,
}

impl<V: Lanes> Point<V> {
    #[inline(always)]
    pub(crate) fn identity(like: V) -> Self {
        let (zero, one) = (Element::small(like, 0), Element::small(like, 1));
        Self { plus: one, minus: one, z: one, t: zero }
    }

    #[inline(always)]
    pub(crate) fn from_affine(x: &Element<V>, y: &Element<V>) -> Self {
        Self { plus: y.add(x), minus: y.sub(x), z: Element::small(x.0[0], 1), t: x.mul(y) }
    }

    /// The base point in every lane.
    #[inline(always)]
    pub(crate) fn base(like: V) -> Self {
        Self::from_affine(&Element::splat(like, &BASE_X), &Element::splat(like, &BASE_Y))
    }

    /// The same point; every coordinate is doubled.
    #[inline(always)]
    pub(crate) fn projective(&self) -> Projective<V> {
        Projective {
            x: self.plus.sub(&self.minus),
            y: self.plus.add(&self.minus),
            z: self.z.add(&self.z),
            sum: self.plus.add(&self.plus),
        }
    }

    /// `self + other`. In lanes of `negated`, Y + X and Y - X are already swapped, and 2dT is
    /// negated here, where a bias is available.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Addend<V>, negated: Mask) -> Completed<V> {
        let d = Wide::biased_product(&self.z, &other.z2);
        self.add_to(&other.plus, &other.minus, &other.t2d, &d, negated)
    }

    /// Like [`Point::add`].
    #[inline(always)]
    pub(crate) fn add_affine(&self, other: &AffineAddend<V>, negated: Mask) -> Completed<V> {
        let z = self.z.wide();
        let d = Wide(bias(z.0[0])).add(&z).add(&z);
        self.add_to(&other.plus, &other.minus, &other.t2d, &d, negated)
    }

    #[inline(always)]
    fn add_to(
        &self,
        plus: &Element<V>,
        minus: &Element<V>,
        t2d: &Element<V>,
        d: &Wide<V>,
        negated: Mask,
    ) -> Completed<V> {
        let c = Wide::product(&self.t, t2d).negate_where(negated);
        let a = Wide::product(&self.minus, minus);
        let b = Wide::biased_product(&self.plus, plus);
        Completed { e: b.sub(&a).carry(), f: d.sub(&c).carry(), g: d.add(&c).carry(), h: b.add(&a).carry() }
    }

    #[inline(always)]
    pub(crate) fn addend(&self) -> Addend<V> {
        let t2d = self.t.mul(&Element::splat(self.t.0[0], &D2));
        Addend { plus: self.plus, minus: self.minus, t2d, z2: self.z.add(&self.z) }
    }
}

impl<V: Lanes> Projective<V> {
    #[inline(always)]
    pub(crate) fn new(x: Element<V>, y: Element<V>, z: Element<V>) -> Self {
        Self { x, y, z, sum: x.add(&y) }
    }

    /// Twice the point.
    #[inline(always)]
    pub(crate) fn double(&self) -> Completed<V> {
        let zz = Wide::biased_square(&self.z);
        let b = Wide::biased_square(&self.y);
        let a = Wide::square(&self.x);
        let e = Wide::twice_biased_square(&self.sum);
        let g = b.sub(&a);
        let f = zz.add(&zz).sub(&g).carry();
        let h = a.add(&b);
        Completed { e: e.sub(&h).carry(), f, g: g.carry(), h: h.carry() }
    }
}

impl<V: Lanes> Completed<V> {
    #[inline(always)]
    pub(crate) fn identity(like: V) -> Self {
        let (zero, one) = (Element::small(like, 0), Element::small(like, 1));
        Self { e: zero, f: one, g: one, h: one }
    }

    /// X and Y before their carries; Y has a bias.
    #[inline(always)]
    fn x_and_y(&self) -> (Wide<V>, Wide<V>) {
        (Wide::product(&self.e, &self.f), Wide::biased_product(&self.g, &self.h))
    }

    /// The form for a doubling.
    #[inline(always)]
    pub(crate) fn projective(&self) -> Projective<V> {
        let (x, y) = self.x_and_y();
        Projective { x: x.carry(), y: y.carry(), z: self.f.mul(&self.g), sum: y.add(&x).carry() }
    }

    /// The form for a sum.
    #[inline(always)]
    pub(crate) fn point(&self) -> Point<V> {
        let (x, y) = self.x_and_y();
        Point {
            plus: y.add(&x).carry(),
            minus: y.sub(&x).carry(),
            z: self.f.mul(&self.g),
            t: self.e.mul(&self.h),
        }
    }

    /// [`Point::add_affine`] of [`Completed::point`], whose Z is not carried: nothing multiplies
    /// it.
    #[inline(always)]
    pub(crate) fn add_affine(&self, other: &AffineAddend<V>, negated: Mask) -> Self {
        let z = Wide::biased_product(&self.f, &self.g);
        self.point().add_to(&other.plus, &other.minus, &other.t2d, &z.add(&z), negated)
    }

    /// The form for adding it to others.
    #[inline(always)]
    pub(crate) fn addend(&self) -> Addend<V> {
        let (x, y) = self.x_and_y();
        let z = Wide::product(&self.f, &self.g);
        let t2d = self.e.mul(&self.h).mul(&Element::splat(self.e.0[0], &D2));
        Addend { plus: y.add(&x).carry(), minus: y.sub(&x).carry(), t2d, z2: z.add(&z).carry() }
    }
}

impl<V: Lanes> Addend<V> {
    /// Prepares the lanes of `mask` to be subtracted: see [`Point::add`].
    #[inline(always)]
    pub(crate) fn swap_where(&self, mask: Mask) -> Self {
        Self {
            plus: Element::select(mask, &self.minus, &self.plus),
            minus: Element::select(mask, &self.plus, &self.minus),
            ..*self
        }
    }
}

impl<V: Lanes> AffineAddend<V> {
    /// A point from canonical affine coordinates.
    #[inline(always)]
    pub(crate) fn new(x: &Element<V>, y: &Element<V>) -> Self {
        let t2d = x.mul(y).mul(&Element::splat(x.0[0], &D2));
        Self { plus: y.add(x).canonical(), minus: y.sub(x).canonical(), t2d: t2d.canonical() }
    }

    /// Lane i of this one where bit i of `mask` is set, else of `other`.
    #[inline(always)]
    pub(crate) fn select_where(&self, mask: Mask, other: &Self) -> Self {
        Self {
            plus: Element::select(mask, &self.plus, &other.plus),
            minus: Element::select(mask, &self.minus, &other.minus),
            t2d: Element::select(mask, &self.t2d, &other.t2d),
        }
    }

    /// Like [`Addend::swap_where`].
    #[inline(always)]
    pub(crate) fn swap_where(&self, mask: Mask) -> Self {
        Self {
            plus: Element::select(mask, &self.minus, &self.plus),
            minus: Element::select(mask, &self.plus, &self.minus),
            t2d: self.t2d,
        }
    }
}

/// The lanes in which a canonical y belongs to a point of small order.
#[inline(always)]
pub(crate) fn has_small_order<V: Lanes>(y: &Element<V>) -> Mask {
    let mut mask = 0;
    for small in &SMALL_ORDER_Y {
        mask |= y.equal(&Element::splat(y.0[0], small));
    }
    mask
}

/// x and y of a decoded point in each lane, and the lanes whose encodings are points.
pub(crate) type DecodedPoint<V> = (Element<V>, Element<V>, Mask);

/// Decodes `K` encodings in each lane (RFC 8032, section 5.1.3).
///
/// x is canonical. As in ed25519-dalek, y may be 2^255 - 19 or more, and x = 0 may have the sign
/// bit.
#[inline(always)]
pub(crate) fn decode_points<V: Lanes, const K: usize>(words: &[[V; 4]; K]) -> [DecodedPoint<V>; K] {
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
    let rotated = square.equal(&u.negate().canonical());
    let other = root.mul(&Element::splat(u.0[0], &SQRT_M1));
    let x = Element::select(right, root, &other).canonical();
    (Element::select(sign ^ x.0[0].odd(), &x.negate().canonical(), &x), right | rotated)
}
