//! Making a keystore, and opening one with the proof that it is whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, RwLock};

use super::{Index, Keystore, LoadedKey, Writer};
use crate::backend;
use crate::error::{Code, KmsError, Result};
use crate::files;
use crate::id::KeyId;
use crate::record::{KeyRecord, StoreState};
use crate::seal::{Argon2Cost, Place, Protection, RootKey, Sealer};
use crate::store::{EmbeddedStore, FORMAT, MemoryStore, PROTECTION, Rows, STATE, Store};
use crate::unlock::{Unlock, UnlockMethod};

/// The format that this program writes, and the newest that it reads.
const STORE_FORMAT: u32 = 1;

pub(super) fn in_memory() -> Result<Keystore> {
    let sealer = Sealer::new(&RootKey::random()?);
    let rows = Rows { meta: BTreeMap::from([empty_state(&sealer)?]), ..Rows::default() };
    unseal(Box::new(MemoryStore::new(rows.clone())), rows, sealer)
}

pub(super) fn create(path: &Path, unlock: &Unlock, cost: Argon2Cost) -> Result<Keystore> {
    if path.symlink_metadata().is_ok() {
        return Err(files::already_exists(path));
    }
    let (rows, sealer) = new_rows(unlock, cost)?;
    let store = EmbeddedStore::create(path, &rows)?;
    unseal(Box::new(store), rows, sealer)
}

/// The rows of a store without keys, and what seals them.
pub(super) fn new_rows(unlock: &Unlock, cost: Argon2Cost) -> Result<(Rows, Sealer)> {
    let (protection, root) = Protection::create(unlock, cost)?;
    let sealer = Sealer::new(&root);
    let meta = BTreeMap::from([
        (FORMAT.to_owned(), STORE_FORMAT.to_be_bytes().to_vec()),
        (PROTECTION.to_owned(), protection.to_bytes()),
        empty_state(&sealer)?,
    ]);
    Ok((Rows { meta, ..Rows::default() }, sealer))
}

fn empty_state(sealer: &Sealer) -> Result<(String, Vec<u8>)> {
    Ok((STATE.to_owned(), sealer.seal(Place::StoreState, &StoreState::default().to_bytes())?))
}

/// The root key is opened first, from a look at the file that changes nothing: a wrong secret or a newer format leaves
/// it as it is, and no other process waits while a passphrase is worked on.
pub(super) fn open(path: &Path, unlock: &Unlock) -> Result<Keystore> {
    let sealer = EmbeddedStore::peek(path)?.map(|rows| open_root(&rows, unlock)).transpose()?;
    let mut store = EmbeddedStore::open(path)?;
    let rows = store.load()?;
    let sealer = match sealer {
        Some(sealer) => sealer,
        None => open_root(&rows, unlock)?,
    };
    unseal(Box::new(store), rows, sealer)
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
    unseal(store, rows, sealer)
}

fn open_root(rows: &Rows, unlock: &Unlock) -> Result<Sealer> {
    Ok(Sealer::new(&protection(rows)?.open(unlock)?))
}

/// Reads how the store is protected, after its format, which decides whether the rest can be read at all.
fn protection(rows: &Rows) -> Result<Protection> {
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

/// Opens all rows and proves that they belong together: each record opens as that of its family, all records are
/// those that the state binds, and there is a private key for each version and for nothing else.
fn unseal(store: Box<dyn Store>, rows: Rows, sealer: Sealer) -> Result<Keystore> {
    let sealed_state = meta(&rows, STATE)?.to_vec();
    let state = StoreState::parse(&sealer.open(&Place::StoreState, &sealed_state)?)?;
    let mut found = StoreState::default();
    let mut index = Index::default();
    let mut versions = 0;
    for (family, sealed) in &rows.records {
        let record = KeyRecord::parse(&sealer.open(&Place::KeyRecord(family.clone()), sealed)?)?;
        let binding = sealer.bind(sealed);
        found.replace(None, &binding);
        versions += record.versions.len();
        index.insert(load_key(&sealer, &rows, family, record, binding)?);
    }
    if !found.binds_the_same(&state) {
        return Err(KmsError::damaged(
            "the keystore was edited: a key's record was removed, added or put back to an older one",
        ));
    }
    if rows.private_keys.len() != versions {
        return Err(KmsError::damaged(
            "the keystore was edited: it has a private key that belongs to no version",
        ));
    }
    Ok(Keystore {
        index: RwLock::new(index),
        writer: Mutex::new(Writer { store, sealer, state, sealed_state }),
    })
}

/// Opens the private keys of a record. Those of older versions are proven to be there, and not kept.
fn load_key(
    sealer: &Sealer,
    rows: &Rows,
    family: &str,
    record: KeyRecord,
    binding: [u8; 32],
) -> Result<LoadedKey> {
    if record.key.to_string() != family {
        return Err(KmsError::damaged(format!(
            "the keystore was edited: the record of {family} is another key's"
        )));
    }
    let open = |id: &KeyId| {
        let id = id.to_string();
        let sealed = rows.private_keys.get(&id).ok_or_else(|| {
            KmsError::damaged(format!(
                "the keystore was damaged or edited: the private key of {id} is missing"
            ))
        })?;
        sealer.open(&Place::PrivateKey(id), sealed)
    };
    let head = record.head();
    for version in (1..head.get()).filter_map(std::num::NonZeroU32::new) {
        open(&record.key.version(version))?;
    }
    let id = record.key.version(head);
    let signer = backend::for_algorithm(record.key.algorithm()).load(&open(&id)?)?;
    if Some(signer.public_key()) != record.version(head.get()).map(|version| version.public_key) {
        return Err(KmsError::damaged(format!("the private key of {id} does not fit its public key")));
    }
    Ok(LoadedKey { record, binding, signer: signer.into() })
}
