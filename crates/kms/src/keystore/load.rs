//! Making a keystore, and opening one with the proof that it is whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::edit::{Writer, keeps_older};
use super::index::{Index, LoadedKey, Sealed};
use super::{Keystore, KeystoreOptions};
use crate::error::{Code, KmsError, Result};
use crate::files;
use crate::policy::KeyState;
use crate::record::{KeyRecord, StoreState};
use crate::rollback::{RollbackGuard, StoreGuard};
use crate::seal::{KeyProvider, Place, Protection, RootKey, Sealer};
use crate::store::{EmbeddedStore, FORMAT, MemoryStore, PROTECTION, Rows, STATE, Store};
use crate::unlock::{Unlock, UnlockMethod};

/// The format that this program writes, and the newest that it reads.
const STORE_FORMAT: u32 = 1;

pub(super) fn in_memory(options: &KeystoreOptions) -> Result<Keystore> {
    let sealer = Sealer::new(&RootKey::random()?);
    let guard = Arc::new(StoreGuard::default());
    let rows = Rows { meta: BTreeMap::from([empty_state(&sealer, &*guard)?]), ..Rows::default() };
    let options = KeystoreOptions { guard, ..options.clone() };
    unseal(Box::new(MemoryStore::new(rows.clone())), rows, sealer, &options)
}

pub(super) fn create(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    if path.symlink_metadata().is_ok() {
        return Err(files::already_exists(path));
    }
    let (rows, sealer) = new_rows(&*unlock.provider()?, &*options.guard)?;
    let store = EmbeddedStore::create(path, &rows)?;
    unseal(Box::new(store), rows, sealer, options)
}

/// The rows of a store without keys, and what seals them.
pub(super) fn new_rows(provider: &dyn KeyProvider, guard: &dyn RollbackGuard) -> Result<(Rows, Sealer)> {
    let (protection, root) = Protection::create(provider)?;
    let sealer = Sealer::new(&root);
    let meta = BTreeMap::from([
        (FORMAT.to_owned(), STORE_FORMAT.to_be_bytes().to_vec()),
        (PROTECTION.to_owned(), protection.to_bytes()),
        empty_state(&sealer, guard)?,
    ]);
    Ok((Rows { meta, ..Rows::default() }, sealer))
}

fn empty_state(sealer: &Sealer, guard: &dyn RollbackGuard) -> Result<(String, Vec<u8>)> {
    let state = StoreState { changed: guard.time()?, ..StoreState::default() };
    Ok((STATE.to_owned(), sealer.seal(Place::StoreState, &state.to_bytes())?))
}

/// The root key is opened first, from a look at the file that changes nothing: a wrong secret or a newer format leaves
/// it as it is, and no other process waits while a passphrase is worked on.
pub(super) fn open(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let sealer = EmbeddedStore::peek(path)?.map(|rows| open_root(&rows, unlock)).transpose()?;
    let mut store = EmbeddedStore::open(path)?;
    let rows = store.load()?;
    let sealer = match sealer {
        Some(sealer) => sealer,
        None => open_root(&rows, unlock)?,
    };
    unseal(Box::new(store), rows, sealer, options)
}

pub(super) fn unlock_method(path: &Path) -> Result<UnlockMethod> {
    let rows = match EmbeddedStore::peek(path)? {
        Some(rows) => rows,
        None => EmbeddedStore::open(path)?.load()?,
    };
    Ok(protection(&rows)?.method())
}

/// Opens whatever store it is handed.
#[cfg(test)]
pub(super) fn open_store(mut store: Box<dyn Store>, unlock: &Unlock) -> Result<Keystore> {
    let rows = store.load()?;
    let sealer = open_root(&rows, unlock)?;
    unseal(store, rows, sealer, &KeystoreOptions::default())
}

fn open_root(rows: &Rows, unlock: &Unlock) -> Result<Sealer> {
    Ok(Sealer::new(&protection(rows)?.open(&*unlock.provider()?)?))
}

