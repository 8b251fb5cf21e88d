//! Euclid's algorithm on leading parts of two numbers (Lehmer), for public numbers.

/// The bits of the leading parts with which a round computes. Their last half is precision.
const LEADING_BITS: u32 = 63;
/// The number of bits below which the remainder of a leading part is not precise enough any more.
const MIN_PRECISE_BITS: u32 = 32;

/// The prime, little-endian words.
const PRIME: [u64; 4] = [u64::MAX - 18, u64::MAX, u64::MAX, u64::MAX >> 1];

/// Some steps of the algorithm: number i afterwards is x\[i\] times the first one minus y\[i\]
/// times the second one, or the negative of that.
pub(super) struct Round {
    x: [u64; 2],
    y: [u64; 2],
    /// The number of steps: each exchanges signs.
    steps: usize,
}

impl Round {
    /// Computes steps for the numbers `r`, until one has at most `target_bits` bits: each round
    /// leaves 31 bits less, until leading parts are whole numbers. A quotient need not be exact:
    /// every step leaves a basis of the same lattice. `None` if the next quotient is too long for
    /// one round.
    #[inline(always)]
    pub(super) fn of(r: &[[u64; 4]; 2], target_bits: u32) -> Option<Self> {
        let below = bits(&r[0]).max(bits(&r[1])).saturating_sub(LEADING_BITS);
        let (mut a, mut b) = (leading(&r[0], below), leading(&r[1], below));
        let precise = if below == 0 { 0 } else { MIN_PRECISE_BITS };
        let limit = 1 << target_bits.saturating_sub(below).clamp(precise, LEADING_BITS);
        let mut this = Self { x: [1, 0], y: [0, 1], steps: 0 };
        while b >= limit {
            let (quotient, rest) = (a / b, a % b);
            if rest >> precise == 0 && below > 0 && this.steps > 0 || quotient >> 31 != 0 {
                break;
            }
            (a, b) = (b, rest);
            this.x = [this.x[1], this.x[0] + quotient * this.x[1]];
            this.y = [this.y[1], this.y[0] + quotient * this.y[1]];
            this.steps += 1;
        }
        (this.steps > 0).then_some(this)
    }

    /// Both numbers after the steps; `None` if one would be negative or too long.
    #[inline(always)]
    pub(super) fn numbers(&self, [first, second]: &[[u64; 4]; 2]) -> Option<[[u64; 4]; 2]> {
        let number = |i: usize| {
            let (x, y) = (self.x[i], self.y[i]);
            let even = (self.steps + i).is_multiple_of(2);
            if even { difference(x, first, y, second) } else { difference(y, second, x, first) }
        };
        Some([number(0)?, number(1)?])
    }

    /// The multipliers of both numbers after the steps, which have different signs: `times`
    /// multiplies one.
    #[inline(always)]
    pub(super) fn multipliers<T: Copy>(
        &self,
        [first, second]: [T; 2],
        sum: impl Fn(u64, T, u64, T) -> Option<T>,
    ) -> Option<[T; 2]> {
        Some([sum(self.x[0], first, self.y[0], second)?, sum(self.x[1], first, self.y[1], second)?])
    }

    /// Whether both numbers change their signs.
    #[inline(always)]
    pub(super) fn changes_signs(&self) -> bool {
        self.steps % 2 == 1
    }
}

/// The inverse modulo the prime of the field, of a number below it. `None` if there is none, or a
/// quotient is too long: that is rare for numbers of full length.
pub(super) fn inverse(number: &[u64; 4]) -> Option<[u64; 4]> {
    // r is t times the number or the negative of that, and signs alternate.
    let (mut r, mut t, mut positive) = ([PRIME, *number], [[0; 4], [1, 0, 0, 0]], true);
    while r[1] != [0; 4] {
        let round = Round::of(&r, 0)?;
        r = round.numbers(&r)?;
        t = round.multipliers(t, sum)?;
        positive ^= round.changes_signs();
    }
    match (r[0] == [1, 0, 0, 0], positive) {
        (false, _) => None,
        (true, false) => Some(t[0]),
        (true, true) => difference(1, &PRIME, 1, &t[0]),
    }
}

/// The length of a number.
pub(super) fn bits(words: &[u64; 4]) -> u32 {
    let top = words.iter().rposition(|word| *word != 0);
    top.map_or(0, |n| 64 * n as u32 + 64 - words[n].leading_zeros())
}

/// 64 bits of a number from bit `below` on.
fn leading(words: &[u64; 4], below: u32) -> u64 {
    let (word, bit) = ((below / 64) as usize, below % 64);
    let high = words.get(word + 1).map_or(0, |next| u128::from(*next) << 64);
    ((high | u128::from(words[word])) >> bit) as u64
}

/// `x * a - y * b`, if that is not negative and not longer than 256 bits; x and y are below 2^63.
pub(super) fn difference(x: u64, a: &[u64; 4], y: u64, b: &[u64; 4]) -> Option<[u64; 4]> {
    let (mut out, mut carry) = ([0; 4], 0_i128);
    for n in 0..4 {
        let column = (u128::from(x) * u128::from(a[n])).cast_signed() + carry;
        let column = column - (u128::from(y) * u128::from(b[n])).cast_signed();
        (out[n], carry) = (column as u64, column >> 64);
    }
    (carry == 0).then_some(out)
}

/// `x * a + y * b`, if that is not longer than 256 bits; x and y are below 2^63.
fn sum(x: u64, a: [u64; 4], y: u64, b: [u64; 4]) -> Option<[u64; 4]> {
    let (mut out, mut carry) = ([0; 4], 0_u128);
    for n in 0..4 {
        let column = u128::from(x) * u128::from(a[n]) + u128::from(y) * u128::from(b[n]) + carry;
        (out[n], carry) = (column as u64, column >> 64);
    }
    (carry == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::field64::Element64;

    #[test]
    fn inverses_are_those_of_the_power() {
        let mut random = fastrand::Rng::with_seed(81);
        let mut found = 0;
        for n in 0..5000_u64 {
            let mut number: [u64; 4] = std::array::from_fn(|_| random.u64(..));
            if n % 5 < 3 {
                number[1 + n as usize % 3..].fill(0);
            }
            number[3] &= u64::MAX >> 1;
            if n < 40 {
                number = [PRIME[0] - 1 - n, PRIME[1], PRIME[2], PRIME[3]];
            }
            let Some(inverse) = inverse(&number) else { continue };
            let expected = Element64::from_words(&number).inverse().to_words();
            assert_eq!(inverse, expected, "{number:x?}");
            found += 1;
        }
        // Two of five numbers have their full length. With shorter ones the first quotient is too
        // long.
        assert!(found > 1900, "{found}");
        assert_eq!(inverse(&[0; 4]), None);
        assert_eq!(inverse(&[1, 0, 0, 0]), None);
    }
}
