//! How a keystore changes: one record at a time, on the store first and then for those who read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::devices::OnDevice;
use super::index::{Index, LoadedKey, Sealed};
use super::publish::{self, Attempt, Edited};
use super::{Keystore, guard, load};
use crate::algorithm::{Algorithm, Use};
use crate::backend::{KeyMaterial, PrivateKey, SOFTWARE};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyId;
use crate::policy::Origin;
use crate::public_key::PublicKey;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::rollback::{RollbackGuard, rolled_back};
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
    pub(super) material: KeyMaterial,
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
        self.persist(|writer, index| {
            let now = self.guard.time()?;
            let Some(edit) = plan(index)? else { return Ok(None) };
            let made = OnDevice::made_for(&edit);
            let key = match writer.commit(&self.sealer, index, edit, now) {
                Ok(key) => Arc::new(key),
                Err(error) => {
                    // Only then is it known that the store does not have the key.
                    if let Some(made) = made.filter(|_| error.code == Code::StoreChanged) {
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

    /// Makes a change by `attempt`, which gives the keys as they are then, and `None` when there is nothing to change; when
    /// another process changed the store meanwhile, takes up what it changed and tries again. Then tells the rollback
    /// guard.
    pub(super) fn persist<T>(
        &self,
        mut attempt: impl FnMut(&mut Writer, &Index) -> Result<Option<(Index, T)>>,
    ) -> Result<Option<T>> {
        let attempt = |writer: &mut Writer, index: &Index| match attempt(writer, index) {
            Ok(Some((next, done))) => {
                // What was made is to be seen, also when the guard could not be told.
                let told = self.advance_guard(writer);
                Ok(Attempt::Made { next, result: told.map(|()| done) })
            }
            Ok(None) => Ok(Attempt::Unneeded),
            Err(error) if error.code == Code::StoreChanged && writer.store.is_shared() => Ok(Attempt::Outrun),
            Err(error) => Err(error),
        };
        let catch_up =
            |writer: &mut Writer, index: &Index| writer.catch_up(&self.sealer, &*self.guard, index);
        let mut pace = Pace::new();
        match publish::edit(&*self.index, &*self.writer, attempt, catch_up, || pace.again())? {
            Edited::Unneeded => Ok(None),
            Edited::Made(done) => done.map(Some),
            Edited::GaveUp => Err(KmsError::new(
                Code::Busy,
                "other processes keep changing the keystore; try again when they are done",
            )),
        }
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
        let loaded = backend.load(algorithm, &material).and_then(|private_key| {
            let public_key = PublicKey::from_bytes(algorithm, &private_key.public_key()?)?;
            Ok((private_key, public_key))
        });
        match loaded {
            Ok((private_key, public_key)) => Ok(NewKeyPair { material, private_key, public_key }),
            Err(error) => {
                // Nobody would know of it. Why it is of no use is what is to be told.
                let _ = backend.destroy(algorithm, &material);
                Err(error)
            }
        }
    }

    /// The store, for those who read all of it.
    pub(super) fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// How long to wait between two tries, and for how long in all.
struct Pace {
    start: Instant,
    pause: Duration,
}

impl Pace {
    fn new() -> Self {
        Self { start: Instant::now(), pause: Duration::from_micros(100) }
    }

    /// Waits; false when it has been long enough.
    fn again(&mut self) -> bool {
        std::thread::sleep(self.pause);
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        self.start.elapsed() < PATIENCE
    }
}

impl Writer {
    /// The keys as the store has them now; nothing when that is what is known. Of a store that tells what changed, only
    /// that is read.
    ///
    /// # Errors
    /// [`Code::RolledBack`] when the store was put back to an older state; [`Code::GuardMismatch`] when it has another guard;
    /// [`Code::StoreDamaged`]; those of reading and of the guard. Nothing is taken up then.
    pub(super) fn catch_up(
        &mut self,
        sealer: &Sealer,
        guard: &dyn RollbackGuard,
        index: &Index,
    ) -> Result<Option<Index>> {
        let changed = match self.store.changes(&self.sealed_state)? {
            Some(rows) if rows.is_empty() => return Ok(None),
            Some(rows) => load::advance(sealer, &self.state, index, &rows)?,
            None => None,
        };
        let (state, sealed_state, next) = match changed {
            Some(changed) => changed,
            None => load::index(sealer, &self.store.load()?, Some(index))?,
        };
        guard::check_unchanged(&self.state, &state)?;
        let mark = state.mark(sealer.store(), &sealed_state);
        guard.check(&mark)?;
        if state.generation <= self.state.generation && sealed_state != self.sealed_state {
            return Err(rolled_back(state.generation, self.state.generation));
        }
        guard.advance(&mark)?;
        (self.state, self.sealed_state) = (state, sealed_state);
        Ok(Some(next))
    }

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
pub(super) fn older(old: &LoadedKey, new: &KeyRecord) -> BTreeMap<u32, Arc<Sealed>> {
    let mut older = old.older.clone();
    if new.head() != old.record.head() && keeps_older(new) {
        older.insert(old.record.head().get(), Arc::clone(&old.head));
    }
    older.retain(|version, _| new.version(*version).is_some_and(VersionRecord::is_held));
    older
}

/// Whether the private keys of older versions are of any use: they decapsulate, and those on a device are to be deleted there.
pub(super) fn keeps_older(record: &KeyRecord) -> bool {
    match record.key.algorithm().usage() {
        Use::Signature => record.backend != SOFTWARE,
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
