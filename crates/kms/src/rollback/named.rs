//! A guard that its store remembers.

use std::sync::Arc;

use super::guard::{RollbackGuard, StoreMark};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::time::Timestamp;

/// A guard with a name that its store remembers: a store that was made with it, or to which
/// [`Keystore::set_guard`](crate::Keystore::set_guard) gave it, opens with a guard of this name alone. So nobody forgets to ask it, and
/// who may write to the store cannot take its name out: that is damage.
///
/// The name says where the guard is found again, to whoever opens the store ([`Keystore::guard_name`](crate::Keystore::guard_name)).
/// What it means is up to him.
#[derive(Clone, Debug)]
pub struct NamedGuard {
    name: String,
    guard: Arc<dyn RollbackGuard>,
}

impl NamedGuard {
    /// The most bytes of a name.
    pub const MAX_NAME: usize = 1024;

    /// Gives a guard a name: 1 to 1024 bytes of UTF-8 without control characters, line separators and marks that reorder text. It is no
    /// secret: it lies in the store in the clear.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] when the name is none.
    pub fn new(name: &str, guard: Arc<dyn RollbackGuard>) -> Result<Self> {
        if name.is_empty() || name.len() > Self::MAX_NAME || name.chars().any(encoding::is_deceptive) {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "the name of a rollback guard has 1 to 1024 bytes, without control characters and marks that reorder text",
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
