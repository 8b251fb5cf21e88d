//! How a keystore changes: one record at a time, on the store first and then for those who read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::{Index, LoadedKey, Sealed};
use super::load;
use super::{Keystore, MutexGuard, PoisonError};
use crate::algorithm::{Algorithm, Use};
use crate::backend::{KeyMaterial, PrivateKey};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyId;
use crate::policy::Origin;
use crate::public_key::PublicKey;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::seal::{Place, Sealer};
use crate::store::{Change, Row, STATE, Store, Table};
use crate::time::Timestamp;

/// For how long a change is tried when others keep changing the same store.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The store and what is needed to write to it.
pub(super) struct Writer {
    pub(super) store: Box<dyn Store>,
    pub(super) state: StoreState,
    /// The row in which the state is stored.
    pub(super) sealed_state: Vec<u8>,
}

/// A change to one key: what its record becomes, and the private key of its head if that is new.
pub(super) struct Edit {
    pub(super) record: KeyRecord,
    pub(super) new_head: Option<NewKeyPair>,
}

/// A private key that was just made.
pub(super) struct NewKeyPair {
    material: KeyMaterial,
    private_key: Arc<dyn PrivateKey>,
    pub(super) public_key: PublicKey,
}

/// What the next version of a key has.
pub(super) struct NewVersion {
    pub(super) public_key: PublicKey,
    pub(super) origin: Origin,
    /// The private key; none where only the public key is had.
    pub(super) pair: Option<NewKeyPair>,
}

impl NewVersion {
    /// One whose key was just made.
    pub(super) fn generated(pair: NewKeyPair) -> Self {
        Self { public_key: pair.public_key.clone(), origin: Origin::Generated, pair: Some(pair) }
    }
}

impl Keystore {
    /// Makes a change that `plan` works out from the keys as they are; `None` when there is nothing to change. When
    /// another process changes the store at the same time, `plan` is asked again.
    ///
    /// # Errors
    /// Those of `plan`; those of writing; [`Code::Busy`] when others keep changing the store.
    pub(super) fn edit(
        &self,
        mut plan: impl FnMut(&Index) -> Result<Option<Edit>>,
    ) -> Result<Option<Arc<LoadedKey>>> {
        self.persist(|writer| {
            let index = self.index.load_full();
            let Some(edit) = plan(&index)? else { return Ok(None) };
            let key = Arc::new(writer.commit(&self.sealer, &index, edit, self.guard.time()?)?);
            let mut index = Index::clone(&index);
            index.insert(Arc::clone(&key));
            self.index.store(Arc::new(index));
            Ok(Some(key))
        })
    }

