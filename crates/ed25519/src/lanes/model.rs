//! A scalar model of the lanes. It computes the results that the vectors should give, one lane
//! after another, on any machine.
//!
//! It is slow, and only its name chooses it. The tests run every formula on it and compare the
//! limbs with those of the vector kernels.

use super::{EightLanes, LANES, Lanes, Limbs, M52, Mask, Products51};

/// Eight lanes as an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model(pub(crate) [u64; LANES]);

/// Applies `op` to every lane and its number. It is not inlined: otherwise the model would be
/// megabytes of code.
#[inline(never)]
fn lanes(op: impl Fn(usize) -> u64) -> Model {
    Model(std::array::from_fn(op))
}

/// The bits of those lanes for which `test` holds.
#[inline(never)]
fn mask(test: impl Fn(usize) -> bool) -> Mask {
    (0..LANES).fold(0, |mask, lane| mask | Mask::from(test(lane)) << lane)
}

/// The product of the low 52 bits of `a` and `b`.
fn product52(a: u64, b: u64) -> u128 {
    u128::from(a & M52) * u128::from(b & M52)
}

impl Limbs for Model {
    fn like(self, word: u64) -> Self {
        Self([word; LANES])
    }
    fn load(self, words: &[u64; LANES]) -> Self {
        Self(*words)
    }
    fn store(self) -> [u64; LANES] {
        self.0
    }
    fn add(self, other: Self) -> Self {
        lanes(|i| self.0[i].wrapping_add(other.0[i]))
    }
    fn and(self, other: Self) -> Self {
        lanes(|i| self.0[i] & other.0[i])
    }
    fn shr<const N: u32>(self) -> Self {
        lanes(|i| self.0[i] >> N)
    }
    fn madd_lo(self, a: Self, b: Self) -> Self {
        lanes(|i| self.0[i].wrapping_add(product52(a.0[i], b.0[i]) as u64 & M52))
    }
    fn madd_hi(self, a: Self, b: Self) -> Self {
        lanes(|i| self.0[i].wrapping_add((product52(a.0[i], b.0[i]) >> 52) as u64))
    }
    fn times_19(self) -> Self {
        lanes(|i| self.0[i].wrapping_mul(19))
    }
}

impl Lanes for Model {
    fn sub(self, other: Self) -> Self {
        lanes(|i| self.0[i].wrapping_sub(other.0[i]))
    }
    fn or(self, other: Self) -> Self {
        lanes(|i| self.0[i] | other.0[i])
    }
    fn xor(self, other: Self) -> Self {
        lanes(|i| self.0[i] ^ other.0[i])
    }
    fn xor3(self, b: Self, c: Self) -> Self {
        lanes(|i| self.0[i] ^ b.0[i] ^ c.0[i])
    }
    fn choose(self, yes: Self, no: Self) -> Self {
        lanes(|i| (self.0[i] & yes.0[i]) | (!self.0[i] & no.0[i]))
    }
    fn majority(self, b: Self, c: Self) -> Self {
        lanes(|i| (self.0[i] & b.0[i]) | (self.0[i] & c.0[i]) | (b.0[i] & c.0[i]))
    }
    fn shl<const N: u32>(self) -> Self {
        lanes(|i| self.0[i] << N)
    }
    fn sar<const N: u32>(self) -> Self {
        lanes(|i| (self.0[i].cast_signed() >> N).cast_unsigned())
    }
    fn rotr<const N: i32>(self) -> Self {
        lanes(|i| self.0[i].rotate_right(N.cast_unsigned()))
    }
    fn shl_by(self, count: u32) -> Self {
        lanes(|i| self.0[i] << count)
    }
    fn shr_by(self, count: u32) -> Self {
        lanes(|i| self.0[i] >> count)
    }
    fn swap_bytes(self) -> Self {
        lanes(|i| self.0[i].swap_bytes())
    }
    fn select(mask: Mask, yes: Self, no: Self) -> Self {
        lanes(|i| if mask >> i & 1 == 1 { yes.0[i] } else { no.0[i] })
    }
    fn negate_where(self, mask: Mask) -> Self {
        lanes(|i| if mask >> i & 1 == 1 { self.0[i].wrapping_neg() } else { self.0[i] })
    }
    fn equal(self, other: Self) -> Mask {
        mask(|i| self.0[i] == other.0[i])
    }
    fn negative(self) -> Mask {
        mask(|i| self.0[i] >> 63 == 1)
    }
    fn odd(self) -> Mask {
        mask(|i| self.0[i] & 1 == 1)
    }
    fn gather(self, from: [&[u64; 2]; LANES]) -> [Self; 2] {
        [Self(from.map(|pair| pair[0])), Self(from.map(|pair| pair[1]))]
    }
    fn scatter(pair: [Self; 2]) -> [[u64; 2]; LANES] {
        std::array::from_fn(|i| [pair[0].0[i], pair[1].0[i]])
    }
}

impl Products51 for Model {}

impl EightLanes for Model {
    type Narrow = Self;

    fn narrow(self) -> Self {
        self
    }
    fn shuffle_fours<const ORDER: i32>(self) -> Self {
        lanes(|i| self.0[(i & 4) + (ORDER >> (2 * (i & 3)) & 3) as usize])
    }
    fn load_fours(self, low: &[u64; 4], high: &[u64; 4]) -> Self {
        lanes(|i| if i < 4 { low[i] } else { high[i - 4] })
    }
    fn look_up(self, row: &[u64; 16]) -> Self {
        lanes(|i| row[self.0[i] as usize & 15])
    }
}
