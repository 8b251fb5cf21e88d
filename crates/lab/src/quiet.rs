//! Whether something else uses the core that this process runs on: the other thread of a core with two, from within or from another
//! virtual machine, which no count of processes shows.
//!
//! It matters for ratios, and a copy of the peer beside the peer does not show it: a kernel that keeps all ports of the core busy loses more
//! than one that waits for its own results. Four independent chains of additions take hardly longer than one on a core of our own, since it has
//! four units for them. Beside another thread they take 1.3 to 2 times as long.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Steps of one probe: some 2 us.
const STEPS: u32 = 4096;

/// A probe may take this many times the fastest one: those beside another thread take more than 1.25 times as long.
const MARGIN: f64 = 1.12;

/// The fastest probe of four chains may take this many times the fastest of one chain. Else the process never had the core for itself.
const CHAINS: f64 = 1.25;

/// What the probes of this process have found so far.
#[derive(Debug)]
pub struct Quiet {
    one: Duration,
    four: Duration,
}

impl Quiet {
    /// Probes until the figures settle, for some milliseconds.
    pub fn calibrate() -> Self {
        let mut quiet = Self { one: Duration::MAX, four: Duration::MAX };
        for _ in 0..200 {
            quiet.one = quiet.one.min(chains::<1>());
            quiet.four = quiet.four.min(chains::<4>());
        }
        quiet
    }

    /// Whether the core is our own at this moment.
    pub fn now(&mut self) -> bool {
        let probe = chains::<4>();
        self.four = self.four.min(probe);
        let is_own = self.four.as_secs_f64() <= CHAINS * self.one.as_secs_f64();
        is_own && probe.as_secs_f64() <= MARGIN * self.four.as_secs_f64()
    }

    /// Waits until the core is our own, at most until `deadline`.
    pub fn wait(&mut self, deadline: Instant) {
        while !self.now() && Instant::now() < deadline {}
    }
}

/// The time of `N` independent chains, each of two dependent steps a turn.
#[inline(never)]
fn chains<const N: usize>() -> Duration {
    let mut x: [u64; N] = black_box([0x9e37_79b9_7f4a_7c15; N]);
    let (add, flip) = (black_box(0x5851_f42d_4c95_7f2d_u64), black_box(0x1405_7b7e_f767_814f_u64));
    let start = Instant::now();
    for _ in 0..STEPS / 4 {
        for _ in 0..2 {
            for x in &mut x {
                // A multiplication-free step that compilers do not turn into vector code: there is no vector rotate.
                *x = x.rotate_left(7).wrapping_add(add);
            }
            for x in &mut x {
                *x = x.rotate_left(9) ^ flip;
            }
        }
    }
    black_box(x);
    start.elapsed()
}
