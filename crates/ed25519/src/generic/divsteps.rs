//! Inversion by division steps, in a time that does not depend on the number.
//!
//! Source: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (2019).
//! Their variant with delta = 1/2 at first ends within 590 steps for numbers below 2^256 (Wuille,
//! "Bounds on divsteps iterations in safegcd", 2021).
//!
//! A division step takes odd f, any g and delta to (1 - delta, g, (g - f) / 2) if delta > 0 and g
//! is odd, else to (1 + delta, f, (g + f) / 2) or (1 + delta, f, g / 2), whichever is whole. From f
//! = p and g = z it ends with f = 1 or -1 and g = 0. The low n bits of f and g decide n steps, so
//! [`BATCH_STEPS`] of them become one matrix, and only that is applied to the long numbers.

/// The steps of a batch, and the bits of a digit of f and g.
const BATCH_STEPS: u32 = 59;
/// The number of batches: 590 steps.
const BATCH_COUNT: usize = 10;
/// The low bits of a digit.
const DIGIT_MASK: i64 = (1 << BATCH_STEPS) - 1;

/// The low bits of a limb of a factor modulo the prime.
const LIMB_MASK: i64 = (1 << 51) - 1;

/// The bits of the field that each part of a [`Packed`] word has.
const FIELD_BITS: u32 = 21;

/// The prime in digits of 59 bits.
const PRIME: [i64; 5] =
    [DIGIT_MASK - 18, DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, (1 << (255 - 4 * BATCH_STEPS)) - 1];

/// The effect of some steps on f and g, times a power of two: the new f is row 0 times (f, g), and
/// the new g is row 1. The absolute values of a row have a sum of at most two to the number of
/// steps.
#[derive(Clone, Copy, Debug)]
struct Matrix([[i64; 2]; 2]);

impl Matrix {
    /// `self` after `before`.
    #[inline(always)]
    fn after(&self, before: &Self) -> Self {
        let ([[a, b], [c, d]], [[e, f], [g, h]]) = (self.0, before.0);
        Self([[a * e + b * g, a * f + b * h], [c * e + d * g, c * f + d * h]])
    }
}

/// f and g with their factors, as one word each: for every f that they stand for, the word is f -
/// 2^21 u - 2^42 v after as many steps as it is made for. One operation on the words is one on all
/// three parts. Before the steps, u or v is 1, times two to the number of steps.
///
/// No sum overflows: |u| + |v| is at most two to the number of steps, and with equality for both
/// words, the matrix would have no inverse. u and v are negated because u can be two to the number
/// of steps, and cannot be the negative of that.
type Packed = [i64; 2];

/// The matrix of `N` steps, at most 20, for f and g whose low bits these are.
#[inline(always)]
fn step_matrix<const N: u32>(delta: &mut i64, [f, g]: [i64; 2]) -> Matrix {
    let low = (1 << N) - 1;
    let start = [(f & low) - (1 << (FIELD_BITS + N)), (g & low) - (1 << (2 * FIELD_BITS + N))];
    let [f, g] = steps::<N>(delta, start);
    Matrix([factors(f), factors(g)])
}

/// u and v of a packed word.
#[inline(always)]
fn factors(word: i64) -> [i64; 2] {
    // Without the low part, which has a sign.
    let both = (word + (1 << (FIELD_BITS - 1))) >> FIELD_BITS;
    let minus_u = both << (64 - FIELD_BITS) >> (64 - FIELD_BITS);
    [-minus_u, -((both - minus_u) >> FIELD_BITS)]
}

