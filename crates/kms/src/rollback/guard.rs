//! What a rollback guard is, and the one that every store has.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Code, KmsError, Result};
use crate::time::Timestamp;

/// Identifies one state of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// The store's name, derived from its root key. It is not a secret.
    pub store: [u8; 16],
    /// One more with each change of the store.
    pub counter: u64,
    /// The time of the last change: the result of [`RollbackGuard::time`] at that moment.
    pub changed: Timestamp,
    /// BLAKE3 of the sealed state: two copies of a store that went different ways differ in it.
    pub digest: [u8; 32],
}

/// Remembers the last change of a store, outside the store.
///
/// Many threads may use one guard. If it is outside the process, many processes may use it too.
pub trait RollbackGuard: fmt::Debug + Send + Sync {
    /// Whether a store that was just read may be used.
    ///
    /// # Errors
    /// [`Code::RolledBack`] when it is older than the guard allows; [`Code::GuardMismatch`] when the guard is another store's
    /// or damaged; those of reaching the guard. A guard that is not there is an error: who can take away the guard must
    /// not thereby switch it off.
    fn check(&self, mark: &StoreMark) -> Result<()>;

    /// Remembers that the store has come this far; it is durable when this returns. A mark behind what the guard
    /// has is ignored: another process was quicker.
    ///
    /// # Errors
    /// Those of reaching the guard.
    fn advance(&self, mark: &StoreMark) -> Result<()>;

    /// The name by which a store remembers this guard; by default it does not: see [`NamedGuard`](super::NamedGuard).
    fn name(&self) -> Option<&str> {
        None
    }

    /// The time with which the next change is marked; by default that of the system's clock.
    ///
    /// # Errors
    /// Those of reaching the guard.
    fn time(&self) -> Result<Timestamp> {
        Timestamp::now()
    }
}

/// The error of a store that is behind its guard.
pub(crate) fn rolled_back(found: u64, known: u64) -> KmsError {
    KmsError::new(
        Code::RolledBack,
        format!(
            "the keystore is an older copy of itself: it is at change {found} and was at change {known}; \
             find the newest copy, or make a new guard to accept this one"
        ),
    )
}

/// The counter in the store itself, which every store has. It detects a store that goes back while this process has it
/// open. It does not detect an older copy of the whole store that is opened later, because the counter went back with it. This is the
/// default.
#[derive(Debug, Default)]
pub struct StoreGuard {
    newest: AtomicU64,
}

impl RollbackGuard for StoreGuard {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        let newest = self.newest.load(Ordering::Acquire);
        if mark.counter < newest { Err(rolled_back(mark.counter, newest)) } else { Ok(()) }
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        self.newest.fetch_max(mark.counter, Ordering::AcqRel);
        Ok(())
    }
}
