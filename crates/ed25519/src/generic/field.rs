//! Eight elements of the field of 2^255 - 19, in radix 2^52.

use crate::lanes::{Lanes, M47, M52, Mask};

/// The constant d of the curve (RFC 8032, section 5.1).
pub(crate) const D: [u64; 5] =
    [0xb_4dca_1359_78a3, 0x4_d414_1d8a_b75e, 0x7_79e8_9800_700a, 0xf_e738_cc74_0797, 0x0_5203_6cee_2b6f];
/// 2 d.
pub(crate) const D2: [u64; 5] =
    [0x6_9b94_26b2_f159, 0x9_a828_3b15_6ebd, 0xe_f3d1_3000_e014, 0xf_ce71_98e8_0f2e, 0x0_2406_d9dc_56df];
/// A square root of -1.
pub(crate) const SQRT_M1: [u64; 5] =
    [0xe_1b27_4a0e_a0b0, 0x0_6ad2_fe47_8c4e, 0xd_fbd7_a72f_4318, 0xd_f0b2_b4d0_0993, 0x0_2b83_2480_4fc1];

/// 640 * 32 times the prime, with limbs greater than any column of a folded product. Adding it first keeps differences of
/// columns from becoming negative.
pub(crate) const BIAS: [u64; 5] = [640 * (M52 - 607), 640 * M52, 640 * M52, 640 * M52, 640 * M52];

/// Eight field elements, ready to be multiplied.
///
/// The value is the sum of `(limb k mod 2^52) 2^(52 k)` for k below 4, and limb 4, which is below 2^47 + 2^17: carries ensure this bound, and it
/// keeps the last column of a product so small that one multiply-add folds it. The bits of limbs 0 to 3 above bit 52 were already added to the
/// next limb, and multiply-adds ignore them. [`Element::masked`] clears them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<V>(pub(crate) [V; 5]);

/// Eight sums of columns before their carries: limbs of up to 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<V>(pub(crate) [V; 5]);

impl<V: Lanes> Wide<V> {
    /// The product, added to 0.
    #[inline(always)]
    pub(crate) fn product(a: &Element<V>, b: &Element<V>) -> Self {
        Self(V::product(&a.0, &b.0, [a.0[0].like(0); 5]))
    }

    /// The product, added to [`BIAS`].
    #[inline(always)]
    pub(crate) fn biased_product(a: &Element<V>, b: &Element<V>) -> Self {
        Self(V::product(&a.0, &b.0, bias(a.0[0])))
    }

    /// The square, added to 0.
    #[inline(always)]
    pub(crate) fn square(a: &Element<V>) -> Self {
        Self(V::square(&a.0, [a.0[0].like(0); 5]))
    }

    /// The square, added to [`BIAS`].
    #[inline(always)]
    pub(crate) fn biased_square(a: &Element<V>) -> Self {
        let half = a.0[0].like(BIAS[1] / 2);
        Self(V::square(&a.0, [a.0[0].like(BIAS[0]), half, half, half, half]))
    }

    /// The square, added to twice [`BIAS`].
    #[inline(always)]
    pub(crate) fn twice_biased_square(a: &Element<V>) -> Self {
        let bias = a.0[0].like(BIAS[1]);
        Self(V::square(&a.0, [a.0[0].like(2 * BIAS[0]), bias, bias, bias, bias]))
    }

    /// Carries, and folds the part above 2^255 back as 19 times its value.
    ///
    /// Top limb below 2^47 + 2^17.
    #[inline(always)]
    pub(crate) fn carry(self) -> Element<V> {
        Element(V::carry(self.0))
    }

    /// Column-wise sum.
    #[inline(always)]
    pub(crate) fn add(mut self, other: &Self) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].add(other.0[k]);
        }
        self
    }

    /// Column-wise difference. `self` must have a bias that keeps it from becoming negative.
    #[inline(always)]
    pub(crate) fn sub(mut self, other: &Self) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].sub(other.0[k]);
        }
        self
    }

    /// Negates the lanes of `mask` column by column. The value that this is added to must have a bias.
    #[inline(always)]
    pub(crate) fn negate_where(mut self, mask: Mask) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].negate_where(mask);
        }
        self
    }
}

/// [`BIAS`] in every lane.
#[inline(always)]
pub(crate) fn bias<V: Lanes>(like: V) -> [V; 5] {
    let rest = like.like(BIAS[1]);
    [like.like(BIAS[0]), rest, rest, rest, rest]
}

