//! Eight scalars modulo the order of the base point, l = 2^252 +
//! 27742317777372353535851937790883648493, in radix 2^52.
//!
//! Nothing here branches on a scalar or uses one as an address.

use crate::lanes::{Lanes, M52, Mask};

/// l (RFC 8032, section 5.1).
const ORDER: [u64; 5] = [0x2_631a_5cf5_d3ed, 0xd_ea2f_79cd_6581, 0x0_0000_0014_def9, 0, 0x1000_0000_0000];

/// l - 2^252 and 2^8 times that: 2^260 is minus the latter modulo l.
const LOW: [u64; 3] = [ORDER[0], ORDER[1], ORDER[2]];
const LOW_8: [u64; 3] = [0x3_1a5c_f5d3_ed00, 0xa_2f79_cd65_8126, 0x0_0000_14de_f9de];

/// Multiples of l by powers of two, each greater than the value that is subtracted together with
/// it.
const ORDER_133: [u64; 8] = shifted(133);
const ORDER_8: [u64; 8] = shifted(8);

/// `ORDER * 2^bits`.
const fn shifted(bits: u32) -> [u64; 8] {
    let mut out = [0; 8];
    let (whole, part) = ((bits / 52) as usize, bits % 52);
    let mut k = 0;
    while k < 5 {
        let wide = (ORDER[k] as u128) << part;
        out[k + whole] |= wide as u64 & M52;
        if k + whole < 7 {
            out[k + whole + 1] |= (wide >> 52) as u64;
        }
        k += 1;
    }
    out
}

/// Eight scalars: five limbs below 2^52 each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar<V>(pub(crate) [V; 5]);

/// How a scalar is cut into digits: `count` signed digits from the lowest bits on, and one unsigned
/// digit at the top.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// The number of bits of a digit.
    pub(crate) bits: u32,
    /// The number of signed digits.
    pub(crate) count: u32,
}

impl Windows {
    /// Half a window in every signed window: added beforehand, it turns digits of 0 to 2^bits - 1
    /// into signed ones.
    const fn offset(self) -> [u64; 5] {
        let mut out = [0; 5];
        let mut window = 0;
        while window < self.count {
            let bit = window * self.bits + self.bits - 1;
            out[(bit / 52) as usize] |= 1 << (bit % 52);
            window += 1;
        }
        out
    }

    /// A digit of a scalar from [`Scalar::with_windows`].
    #[inline(always)]
    pub(crate) fn digit<V: Lanes>(self, scalar: &Scalar<V>, window: u32) -> V {
        let (limb, bit) = ((window * self.bits / 52) as usize, window * self.bits % 52);
        let mut digit = scalar.0[limb].shr_by(bit);
        if bit + self.bits > 52 && limb < 4 {
            digit = digit.or(scalar.0[limb + 1].shl_by(52 - bit));
        }
        digit = digit.and(digit.like((1 << self.bits) - 1));
        let half = if window < self.count { 1 << (self.bits - 1) } else { 0 };
        digit.sub(digit.like(half))
    }
}

/// Carries that may be negative, with masks; the top limb keeps its sign.
#[inline(always)]
fn settle<V: Lanes, const N: usize>(mut z: [V; N]) -> [V; N] {
    let mask = z[0].like(M52);
    for k in 0..N - 1 {
        z[k + 1] = z[k + 1].add(z[k].sar::<52>());
        z[k] = z[k].and(mask);
    }
    z
}

/// `base + multiple - constant * high`, column by column.
#[inline(always)]
fn minus_product<V: Lanes, const N: usize>(
    base: &[V; 5],
    multiple: &[u64; 8],
    constant: &[u64; 3],
    high: &[V],
) -> [V; N] {
    let like = base[0];
    let mut product = [like.like(0); N];
    for (i, word) in constant.iter().enumerate() {
        for (j, limb) in high.iter().enumerate() {
            product[i + j] = product[i + j].madd_lo(like.like(*word), *limb);
            product[i + j + 1] = product[i + j + 1].madd_hi(like.like(*word), *limb);
        }
    }
    let mut out = product;
    for k in 0..N {
        let start = like.like(multiple[k]);
        let start = if k < 5 { base[k].add(start) } else { start };
        out[k] = start.sub(product[k]);
    }
    settle(out)
}

