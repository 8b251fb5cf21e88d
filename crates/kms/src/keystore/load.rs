//! Reads a store's rows and checks that none was changed, removed or added.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::index::{Index, LoadedKey, StoredPrivateKey};
use super::lifecycle::keeps_older;
use crate::encryption::{EnvelopeKind, StoreCipher, Unlock, WrappedRootKey};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::policy::KeyState;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::store::{Changes, FORMAT, PROTECTION, Rows, STATE, Table};

/// The format that this program writes, and the newest that it reads.
pub(super) const STORE_FORMAT: u32 = 1;

pub(super) fn open_root(rows: &Rows, unlock: &Unlock) -> Result<StoreCipher> {
    Ok(StoreCipher::new(&protection(rows)?.unwrap(&*unlock.provider()?)?))
}

/// Reads the store's format, which decides whether the rest can be read at all, and then how the
/// store is protected.
pub(super) fn protection(rows: &Rows) -> Result<WrappedRootKey> {
    let format = rows.meta.get(FORMAT).and_then(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).ok());
    match format.map(u32::from_be_bytes) {
        Some(STORE_FORMAT) => {}
        Some(newer) if newer > STORE_FORMAT => {
            return Err(KmsError::new(
                Code::KeystoreTooNew,
                format!(
                    "the keystore is of format {newer} and this program reads up to {STORE_FORMAT}; \
                     use a newer version of the program"
                ),
            ));
        }
        _ => return Err(KmsError::corrupt("the file is damaged or is not a keystore: it names no format")),
    }
    WrappedRootKey::parse(meta(rows, PROTECTION)?)
}

fn meta<'a>(rows: &'a Rows, name: &str) -> Result<&'a [u8]> {
    let missing = || KmsError::corrupt(format!("the keystore was damaged or edited: its {name} is missing"));
    rows.meta.get(name).map(Vec::as_slice).ok_or_else(missing)
}

/// A store's state, the row in which it is stored, and the keys.
pub(super) type Loaded = (StoreState, Vec<u8>, Index);

/// Opens all rows and proves that they belong together: each record opens under its key id, the
/// state binds exactly these records, and there is a private key for each version that has one and
/// for nothing else. Keys in `known` that the store has unchanged are taken from there.
pub(super) fn index(cipher: &StoreCipher, rows: &Rows, known: Option<&Index>) -> Result<Loaded> {
    let encrypted_state = meta(rows, STATE)?.to_vec();
    let state = StoreState::parse(&cipher.decrypt(&EnvelopeKind::StoreState, &encrypted_state)?)?;
    let mut found = StoreState::default();
    let mut index = Index::default();
    let mut held = 0;
    for_each_key(cipher, rows, known, |key| {
        found.replace(None, &key.binding);
        held += key.record.held().count();
        index.insert(key);
    })?;
    if !found.binds_the_same(&state) {
        return Err(KmsError::corrupt(
            "the keystore was edited: somebody removed or added a key's record, or replaced it with an older one",
        ));
    }
    if rows.private_keys.len() != held {
        return Err(KmsError::corrupt(
            "the keystore was edited: it has a private key that belongs to no version",
        ));
    }
    index.set_generation(state.generation);
    Ok((state, encrypted_state, index))
}

/// The calling thread alone decrypts fewer records than this.
const MIN_PARALLEL_RECORDS: usize = 1024;

/// Opens the keys of all records on as many threads as there are processors, and passes them to
/// `take` in their order.
fn for_each_key(
    cipher: &StoreCipher,
    rows: &Rows,
    known: Option<&Index>,
    take: impl FnMut(Arc<LoadedKey>),
) -> Result<()> {
    let private_key =
        |id: &str| rows.private_keys.get(id).map_or(Row::Missing, |encrypted| Row::Read(encrypted));
    let load = |(key_id, encrypted): &(&String, &Vec<u8>)| {
        let binding = cipher.bind(encrypted);
        let known = known.and_then(|known| known.key(&key_id.parse().ok()?).ok());
        match known.filter(|known| known.binding == binding) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let known = known.map(|known| &**known);
                Ok(Arc::new(load_key(cipher, key_id, encrypted, binding, known, private_key)?))
            }
        }
    };
    let records: Vec<_> = rows.records.iter().collect();
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    by_threads(if records.len() < MIN_PARALLEL_RECORDS { 1 } else { processors() }, &records, load, take)
}

