//! Writes to a keystore's store: one record at a time, together with the state that binds all
//! records.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::index::{Index, LoadedKey, Sealed};
use super::lifecycle::keeps_older;
use super::{guard_name, load};
use crate::backend::{KeyMaterial, PrivateKey};
use crate::encryption::{EnvelopeKind, StoreCipher};
use crate::error::Result;
use crate::id::KeyVersionId;
use crate::policy::Origin;
use crate::public_key::PublicKey;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::rollback::{RollbackGuard, rolled_back};
use crate::store::{Change, Changes, Row, STATE, Store, Table};
use crate::time::Timestamp;

/// The store and what is needed to write to it.
pub(super) struct Writer {
    pub(super) store: Box<dyn Store>,
    pub(super) state: StoreState,
    /// The row in which the state is stored.
    pub(super) encrypted_state: Vec<u8>,
}

/// A change to one key: its next record, and the private key of its head if that is new.
pub(super) struct Edit {
    pub(super) record: KeyRecord,
    pub(super) new_head: Option<NewKeyPair>,
}

/// A private key that was just made.
pub(super) struct NewKeyPair {
    pub(super) material: KeyMaterial,
    pub(super) private_key: Arc<dyn PrivateKey>,
    pub(super) public_key: PublicKey,
}

/// The content of a key's next version.
pub(super) struct NewVersion {
    pub(super) public_key: PublicKey,
    pub(super) origin: Origin,
    /// The private key; `None` if only the public key is known.
    pub(super) pair: Option<NewKeyPair>,
}

impl NewVersion {
    /// A version with a new key pair.
    pub(super) fn generated(pair: NewKeyPair) -> Self {
        Self { public_key: pair.public_key.clone(), origin: Origin::Generated, pair: Some(pair) }
    }
}

impl Writer {
    /// Reads the store's current keys; `None` if nothing changed. If the store tells which rows
    /// changed, only those are read.
    ///
    /// # Errors
    /// [`Code::RolledBack`](crate::Code::RolledBack) if the store was put back to an older state;
    /// [`Code::GuardMismatch`](crate::Code::GuardMismatch) if it has another guard;
    /// [`Code::KeystoreCorrupt`](crate::Code::KeystoreCorrupt); errors of reading and of the guard. After
    /// an error, nothing has changed here.
    pub(super) fn catch_up(
        &mut self,
        cipher: &StoreCipher,
        guard: &dyn RollbackGuard,
        index: &Index,
    ) -> Result<Option<Index>> {
        let changes = self.store.changes(&self.encrypted_state)?;
        self.apply(changes, cipher, guard, index)
    }

    /// The same with what the store was told of other processes' changes. It asks the store only if
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
        guard_name::check_unchanged(&self.state, &state)?;
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
        let Edit { record, new_head } = edit;
        let old = index.key(&record.key).ok();
        let key_id = record.key.to_string();
        let sealed = cipher.encrypt(EnvelopeKind::KeyRecord(key_id.clone()), &record.to_bytes())?;
        let binding = cipher.bind(&sealed);
        let mut state = self.state;
        state.replace(old.map(|old| &old.binding), &binding);
        let mut rows = vec![(Table::Records, key_id, Some(sealed))];
        let head = match new_head {
            Some(pair) => {
                let id = record.key.version(record.head()).to_string();
                let sealed = cipher.encrypt(EnvelopeKind::PrivateKey(id.clone()), &pair.material)?;
                rows.push((Table::PrivateKeys, id, Some(sealed.clone())));
                Sealed::opened(sealed, pair.private_key)
            }
            None if !record.head_version().is_held() => Sealed::new(Vec::new()),
            None => Arc::clone(&old.expect("a key's first record comes with its private key").head),
        };
        let older = old.map(|old| older(old, &record)).unwrap_or_default();
        let gone = old.into_iter().flat_map(|old| no_longer_held(&old.record, &record));
        rows.extend(gone.map(|id| (Table::PrivateKeys, id.to_string(), None)));
        self.commit_rows(cipher, state, rows, time)?;
        Ok(LoadedKey { record, binding, head, older })
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
fn older(old: &LoadedKey, new: &KeyRecord) -> BTreeMap<u32, Arc<Sealed>> {
    let mut older = old.older.clone();
    if new.head() != old.record.head() && keeps_older(new) {
        older.insert(old.record.head().get(), Arc::clone(&old.head));
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
