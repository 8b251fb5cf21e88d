//! The keys of a keystore or a service that a verification has asked for.

use super::keys::ReadKeys;
use crate::error::{Error, Result};
use bulla_kms::{Attestation, Code, KeyId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys that are read when a signature names them, each once. Threads may share it.
pub(crate) struct KnownKeys {
    source: Box<dyn ReadKeys + Send + Sync>,
    read: Mutex<ReadSoFar>,
}

/// What was read so far.
#[derive(Default)]
struct ReadSoFar {
    /// None where there is no such key.
    keys: HashMap<KeyId, Option<Attestation>>,
    /// Whether all keys were read.
    all: bool,
    /// Why nothing can be read. It would fail for the next file, too, perhaps after a long wait.
    failed: Option<Error>,
}

impl KnownKeys {
    pub(crate) fn new(source: Box<dyn ReadKeys + Send + Sync>) -> Self {
        Self { source, read: Mutex::default() }
    }

    /// The key, if there is one and the user may read it.
    pub(crate) fn key(&self, key_id: &KeyId) -> Result<Option<Attestation>> {
        let mut read = self.lock();
        if let Some(key) = read.keys.get(key_id) {
            return Ok(key.clone());
        }
        if !read.all {
            read.attempt(|read| self.ask(key_id, read))?;
        }
        Ok(read.keys.get(key_id).cloned().flatten())
    }

    /// All keys that the user may read.
    pub(crate) fn all(&self) -> Result<Vec<Attestation>> {
        let mut read = self.lock();
        if !read.all {
            read.attempt(|read| self.ask_for_all(read))?;
        }
        Ok(read.keys.values().flatten().cloned().collect())
    }

    fn ask(&self, key_id: &KeyId, read: &mut ReadSoFar) -> Result<()> {
        let key = match self.source.key(&key_id.to_string()) {
            Ok(key) => (key.key == *key_id).then_some(key),
            Err(error) if error.code() == Code::KeyNotFound.as_str() => None,
            // A service says the same of a key that does not exist, and to a user who may read
            // none. The list tells them apart.
            Err(error) if error.code() == Code::Forbidden.as_str() => return self.ask_for_all(read),
            Err(error) => return Err(error),
        };
        read.keys.insert(key_id.clone(), key);
        Ok(())
    }

    fn ask_for_all(&self, read: &mut ReadSoFar) -> Result<()> {
        read.keys = self.source.list()?.into_iter().map(|key| (key.key.clone(), Some(key))).collect();
        read.all = true;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, ReadSoFar> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadSoFar {
    fn attempt(&mut self, ask: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        ask(self).inspect_err(|error| self.failed = Some(error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A service that cannot be reached.
    #[derive(Default)]
    struct Gone(AtomicUsize);

    impl ReadKeys for &'static Gone {
        fn list(&self) -> Result<Vec<Attestation>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Error::new("unreachable", "a message"))
        }

        fn key(&self, _name: &str) -> Result<Attestation> {
            self.list().map(|_| unreachable!("there is no key"))
        }
    }

    #[test]
    fn a_service_that_cannot_be_reached_is_asked_once() {
        let gone: &'static Gone = Box::leak(Box::default());
        let keys = KnownKeys::new(Box::new(gone));
        for number in 1..=3 {
            let key_id = format!("local/files/ed25519/01890a5d-ac96-774b-bcce-b302099a805{number}");
            let error = keys.key(&key_id.parse().unwrap()).unwrap_err();
            assert_eq!(error.code(), "unreachable");
        }
        assert_eq!(keys.all().unwrap_err().code(), "unreachable");
        assert_eq!(gone.0.load(Ordering::Relaxed), 1);
    }
}
