//! The vector that everything here is written over: eight lanes of 64 bits, with 52-bit multiply-add.
//!
//! Lane i of every vector belongs to item i, and no operation but [`Lanes::gather`] and [`Lanes::scatter`] moves anything
//! between lanes and memory in another order, so no item can touch the verdict of its neighbour.
//!
//! The methods are safe: a vector exists only on a CPU that can compute with it. The first one of a computation is made by
//! a [`Kernel`](crate::kernel::Kernel), a value of which is the proof that the CPU was asked; constants are
//! made by [`Lanes::like`] from a vector that is at hand.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod ifma;
#[cfg(test)]
pub(crate) mod interval;
pub(crate) mod model;

use crate::generic::field;

/// How many items are worked on at once.
pub(crate) const LANES: usize = 8;

/// One bit a lane, lane 0 lowest.
pub(crate) type Mask = u8;

/// The low 52 bits: what [`Lanes::madd_lo`] and [`Lanes::madd_hi`] see of their factors.
pub(crate) const M52: u64 = (1 << 52) - 1;

/// Five vectors in memory, limbs of an element.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Staged(pub(crate) [[u64; LANES]; 5]);

impl Staged {
    /// Nothing yet.
    pub(crate) const EMPTY: Self = Self([[0; LANES]; 5]);
}

/// Eight lanes of 64 bits.
pub(crate) trait Lanes: Copy {
    /// `word` in every lane. `self` is only the witness that vectors can be had here.
    fn like(self, word: u64) -> Self;
    /// The vector whose lane i is `words[i]`.
    fn load(self, words: &[u64; LANES]) -> Self;
    /// The lanes.
    fn store(self) -> [u64; LANES];

    /// Lane-wise sum modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// Lane-wise difference modulo 2^64.
    fn sub(self, other: Self) -> Self;
    /// Lane-wise and.
    fn and(self, other: Self) -> Self;
    /// Lane-wise or.
    fn or(self, other: Self) -> Self;
    /// Lane-wise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Exclusive or of three.
    fn xor3(self, b: Self, c: Self) -> Self;
    /// Bits of `yes` where `self` has ones, else of `no`.
    fn choose(self, yes: Self, no: Self) -> Self;
    /// Bits that at least two of three have.
    fn majority(self, b: Self, c: Self) -> Self;
    /// Every lane shifted left.
    fn shl<const N: u32>(self) -> Self;
    /// Every lane shifted right, zeros from the left.
    fn shr<const N: u32>(self) -> Self;
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

    /// `self` plus the low 52 bits of the product of the low 52 bits of `a` and `b`.
    fn madd_lo(self, a: Self, b: Self) -> Self;
    /// `self` plus the product's bits from 52 on.
    fn madd_hi(self, a: Self, b: Self) -> Self;
    /// [`Lanes::madd_lo`] of a product that is below 2^52 as a whole.
    #[inline(always)]
    fn madd_whole(self, a: Self, b: Self) -> Self {
        self.madd_lo(a, b)
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

    /// Writes one word as one word: where vectors are loaded from memory that was written so, the compiler must not put them together in
    /// registers instead.
    #[inline(always)]
    fn put(to: &mut u64, word: u64) {
        *to = word;
    }
    /// Has the cache fetch a row that is soon read, where there is an instruction for that.
    #[inline(always)]
    fn prefetch<T>(self, _row: &T) {}
    /// Two words for each lane, from eight places: the first words in one vector, the second ones in the other.
    fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2];
    /// The reverse: lane i of both vectors, as two words.
    fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES];
    /// [`field::product`], as one function. Vectors inline it into every formula; thousands of copies for lanes that need not be fast would
    /// take minutes to compile.
    #[inline(never)]
    fn product(a: &[Self; 5], b: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        field::product(a, b, start)
    }
    /// [`field::square`], as [`Lanes::product`].
    #[inline(never)]
    fn square(a: &[Self; 5], start: [Self; 5]) -> [Self; 5] {
        field::square(a, start)
    }
    /// [`field::carry`], as [`Lanes::product`].
    #[inline(never)]
    fn carry(columns: [Self; 5]) -> [Self; 5] {
        field::carry(columns)
    }
    /// Word `self` of the sixteen of `row`, in every lane for itself; only the low four bits of a lane count. No address depends
    /// on a lane.
    fn pick(self, row: &[u64; 16]) -> Self;
}
