use std::path::Path;
use std::sync::Arc;

use super::{Keystore, load};
use crate::backend::Backends;
use crate::error::Result;
use crate::rollback::{RollbackGuard, StoreGuard};
use crate::unlock::Unlock;

/// What a keystore works with beside its store; the default is what [`Keystore::open`] takes.
#[derive(Clone, Debug)]
pub struct KeystoreOptions {
    /// The backends that make, hold and use private keys.
    pub backends: Backends,
    /// What notices that an older copy was put in the place of the store; [`StoreGuard`] by default, which notices that
    /// only while the store is open. A guard belongs to one store. A keystore in memory needs none and asks none.
    pub guard: Arc<dyn RollbackGuard>,
}

impl Default for KeystoreOptions {
    fn default() -> Self {
        Self { backends: Backends::software().clone(), guard: Arc::new(StoreGuard::default()) }
    }
}

impl KeystoreOptions {
    /// As [`Keystore::in_memory`].
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn in_memory(&self) -> Keystore {
        load::in_memory(self).expect("the operating system gives random bytes")
    }

    /// As [`Keystore::create`].
    ///
    /// # Errors
    /// Those of [`Keystore::create`].
    pub fn create(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::create(path, unlock, self)
    }

    /// As [`Keystore::open`].
    ///
    /// # Errors
    /// Those of [`Keystore::open`].
    pub fn open(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::open(path, unlock, self)
    }
}
