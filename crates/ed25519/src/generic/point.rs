//! Eight points of the curve: extended coordinates, complete formulas for a = -1 (Hisil, Wong, Carter, Dawson 2008).

use super::field::{D2, Element, Wide, bias};
use crate::lanes::{Lanes, Mask};

/// The base point's x (RFC 8032, section 5.1).
const BASE_X: [u64; 5] =
    [0x6_2d60_8f25_d51a, 0x6_0952_5a7b_2c95, 0xd_d6dc_5c69_2cc7, 0x5_3fec_0a4e_231f, 0x0_2169_36d3_cd6e];
/// The base point's y: 4/5.
const BASE_Y: [u64; 5] =
    [0x6_6666_6666_6658, 0x6_6666_6666_6666, 0x6_6666_6666_6666, 0x6_6666_6666_6666, 0x0_6666_6666_6666];

/// The five y of the points whose order divides 8, canonical.
const SMALL_ORDER_Y: [[u64; 5]; 5] = [
    [0, 0, 0, 0, 0],
    [1, 0, 0, 0, 0],
    [0xf_ffff_ffff_ffec, 0xf_ffff_ffff_ffff, 0xf_ffff_ffff_ffff, 0xf_ffff_ffff_ffff, 0x0_7fff_ffff_ffff],
    [0x7_b2c2_8f95_e826, 0xf_289f_4c34_5b02, 0x5_acdf_d5f0_98ef, 0x3_8b13_933c_6d30, 0x0_05fc_536d_8802],
    [0x8_4d3d_706a_17c7, 0x0_d760_b3cb_a4fd, 0xa_5320_2a0f_6710, 0xc_74ec_6cc3_92cf, 0x0_7a03_ac92_77fd],
];

/// A sum of points needs `t` of both; a doubling does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A doubling follows, or nothing: `t` is not computed.
    Doubling,
    /// A sum follows.
    Sum,
}

/// x = X/Z, y = Y/Z, xy = T/Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<V> {
    pub(crate) x: Element<V>,
    pub(crate) y: Element<V>,
    pub(crate) z: Element<V>,
    pub(crate) t: Element<V>,
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
        Self { x: zero, y: one, z: one, t: zero }
    }

    #[inline(always)]
    pub(crate) fn from_affine(x: Element<V>, y: Element<V>) -> Self {
        Self { x, y, z: Element::small(x.0[0], 1), t: x.mul(&y) }
    }

    /// The base point in every lane.
    #[inline(always)]
    pub(crate) fn base(like: V) -> Self {
        Self::from_affine(Element::splat(like, &BASE_X), Element::splat(like, &BASE_Y))
    }

    /// Twice the point.
    #[inline(always)]
    pub(crate) fn double(&mut self, next: Next) {
        let zz = Wide::biased_square(&self.z);
        let b = Wide::biased_square(&self.y);
        let a = Wide::square(&self.x);
        let e = Wide::twice_biased_square(&self.x.masked().add(&self.y.masked()));
        let g = b.sub(&a);
        let f = zz.add(&zz).sub(&g).carry();
        let h = a.add(&b);
        self.finish(&e.sub(&h).carry(), &f, &g.carry(), &h.carry(), next);
    }

    #[inline(always)]
    fn finish(&mut self, e: &Element<V>, f: &Element<V>, g: &Element<V>, h: &Element<V>, next: Next) {
        self.z = f.mul(g);
        self.y = g.mul(h);
        self.x = e.mul(f);
        if next == Next::Sum {
            self.t = e.mul(h);
        }
    }

    /// `self + other`. In lanes of `negated`, which [`Addend::negate_where`] has swapped, 2dT gets its other sign here, where a bias
    /// is at hand.
    #[inline(always)]
    pub(crate) fn add(&mut self, other: &Addend<V>, negated: Mask, next: Next) {
        let d = Wide::biased_product(&self.z, &other.z2);
        self.add_to(&other.plus, &other.minus, &other.t2d, &d, negated, next);
    }

    /// As [`Point::add`].
    #[inline(always)]
    pub(crate) fn add_affine(&mut self, other: &AffineAddend<V>, negated: Mask, next: Next) {
        let z = self.z.masked();
        let z = Wide(z.0);
        let d = Wide(bias(z.0[0])).add(&z).add(&z);
        self.add_to(&other.plus, &other.minus, &other.t2d, &d, negated, next);
    }

    #[inline(always)]
    fn add_to(
        &mut self,
        plus: &Element<V>,
        minus: &Element<V>,
        t2d: &Element<V>,
        d: &Wide<V>,
        negated: Mask,
        next: Next,
    ) {
        let (x, y) = (self.x.masked(), self.y.masked());
        let c = Wide::product(&self.t, t2d).negate_where(negated);
        let a = Wide::product(&y.sub(&x), minus);
        let b = Wide::biased_product(&y.add(&x), plus);
        let f = d.sub(&c).carry();
        let g = d.add(&c).carry();
        let h = b.add(&a).carry();
        let e = b.sub(&a).carry();
        self.finish(&e, &f, &g, &h, next);
    }

    #[inline(always)]
    pub(crate) fn addend(&self) -> Addend<V> {
        let (x, y, z) = (self.x.masked(), self.y.masked(), self.z.masked());
        let t2d = self.t.mul(&Element::splat(x.0[0], &D2));
        Addend { plus: y.add(&x), minus: y.sub(&x), t2d, z2: z.add(&z) }
    }
}

impl<V: Lanes> Addend<V> {
    /// The lanes of `mask` ready to be subtracted: see [`Point::add`].
    #[inline(always)]
    pub(crate) fn negate_where(self, mask: Mask) -> Self {
        let (plus, minus) = swap_where(mask, &self.plus, &self.minus);
        Self { plus, minus, ..self }
    }
}

impl<V: Lanes> AffineAddend<V> {
    /// Of a point in affine coordinates, canonical.
    #[inline(always)]
    pub(crate) fn new(x: &Element<V>, y: &Element<V>) -> Self {
        let t2d = x.mul(y).mul(&Element::splat(x.0[0], &D2));
        Self { plus: y.add(x).canonical(), minus: y.sub(x).canonical(), t2d: t2d.canonical() }
    }

    /// As [`Addend::negate_where`].
    #[inline(always)]
    pub(crate) fn negate_where(self, mask: Mask) -> Self {
        let (plus, minus) = swap_where(mask, &self.plus, &self.minus);
        Self { plus, minus, ..self }
    }
}

#[inline(always)]
fn swap_where<V: Lanes>(mask: Mask, a: &Element<V>, b: &Element<V>) -> (Element<V>, Element<V>) {
    (Element::select(mask, b, a), Element::select(mask, a, b))
}

/// The lanes in which a canonical y is that of a point of small order.
#[inline(always)]
pub(crate) fn has_small_order<V: Lanes>(y: &Element<V>) -> Mask {
    let mut mask = 0;
    for small in &SMALL_ORDER_Y {
        mask |= y.equal(&Element::splat(y.0[0], small));
    }
    mask
}
