//! The vector type of all code here: eight or four lanes of 64 bits.
//!
//! Lane i of every vector belongs to item i. Only [`Lanes::gather`] and [`Lanes::scatter`] move
//! data between lanes and memory in another order, and only an inversion for all lanes moves it
//! from lane to lane ([`Lanes::rotated`]), which gives each lane its own inverse. So no item can
//! affect its neighbor's verdict. An item may also have two lanes, which are compared in the end,
//! or all of them, and [`EightLanes`] moves them too.
//!
//! The methods are safe: a vector exists only on a CPU that can compute with it. A
//! [`Kernel`](crate::kernel::Kernel) makes the first vector of a computation; a value of that type
//! proves that detection has checked the CPU. [`Limbs::like`] makes constants from an existing
//! vector.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod ifma;
#[cfg(any(test, feature = "scalar-model"))]
pub(crate) mod model;
#[cfg(any(test, all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) mod radix51;
#[cfg(test)]
pub(crate) mod test_lanes;

/// The number of lanes of the longest vector. Memory for lanes has this size for every vector;
/// shorter ones use only its beginning.
pub(crate) const LANES: usize = 8;

/// One bit per lane; lane 0 has the lowest.
pub(crate) type Mask = u8;

/// The low 52 bits: the part of their factors that [`Limbs::madd_lo`] and [`Limbs::madd_hi`] use.
pub(crate) const M52: u64 = (1 << 52) - 1;

/// The low 47 bits: those of a reduced element's top limb.
pub(crate) const M47: u64 = (1 << 47) - 1;
/// 2^260 modulo the prime.
const WRAP: u64 = 608;
/// 640 * 32 times the prime: [`Lanes::BIAS`] in radix 2^52.
const BIAS_52: [u64; 5] = [640 * (M52 - 607), 640 * M52, 640 * M52, 640 * M52, 640 * M52];

/// Five vectors in memory, limbs of an element.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Staged(pub(crate) [[u64; LANES]; 5]);

impl Staged {
    /// Nothing yet.
    pub(crate) const EMPTY: Self = Self([[0; LANES]; 5]);
}

/// Words of 64 bits in lanes, and what products in radix 2^51 consist of.
pub(crate) trait Limbs: Copy {
    /// `word` in every lane. `self` only proves that this CPU supports the vectors.
    fn like(self, word: u64) -> Self;
    /// The vector whose lane i is `words[i]`.
    fn load(self, words: &[u64; LANES]) -> Self;
    /// The lanes.
    fn store(self) -> [u64; LANES];
    /// Lane-wise sum modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// Lane-wise and.
    fn and(self, other: Self) -> Self;
    /// Every lane shifted right, zeros from the left.
    fn shr<const N: u32>(self) -> Self;
    /// `self` plus the low 52 bits of the product of the low 52 bits of `a` and `b`.
    fn madd_lo(self, a: Self, b: Self) -> Self;
    /// `self` plus the product's bits from 52 on.
    fn madd_hi(self, a: Self, b: Self) -> Self;
    /// [`Limbs::madd_lo`] of a product that is below 2^52 as a whole.
    #[inline(always)]
    fn madd_whole(self, a: Self, b: Self) -> Self {
        self.madd_lo(a, b)
    }
    /// Every lane times 19, modulo 2^64.
    fn times_19(self) -> Self;
}

/// Products in radix 2^51.
pub(crate) trait Products51: Limbs {
    /// [`product_51`], as [`Lanes::product`].
    #[inline(never)]
    fn product_51(a: &[Self; 5], b: &[Self; 5]) -> [Self; 5] {
        product_51(a, b)
    }
    /// [`square_51`], as [`Lanes::product`].
    #[inline(never)]
    fn square_51(a: &[Self; 5]) -> [Self; 5] {
        square_51(a)
    }
}