/// Reads how the store is protected, after its format, which decides whether the rest can be read at all.
pub(super) fn protection(rows: &Rows) -> Result<Protection> {
    let format = rows.meta.get(FORMAT).and_then(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).ok());
    match format.map(u32::from_be_bytes) {
        Some(STORE_FORMAT) => {}
        Some(newer) if newer > STORE_FORMAT => {
            return Err(KmsError::new(
                Code::StoreTooNew,
                format!(
                    "the keystore is of format {newer} and this program reads up to {STORE_FORMAT}; \
                     use a newer version of the program"
                ),
            ));
        }
        _ => return Err(KmsError::damaged("the file is damaged or is not a keystore: it names no format")),
    }
    Protection::parse(meta(rows, PROTECTION)?)
}

fn meta<'a>(rows: &'a Rows, name: &str) -> Result<&'a [u8]> {
    let missing = || KmsError::damaged(format!("the keystore was damaged or edited: its {name} is missing"));
    rows.meta.get(name).map(Vec::as_slice).ok_or_else(missing)
}

/// The keystore on a store with these rows.
pub(super) fn unseal(
    store: Box<dyn Store>,
    rows: Rows,
    sealer: Sealer,
    options: &KeystoreOptions,
) -> Result<Keystore> {
    let (state, sealed_state, index) = index(&sealer, &rows, None)?;
    let mark = state.mark(sealer.store(), &sealed_state);
    options.guard.check(&mark)?;
    options.guard.advance(&mark)?;
    Ok(Keystore {
        index: ArcSwap::from_pointee(index),
        writer: Mutex::new(Writer { store, state, sealed_state }),
        sealer,
        backends: options.backends.clone(),
        guard: Arc::clone(&options.guard),
    })
}

/// Opens all rows and proves that they belong together: each record opens as that of its family, all records are
/// those that the state binds, and there is a private key for each version that has one and for nothing else. Keys
/// that are in `known` as they are in the store are taken from there.
pub(super) fn index(
    sealer: &Sealer,
    rows: &Rows,
    known: Option<&Index>,
) -> Result<(StoreState, Vec<u8>, Index)> {
    let sealed_state = meta(rows, STATE)?.to_vec();
    let state = StoreState::parse(&sealer.open(&Place::StoreState, &sealed_state)?)?;
    let mut found = StoreState::default();
    let mut index = Index::default();
    let mut held = 0;
    for (family, sealed) in &rows.records {
        let binding = sealer.bind(sealed);
        found.replace(None, &binding);
        let known = known.and_then(|known| known.key(&family.parse().ok()?).ok());
        let key = match known.filter(|known| known.binding == binding) {
            Some(known) => Arc::clone(known),
            None => Arc::new(load_key(sealer, rows, family, sealed, binding)?),
        };
        held += key.record.held().count();
        index.insert(key);
    }
    if !found.binds_the_same(&state) {
        return Err(KmsError::damaged(
            "the keystore was edited: a key's record was removed, added or put back to an older one",
        ));
    }
    if rows.private_keys.len() != held {
        return Err(KmsError::damaged(
            "the keystore was edited: it has a private key that belongs to no version",
        ));
    }
    Ok((state, sealed_state, index))
}

/// Opens a record and proves that its private keys are there and open. None of them is kept in the clear.
fn load_key(
    sealer: &Sealer,
    rows: &Rows,
    family: &str,
    sealed: &[u8],
    binding: [u8; 32],
) -> Result<LoadedKey> {
    let record = KeyRecord::parse(&sealer.open(&Place::KeyRecord(family.to_owned()), sealed)?)?;
    if record.key.to_string() != family {
        return Err(KmsError::damaged(format!(
            "the keystore was edited: the record of {family} is another key's"
        )));
    }
    let mut head = Sealed::new(Vec::new());
    let mut older = BTreeMap::new();
    for version in record.held() {
        let id = version.to_string();
        let sealed = rows.private_keys.get(&id).ok_or_else(|| {
            KmsError::damaged(format!(
                "the keystore was damaged or edited: the private key of {id} is missing"
            ))
        })?;
        sealer.open(&Place::PrivateKey(id), sealed)?;
        if version.version() == record.head().get() {
            head = Sealed::new(sealed.clone());
        } else if keeps_older(record.key.algorithm()) {
            older.insert(version.version(), Sealed::new(sealed.clone()));
        }
    }
    let has_none = record.state == KeyState::Destroyed || record.is_public_only();
    if record.head_version().is_held() == has_none {
        return Err(KmsError::damaged(format!("the record of {family} contradicts itself")));
    }
    Ok(LoadedKey { record, binding, head, older })
}
