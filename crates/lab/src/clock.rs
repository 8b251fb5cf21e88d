//! The core's clock, estimated without performance counters.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// The number of steps of the chain. With two cycles per step, a sample takes about 10 us, in which
/// the clock hardly changes.
const STEPS: u32 = 16_384;

/// The core clock in GHz, by a chain of operations, each of which waits for the one before.
///
/// An addition and an exclusive or take one cycle each on every core we know, and the optimizer
/// cannot shorten a chain that mixes the two. The result is the best of three, because an
/// interruption can only make the result too low.
pub fn gigahertz() -> f64 {
    let best = (0..3).map(|_| chain(STEPS)).min().unwrap_or_default();
    2.0 * f64::from(STEPS) / best.as_nanos().max(1) as f64
}

/// The time of `steps` dependent steps, each an addition and an exclusive or.
#[inline(never)]
pub(crate) fn chain(steps: u32) -> Duration {
    let (add, flip) = operands();
    let mut x = black_box(1_u64);
    let start = Instant::now();
    for _ in 0..steps {
        x = x.wrapping_add(add) ^ flip;
    }
    black_box(x);
    start.elapsed()
}

/// Two numbers that no compiler knows.
pub(crate) fn operands() -> (u64, u64) {
    black_box((0x9e37_79b9_7f4a_7c15, 0x5851_f42d_4c95_7f2d))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_of_a_real_core_is_plausible() {
        let clock = super::gigahertz();
        assert!((0.05..20.0).contains(&clock), "{clock} GHz");
    }
}