/// Lanes of 64 bits, and the field's arithmetic in them: an element is five limbs, of which the top
/// one has the bits from 4 [`Lanes::RADIX`] to 255.
pub(crate) trait Lanes: Limbs {
    /// The number of lanes. Masks and memory may have more: what they contain is not used.
    const COUNT: usize = LANES;
    /// The bits of a limb.
    const RADIX: u32 = 52;
    /// A multiple of the prime, with limbs greater than any column of a folded product. Adding it
    /// first keeps differences of columns from becoming negative.
    const BIAS: [u64; 5] = BIAS_52;

    /// Lane-wise difference modulo 2^64.
    fn sub(self, other: Self) -> Self;
    /// Lane-wise or.
    fn or(self, other: Self) -> Self;
    /// Lane-wise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Lane-wise exclusive or of three.
    fn xor3(self, b: Self, c: Self) -> Self;
    /// The bits of `yes` where `self` has ones, and of `no` elsewhere.
    fn choose(self, yes: Self, no: Self) -> Self;
    /// The bits that are set in at least two of the three.
    fn majority(self, b: Self, c: Self) -> Self;
    /// Every lane shifted left.
    fn shl<const N: u32>(self) -> Self;
    /// Every lane shifted right as a signed number.
    fn sar<const N: u32>(self) -> Self;
    /// Every lane rotated right.
    fn rotr<const N: i32>(self) -> Self;
    /// Every lane shifted left by a count that is the same for all, below 64.
    fn shl_by(self, count: u32) -> Self;
    /// Every lane shifted right by a count that is the same for all, below 64.
    fn shr_by(self, count: u32) -> Self;
    /// The bytes of every lane in reverse order.
    fn swap_bytes(self) -> Self;

    /// [`Limbs::madd_whole`] of factors below 2^32.
    #[inline(always)]
    fn madd_small(self, a: Self, b: Self) -> Self {
        self.madd_whole(a, b)
    }

    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    fn select(mask: Mask, yes: Self, no: Self) -> Self;
    /// Lanes whose bit is set negated modulo 2^64.
    fn negate_where(self, mask: Mask) -> Self;
    /// Which lanes are equal.
    fn equal(self, other: Self) -> Mask;
    /// Which lanes have their bit 63 set.
    fn negative(self) -> Mask;
    /// Which lanes are odd.
    fn odd(self) -> Mask;

    /// Lane i of the result is lane i + `by`, modulo the number of lanes.
    #[inline(always)]
    fn rotated(self, by: usize) -> Self {
        let words = self.store();
        let mut rotated = [0; LANES];
        for lane in 0..Self::COUNT {
            rotated[lane] = words[(lane + by) % Self::COUNT];
        }
        self.load(&rotated)
    }
    /// Writes one word with one store. Vectors are loaded from memory that was written like this,
    /// and the compiler must not assemble them in registers instead.
    #[inline(always)]
    fn put(to: &mut u64, word: u64) {
        *to = word;
    }
    /// Prefetches a row that is read soon, if there is an instruction for that.
    #[inline(always)]
    fn prefetch<T>(self, _row: &T) {}
    /// Two words for each lane, from eight places: the first words in one vector, the second ones
    /// in the other.
    fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2];
    /// Lane i of both vectors, as two words: the reverse of [`Lanes::gather`].
    fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES];
    /// [`product`], as one function. Vectors inline it into every formula; thousands of copies for
    /// lanes that need not be fast would take minutes to compile.
    #[inline(never)]
    fn product(a: &[Self; 5], b: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        product(a, b, start)
    }
    /// [`square`], as [`Lanes::product`].
    #[inline(never)]
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        square(a, start)
    }
    /// [`carry`], as [`Lanes::product`].
    #[inline(never)]
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        carry(columns)
    }
    /// Limbs without the bits that products ignore.
    #[inline(always)]
    fn masked(limbs: [Self; 5]) -> [Self; 5] {
        masked(limbs)
    }
}

/// Eight lanes, which may all be parts of one item.
pub(crate) trait EightLanes: Lanes + Products51 {
    /// Vectors with as many lanes or half as many, for chains of products of a few elements.
    type Narrow: Products51;

