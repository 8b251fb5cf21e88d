//! When the end of a token counts as passed.

use std::time::{Duration, Instant};

use bulla_kms::Timestamp;

/// How long after its end a token stays in a list of revocations, and how long a service runs
/// before it drops the first one: the time to correct a wrong clock.
const CLOCK_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// The later of two ends. `None` is no end, which is later than every other.
pub(crate) fn later_expiry(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    Some(one?.max(other?))
}

/// A clock that the system's clock cannot put forward: it counts the time that this process has
/// run, from the earliest start that any reading of the system's clock implies.
#[derive(Debug)]
pub(crate) struct ExpiryClock {
    grace: Duration,
    started: Instant,
    /// Milliseconds since 1970, at `started`.
    start: u64,
}

impl ExpiryClock {
    fn with_grace(grace: Duration) -> Self {
        Self { grace, started: Instant::now(), start: u64::MAX }
    }

    /// A clock that lets an end count as passed at once.
    #[cfg(test)]
    pub(crate) fn without_grace() -> Self {
        Self::with_grace(Duration::ZERO)
    }

    /// Tokens that ended before this time are refused because they ended: no list has to name them.
    pub(crate) fn passed(&mut self) -> Timestamp {
        let now = Timestamp::now().map_or(0, Timestamp::unix_millis);
        let passed = self.passed_at(now, self.started.elapsed());
        Timestamp::from_unix_millis(passed).unwrap_or_default()
    }

    /// [`ExpiryClock::passed`] in milliseconds, when the system's clock says `now` and the process
    /// has run for `running`.
    fn passed_at(&mut self, now: u64, running: Duration) -> u64 {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.start = self.start.min(now.saturating_sub(millis(running)));
        match running.checked_sub(self.grace) {
            Some(counted) => self.start.saturating_add(millis(counted)),
            // The system's clock may have been wrong since the start.
            None => 0,
        }
    }
}

impl Default for ExpiryClock {
    fn default() -> Self {
        Self::with_grace(CLOCK_GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1000;

    fn after(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn no_end_is_later_than_every_end() {
        let at = |millis| Timestamp::from_unix_millis(millis).ok();
        assert_eq!(later_expiry(at(1), at(2)), at(2));
        assert_eq!(later_expiry(at(2), at(1)), at(2));
        assert_eq!((later_expiry(None, at(2)), later_expiry(at(2), None)), (None, None));
    }

    #[test]
    fn a_clock_that_goes_three_days_forward_and_back_passes_no_end_too_soon() {
        let mut clock = ExpiryClock::default();
        assert_eq!(clock.passed_at(100 * DAY, after(0)), 0);
        // A correct clock of a process that runs for ten days, and what it says when it is wrong.
        assert_eq!(clock.passed_at(110 * DAY, after(10 * DAY)), 109 * DAY);
        assert_eq!(clock.passed_at(113 * DAY, after(10 * DAY)), 109 * DAY);
        assert_eq!(clock.passed_at(110 * DAY + 1, after(10 * DAY + 1)), 109 * DAY + 1);
        // Without a clock, nothing passes.
        assert_eq!(clock.passed_at(0, after(10 * DAY + 2)), 9 * DAY + 2);
    }

    #[test]
    fn a_process_that_starts_with_a_wrong_clock_has_a_day_in_which_it_may_be_corrected() {
        let mut clock = ExpiryClock::default();
        assert_eq!(clock.passed_at(103 * DAY, after(0)), 0);
        assert_eq!(clock.passed_at(104 * DAY - 1, after(DAY - 1)), 0);
        assert_eq!(clock.passed_at(101 * DAY, after(DAY)), 100 * DAY);
    }
}