/// How many items a thread works on before it hands them over.
const ITEMS_PER_HANDOVER: usize = 256;

/// Passes the result of `run` for each item to `take`, in order, while threads compute more; or
/// ends with the error of the first item that has one.
fn by_threads<I: Sync, O: Send>(
    threads: usize,
    items: &[I],
    run: impl Fn(&I) -> Result<O> + Sync,
    mut take: impl FnMut(O),
) -> Result<()> {
    if threads <= 1 {
        return items.iter().try_for_each(|item| run(item).map(&mut take));
    }
    let next = AtomicUsize::new(0);
    let work = |done: mpsc::Sender<_>| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = items.chunks(ITEMS_PER_HANDOVER).nth(number) else { return };
            let made = part.iter().map(&run).collect::<Result<Vec<_>>>();
            // After an error in an earlier part, no one receives this.
            if done.send((number, made)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let (done, parts) = mpsc::channel();
        let worker = |_| {
            let (work, done) = (&work, done.clone());
            scope.spawn(move || work(done))
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        drop(done);
        let (mut early, mut wanted) = (BTreeMap::new(), 0);
        for (number, made) in parts {
            early.insert(number, made);
            while let Some(made) = early.remove(&wanted) {
                made?.into_iter().for_each(&mut take);
                wanted += 1;
            }
        }
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        Ok(())
    })
}

/// Applies the rows that other processes changed since to `index` and `state`. Returns `None` if
/// these rows do not lead to a state that binds them: then the caller must read everything.
///
/// # Errors
/// [`Code::KeystoreCorrupt`] if a row does not open.
pub(super) fn advance(
    cipher: &StoreCipher,
    state: &StoreState,
    index: &Index,
    rows: &Changes,
) -> Result<Option<Loaded>> {
    let Some(encrypted_state) = rows.get(&(Table::Meta, STATE.to_owned())).and_then(Option::as_ref) else {
        return Ok(None);
    };
    let new_state = StoreState::parse(&cipher.decrypt(&EnvelopeKind::StoreState, encrypted_state)?)?;
    let (mut found, mut next) = (*state, index.clone());
    for ((_, key_id), encrypted) in rows.iter().filter(|((table, _), _)| *table == Table::Records) {
        let (Ok(name), Some(encrypted)) = (key_id.parse(), encrypted) else { return Ok(None) };
        let known = index.key(&name).ok().map(|known| &**known);
        let binding = cipher.bind(encrypted);
        found.replace(known.map(|known| &known.binding), &binding);
        let private_key = |id: &str| match rows.get(&(Table::PrivateKeys, id.to_owned())) {
            Some(Some(encrypted)) => Row::Read(encrypted),
            Some(None) => Row::Missing,
            None => Row::Unchanged,
        };
        next.insert(Arc::new(load_key(cipher, key_id, encrypted, binding, known, private_key)?));
    }
    let belongs = |id: &str, encrypted: &Option<Vec<u8>>| -> bool {
        let held =
            |id: &KeyVersionId| Some(next.key(id.key_id()).ok()?.record.version(id.version())?.is_held());
        id.parse().ok().and_then(|id| held(&id)) == Some(encrypted.is_some())
    };
    let mut private_keys = rows.iter().filter(|((table, _), _)| *table == Table::PrivateKeys);
    if !found.binds_the_same(&new_state) || !private_keys.all(|((_, id), encrypted)| belongs(id, encrypted)) {
        return Ok(None);
    }
    next.set_generation(new_state.generation);
    Ok(Some((new_state, encrypted_state.clone(), next)))
}

/// The known state of a private key's row.
enum Row<'a> {
    Read(&'a [u8]),
    /// Unchanged since the key was last loaded.
    Unchanged,
    Missing,
}