    /// The lower lanes.
    fn narrow(self) -> Self::Narrow;
    /// Lanes in another order within the lower four lanes, and in the same order within the upper
    /// four: lane i gets lane `ORDER >> 2 i & 3` of its half.
    fn shuffle_fours<const ORDER: i32>(self) -> Self;
    /// Four lanes from `low`, and four from `high`.
    fn load_fours(self, low: &[u64; 4], high: &[u64; 4]) -> Self;
    /// Word number `self` of the sixteen of `row`, separately in every lane; only the low four bits
    /// of a lane are used. No address depends on a lane.
    fn look_up(self, row: &[u64; 16]) -> Self;
}

/// The folded columns of a product, added to `start`: the implementation of [`Lanes::product`].
#[inline(always)]
pub(crate) fn product<V: Lanes>(a: &[V; 5], b: &[V; 5], start: [V; 5]) -> [V; 5] {
    fold(columns(a, b, start))
}

/// The folded columns of a square: the implementation of [`Lanes::square`]. `start` is doubled too,
/// except for its column 0.
#[inline(always)]
pub(crate) fn square<V: Lanes>(a: &[V; 5], start: [V; 5]) -> [V; 5] {
    fold(square_columns(a, start))
}

/// The carries of columns: the implementation of [`Lanes::carry`].
#[inline(always)]
pub(crate) fn carry<V: Lanes>(mut z: [V; 5]) -> [V; 5] {
    let top = z[4].shr::<47>();
    z[4] = z[4].and(z[4].like(M47));
    z[0] = z[0].madd_small(top, top.like(19));
    for k in 0..4 {
        z[k + 1] = z[k + 1].add(z[k].shr::<52>());
    }
    z
}

/// Limbs 0 to 3 without bits above the radix: the implementation of [`Lanes::masked`].
#[inline(always)]
fn masked<V: Lanes>(mut z: [V; 5]) -> [V; 5] {
    let mask = z[0].like(M52);
    for limb in &mut z[..4] {
        *limb = limb.and(mask);
    }
    z
}

/// Prefetches a row.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn prefetch<T>(row: &T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let row = std::ptr::from_ref(row).cast::<i8>();
    let mut offset = 0;
    while offset < size_of::<T>() {
        // SAFETY: within the row; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.add(offset)) };
        offset += 64;
    }
    if align_of::<T>() < 64 {
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.add(size_of::<T>() - 1)) };
    }
}

/// The order in which limbs are multiplied: limb 0 is the last one of a carry.
const ORDER: [usize; 5] = [2, 1, 3, 4, 0];

/// The folded columns of a product in radix 2^51: the implementation of [`Products51::product_51`].
///
/// A multiply-add divides products at bit 52, so the upper halves count twice. The upper columns
/// come first, so that they are folded while the lower ones are still computed: a single chain of
/// products waits for every result.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over values are not unrolled, which keeps the columns in memory"
)]
pub(crate) fn product_51<V: Limbs>(a: &[V; 5], b: &[V; 5]) -> [V; 5] {
    let zero = a[0].like(0);
    let (mut lo, mut hi) = ([zero; 9], [zero; 10]);
    // Each column gets one product in turn: the next one waits for it.
    for turn in 0..5 {
        let i = ORDER[turn];
        for j in 0..5 {
            let k = i + j;
            if k > 3 {
                hi[k + 1] = hi[k + 1].madd_hi(a[i], b[j]);
            }
            if k > 4 {
                lo[k] = lo[k].madd_lo(a[i], b[j]);
            }
        }
    }
    for turn in 0..5 {
        let i = ORDER[turn];
        for j in (0..5).rev() {
            let k = i + j;
            if k < 5 {
                lo[k] = lo[k].madd_lo(a[i], b[j]);
            }
            if k < 4 {
                hi[k + 1] = hi[k + 1].madd_hi(a[i], b[j]);
            }
        }
    }
    // No closures: they would keep every operation as a call.
    let mut upper = [hi[9].add(hi[9]); 5];
    for k in 0..4 {
        upper[k] = lo[k + 5].add(hi[k + 5]).add(hi[k + 5]);
    }
    fold_51([lo[0], lo[1], lo[2], lo[3], lo[4]], [hi[0], hi[1], hi[2], hi[3], hi[4]], upper)
}

