//! Changes to a keystore: first in the store, then in the snapshot that readers see.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Keystore;
use super::index::{Index, LoadedKey, StoredPrivateKey};
use super::lifecycle::keeps_older;
use super::shared_snapshot::{Attempt, Edited};
use super::{load, maintenance, shared_snapshot};
use crate::algorithm::Algorithm;
use crate::backend::{KeyMaterial, PrivateKey, SOFTWARE};
use crate::encryption::{EnvelopeKind, StoreCipher};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId};
use crate::key_identity::KeyIdentity;
use crate::policy::Origin;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::rollback::{RollbackGuard, rolled_back};
use crate::store::{Change, Changes, Row, Rows, STATE, Store, Table};
use crate::time::Timestamp;

/// How long a change is retried while other processes keep changing the same store.
const MAX_RETRY_TIME: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// A private key that was made on a device for a change that may still fail.
struct OnDevice {
    backend: String,
    algorithm: Algorithm,
    material: KeyMaterial,
}

impl OnDevice {
    fn made_for(edit: &Edit) -> Option<Self> {
        let pair = edit.new_private_key.as_ref().filter(|_| edit.record.backend != SOFTWARE)?;
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
            let identity = KeyIdentity::of(algorithm, &*private_key)?;
            Ok((private_key, identity))
        });
        match loaded {
            Ok((private_key, identity)) => Ok(NewKeyPair { material, private_key, identity }),
            Err(error) => {
                // No record would mention it. Report why it is unusable, not that deleting it
                // failed.
                let _ = backend.destroy(algorithm, &material);
                Err(error)
            }
        }
    }

    /// A key as it is now, and its rows in the store.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`]; [`Code::KeystoreCorrupt`]: the key's record is not the one that the
    /// store's state binds; [`Code::Busy`] if others keep changing the key; errors of reading.
    pub(super) fn stored_key(&self, key_id: &KeyId) -> Result<(Arc<LoadedKey>, Rows)> {
        let name = key_id.to_string();
        let (mut pace, mut unknown) = (Pace::new(), None);
        loop {
            let found = {
                // This process changes nothing between the two.
                let mut writer = self.writer();
                let key = Arc::clone(self.index.load().key(key_id)?);
                let mut rows = writer.store.load_key(&name)?;
                let found = rows.records.remove(&name);
                if found.as_deref().is_some_and(|record| self.cipher.bind(record) == key.binding) {
                    return Ok((key, rows));
                }
                // Whatever another process wrote is known after catching up.
                if !writer.store.is_shared() || unknown.as_ref() == Some(&found) {
                    return Err(KmsError::corrupt(format!(
                        "the keystore was edited: somebody removed the record of {key_id}, or replaced it with an older one"
                    )));
                }
                found
            };
            unknown = Some(found);
            self.catch_up()?;
            if !pace.again() {
                let message = format!("other processes keep changing the key {key_id}; try again later");
                return Err(KmsError::new(Code::Busy, message));
            }
        }
    }

    /// Locks the store, for callers that read it.
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
        self.pause = MAX_PAUSE.min(self.pause * 2);
        self.start.elapsed() < MAX_RETRY_TIME
    }
}

/// The store and what is needed to write to it.
pub(super) struct Writer {
    pub(super) store: Box<dyn Store>,
    pub(super) state: StoreState,
    /// The row in which the state is stored.
    pub(super) encrypted_state: Vec<u8>,
}

/// A change to one key: its next record, and the private key of its latest version if that is new.
pub(super) struct Edit {
    pub(super) record: KeyRecord,
    pub(super) new_private_key: Option<NewKeyPair>,
    /// The private keys of older versions, by their numbers, if the key is new and has several
    /// versions.
    pub(super) older_private_keys: BTreeMap<u32, NewKeyPair>,
}

impl Edit {
    pub(super) fn new(record: KeyRecord, new_private_key: Option<NewKeyPair>) -> Self {
        Self { record, new_private_key, older_private_keys: BTreeMap::new() }
    }
}

/// A private key that was just made.
#[derive(Clone)]
pub(super) struct NewKeyPair {
    pub(super) material: KeyMaterial,
    pub(super) private_key: Arc<dyn PrivateKey>,
    pub(super) identity: KeyIdentity,
}

/// The content of a key's next version.
#[derive(Clone)]
pub(super) struct NewVersion {
    pub(super) identity: KeyIdentity,
    pub(super) origin: Origin,
    /// The private key; `None` if only the public key is known.
    pub(super) pair: Option<NewKeyPair>,
}

impl NewVersion {
    /// A version with a new key pair.
    pub(super) fn generated(pair: NewKeyPair) -> Self {
        Self { identity: pair.identity.clone(), origin: Origin::Generated, pair: Some(pair) }
    }
}

impl Writer {
    /// Reads the store's current keys; `None` if nothing changed. If the store tells which rows
    /// changed, only those are read.
    ///
    /// # Errors
    /// [`Code::RolledBack`] if the store was put back to an older state;
    /// [`Code::GuardMismatch`] if it has another guard;
    /// [`Code::KeystoreCorrupt`]; errors of reading and of the guard.
    /// After an error, nothing has changed here.
    pub(super) fn catch_up(
        &mut self,
        cipher: &StoreCipher,
        guard: &dyn RollbackGuard,
        index: &Index,
    ) -> Result<Option<Index>> {
        let changes = self.store.changes(&self.encrypted_state)?;
        self.apply(changes, cipher, guard, index)
    }

