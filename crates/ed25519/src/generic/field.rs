//! Elements of the field of 2^255 - 19, one in each lane, in the radix of the lanes; their
//! inverses, and the power that a root needs.

use super::field64::Element64;
use crate::lanes::{Lanes, Mask};

/// A number below 2^255 as little-endian words: it has no radix.
pub(crate) type Constant = [u64; 4];

/// The constant d of the curve (RFC 8032, section 5.1).
pub(crate) const D: Constant =
    [0x75eb_4dca_1359_78a3, 0x0070_0a4d_4141_d8ab, 0x8cc7_4079_7779_e898, 0x5203_6cee_2b6f_fe73];
/// 2 d.
pub(crate) const D2: Constant =
    [0xebd6_9b94_26b2_f159, 0x00e0_149a_8283_b156, 0x198e_80f2_eef3_d130, 0x2406_d9dc_56df_fce7];
/// A square root of -1.
pub(crate) const SQRT_M1: Constant =
    [0xc4ee_1b27_4a0e_a0b0, 0x2f43_1806_ad2f_e478, 0x2b4d_0099_3dfb_d7a7, 0x2b83_2480_4fc1_df0b];

/// Limbs of `radix` bits.
const fn limbs(words: &Constant, radix: u32) -> [u64; 5] {
    let mut limbs = [0; 5];
    let mut k = 0;
    while k < 5 {
        let bit = k as u32 * radix;
        let (word, bit) = ((bit / 64) as usize, bit % 64);
        let above = if word < 3 { words[word + 1] } else { 0 };
        limbs[k] = (((above as u128) << 64 | words[word] as u128) >> bit) as u64;
        if k < 4 {
            limbs[k] &= (1 << radix) - 1;
        }
        k += 1;
    }
    limbs
}

/// Field elements, ready to be multiplied.
///
/// In radix 2^52 the value is the sum of `(limb k mod 2^52) 2^(52 k)` for k below 4, and limb 4,
/// which is below 2^47 + 2^17: carries ensure this bound, and it keeps the last column of a product
/// so small that one multiply-add folds it. The bits of limbs 0 to 3 above bit 52 were already
/// added to the next limb, and multiply-adds ignore them. [`Element::masked`] clears them.
///
/// In radix 2^51 the value is the sum of `limb k 2^(51 k)`, and all limbs are below 2^51 + 2^18.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<V>(pub(crate) [V; 5]);

/// Sums of columns before their carries: limbs of up to 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<V>(pub(crate) [V; 5]);

/// Without optimization, every operation has a place of its own on the stack, and the products of
/// one step need most of the 2 MiB of a thread. So they are calls there.
impl<V: Lanes> Wide<V> {
    /// The product, added to 0.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
    pub(crate) fn product(a: &Element<V>, b: &Element<V>) -> Self {
        Self(V::product(&a.0, &b.0, [a.0[0].like(0); 5]))
    }

    /// The product, added to [`Lanes::BIAS`].
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
    pub(crate) fn biased_product(a: &Element<V>, b: &Element<V>) -> Self {
        Self(V::product(&a.0, &b.0, bias(a.0[0])))
    }

    /// The square, added to 0.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
    pub(crate) fn square(a: &Element<V>) -> Self {
        Self(V::square(&a.0, [a.0[0].like(0); 5]))
    }

    /// The square, added to [`Lanes::BIAS`].
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
    pub(crate) fn biased_square(a: &Element<V>) -> Self {
        let half = a.0[0].like(V::BIAS[1] / 2);
        Self(V::square(&a.0, [a.0[0].like(V::BIAS[0]), half, half, half, half]))
    }

    /// The square, added to twice [`Lanes::BIAS`].
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
    pub(crate) fn twice_biased_square(a: &Element<V>) -> Self {
        let bias = a.0[0].like(V::BIAS[1]);
        Self(V::square(&a.0, [a.0[0].like(2 * V::BIAS[0]), bias, bias, bias, bias]))
    }

    /// Carries, and folds the part above 2^255 back as 19 times its value.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[cfg_attr(unoptimized, inline(never))]
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

    /// Negates the lanes of `mask` column by column. The value that this is added to must have a
    /// bias.
    #[inline(always)]
    pub(crate) fn negate_where(mut self, mask: Mask) -> Self {
        for k in 0..5 {
            self.0[k] = self.0[k].negate_where(mask);
        }
        self
    }
}

/// [`Lanes::BIAS`] in every lane.
#[inline(always)]
pub(crate) fn bias<V: Lanes>(like: V) -> [V; 5] {
    let rest = like.like(V::BIAS[1]);
    [like.like(V::BIAS[0]), rest, rest, rest, rest]
}

impl<V: Lanes> Element<V> {
    /// The same number in every lane.
    #[inline(always)]
    pub(crate) fn splat(like: V, number: &Constant) -> Self {
        let mut out = [like; 5];
        for (out, limb) in out.iter_mut().zip(limbs(number, V::RADIX)) {
            *out = like.like(limb);
        }
        Self(out)
    }

    /// A small number in every lane.
    #[inline(always)]
    pub(crate) fn small(like: V, number: u64) -> Self {
        Self::splat(like, &[number, 0, 0, 0])
    }