    /// Makes a change by `attempt`, which gives `None` when there is nothing to change; when another process changed the
    /// store meanwhile, takes up what it changed and tries again. Then tells the rollback guard.
    pub(super) fn persist<T>(
        &self,
        mut attempt: impl FnMut(&mut Writer) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut writer = self.writer();
        let (start, mut pause) = (Instant::now(), Duration::from_micros(100));
        while start.elapsed() < PATIENCE {
            match attempt(&mut writer) {
                Ok(Some(done)) => {
                    self.advance_guard(&writer)?;
                    return Ok(Some(done));
                }
                Ok(None) => return Ok(None),
                Err(error) if error.code == Code::StoreChanged && writer.store.is_shared() => {
                    std::thread::sleep(pause);
                    pause = LONGEST_PAUSE.min(pause * 2);
                    self.reload(&mut writer)?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(KmsError::new(
            Code::Busy,
            "other processes keep changing the keystore; try again when they are done",
        ))
    }

    /// Takes up what others changed in a shared store.
    fn reload(&self, writer: &mut Writer) -> Result<()> {
        let rows = writer.store.load()?;
        let (state, sealed_state, index) = load::index(&self.sealer, &rows, Some(&self.index.load()))?;
        self.guard.check(&state.mark(self.sealer.store(), &sealed_state))?;
        (writer.state, writer.sealed_state) = (state, sealed_state);
        self.index.store(Arc::new(index));
        self.advance_guard(writer)
    }

    /// Tells the guard of the state that the store has now: see [`crate::rollback`] for why not before.
    fn advance_guard(&self, writer: &Writer) -> Result<()> {
        let mark = writer.state.mark(self.sealer.store(), &writer.sealed_state);
        self.guard.advance(&mark).map_err(|error| {
            let message = format!("the change was made, but its rollback guard was not told: {error}");
            KmsError::new(error.code, message).with_source(error)
        })
    }

    /// Makes a private key.
    pub(super) fn generate(&self, backend: &str, algorithm: Algorithm) -> Result<NewKeyPair> {
        let material = self.backends.find(backend, algorithm)?.generate(algorithm)?;
        self.key_pair(backend, algorithm, material)
    }

    /// The key pair of a private key that is there.
    pub(super) fn key_pair(
        &self,
        backend: &str,
        algorithm: Algorithm,
        material: KeyMaterial,
    ) -> Result<NewKeyPair> {
        let backend = self.backends.find(backend, algorithm)?;
        let private_key = backend.load(algorithm, &material)?;
        let public_key = PublicKey::from_bytes(algorithm, &private_key.public_key()?)?;
        Ok(NewKeyPair { material, private_key, public_key })
    }

    /// A panic while the lock is held leaves nothing half-changed: the index is replaced as a whole, and the store
    /// compares its state before each change.
    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn commit(&mut self, sealer: &Sealer, index: &Index, edit: Edit, time: Timestamp) -> Result<LoadedKey> {
        let Edit { record, new_head } = edit;
        let old = index.key(&record.key).ok();
        let family = record.key.to_string();
        let sealed = sealer.seal(Place::KeyRecord(family.clone()), &record.to_bytes())?;
        let binding = sealer.bind(&sealed);
        let mut state = self.state;
        state.replace(old.map(|old| &old.binding), &binding);
        let mut rows = vec![(Table::Records, family, Some(sealed))];
        let head = match new_head {
            Some(pair) => {
                let id = record.key.version(record.head()).to_string();
                let sealed = sealer.seal(Place::PrivateKey(id.clone()), &pair.material)?;
                rows.push((Table::PrivateKeys, id, Some(sealed.clone())));
                Sealed::opened(sealed, pair.private_key)
            }
            None if !record.head_version().is_held() => Sealed::new(Vec::new()),
            None => Arc::clone(&old.expect("a key's first record comes with its private key").head),
        };
        let older = old.map(|old| older(old, &record)).unwrap_or_default();
        let gone = old.into_iter().flat_map(|old| no_longer_held(&old.record, &record));
        rows.extend(gone.map(|id| (Table::PrivateKeys, id.to_string(), None)));
        self.commit_rows(sealer, state, rows, time)?;
        Ok(LoadedKey { record, binding, head, older })
    }

    /// Writes rows together with the state that they lead to, as the next change after the one that was last seen.
    pub(super) fn commit_rows(
        &mut self,
        sealer: &Sealer,
        mut state: StoreState,
        mut rows: Vec<Row>,
        time: Timestamp,
    ) -> Result<()> {
        state.generation += 1;
        state.changed = time;
        let sealed_state = sealer.seal(Place::StoreState, &state.to_bytes())?;
        rows.push((Table::Meta, STATE.to_owned(), Some(sealed_state.clone())));
        self.store.commit(Change { expected_state: &self.sealed_state, rows })?;
        (self.state, self.sealed_state) = (state, sealed_state);
        Ok(())
    }
}

/// The private keys of older versions after a change.
fn older(old: &LoadedKey, new: &KeyRecord) -> BTreeMap<u32, Arc<Sealed>> {
    let mut older = old.older.clone();
    if new.head() != old.record.head() && keeps_older(new.key.algorithm()) {
        older.insert(old.record.head().get(), Arc::clone(&old.head));
    }
    older.retain(|version, _| new.version(*version).is_some_and(VersionRecord::is_held));
    older
}

/// Whether the private keys of older versions are of any use.
pub(super) fn keeps_older(algorithm: Algorithm) -> bool {
    match algorithm.usage() {
        Use::Signature => false,
        Use::KeyEncapsulation => true,
    }
}

/// The versions whose private keys the new record gives up.
fn no_longer_held(old: &KeyRecord, new: &KeyRecord) -> impl Iterator<Item = KeyId> {
    let given_up = |(was, is): (&VersionRecord, &VersionRecord)| was.is_held() && !is.is_held();
    let given_up = old.versions.iter().zip(&new.versions).map(given_up);
    (1..)
        .filter_map(NonZeroU32::new)
        .zip(given_up)
        .filter(|(_, given_up)| *given_up)
        .map(|(number, _)| old.key.version(number))
}
