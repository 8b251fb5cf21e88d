//! Field arithmetic in radix 2^51 for lanes that divide products into two halves at bit 51, of
//! which the lower one has a sign.
//!
//! So the upper halves belong to the next column as they are, all carries are computed at once, and
//! 2^255 is 19.

use super::Lanes;

/// The bits of a limb. After carries, a limb may be longer by a little.
pub(crate) const RADIX: u32 = 51;
const M51: u64 = (1 << RADIX) - 1;

/// The prime's lowest limb, and each of the others.
const PRIME: [u64; 2] = [M51 - 18, M51];
/// Every product starts from this multiple of the prime: halves with a sign never make a column
/// negative.
const OWN_MULTIPLE: u64 = 128;
/// This multiple of the prime is above the sum of two columns of products.
pub(crate) const BIAS: [u64; 5] = multiple(1024);

const fn multiple(times: u64) -> [u64; 5] {
    let rest = times * PRIME[1];
    [times * PRIME[0], rest, rest, rest, rest]
}

/// Lanes that split products at bit 51.
pub(crate) trait SplitProducts: Lanes {
    /// A limb, ready for multiplications.
    type Factor: Copy;
    /// The excess of each lower half and of each upper half, modulo 2^64.
    const LOW: u64;
    const HIGH: u64;

    /// The limb as a factor; it is below 2^52.
    fn factor(self) -> Self::Factor;
    /// Adds the halves of a product below 2^103: `low + high * 2^51` is the product, and the lower
    /// half's size is below 2^51.
    fn add_halves(low: &mut Self, high: &mut Self, a: Self::Factor, b: Self::Factor);
}

/// The number of lower halves that column `k` of a product gets.
const fn lower_halves(k: usize) -> u64 {
    if k < 5 { k as u64 + 1 } else { 9 - k as u64 }
}

/// The start of column `k` of a product: [`OWN_MULTIPLE`], without the excess of its halves.
#[inline(always)]
const fn start<V: SplitProducts>(k: usize) -> u64 {
    let own = if k < 5 { multiple(OWN_MULTIPLE)[k] } else { 0 };
    let upper_halves = if k == 0 { 0 } else { lower_halves(k - 1) };
    own.wrapping_sub(lower_halves(k).wrapping_mul(V::LOW)).wrapping_sub(upper_halves.wrapping_mul(V::HIGH))
}

#[inline(always)]
fn factors<V: SplitProducts>(limbs: &[V; 5]) -> [V::Factor; 5] {
    [limbs[0].factor(), limbs[1].factor(), limbs[2].factor(), limbs[3].factor(), limbs[4].factor()]
}

/// Adds products of two limbs to the columns, in this order. Loops would not always be unrolled.
macro_rules! add_products {
    ($v:ty, $z:ident, $a:ident, $b:ident: $($i:literal $j:literal),*) => { $(
        let [mut low, mut high] = [$z[$i + $j], $z[$i + $j + 1]];
        <$v>::add_halves(&mut low, &mut high, $a[$i], $b[$j]);
        [$z[$i + $j], $z[$i + $j + 1]] = [low, high];
    )* };
}

/// The folded columns of a product, added to `from`.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over values are not unrolled, which keeps the columns in memory"
)]
pub(crate) fn product<V: SplitProducts>(a: &[V; 5], b: &[V; 5], from: [V; 5]) -> [V; 5] {
    let mut z = [from[0]; 10];
    for k in 0..10 {
        z[k] = from[0].like(start::<V>(k));
        if k < 5 {
            z[k] = z[k].add(from[k]);
        }
    }
    let (a, b) = (factors(a), factors(b));
    // Column by column: only two of them are at work at a time, so there are registers for them.
    add_products!(V, z, a, b:
        0 0, 0 1, 1 0, 0 2, 1 1, 2 0, 0 3, 1 2, 2 1, 3 0, 0 4, 1 3, 2 2, 3 1, 4 0,
        1 4, 2 3, 3 2, 4 1, 2 4, 3 3, 4 2, 3 4, 4 3, 4 4
    );
    fold(z)
}

/// Like [`product`] of `a` and `a`: each product of two different limbs is computed once and
/// doubled, together with `from`, except for its column 0.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "as for products")]
pub(crate) fn square<V: SplitProducts>(a: &[V; 5], from: [V; 5]) -> [V; 5] {
    let mut z = [from[0]; 10];
    for k in 0..10 {
        let start = start::<V>(k);
        // Columns 1 to 8 will be doubled. Their starts are even.
        z[k] = from[0].like(if k == 0 || k == 9 { start } else { start / 2 });
        if k < 5 {
            z[k] = z[k].add(from[k]);
        }
    }
    let a = factors(a);
    add_products!(V, z, a, a: 0 1, 0 2, 0 3, 1 2, 0 4, 1 3, 1 4, 2 3, 2 4, 3 4);
    for k in 1..9 {
        z[k] = z[k].add(z[k]);
    }
    add_products!(V, z, a, a: 0 0, 1 1, 2 2, 3 3, 4 4);
    fold(z)
}

/// Columns 5 to 9, which may be negative, folded into columns 0 to 4.
#[inline(always)]
fn fold<V: Lanes>(z: [V; 10]) -> [V; 5] {
    let mut out = [z[0]; 5];
    for k in 0..5 {
        out[k] = z[k].add(z[k + 5].times_19());
    }
    out
}

/// All carries at once; the part above 2^255 comes back as 19 times its value.
#[inline(always)]
pub(crate) fn carry<V: Lanes>(z: [V; 5]) -> [V; 5] {
    let mask = z[0].like(M51);
    let mut out = z;
    for k in 0..5 {
        out[k] = z[k].and(mask);
    }
    out[0] = out[0].madd_small(z[4].shr::<RADIX>(), mask.like(19));
    for k in 1..5 {
        out[k] = out[k].add(z[k - 1].shr::<RADIX>());
    }
    out
}