    #[inline(always)]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        Wide::product(self, other).carry()
    }

    #[inline(always)]
    pub(crate) fn square(&self) -> Self {
        Wide::square(self).carry()
    }

    /// The same value without the bits that products ignore.
    #[inline(always)]
    pub(crate) fn masked(&self) -> Self {
        Self(V::masked(self.0))
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

    /// Lane i gets what lane i + `by` had, modulo the number of lanes.
    #[inline(always)]
    pub(crate) fn rotated(&self, by: usize) -> Self {
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = limb.rotated(by);
        }
        Self(limbs)
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
            let top = z[4].shr_by(top_bits::<V>());
            z = carry_down(z, top);
        }
        // (z + 19) / 2^255 is 1 if the value is the prime or more, else 0.
        let mut carry = z[0].add(z[0].like(19)).shr_by(V::RADIX);
        for limb in &z[1..4] {
            carry = limb.add(carry).shr_by(V::RADIX);
        }
        let over = z[4].add(carry).shr_by(top_bits::<V>());
        z = carry_down(z, over);
        z[4] = low_bits(z[4], top_bits::<V>());
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

    /// Numbers of 255 bits, as four little-endian words each; bit 255 is ignored.
    #[inline(always)]
    pub(crate) fn from_words(w: &[V; 4]) -> Self {
        let mut out = [low_bits(w[0], V::RADIX); 5];
        for k in 1..5 {
            // The limb begins in word k - 1.
            let bit = k as u32 * V::RADIX - 64 * (k as u32 - 1);
            out[k] = w[k - 1].shr_by(bit);
            if k < 4 {
                out[k] = low_bits(out[k].or(w[k].shl_by(64 - bit)), V::RADIX);
            }
        }
        out[4] = low_bits(out[4], top_bits::<V>());
        Self(out)
    }

    /// Canonical elements as four little-endian words each.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "loops over values are unrolled late, which keeps words in memory"
    )]
    pub(crate) fn to_words(self) -> [V; 4] {
        let mut out = [self.0[0]; 4];
        for k in 0..4 {
            // Limb k ends in this word, and the next one begins here.
            let end = (k as u32 + 1) * V::RADIX - 64 * k as u32;
            out[k] = self.0[k].shr_by(V::RADIX - end).or(self.0[k + 1].shl_by(end));
        }
        out
    }
}

/// The bits of a canonical element's top limb.
#[inline(always)]
const fn top_bits<V: Lanes>() -> u32 {
    255 - 4 * V::RADIX
}

/// The lowest bits of every lane.
#[inline(always)]
fn low_bits<V: Lanes>(word: V, bits: u32) -> V {
    word.and(word.like((1 << bits) - 1))
}

/// 19 times `top` into the lowest limb, carries with masks, and the top limb cut to its bits.
#[inline(always)]
fn carry_down<V: Lanes>(mut z: [V; 5], top: V) -> [V; 5] {
    z[4] = low_bits(z[4], top_bits::<V>());
    z[0] = z[0].madd_small(top, top.like(19));
    for k in 0..4 {
        let carry = z[k].shr_by(V::RADIX);
        z[k] = low_bits(z[k], V::RADIX);
        z[k + 1] = z[k + 1].add(carry);
    }
    z
}

/// The operand of [`root_power`]: an element, or several in lock step, because a single chain waits
/// for its multiplications.
pub(super) trait Multiply: Copy {
    /// Squares the operand `times` times.
    fn squares(self, times: u32) -> Self;
    /// The product with `other`.
    fn times(self, other: &Self) -> Self;
}

/// A step of [`root_power`].
struct Step {
    /// How often the power is squared.
    squares: u32,
    /// The kept power that it is then multiplied by.
    factor: usize,
    /// Where the result is kept.
    into: usize,
}

/// The steps from z^2 on, with z, z^2 and z^2 kept. A loop over them has one product and one
/// square: written out, the eleven products were half of the machine code of every function that
/// decodes.
const STEPS: [Step; 11] = [
    // z^9 and z^11.
    Step { squares: 2, factor: 0, into: 2 },
    Step { squares: 0, factor: 1, into: 1 },
    // z^(2^n - 1) for n = 5, 10, 20, 40, 50, 100, 200 and 250: a step doubles n, or adds the n of a
    // kept power.
    Step { squares: 1, factor: 2, into: 1 },
    Step { squares: 5, factor: 1, into: 2 },
    Step { squares: 10, factor: 2, into: 1 },
    Step { squares: 20, factor: 1, into: 1 },
    Step { squares: 10, factor: 2, into: 1 },
    Step { squares: 50, factor: 1, into: 2 },
    Step { squares: 100, factor: 2, into: 2 },
    Step { squares: 50, factor: 1, into: 1 },
    // z^(2^252 - 3).
    Step { squares: 2, factor: 0, into: 1 },
];

/// z^(2^252 - 3), which is the power (p - 5) / 8, for elements of every kind: the chain of squares
/// and products.
#[inline(always)]
pub(super) fn root_power<T: Multiply>(z: T) -> T {
    let mut power = z.squares(1);
    let mut kept = [z, power, power];
    for step in &STEPS {
        power = power.squares(step.squares).times(&kept[step.factor]);
        kept[step.into] = power;
    }
    power
}

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
    // The products of two, four and all neighbors.
    let of_two = z.mul(&z.rotated(1));
    let of_four = of_two.mul(&of_two.rotated(2));
    let eight = V::COUNT == 8;
    let of_all = if eight { of_four.mul(&of_four.rotated(4)) } else { of_four };
    let inverse = lane_0(&of_all).inverse().to_words();
    let inverse = Element::splat(like, &inverse);
    // The inverse of some neighbors' product, times the product of half of them, is the inverse of
    // the other half's.
    let inverse = if eight { inverse.mul(&of_four.rotated(4)) } else { inverse };
    let inverse = inverse.mul(&of_two.rotated(2));
    Element::select(zeros, &zero, &inverse.mul(&z.rotated(1)))
}

/// The element in lane 0.
#[inline(always)]
pub(super) fn lane_0<V: Lanes>(element: &Element<V>) -> Element64 {
    let [a, b, c, d] = element.canonical().to_words();
    Element64::from_words(&[a.store()[0], b.store()[0], c.store()[0], d.store()[0]])
}