impl<V: Lanes> Scalar<V> {
    /// A number of 520 bits, modulo l.
    #[inline(always)]
    fn reduce(x: &[V; 10]) -> Self {
        let low = [x[0], x[1], x[2], x[3], x[4]];
        let x: [V; 8] = minus_product(&low, &ORDER_133, &LOW_8, &x[5..]);
        let low = [x[0], x[1], x[2], x[3], x[4]];
        let x: [V; 6] = minus_product(&low, &ORDER_8, &LOW_8, &x[5..]);
        // The part above 2^252: at most ten bits.
        let top = x[4].shr::<44>().or(x[5].shl::<8>());
        let low = [x[0], x[1], x[2], x[3], x[4].and(x[4].like((1 << 44) - 1))];
        let x: [V; 5] = minus_product(&low, &shifted(0), &LOW, &[top]);
        Self::select_below(&x)
    }

    /// `x - l` if that is not negative, else `x`; x is below 2 l.
    #[inline(always)]
    fn select_below(x: &[V; 5]) -> Self {
        let less = minus_order(x);
        let negative = less[4].negative();
        let mut out = *x;
        for k in 0..5 {
            out[k] = V::select(negative, x[k], less[k]);
        }
        Self(out)
    }

    /// Eight digests of 64 bytes as little-endian numbers, modulo l.
    #[inline(always)]
    pub(crate) fn from_digest(w: &[V; 8]) -> Self {
        let mask = w[0].like(M52);
        Self::reduce(&[
            w[0].and(mask),
            w[0].shr::<52>().or(w[1].shl::<12>()).and(mask),
            w[1].shr::<40>().or(w[2].shl::<24>()).and(mask),
            w[2].shr::<28>().or(w[3].shl::<36>()).and(mask),
            w[3].shr::<16>().or(w[4].shl::<48>()).and(mask),
            w[4].shr::<4>().and(mask),
            w[4].shr::<56>().or(w[5].shl::<8>()).and(mask),
            w[5].shr::<44>().or(w[6].shl::<20>()).and(mask),
            w[6].shr::<32>().or(w[7].shl::<32>()).and(mask),
            w[7].shr::<20>(),
        ])
    }

    /// Eight numbers of 256 bits, not reduced.
    #[inline(always)]
    pub(crate) fn from_words(w: &[V; 4]) -> Self {
        let mask = w[0].like(M52);
        Self([
            w[0].and(mask),
            w[0].shr::<52>().or(w[1].shl::<12>()).and(mask),
            w[1].shr::<40>().or(w[2].shl::<24>()).and(mask),
            w[2].shr::<28>().or(w[3].shl::<36>()).and(mask),
            w[3].shr::<16>(),
        ])
    }

    /// The scalars as four little-endian words each.
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

    /// Which lanes are below l.
    #[inline(always)]
    pub(crate) fn is_canonical(&self) -> Mask {
        minus_order(&self.0)[4].negative()
    }

    /// `self * factor + summand` modulo l; all are below 2^256.
    #[inline(always)]
    pub(crate) fn multiply_add(&self, factor: &Self, summand: &Self) -> Self {
        let zero = self.0[0].like(0);
        let s = summand.0;
        let mut z = [s[0], s[1], s[2], s[3], s[4], zero, zero, zero, zero, zero];
        for i in 0..5 {
            for j in 0..5 {
                z[i + j] = z[i + j].madd_lo(self.0[i], factor.0[j]);
                z[i + j + 1] = z[i + j + 1].madd_hi(self.0[i], factor.0[j]);
            }
        }
        Self::reduce(&settle(z))
    }

    /// `(v + 2^255 - 1) / 2`, where v is the scalar, or the scalar plus l, whichever is odd. A
    /// window b of w bits of it means the odd digit `2 b - (2^w - 1)` of v.
    #[inline(always)]
    pub(crate) fn halved_odd(&self) -> Self {
        let (mut z, like) = (self.0, self.0[0]);
        let odd = z[0].odd();
        for k in 0..5 {
            z[k] = z[k].add(V::select(odd, like.like(0), like.like(ORDER[k])));
        }
        z = settle(z);
        for k in 0..4 {
            z[k] = z[k].shr::<1>().or(z[k + 1].and(like.like(1)).shl::<51>());
        }
        z[4] = z[4].shr::<1>().add(like.like(1 << 46));
        Self(z)
    }

    /// The scalar with the offset of signed windows: [`Windows::digit`].
    #[inline(always)]
    pub(crate) fn with_windows(&self, windows: Windows) -> Self {
        let (mut z, offset) = (self.0, windows.offset());
        for k in 0..5 {
            z[k] = z[k].add(z[k].like(offset[k]));
        }
        Self(settle(z))
    }
}

/// `x - l`: negative exactly when the top limb is.
#[inline(always)]
fn minus_order<V: Lanes>(x: &[V; 5]) -> [V; 5] {
    let mut z = *x;
    for k in 0..5 {
        z[k] = z[k].sub(z[k].like(ORDER[k]));
    }
    settle(z)
}