/// Opens a record and proves that its private keys exist and open. None stays decrypted, except
/// those that `known`, the same key's former state, has in use.
fn load_key<'a>(
    cipher: &StoreCipher,
    key_id: &str,
    encrypted: &[u8],
    binding: [u8; 32],
    known: Option<&LoadedKey>,
    private_key: impl Fn(&str) -> Row<'a>,
) -> Result<LoadedKey> {
    let record = KeyRecord::parse(&cipher.decrypt(&EnvelopeKind::KeyRecord(key_id.to_owned()), encrypted)?)?;
    if record.key.to_string() != key_id {
        return Err(KmsError::corrupt(format!(
            "the keystore was edited: the record of {key_id} belongs to another key"
        )));
    }
    let mut latest_key = StoredPrivateKey::new(Vec::new());
    let mut older = BTreeMap::new();
    for version in record.held() {
        let id = version.to_string();
        let missing = || {
            KmsError::corrupt(format!(
                "the keystore was damaged or edited: the private key of {id} is missing"
            ))
        };
        let row = private_key(&id);
        if let Row::Read(encrypted) = row {
            cipher.decrypt(&EnvelopeKind::PrivateKey(id.clone()), encrypted)?;
        }
        let is_latest = version.version() == record.latest_number().get();
        if !is_latest && !keeps_older(&record) {
            let was_held = || known?.record.version(version.version()).map(VersionRecord::is_held);
            match row {
                Row::Read(_) => continue,
                Row::Unchanged if was_held() == Some(true) => continue,
                Row::Unchanged | Row::Missing => return Err(missing()),
            }
        }
        let known = known.and_then(|known| known.stored_key(&record, version.version()));
        let key = match (row, known) {
            (Row::Read(encrypted), Some(known)) if known.is_from(encrypted) => Arc::clone(known),
            (Row::Read(encrypted), _) => StoredPrivateKey::new(encrypted.to_vec()),
            (Row::Unchanged, Some(known)) => Arc::clone(known),
            (Row::Unchanged | Row::Missing, _) => return Err(missing()),
        };
        if is_latest {
            latest_key = key;
        } else {
            older.insert(version.version(), key);
        }
    }
    let has_none = record.state == KeyState::Destroyed || record.is_public_only();
    if record.latest_version().is_held() == has_none {
        return Err(KmsError::corrupt(format!("the record of {key_id} contradicts itself")));
    }
    Ok(LoadedKey { record, binding, latest_key, older })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_give_what_one_gives() {
        let all = |threads, items: &[usize], run: &(dyn Fn(&usize) -> Result<usize> + Sync)| {
            let mut taken = Vec::new();
            by_threads(threads, items, run, |item| taken.push(item)).map(|()| taken)
        };
        for (threads, count) in [(1, 1000), (2, 1000), (3, 5 * ITEMS_PER_HANDOVER), (9, 1000), (3, 0), (2, 1)]
        {
            let items: Vec<_> = (0..count).collect();
            let doubled = all(threads, &items, &|item| Ok(2 * item)).unwrap();
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>(), "{threads}, {count}");
            // Two items are faulty, one in the second part and the last: the error must name the
            // first, whichever thread met it.
            let faulty = |item: &usize| match *item == ITEMS_PER_HANDOVER + 1 || *item + 1 == count {
                true => Err(KmsError::corrupt(format!("record {item}"))),
                false => Ok(*item),
            };
            let found = all(threads, &items, &faulty).err().map(|error| error.to_string());
            let first = items.iter().find_map(|item| faulty(item).err()).map(|error| error.to_string());
            assert_eq!(found, first, "{threads}, {count}");
        }
    }

    #[test]
    #[should_panic(expected = "in a thread")]
    fn a_panic_of_a_thread_is_the_callers() {
        let run = |item: &i32| if *item == 3 { panic!("in a thread") } else { Ok(()) };
        let _ = by_threads(2, &[1, 2, 3], run, drop);
    }
}
