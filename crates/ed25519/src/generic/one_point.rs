//! Points in general registers, for one signature on machines without the lanes. The formulas are
//! those of [`super::point`], and public numbers alone come here.

use super::one_element::OneElement;

/// 2 d (RFC 8032, section 5.1).
const D2: OneElement = OneElement::from_limbs([
    0x6_9b94_26b2_f159,
    0x3_5050_762a_dd7a,
    0x3_cf44_c003_8052,
    0x6_738c_c740_7977,
    0x2_406d_9dc5_6dff,
]);

/// X, Y and Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projective {
    pub(crate) x: OneElement,
    pub(crate) y: OneElement,
    pub(crate) z: OneElement,
}

/// X, Y and Z, and T = X Y / Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended {
    pub(crate) projective: Projective,
    t: OneElement,
}

/// What a doubling or a sum leaves: the factors of the coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    e: OneElement,
    f: OneElement,
    g: OneElement,
    h: OneElement,
}

/// A point, ready to be added: Y - X and Y + X, 2dT and 2Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addend {
    sums: [OneElement; 2],
    t2d: OneElement,
    z2: OneElement,
}

/// The same with Z = 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffineAddend {
    sums: [OneElement; 2],
    t2d: OneElement,
}

/// Whether a point is added or subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus = 0,
    Minus = 1,
}

impl Projective {
    /// The neutral element.
    pub(crate) const NEUTRAL: Self = Self { x: OneElement::ZERO, y: OneElement::ONE, z: OneElement::ONE };

    /// Twice the point.
    #[inline(always)]
    pub(crate) fn double(&self) -> Completed {
        let (xx, yy, zz) = (self.x.square(), self.y.square(), self.z.square());
        let (h, g) = (yy.plus(&xx), yy.minus(&xx));
        let e = self.x.plus(&self.y).square().minus_sum(&h);
        Completed { e, f: zz.plus(&zz).minus_sum(&g), g, h }
    }

    /// Whether this is the neutral element.
    pub(crate) fn is_neutral(&self) -> bool {
        self.x.to_words() == [0; 4] && self.y.sub(&self.z).to_words() == [0; 4]
    }
}

impl Extended {
    /// An affine point.
    pub(crate) fn from_affine([x, y]: &[OneElement; 2]) -> Self {
        Self { projective: Projective { x: *x, y: *y, z: OneElement::ONE }, t: x.mul(y) }
    }

    /// The point, ready to be added.
    #[inline(always)]
    pub(crate) fn addend(&self) -> Addend {
        let Projective { x, y, z } = &self.projective;
        Addend { sums: [y.minus(x), y.plus(x)], t2d: self.t.mul(&D2), z2: z.plus(z) }
    }

    /// The same with Z = 1.
    pub(crate) fn affine_addend(&self) -> AffineAddend {
        let inverse = self.projective.z.public_inverse();
        let (x, y) = (self.projective.x.mul(&inverse), self.projective.y.mul(&inverse));
        AffineAddend { sums: [y.minus(&x), y.plus(&x)], t2d: x.mul(&y).mul(&D2) }
    }

    /// The sum, or the difference.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Addend, sign: Sign) -> Completed {
        self.add_parts(&other.sums, &other.t2d, self.projective.z.mul(&other.z2), sign)
    }

    /// The same.
    #[inline(always)]
    pub(crate) fn add_affine(&self, other: &AffineAddend, sign: Sign) -> Completed {
        self.add_parts(&other.sums, &other.t2d, self.projective.z.plus(&self.projective.z), sign)
    }

    /// The negative point has its sums exchanged, and the negative of T: so F and G are exchanged
    /// too.
    #[inline(always)]
    fn add_parts(&self, sums: &[OneElement; 2], t2d: &OneElement, d: OneElement, sign: Sign) -> Completed {
        let Projective { x, y, .. } = &self.projective;
        let a = y.minus(x).mul(&sums[sign as usize]);
        let b = y.plus(x).mul(&sums[1 - sign as usize]);
        let c = self.t.mul(t2d);
        let both = [d.minus(&c), d.plus(&c)];
        Completed { e: b.minus(&a), f: both[sign as usize], g: both[1 - sign as usize], h: b.plus(&a) }
    }
}

impl Completed {
    /// Without T.
    #[inline(always)]
    pub(crate) fn projective(&self) -> Projective {
        Projective { x: self.e.mul(&self.f), y: self.g.mul(&self.h), z: self.f.mul(&self.g) }
    }

    /// With T.
    #[inline(always)]
    pub(crate) fn extended(&self) -> Extended {
        Extended { projective: self.projective(), t: self.e.mul(&self.h) }
    }
}
