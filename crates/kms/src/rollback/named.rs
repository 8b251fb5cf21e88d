//! A guard that its store remembers.

use std::sync::Arc;

use super::guard::{RollbackGuard, StoreMark};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::time::Timestamp;

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
    /// The most bytes of a name.
    pub const MAX_NAME: usize = 1024;

    /// Gives a guard a name: 1 to 1024 bytes of UTF-8 without control characters, line separators
    /// and marks that reorder text. The name is not a secret: the store contains it as plain text.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the name breaks these rules.
    pub fn new(name: &str, guard: Arc<dyn RollbackGuard>) -> Result<Self> {
        if name.is_empty() || name.len() > Self::MAX_NAME || name.chars().any(encoding::is_deceptive) {
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
