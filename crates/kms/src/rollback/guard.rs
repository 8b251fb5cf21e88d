//! The interface of rollback guards, the guard that every store has, and guards that a store
//! remembers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::time::Timestamp;

/// Identifies one state of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// The store's name, derived from its root key. It is not a secret.
    pub store: [u8; 16],
    /// Increases by one with each change of the store.
    pub counter: u64,
    /// The time of the last change: the result of [`RollbackGuard::time`] at that moment.
    pub changed: Timestamp,
    /// The BLAKE3 digest of the encrypted state. It differs between two copies of a store that were
    /// changed separately.
    pub digest: [u8; 32],
}

/// Remembers the last change of a store, outside the store.
///
/// Many threads may use one guard. If it is outside the process, many processes may use it too.
pub trait RollbackGuard: fmt::Debug + Send + Sync {
    /// Checks that a store that was just read may be used.
    ///
    /// # Errors
    /// [`Code::RolledBack`] if it is older than the guard allows; [`Code::GuardMismatch`] if the
    /// guard belongs to another store or is damaged; errors of reaching the guard. A missing guard
    /// is an error: otherwise, anyone who can remove the guard could disable it.
    fn check(&self, mark: &StoreMark) -> Result<()>;

    /// Remembers this state of the store. The guard's new state is durable when this returns. A
    /// mark that is older than the guard's own is ignored: another process was quicker.
    ///
    /// # Errors
    /// Errors of reaching the guard.
    fn advance(&self, mark: &StoreMark) -> Result<()>;

    /// The name by which a store remembers this guard. By default there is none, and the store does
    /// not remember it: see [`NamedGuard`](super::NamedGuard).
    fn name(&self) -> Option<&str> {
        None
    }

    /// The time with which the next change is marked; by default the system clock's.
    ///
    /// # Errors
    /// Errors of reaching the guard.
    fn time(&self) -> Result<Timestamp> {
        Timestamp::now()
    }
}

/// The error for a store that is behind its guard.
pub(crate) fn rolled_back(found: u64, known: u64) -> KmsError {
    KmsError::new(
        Code::RolledBack,
        format!(
            "the keystore is an older copy of itself: it is at change {found} and was at change {known}; \
             find the newest copy, or make a new guard to accept this one"
        ),
    )
}

/// The counter in the store itself, which every store has. It detects a store that goes back while
/// this process has it open. It does not detect an older copy of the whole store that is opened
/// later, because the counter went back with it. This is the default.
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

/// A guard with a name that its store remembers. A store that was made with it, or that got it from
/// [`Keystore::set_guard`](crate::Keystore::set_guard), opens only with a guard of this name. So
/// nobody can forget to ask the guard. If someone who can write to the store removes the name, the
/// store is reported as damaged.
///
/// The name tells the program that opens the store where to find the guard
/// ([`Keystore::guard_name`](crate::Keystore::guard_name)). The program defines what the name
/// means.
#[derive(Clone, Debug)]
pub struct NamedGuard {
    name: String,
    guard: Arc<dyn RollbackGuard>,
}

impl NamedGuard {
    /// The maximum length of a name in bytes.
    pub const MAX_NAME_LEN: usize = 1024;

    /// Gives a guard a name: 1 to 1024 bytes of UTF-8 without control characters, line separators
    /// and marks that reorder text. The name is not a secret: the store contains it as plain text.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the name breaks these rules.
    pub fn new(name: &str, guard: Arc<dyn RollbackGuard>) -> Result<Self> {
        if name.is_empty() || name.len() > Self::MAX_NAME_LEN || name.chars().any(encoding::is_deceptive) {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "a rollback guard's name has 1 to 1024 bytes, without control characters and without marks that reorder text",
            ));
        }
        Ok(Self { name: name.to_owned(), guard })
    }
}

impl RollbackGuard for NamedGuard {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        self.guard.check(mark)
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        self.guard.advance(mark)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn time(&self) -> Result<Timestamp> {
        self.guard.time()
    }
}
