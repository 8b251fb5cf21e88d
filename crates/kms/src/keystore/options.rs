use std::path::Path;

use super::{Keystore, load};
use crate::backend::Backends;
use crate::error::Result;
use crate::seal::Argon2Cost;
use crate::unlock::Unlock;

/// What a keystore works with beside its store; the default is what [`Keystore::open`] takes.
#[derive(Clone, Debug)]
pub struct KeystoreOptions {
    /// The backends that make, hold and use private keys.
    pub backends: Backends,
}

impl Default for KeystoreOptions {
    fn default() -> Self {
        Self { backends: Backends::software().clone() }
    }
}

impl KeystoreOptions {
    /// As [`Keystore::in_memory`].
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn in_memory(&self) -> Keystore {
        load::in_memory(&self.backends).expect("the operating system gives random bytes")
    }

    /// As [`Keystore::create`].
    ///
    /// # Errors
    /// Those of [`Keystore::create`].
    pub fn create(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::create(path, unlock, Argon2Cost::DEFAULT, &self.backends)
    }

    /// As [`Keystore::open`].
    ///
    /// # Errors
    /// Those of [`Keystore::open`].
    pub fn open(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::open(path, unlock, &self.backends)
    }
}