    /// Like [`Writer::catch_up`], with the changes that were announced. It asks the store only if
    /// that is not all.
    ///
    /// # Errors
    /// Those of [`Writer::catch_up`].
    pub(super) fn take_announced(
        &mut self,
        cipher: &StoreCipher,
        guard: &dyn RollbackGuard,
        index: &Index,
    ) -> Result<Option<Index>> {
        match self.store.announced() {
            Some(changes) => self.apply(Some(changes), cipher, guard, index),
            None => self.catch_up(cipher, guard, index),
        }
    }

    /// Applies changed rows; `None` stands for unknown ones, for which everything is read.
    fn apply(
        &mut self,
        changes: Option<Changes>,
        cipher: &StoreCipher,
        guard: &dyn RollbackGuard,
        index: &Index,
    ) -> Result<Option<Index>> {
        let changed = match changes {
            Some(rows) if rows.is_empty() => return Ok(None),
            Some(rows) => load::advance(cipher, &self.state, index, &rows)?,
            None => None,
        };
        let (state, encrypted_state, next) = match changed {
            Some(changed) => changed,
            None => load::index(cipher, &self.store.load()?, Some(index))?,
        };
        maintenance::check_guard_unchanged(&self.state, &state)?;
        let mark = state.mark(cipher.store_name(), &encrypted_state);
        guard.check(&mark)?;
        if state.generation <= self.state.generation && encrypted_state != self.encrypted_state {
            return Err(rolled_back(state.generation, self.state.generation));
        }
        guard.advance(&mark)?;
        (self.state, self.encrypted_state) = (state, encrypted_state);
        Ok(Some(next))
    }

    pub(super) fn commit(
        &mut self,
        cipher: &StoreCipher,
        index: &Index,
        edit: Edit,
        time: Timestamp,
    ) -> Result<LoadedKey> {
        let Edit { record, new_private_key, older_private_keys } = edit;
        let old = index.key(&record.key).ok();
        let key_id = record.key.to_string();
        let encrypted = cipher.encrypt(EnvelopeKind::KeyRecord(key_id.clone()), &record.to_bytes())?;
        let binding = cipher.bind(&encrypted);
        let mut state = self.state;
        state.replace(old.map(|old| &old.binding), &binding);
        let mut rows = vec![(Table::Records, key_id, Some(encrypted))];
        let mut store = |version: NonZeroU32, pair: NewKeyPair| {
            let id = record.key.version(version).to_string();
            let encrypted = cipher.encrypt(EnvelopeKind::PrivateKey(id.clone()), &pair.material)?;
            rows.push((Table::PrivateKeys, id, Some(encrypted.clone())));
            Ok::<_, KmsError>(StoredPrivateKey::with_key(encrypted, pair.private_key))
        };
        let mut restored = BTreeMap::new();
        for (number, pair) in older_private_keys {
            let version = NonZeroU32::new(number).expect("versions are numbered from 1");
            restored.insert(number, store(version, pair)?);
        }
        let latest_key = match new_private_key {
            Some(pair) => store(record.latest_number(), pair)?,
            None if !record.latest_version().is_held() => StoredPrivateKey::new(Vec::new()),
            None => Arc::clone(&old.expect("a key's first record comes with its private key").latest_key),
        };
        let older = old.map_or(restored, |old| older(old, &record));
        let gone = old.into_iter().flat_map(|old| no_longer_held(&old.record, &record));
        rows.extend(gone.map(|id| (Table::PrivateKeys, id.to_string(), None)));
        self.commit_rows(cipher, state, rows, time)?;
        Ok(LoadedKey { record, binding, latest_key, older })
    }

    /// Writes rows and the state that results from them, as the next change after the last one
    /// seen.
    pub(super) fn commit_rows(
        &mut self,
        cipher: &StoreCipher,
        mut state: StoreState,
        mut rows: Vec<Row>,
        time: Timestamp,
    ) -> Result<()> {
        state.generation += 1;
        state.changed = time;
        let encrypted_state = cipher.encrypt(EnvelopeKind::StoreState, &state.to_bytes())?;
        rows.push((Table::Meta, STATE.to_owned(), Some(encrypted_state.clone())));
        self.store.commit(Change { expected_state: &self.encrypted_state, rows })?;
        (self.state, self.encrypted_state) = (state, encrypted_state);
        Ok(())
    }
}

/// The private keys of older versions after a change.
fn older(old: &LoadedKey, new: &KeyRecord) -> BTreeMap<u32, Arc<StoredPrivateKey>> {
    let mut older = old.older.clone();
    if new.latest_number() != old.record.latest_number() && keeps_older(new) {
        older.insert(old.record.latest_number().get(), Arc::clone(&old.latest_key));
    }
    older.retain(|version, _| new.version(*version).is_some_and(VersionRecord::is_held));
    older
}

/// The versions whose private keys the new record gives up.
fn no_longer_held(old: &KeyRecord, new: &KeyRecord) -> impl Iterator<Item = KeyVersionId> {
    let given_up = |(was, is): (&VersionRecord, &VersionRecord)| was.is_held() && !is.is_held();
    let given_up = old.versions.iter().zip(&new.versions).map(given_up);
    (1..)
        .filter_map(NonZeroU32::new)
        .zip(given_up)
        .filter(|(_, given_up)| *given_up)
        .map(|(number, _)| old.key.version(number))
}
