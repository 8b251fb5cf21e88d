//! The permission to use private keys for a while. A process that shares a store with others renews
//! it each time it has proved that it knows the store's newest state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Code, KmsError, Result};

/// A limit on how old a keystore's view of its store may be while private keys are used.
///
/// A keystore in memory or in a file needs none. Processes that share a store cannot know at once
/// that another process disabled a key. With a lease, none of them signs by a view that is older
/// than the lease is long: so every process stops using a disabled key at most that long after the
/// change was acknowledged.
///
/// The clock counts on while the machine sleeps. A new lease was never renewed and permits nothing.
///
/// ```
/// use std::time::Duration;
///
/// use bulla_kms::{BootInstant, StoreLease};
///
/// let lease = StoreLease::new(Duration::from_secs(5));
/// assert!(!lease.lasts() && lease.age().is_none());
///
/// let before = BootInstant::now();
/// // Here a program asks the store for its newest state.
/// lease.renew(before);
/// assert!(lease.lasts());
/// assert_eq!(lease.renewed_at(), Some(before));
/// ```
#[derive(Debug)]
pub struct StoreLease {
    length: Duration,
    /// The newest moment at which the view was known to be current, plus one nanosecond; 0 for
    /// never.
    renewed: AtomicU64,
}

/// A moment on the lease's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(u64);

impl BootInstant {
    /// This moment.
    pub fn now() -> Self {
        Self(nanoseconds())
    }
}

#[cfg(target_os = "linux")]
fn nanoseconds() -> u64 {
    // Unlike the clock of `Instant`, this one counts the time that the machine sleeps.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn nanoseconds() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl StoreLease {
    /// A lease of this length, which still has to be renewed for the first time.
    pub fn new(length: Duration) -> Self {
        Self { length, renewed: AtomicU64::new(0) }
    }

    /// Renews the lease. `known` is a moment before the store was asked for its newest state, which
    /// this process has now.
    pub fn renew(&self, known: BootInstant) {
        self.renewed.fetch_max(known.0.saturating_add(1), Ordering::AcqRel);
    }

    /// How long ago the process last knew the newest state; `None` if it never did.
    pub fn age(&self) -> Option<Duration> {
        self.age_at(BootInstant::now())
    }

    /// The moment from which the lease counts; `None` if it was never renewed.
    pub fn renewed_at(&self) -> Option<BootInstant> {
        self.renewed.load(Ordering::Acquire).checked_sub(1).map(BootInstant)
    }

    fn age_at(&self, now: BootInstant) -> Option<Duration> {
        let renewed = self.renewed_at()?;
        Some(Duration::from_nanos(now.0.saturating_sub(renewed.0)))
    }

    /// Whether private keys may be used now.
    pub fn lasts(&self) -> bool {
        self.lasts_at(BootInstant::now())
    }

    fn lasts_at(&self, now: BootInstant) -> bool {
        self.age_at(now).is_some_and(|age| age <= self.length)
    }

    /// # Errors
    /// [`Code::Unavailable`] if private keys may not be used now.
    pub(crate) fn check(&self) -> Result<()> {
        if self.lasts() {
            return Ok(());
        }
        Err(KmsError::new(
            Code::Unavailable,
            format!(
                "the keystore's store was out of reach for more than {:?}, so keys may have been disabled meanwhile; \
                 ask another node, or try again when the store is in reach",
                self.length
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant(millis * 1_000_000)
    }

    #[test]
    fn a_lease_lasts_from_the_moment_before_the_question_and_no_longer() {
        let lease = StoreLease::new(Duration::from_millis(10));
        assert!(!lease.lasts_at(at(0)) && lease.age_at(at(0)).is_none(), "it was never renewed");
        lease.renew(at(100));
        assert!(lease.lasts_at(at(110)) && !lease.lasts_at(at(111)));
        assert_eq!(lease.age_at(at(104)), Some(Duration::from_millis(4)));
        lease.renew(at(50));
        assert!(lease.lasts_at(at(110)), "an older answer does not shorten it");
        lease.renew(at(200));
        assert!(lease.lasts_at(at(210)) && !lease.lasts_at(at(211)));
    }

    #[test]
    fn a_lease_that_has_ended_says_so_as_an_error_that_may_be_tried_again() {
        let lease = StoreLease::new(Duration::from_secs(3600));
        let error = lease.check().unwrap_err();
        assert!(error.code == Code::Unavailable && error.retryable);
        lease.renew(BootInstant::now());
        lease.check().unwrap();
    }
}