impl<V: Lanes> Element<V> {
    /// The same number in every lane.
    #[inline(always)]
    pub(crate) fn splat(like: V, limbs: &[u64; 5]) -> Self {
        let mut out = [like; 5];
        for (out, limb) in out.iter_mut().zip(limbs) {
            *out = like.like(*limb);
        }
        Self(out)
    }

    /// A small number in every lane.
    #[inline(always)]
    pub(crate) fn small(like: V, number: u64) -> Self {
        Self::splat(like, &[number, 0, 0, 0, 0])
    }

    #[inline(always)]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        Wide::product(self, other).carry()
    }

    #[inline(always)]
    pub(crate) fn square(&self) -> Self {
        Wide::square(self).carry()
    }

    /// The same value with limbs 0 to 3 below 2^52.
    #[inline(always)]
    pub(crate) fn masked(&self) -> Self {
        let (mut z, mask) = (self.0, self.0[0].like(M52));
        for limb in &mut z[..4] {
            *limb = limb.and(mask);
        }
        Self(z)
    }

    /// The limbs as columns.
    #[inline(always)]
    pub(crate) fn wide(&self) -> Wide<V> {
        Wide(self.masked().0)
    }

    /// The sum.
    #[inline(always)]
    pub(crate) fn add(&self, other: &Self) -> Self {
        self.wide().add(&other.wide()).carry()
    }

    /// The difference.
    #[inline(always)]
    pub(crate) fn sub(&self, other: &Self) -> Self {
        Wide(bias(self.0[0])).add(&self.wide()).sub(&other.wide()).carry()
    }

    /// The negative.
    #[inline(always)]
    pub(crate) fn negate(&self) -> Self {
        Wide(bias(self.0[0])).sub(&self.wide()).carry()
    }

    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    #[inline(always)]
    pub(crate) fn select(mask: Mask, yes: &Self, no: &Self) -> Self {
        let mut out = yes.0;
        for (out, no) in out.iter_mut().zip(no.0) {
            *out = V::select(mask, *out, no);
        }
        Self(out)
    }

    /// The one representative below the prime, all limbs masked.
    #[inline(always)]
    pub(crate) fn canonical(&self) -> Self {
        let mut z = self.masked().0;
        // Twice, because the first round may leave a few units above 2^255.
        for _ in 0..2 {
            let top = z[4].shr::<47>();
            z = carry_down(z, top);
        }
        // (z + 19) / 2^255 is 1 if the value is the prime or more, else 0.
        let mut carry = z[0].add(z[0].like(19)).shr::<52>();
        for limb in &z[1..4] {
            carry = limb.add(carry).shr::<52>();
        }
        let over = z[4].add(carry).shr::<47>();
        z = carry_down(z, over);
        z[4] = z[4].and(z[4].like(M47));
        Self(z)
    }

    /// Which lanes are equal; both are canonical.
    #[inline(always)]
    pub(crate) fn equal(&self, other: &Self) -> Mask {
        let mut mask = Mask::MAX;
        for k in 0..5 {
            mask &= self.0[k].equal(other.0[k]);
        }
        mask
    }

    /// Eight numbers of 255 bits, as four little-endian words each; bit 255 is ignored.
    #[inline(always)]
    pub(crate) fn from_words(w: &[V; 4]) -> Self {
        let mask = w[0].like(M52);
        Self([
            w[0].and(mask),
            w[0].shr::<52>().or(w[1].shl::<12>()).and(mask),
            w[1].shr::<40>().or(w[2].shl::<24>()).and(mask),
            w[2].shr::<28>().or(w[3].shl::<36>()).and(mask),
            w[3].shr::<16>().and(w[0].like(M47)),
        ])
    }

    /// The reverse for canonical elements.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [V; 4] {
        let z = self.0;
        [
            z[0].or(z[1].shl::<52>()),
            z[1].shr::<12>().or(z[2].shl::<40>()),
            z[2].shr::<24>().or(z[3].shl::<28>()),
            z[3].shr::<36>().or(z[4].shl::<16>()),
        ]
    }
}

/// 19 times `top` into the lowest limb, carries with masks, and the top limb cut to 47 bits.
#[inline(always)]
fn carry_down<V: Lanes>(mut z: [V; 5], top: V) -> [V; 5] {
    let mask = top.like(M52);
    z[4] = z[4].and(top.like(M47));
    z[0] = z[0].madd_whole(top, top.like(19));
    for k in 0..4 {
        let carry = z[k].shr::<52>();
        z[k] = z[k].and(mask);
        z[k + 1] = z[k + 1].add(carry);
    }
    z
}
