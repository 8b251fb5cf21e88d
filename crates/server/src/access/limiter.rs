//! How many requests a caller may make.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A rate: so many requests a second, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Requests a second over a long time.
    pub per_second: NonZeroU32,
    /// The most requests at once.
    pub burst: NonZeroU32,
}

/// Holds a caller to a rate, by the generic cell rate algorithm (ITU-T I.371): one time says how much of the burst is used.
#[derive(Debug)]
pub(crate) struct Limiter {
    start: Instant,
    /// When the caller would have made so many requests at the steady rate; nanoseconds after `start`.
    due: AtomicU64,
    interval: u64,
    tolerance: u64,
}

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self::spaced(Duration::from_nanos(1_000_000_000 / u64::from(rate.per_second.get())), rate.burst)
    }

    /// One request in each `interval`, and so many at once after a pause.
    pub(crate) fn spaced(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let tolerance = interval.saturating_mul(u64::from(burst.get() - 1));
        Self { start: Instant::now(), due: AtomicU64::new(0), interval, tolerance }
    }

    /// Counts so many requests, or refuses all of them and says for how long.
    pub(crate) fn take(&self, requests: u32) -> Result<(), Duration> {
        self.take_at(requests, u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn take_at(&self, requests: u32, now: u64) -> Result<(), Duration> {
        let cost = self.interval.saturating_mul(u64::from(requests));
        let mut due = self.due.load(Ordering::Relaxed);
        loop {
            let begin = due.max(now);
            // The first request of a batch is as due as a single one; the others come after it.
            let last = begin.saturating_add(cost - self.interval.min(cost));
            let wait = last.saturating_sub(now.saturating_add(self.tolerance));
            if wait > 0 {
                return Err(Duration::from_nanos(wait));
            }
            let next = begin.saturating_add(cost);
            match self.due.compare_exchange_weak(due, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => due = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn limiter(per_second: u32, burst: u32) -> Limiter {
        let (per_second, burst) = (per_second.try_into().unwrap(), burst.try_into().unwrap());
        Limiter::new(Rate { per_second, burst })
    }

    /// How many of `tries` single requests at `now` pass.
    fn passing(limiter: &Limiter, tries: u32, now: u64) -> u32 {
        (0..tries).map(|_| u32::from(limiter.take_at(1, now).is_ok())).sum()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limiter = limiter(10, 5);
        assert_eq!(passing(&limiter, 100, 0), 5);
        assert_eq!(passing(&limiter, 100, SECOND / 10), 1);
        assert_eq!(passing(&limiter, 100, SECOND / 10 + SECOND / 5), 2);
        assert_eq!(passing(&limiter, 100, 100 * SECOND), 5, "a pause gives the burst back, and no more");
    }

    #[test]
    fn a_batch_counts_as_its_items_and_is_taken_whole_or_not_at_all() {
        let limiter = limiter(10, 5);
        assert!(limiter.take_at(6, 0).is_err());
        assert!(limiter.take_at(5, 0).is_ok());
        let wait = limiter.take_at(1, 0).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(limiter.take_at(1, SECOND / 10).is_ok(), "after that wait it passes");
        assert!(
            limiter.take_at(0, SECOND / 10).is_err(),
            "nothing passes while the caller is ahead of its rate"
        );
    }
}
