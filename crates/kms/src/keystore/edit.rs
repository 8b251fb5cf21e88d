//! Changes to a keystore: first in the store, then in the snapshot that readers see.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::handle::Keystore;
use super::index::{Index, LoadedKey};
use super::shared_snapshot::{self, Attempt, Edited};
use super::writer::{Edit, NewKeyPair, Writer};
use crate::algorithm::Algorithm;
use crate::backend::{KeyMaterial, SOFTWARE};
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

/// How long a change is retried while other processes keep changing the same store.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A private key that was made on a device for a change that may still fail.
struct OnDevice {
    backend: String,
    algorithm: Algorithm,
    material: KeyMaterial,
}

impl OnDevice {
    fn made_for(edit: &Edit) -> Option<Self> {
        let pair = edit.new_head.as_ref().filter(|_| edit.record.backend != SOFTWARE)?;
        Some(Self {
            backend: edit.record.backend.clone(),
            algorithm: edit.record.key.algorithm(),
            material: pair.material.clone(),
        })
    }
}

impl Keystore {
    /// Makes a change that `plan` derives from the current keys; `plan` returns `None` if there is
    /// nothing to change. If another process changes the store at the same time, `plan` is called
    /// again.
    ///
    /// # Errors
    /// The errors of `plan`; errors of writing; [`Code::Busy`] if others keep changing the store.
    pub(super) fn edit(
        &self,
        mut plan: impl FnMut(&Index) -> Result<Option<Edit>>,
    ) -> Result<Option<Arc<LoadedKey>>> {
        self.persist(|writer, index| {
            let now = self.guard.time()?;
            let Some(edit) = plan(index)? else { return Ok(None) };
            let made = OnDevice::made_for(&edit);
            let key = match writer.commit(&self.cipher, index, edit, now) {
                Ok(key) => Arc::new(key),
                Err(error) => {
                    // Only this error proves that the store does not have the key.
                    if let Some(made) = made.filter(|_| error.code == Code::KeystoreChanged) {
                        self.discard(made);
                    }
                    return Err(error);
                }
            };
            let mut next = index.clone();
            next.insert(Arc::clone(&key));
            Ok(Some((next, key)))
        })
    }

    /// Makes a change by `attempt`, which returns the keys after it, or `None` if there is nothing
    /// to change. If another process changed the store meanwhile, it reads that change and tries
    /// again. Then it tells the rollback guard.
    pub(super) fn persist<T>(
        &self,
        mut attempt: impl FnMut(&mut Writer, &Index) -> Result<Option<(Index, T)>>,
    ) -> Result<Option<T>> {
        let attempt = |writer: &mut Writer, index: &Index| match attempt(writer, index) {
            Ok(Some((mut next, done))) => {
                next.set_generation(writer.state.generation);
                // Readers must see the change even if the guard could not be told.
                let told = self.advance_guard(writer);
                Ok(Attempt::Made { next, result: told.map(|()| done) })
            }
            Ok(None) => Ok(Attempt::Unneeded),
            Err(error) if error.code == Code::KeystoreChanged && writer.store.is_shared() => {
                Ok(Attempt::Outrun)
            }
            Err(error) => Err(error),
        };
        let catch_up = |writer: &mut Writer, index: &Index| {
            if !writer.store.is_shared() {
                return Ok(None);
            }
            writer.catch_up(&self.cipher, &*self.guard, index)
        };
        let mut pace = Pace::new();
        match shared_snapshot::edit(&*self.index, &*self.writer, attempt, catch_up, || pace.again())? {
            Edited::Unneeded => Ok(None),
            Edited::Made(done) => done.map(Some),
            Edited::GaveUp => Err(KmsError::new(
                Code::Busy,
                "other processes keep changing the keystore; try again when they are done",
            )),
        }
    }

    /// Tells the guard the store's new state. [`crate::rollback`] explains why this comes after the
    /// change.
    fn advance_guard(&self, writer: &Writer) -> Result<()> {
        let mark = writer.state.mark(self.cipher.store_name(), &writer.encrypted_state);
        self.guard.advance(&mark).map_err(unguarded)
    }

    /// Deletes a private key that no record mentions. If this fails, the key stays on the device,
    /// where it does no harm.
    fn discard(&self, key: OnDevice) {
        let backend = self.backends.find(&key.backend, key.algorithm);
        let _ = backend.and_then(|backend| backend.destroy(key.algorithm, &key.material));
    }

    /// Makes a private key.
    pub(super) fn generate(&self, backend: &str, algorithm: Algorithm) -> Result<NewKeyPair> {
        let material = self.backends.find(backend, algorithm)?.generate(algorithm)?;
        self.key_pair(backend, algorithm, material)
    }

    /// The key pair of an existing private key.
    pub(super) fn key_pair(
        &self,
        backend: &str,
        algorithm: Algorithm,
        material: KeyMaterial,
    ) -> Result<NewKeyPair> {
        let backend = self.backends.find(backend, algorithm)?;
        let loaded = backend.load(algorithm, &material).and_then(|private_key| {
            let public_key = PublicKey::from_bytes(algorithm, &private_key.public_key()?)?;
            Ok((private_key, public_key))
        });
        match loaded {
            Ok((private_key, public_key)) => Ok(NewKeyPair { material, private_key, public_key }),
            Err(error) => {
                // No record would mention it. Report why it is unusable, not that deleting it
                // failed.
                let _ = backend.destroy(algorithm, &material);
                Err(error)
            }
        }
    }

    /// Locks the store, for callers that read all of it.
    pub(super) fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The error of a change that is in the store, and that the rollback guard does not know. It must
/// not say that the same call may succeed later: that would make the change twice.
pub(super) fn unguarded(error: KmsError) -> KmsError {
    let code = if error.retryable { Code::OutcomeUnknown } else { error.code };
    let message = format!("the change was made, but the rollback guard could not record it: {error}");
    KmsError::new(code, message).with_source(error)
}

/// The pauses between attempts, and the limit on their sum.
struct Pace {
    start: Instant,
    pause: Duration,
}

impl Pace {
    fn new() -> Self {
        Self { start: Instant::now(), pause: Duration::from_micros(100) }
    }

    /// Waits; returns false once the limit is reached.
    fn again(&mut self) -> bool {
        std::thread::sleep(self.pause);
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        self.start.elapsed() < PATIENCE
    }
}