/// Columns of 2^255 and above, folded into the lower columns, of which each is `one` plus twice
/// `two`.
#[inline(always)]
fn fold_51<V: Limbs>(one: [V; 5], two: [V; 5], upper: [V; 5]) -> [V; 5] {
    let mut out = upper;
    for k in 0..5 {
        out[k] = one[k].add(two[k]).add(two[k]).add(upper[k].times_19());
    }
    out
}

/// Like [`product_51`] of `a` and `a`: each product of two different limbs is computed once and
/// doubled.
#[inline(always)]
pub(crate) fn square_51<V: Limbs>(a: &[V; 5]) -> [V; 5] {
    let zero = a[0].like(0);
    // What counts once, twice, and four times.
    let (mut one, mut two, mut four) = ([zero; 10], [zero; 10], [zero; 10]);
    for i in (0..5).rev() {
        two[2 * i + 1] = two[2 * i + 1].madd_hi(a[i], a[i]);
        one[2 * i] = one[2 * i].madd_lo(a[i], a[i]);
        for j in (i + 1..5).rev() {
            four[i + j + 1] = four[i + j + 1].madd_hi(a[i], a[j]);
            two[i + j] = two[i + j].madd_lo(a[i], a[j]);
        }
    }
    for k in 0..10 {
        two[k] = two[k].add(four[k]).add(four[k]);
    }
    let mut upper = [zero; 5];
    for k in 0..5 {
        upper[k] = one[k + 5].add(two[k + 5]).add(two[k + 5]);
    }
    fold_51([one[0], one[1], one[2], one[3], one[4]], [two[0], two[1], two[2], two[3], two[4]], upper)
}

/// The product's columns 0 to 9, added to `start`, without a reduction.
#[inline(always)]
fn columns<V: Lanes>(a: &[V; 5], b: &[V; 5], start: [V; 5]) -> [V; 10] {
    let zero = a[0].like(0);
    let mut z = [start[0], start[1], start[2], start[3], start[4], zero, zero, zero, zero, zero];
    for i in 0..5 {
        for j in 0..5 {
            z[i + j] = z[i + j].madd_lo(a[i], b[j]);
        }
        for j in 0..5 {
            z[i + j + 1] = z[i + j + 1].madd_hi(a[i], b[j]);
        }
    }
    z
}

/// Like [`columns`] of `a` and `a`: each product of two different limbs is computed once and
/// doubled, together with `start`.
#[inline(always)]
fn square_columns<V: Lanes>(a: &[V; 5], start: [V; 5]) -> [V; 10] {
    let zero = a[0].like(0);
    let mut z = [zero, start[1], start[2], start[3], start[4], zero, zero, zero, zero, zero];
    for i in 0..4 {
        for j in i + 1..5 {
            z[i + j] = z[i + j].madd_lo(a[i], a[j]);
        }
        for j in i + 1..5 {
            z[i + j + 1] = z[i + j + 1].madd_hi(a[i], a[j]);
        }
    }
    for column in &mut z[1..9] {
        *column = column.add(*column);
    }
    z[0] = start[0];
    for i in 0..5 {
        z[2 * i] = z[2 * i].madd_lo(a[i], a[i]);
        z[2 * i + 1] = z[2 * i + 1].madd_hi(a[i], a[i]);
    }
    z
}

/// Columns 5 to 9 folded into columns 0 to 4: carries first, and then each column times 608, in two
/// halves; the last one is so small that its product has no upper half, which would have to come
/// round again.
#[inline(always)]
fn fold<V: Lanes>(mut z: [V; 10]) -> [V; 5] {
    let wrap = z[0].like(WRAP);
    for k in 5..9 {
        z[k + 1] = z[k + 1].add(z[k].shr::<52>());
    }
    let mut r = [z[0], z[1], z[2], z[3], z[4]];
    for k in 0..4 {
        r[k] = r[k].madd_lo(z[k + 5], wrap);
        r[k + 1] = r[k + 1].madd_hi(z[k + 5], wrap);
    }
    r[4] = r[4].madd_whole(z[9], wrap);
    r
}
