//! Numbers as few signed odd digits, apart by at least a window: the sums of points that depend on
//! public numbers alone are shortest so.

/// Calls `put` with the place and the digit of each window of `bits` bits: odd, below 2^(`bits` -
/// 1) in size.
#[inline(always)]
pub(crate) fn digits<const N: usize>(words: &[u64; N], bits: u32, mut put: impl FnMut(usize, i16)) {
    let (mut left, mut place) = (*words, 0);
    while let Some(word) = left.iter().position(|word| *word != 0) {
        if word > 0 {
            left.copy_within(word.., 0);
            left[N - word..].fill(0);
            place += 64 * word;
        }
        let zeros = left[0].trailing_zeros();
        shift(&mut left, zeros);
        place += zeros as usize;
        let window = (left[0] & ((1 << bits) - 1)) as i16;
        let negative = window >> (bits - 1);
        put(place, window - (negative << bits));
        shift(&mut left, bits);
        // A carry of a number that fills its words has a place of its own.
        let mut carry = negative != 0;
        for word in &mut left {
            (*word, carry) = word.overflowing_add(u64::from(carry));
        }
        place += bits as usize;
    }
}

/// Shifts right by less than a word.
#[inline(always)]
fn shift<const N: usize>(words: &mut [u64; N], by: u32) {
    for n in 0..N {
        let above = if n + 1 < N { words[n + 1] } else { 0 };
        words[n] = ((u128::from(above) << 64 | u128::from(words[n])) >> by) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_odd_small_apart_and_make_the_number() {
        let mut random = fastrand::Rng::with_seed(71);
        for n in 0..2000_u64 {
            let shifts = n % 64;
            let number: u128 = match n {
                0..64 => u128::MAX - u128::from(n),
                64..128 => u128::from(n - 64),
                _ => random.u128(..) >> shifts >> shifts,
            };
            for bits in 2..12 {
                let (mut sum, mut next) = (0_u128, 0);
                digits(&[number as u64, (number >> 64) as u64], bits, |place, digit| {
                    assert!(place >= next && digit % 2 != 0 && digit.abs() < 1 << (bits - 1), "{number:x}");
                    next = place + bits as usize;
                    let part = i128::from(digit).cast_unsigned();
                    sum = sum.wrapping_add(if place < 128 { part << place } else { 0 });
                });
                assert_eq!(sum, number);
            }
        }
    }
}