/// `N` steps of packed words. `delta` has twice the delta of the steps, which is odd.
///
/// Both candidates for each new value are computed, and g's parity chooses by conditional moves.
/// The compiler could make branches of anything that is written in Rust.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn steps<const N: u32>(delta: &mut i64, [mut f, mut g]: Packed) -> Packed {
    // SAFETY: only the registers that are named change, and the flags.
    unsafe {
        core::arch::asm!(
            ".rept {steps}",
            "mov {sum}, {f}",
            "neg {sum}",
            "mov {next_delta}, {delta}",
            "neg {next_delta}",
            "mov {next_f}, {g}",
            "test {delta}, {delta}",
            "cmovs {sum}, {f}",
            "cmovs {next_delta}, {delta}",
            "cmovs {next_f}, {f}",
            "add {sum}, {g}",
            "test {g:e}, 1",
            "cmovnz {g}, {sum}",
            "cmovnz {f}, {next_f}",
            "cmovnz {delta}, {next_delta}",
            "sar {g}",
            "add {delta}, 2",
            ".endr",
            steps = const N,
            f = inout(reg) f,
            g = inout(reg) g,
            delta = inout(reg) *delta,
            sum = out(reg) _,
            next_f = out(reg) _,
            next_delta = out(reg) _,
            options(pure, nomem, nostack)
        );
    }
    [f, g]
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn steps<const N: u32>(delta: &mut i64, words: Packed) -> Packed {
    portable_steps::<N>(delta, words)
}

/// Like `steps`, by masks.
#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
#[inline(always)]
fn portable_steps<const N: u32>(delta: &mut i64, [mut f, mut g]: Packed) -> Packed {
    for _ in 0..N {
        let odd = -(g & 1);
        let positive = !(*delta >> 63);
        let swap = odd & positive;
        let sum = g + (((f ^ positive) - positive) & odd);
        f ^= (f ^ g) & swap;
        *delta = ((*delta ^ swap) - swap) + 2;
        g = sum >> 1;
    }
    [f, g]
}

/// The matrix of a batch.
#[inline(always)]
fn batch(delta: &mut i64, f: i64, g: i64) -> Matrix {
    let first = step_matrix::<20>(delta, [f, g]);
    let [f, g] = applied_to_low(&first, [f, g]);
    let second = step_matrix::<20>(delta, [f, g]);
    let [f, g] = applied_to_low(&second, [f, g]);
    let third = step_matrix::<{ BATCH_STEPS - 40 }>(delta, [f, g]);
    third.after(&second.after(&first))
}

/// f and g after twenty steps. The bits that lack at the top do not matter for the steps that
/// follow in the same batch.
#[inline(always)]
fn applied_to_low(matrix: &Matrix, [f, g]: [i64; 2]) -> [i64; 2] {
    matrix.0.map(|[u, v]| u.wrapping_mul(f).wrapping_add(v.wrapping_mul(g)) >> 20)
}

/// u f + v g, divided by 2^59 without a rest.
#[inline(always)]
fn digits([u, v]: [i64; 2], f: &[i64; 5], g: &[i64; 5]) -> [i64; 5] {
    let column = |n: usize| i128::from(u) * i128::from(f[n]) + i128::from(v) * i128::from(g[n]);
    let mut carry = column(0) >> BATCH_STEPS;
    let mut out = [0; 5];
    for n in 1..5 {
        carry += column(n);
        out[n - 1] = carry as i64 & DIGIT_MASK;
        carry >>= BATCH_STEPS;
    }
    out[4] = carry as i64;
    out
}

/// u d + v e modulo the prime, as limbs of 51 bits. The limbs have signs, and stay below 2^52 like
/// those of d and e: two rounds compute all carries at once.
#[inline(always)]
fn limbs([u, v]: [i64; 2], d: &[i64; 5], e: &[i64; 5]) -> [i64; 5] {
    let column = |n: usize| i128::from(u) * i128::from(d[n]) + i128::from(v) * i128::from(e[n]);
    let columns = [column(0), column(1), column(2), column(3), column(4)];
    let low = |n: usize| columns[n] as i64 & LIMB_MASK;
    let high = |n: usize| (columns[n] >> 51) as i64;
    // 19 times the top carry can have more than 64 bits.
    let first = i128::from(low(0)) + 19 * i128::from(high(4));
    let rest = [low(1) + high(0), low(2) + high(1), low(3) + high(2), low(4) + high(3)];
    let low = |limb: i64| limb & LIMB_MASK;
    [
        low(first as i64) + 19 * (rest[3] >> 51),
        low(rest[0]) + (first >> 51) as i64,
        low(rest[1]) + (rest[0] >> 51),
        low(rest[2]) + (rest[1] >> 51),
        low(rest[3]) + (rest[2] >> 51),
    ]
}

