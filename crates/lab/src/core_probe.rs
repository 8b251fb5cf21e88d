//! Probes of the core that this process runs on, without performance counters: its clock, and
//! whether something else uses it, such as the other thread of a core with two, in this or in
//! another virtual machine. No count of processes shows that.
//!
//! It affects ratios, and a control copy of the peer does not show it: a kernel that keeps all
//! ports of the core busy loses more than one that waits for its own results. Eight independent
//! chains of additions need all of the core's integer units: beside another thread, which takes
//! some, they take 1.15 to 1.8 times as long. One chain takes the same time in both cases, so it
//! serves as the clock for the eight: the core's own clock changes by a tenth within a second.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// The number of steps of the chain. With two cycles per step, a sample takes about 10 us, in which
/// the clock hardly changes.
const CLOCK_STEPS: u32 = 16_384;

/// The core clock in GHz, by a chain of operations, each of which waits for the one before.
///
/// An addition and an exclusive or take one cycle each on every core we know, and the optimizer
/// cannot shorten a chain that mixes the two. The result is the best of three, because an
/// interruption can only make the result too low.
pub fn gigahertz() -> f64 {
    let best = (0..3).map(|_| chain(CLOCK_STEPS)).min().unwrap_or_default();
    2.0 * f64::from(CLOCK_STEPS) / best.as_nanos().max(1) as f64
}