/// The inverse, modulo the prime, of a number below it in little-endian words, times 2^590: the
/// steps do not halve the factors. 0 of 0.
///
/// The result is in limbs of 51 bits, whose absolute values are below 2^52.
#[inline(always)]
pub(super) fn scaled_inverse(words: &[u64; 4]) -> [i64; 5] {
    let w = words;
    let digit = |bits: u64| bits as i64 & DIGIT_MASK;
    let (mut f, mut g) = (
        PRIME,
        [
            digit(w[0]),
            digit(w[0] >> 59 | w[1] << 5),
            digit(w[1] >> 54 | w[2] << 10),
            digit(w[2] >> 49 | w[3] << 15),
            digit(w[3] >> 44),
        ],
    );
    // The factors of z, times two to the number of steps.
    let (mut d, mut e) = ([0; 5], [1, 0, 0, 0, 0]);
    let mut delta = 1;
    for _ in 0..BATCH_COUNT {
        let Matrix([first, second]) = batch(&mut delta, f[0], g[0]);
        (f, g) = (digits(first, &f, &g), digits(second, &f, &g));
        (d, e) = (limbs(first, &d, &e), limbs(second, &d, &e));
    }
    debug_assert_eq!(g, [0; 5], "590 steps end with 0");
    // f is 1 or -1, or the prime if the number was 0, and then d is 0.
    let sign = f[4] >> 63;
    for limb in &mut d {
        *limb = (*limb ^ sign) - sign;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrix is that of single steps, by whole numbers.
    #[test]
    fn a_batch_is_its_steps() {
        let mut random = fastrand::Rng::with_seed(59);
        let ends = [0, 1, DIGIT_MASK, DIGIT_MASK - 1, 1 << 58];
        for n in 0..2000 {
            let mut number = || {
                if random.u8(..) < 64 { *random.choice(&ends).unwrap() } else { random.i64(0..=DIGIT_MASK) }
            };
            let (f, g) = (number() | 1, number());
            let mut delta = if n % 2 == 0 { 1 } else { 2 * random.i64(-50..50) + 1 };
            let (mut slow_delta, mut slow) = (delta, [i128::from(f), i128::from(g)]);
            // f and g are multiplied, so that every step can be divided.
            let mut rows = [[1_i128, 0], [0, 1]];
            for _ in 0..BATCH_STEPS {
                let ([f, g], [of_f, of_g]) = (slow, rows);
                let twice = |row: [i128; 2]| row.map(|factor| 2 * factor);
                if g % 2 == 0 {
                    (slow, rows, slow_delta) = ([f, g / 2], [twice(of_f), of_g], slow_delta + 2);
                } else if slow_delta > 0 {
                    rows = [twice(of_g), [of_g[0] - of_f[0], of_g[1] - of_f[1]]];
                    (slow, slow_delta) = ([g, (g - f) / 2], 2 - slow_delta);
                } else {
                    rows = [twice(of_f), [of_g[0] + of_f[0], of_g[1] + of_f[1]]];
                    (slow, slow_delta) = ([f, (g + f) / 2], slow_delta + 2);
                }
            }
            let matrix = batch(&mut delta, f, g);
            assert_eq!(matrix.0.map(|row| row.map(i128::from)), rows, "{f:x} {g:x}");
            assert_eq!(delta, slow_delta);
        }
    }

    #[test]
    fn steps_by_masks_are_those_by_conditional_moves() {
        let mut random = fastrand::Rng::with_seed(60);
        for _ in 0..2000 {
            let words = [random.i64(..) >> 2 | 1, random.i64(..) >> 2];
            let start = 2 * random.i64(-60..60) + 1;
            let (mut one, mut other) = (start, start);
            assert_eq!(steps::<20>(&mut one, words), portable_steps::<20>(&mut other, words));
            assert_eq!(one, other);
        }
    }
}