/// The time of `steps` dependent steps, each an addition and an exclusive or.
#[inline(never)]
fn chain(steps: u32) -> Duration {
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
fn operands() -> (u64, u64) {
    black_box((0x9e37_79b9_7f4a_7c15, 0x5851_f42d_4c95_7f2d))
}

/// The number of additions of one chain: about 1.5 us.
const PROBE_STEPS: u32 = 4096;

/// The number of operations of the eight chains, including half a branch, while one chain does one.
const PROBE_OPERATIONS: f64 = 8.5;

/// A probe may take this many times as long as alone. Beside another thread, it takes at least 1.15
/// times as long.
const MAX_PROBE_RATIO: f64 = 1.055;

/// The additions per cycle of an unknown core: the fewest that we measured.
const MIN_ADDITIONS: f64 = 3.43;

/// One chain may take this many times as long as the fastest recent one. Otherwise something
/// interrupted it, or the clock is changing.
const MAX_CLOCK_RATIO: f64 = 1.1;

/// The factor by which the fastest time is relaxed with each probe: it allows a change of the clock
/// by a tenth in a millisecond.
const FORGETTING_FACTOR: f64 = 1.0005;

/// The number of consecutive quiet probes in a stretch: about 90 us, the duration of a round.
const MIN_QUIET_PROBES: u32 = 16;

/// The state of this process's probes.
#[derive(Debug)]
pub struct Quiet {
    /// The fastest recent time of one chain in seconds.
    one: f64,
    /// The maximum time of eight chains, as a multiple of the time of one.
    most: f64,
    /// The number of quiet probes since the last disturbed one.
    streak: u32,
}

impl Quiet {
    /// The state for a core that, alone, does this many of the eight chains' additions per cycle.
    pub fn new(additions: Option<f64>) -> Self {
        Self {
            one: f64::INFINITY,
            most: MAX_PROBE_RATIO * PROBE_OPERATIONS / additions.unwrap_or(MIN_ADDITIONS),
            streak: 0,
        }
    }

    /// Whether the core is currently ours alone. If a first probe denies it, a second one decides.
    ///
    /// While Intel's servers change their clock, after 512-bit operations, they begin fewer
    /// operations for up to 10 us. Eight chains take 1.4 times as long then, like beside another
    /// thread. The next probe is quiet again; beside another thread it rarely is.
    pub fn now(&mut self) -> bool {
        self.now_by(probe)
    }

    fn now_by(&mut self, mut probe: impl FnMut() -> [f64; 3]) -> bool {
        self.step(probe()) || self.step(probe())
    }

    /// Judges a probe, which lengthens or ends the stretch of quiet ones.
    fn step(&mut self, times: [f64; 3]) -> bool {
        let is_own = self.is_own(times);
        self.streak = if is_own { self.streak.saturating_add(1) } else { 0 };
        is_own
    }

    /// Decides by the times of one chain, of eight, and of one again.
    fn is_own(&mut self, [before, eight, after]: [f64; 3]) -> bool {
        self.one = (FORGETTING_FACTOR * self.one).min(before).min(after);
        if before.max(after) > MAX_CLOCK_RATIO * self.one {
            return false;
        }
        2.0 * eight / (before + after) <= self.most
    }

    /// Waits until the core has been ours alone for a stretch, at most until `deadline`. If another
    /// thread comes and goes, a single probe may be quiet by chance, while the time after it is
    /// not.
    pub fn wait(&mut self, deadline: Instant) {
        while self.streak < MIN_QUIET_PROBES && Instant::now() < deadline {
            self.step(probe());
        }
    }
}

/// The times of one chain, of eight, and of one again, in seconds.
fn probe() -> [f64; 3] {
    let one = || chain(PROBE_STEPS / 2);
    [one(), eight_chains(), one()].map(|time| time.as_secs_f64())
}

/// The time of eight such chains at once. Neighbors do different operations at each step, so that
/// no compiler makes them chains of vectors.
#[inline(never)]
fn eight_chains() -> Duration {
    let (add, flip) = operands();
    let (mut a, mut b, mut c, mut d) = black_box((1_u64, 2_u64, 3_u64, 4_u64));
    let (mut e, mut f, mut g, mut h) = black_box((5_u64, 6_u64, 7_u64, 8_u64));
    let start = Instant::now();
    for _ in 0..PROBE_STEPS / 2 {
        a = a.wrapping_add(add) ^ flip;
        b = (b ^ flip).wrapping_sub(add);
        c = c.wrapping_sub(flip) ^ add;
        d = (d ^ add).wrapping_add(flip);
        e = (e ^ add).wrapping_sub(flip);
        f = f.wrapping_sub(add) ^ flip;
        g = g.wrapping_add(flip) ^ add;
        h = (h ^ flip).wrapping_add(add);
    }
    black_box((a, b, c, d));
    black_box((e, f, g, h));
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_real_core_is_plausible() {
        let clock = gigahertz();
        assert!((0.05..20.0).contains(&clock), "{clock} GHz");
    }

    /// Golden Cove, microseconds.
    const ONE: f64 = 1.5;

    #[test]
    fn a_second_probe_decides_and_a_third_is_not_asked() {
        let (own, shared) = ([ONE, 1.86 * ONE, ONE], [ONE, 2.5 * ONE, ONE]);
        for (probes, is_own, streak) in
            [([own, shared, own], true, 1), ([shared, own, own], true, 1), ([shared, shared, own], false, 0)]
        {
            let (mut quiet, mut probes) = (Quiet::new(Some(4.6)), probes.into_iter());
            assert_eq!(quiet.now_by(|| probes.next().expect("three probes")), is_own);
            assert_eq!(quiet.streak, streak);
        }
    }

    #[test]
    fn a_shared_core_is_known_by_its_times() {
        let mut quiet = Quiet::new(Some(4.6));
        assert!(quiet.is_own([ONE, 1.86 * ONE, ONE]));
        assert!(!quiet.is_own([ONE, 2.1 * ONE, ONE]));
        // Relative to the current clock.
        assert!(quiet.is_own([1.05 * ONE, 1.05 * 1.86 * ONE, 1.05 * ONE]));
        assert!(!Quiet::new(Some(5.5)).is_own([ONE, 1.86 * ONE, ONE]));
        // Zen 4: alone, and beside another thread.
        let mut quiet = Quiet::new(Some(3.43));
        assert!(quiet.is_own([ONE, 2.48 * ONE, ONE]));
        assert!(!quiet.is_own([ONE, 2.9 * ONE, ONE]));
        assert!(Quiet::new(None).is_own([ONE, 2.48 * ONE, ONE]));
    }

    #[test]
    fn an_interrupted_chain_does_not_make_a_core_quiet() {
        let mut quiet = Quiet::new(Some(4.6));
        assert!(!quiet.is_own([2.0 * ONE, 2.5 * ONE, ONE]));
        assert!(!quiet.is_own([2.0 * ONE, 2.5 * ONE, 2.0 * ONE]));
    }
}
