//! Reads a store's rows and checks that none was changed, removed or added.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::Builder;

use super::index::{Index, IndexBuilder, LoadedKey, StoredPrivateKey};
use super::lifecycle::keeps_older;
use crate::encryption::{EnvelopeKind, StoreCipher, Unlock, WrappedRootKey};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::policy::KeyState;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::secret_bytes::SecretBytes;
use crate::store::{Changes, FORMAT, Meta, PROTECTION, ReadRows, STATE, Table};

/// The format that this program writes, and the newest that it reads.
pub(super) const STORE_FORMAT: u32 = 1;

pub(super) fn open_root(meta: &Meta, unlock: &Unlock) -> Result<StoreCipher> {
    Ok(StoreCipher::new(&protection(meta)?.unwrap(&*unlock.provider()?)?))
}

/// Reads the store's format, which decides whether the rest can be read at all, and then how the
/// store is protected.
pub(super) fn protection(meta: &Meta) -> Result<WrappedRootKey> {
    let format = meta.get(FORMAT).and_then(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).ok());
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
    WrappedRootKey::parse(row(meta, PROTECTION)?)
}

fn row<'a>(meta: &'a Meta, name: &str) -> Result<&'a [u8]> {
    let missing = || KmsError::corrupt(format!("the keystore was damaged or edited: its {name} is missing"));
    meta.get(name).map(Vec::as_slice).ok_or_else(missing)
}

/// A store's state, the row in which it is stored, and the keys.
pub(super) type Loaded = (StoreState, Vec<u8>, Index);

/// Opens all rows and proves that they belong together: each record opens under its key id, the
/// state binds exactly these records, and there is a private key for each version that has one and
/// for nothing else. Keys in `known` that the store has unchanged are taken from there.
pub(super) fn index(cipher: &StoreCipher, rows: &impl ReadRows, known: Option<&Index>) -> Result<Loaded> {
    let encrypted_state = row(rows.meta(), STATE)?.to_vec();
    let state = StoreState::parse(&cipher.decrypt(&EnvelopeKind::StoreState, &encrypted_state)?)?;
    let (records, private_keys) = (rows.records(), rows.private_keys());
    let mut found = StoreState::default();
    let mut index = IndexBuilder::default();
    let mut held = 0;
    for_each_key(cipher, &join(&records, &private_keys), known, |key| {
        found.replace(None, &key.binding);
        held += key.record.held_numbers().count();
        index.push(key);
    })?;
    if !found.binds_the_same(&state) {
        return Err(KmsError::corrupt(
            "the keystore was edited: somebody removed or added a key's record, or replaced it with an older one",
        ));
    }
    if private_keys.len() != held {
        return Err(KmsError::corrupt(
            "the keystore was edited: it has a private key that belongs to no version",
        ));
    }
    let mut index = index.finish();
    index.set_generation(state.generation);
    Ok((state, encrypted_state, index))
}

/// The rows of one key.
struct KeyRows<'a> {
    key_id: &'a str,
    encrypted_record: &'a [u8],
    /// Its private keys with the ids of their versions, in the order of these texts.
    private_keys: &'a [(&'a str, &'a [u8])],
}

impl KeyRows<'_> {
    fn private_key(&self, id: &str) -> Row<'_> {
        let place = self.private_keys.binary_search_by(|(name, _)| (*name).cmp(id));
        place.map_or(Row::Missing, |place| Row::Read(self.private_keys[place].1))
    }
}

/// Joins two sorted tables. Private keys of no record are passed over: they are missed when the
/// private keys that records have are counted.
fn join<'a>(records: &[(&'a str, &'a [u8])], private_keys: &'a [(&'a str, &'a [u8])]) -> Vec<KeyRows<'a>> {
    let mut rest = private_keys;
    let join = |&(key_id, encrypted_record): &(&'a str, &'a [u8])| {
        // The names of private keys are the key's, a slash, and more.
        let is_before = |(name, _): &&(&str, &[u8])| *name < key_id;
        let belongs = |(name, _): &&(&str, &[u8])| name.starts_with(key_id);
        rest = &rest[rest.iter().take_while(is_before).count()..];
        let (private_keys, after) = rest.split_at(rest.iter().take_while(belongs).count());
        rest = after;
        KeyRows { key_id, encrypted_record, private_keys }
    };
    records.iter().map(join).collect()
}

/// The calling thread alone decrypts fewer records than this.
const MIN_PARALLEL_RECORDS: usize = 1024;

/// Opens the keys of all records on as many threads as there are processors, and passes them to
/// `take` in their order.
fn for_each_key(
    cipher: &StoreCipher,
    keys: &[KeyRows<'_>],
    known: Option<&Index>,
    take: impl FnMut(Arc<LoadedKey>),
) -> Result<()> {
    let load = |rows: &KeyRows<'_>| {
        let &KeyRows { key_id, encrypted_record, .. } = rows;
        let binding = cipher.bind(encrypted_record);
        let known = known.and_then(|known| known.key(&key_id.parse().ok()?).ok());
        match known.filter(|known| known.binding == binding) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let known = known.map(|known| &**known);
                let private_key = |id: &str| rows.private_key(id);
                Ok(Arc::new(load_key(cipher, key_id, encrypted_record, binding, known, private_key)?))
            }
        }
    };
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    by_threads(if keys.len() < MIN_PARALLEL_RECORDS { 1 } else { processors() }, keys, load, take)
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
            Builder::new().spawn_scoped(scope, move || work(done)).ok()
        };
        let workers: Vec<_> = (0..threads).map_while(worker).collect();
        if workers.is_empty() {
            // The system has no room for a thread.
            work(done);
        } else {
            drop(done);
        }
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
    // Wiped as `SecretBytes` are, because a store has many records.
    let decrypt = |kind: &EnvelopeKind, bytes| cipher.decrypt(kind, bytes).map(SecretBytes::from);
    let record = KeyRecord::parse(&decrypt(&EnvelopeKind::KeyRecord(key_id.to_owned()), encrypted)?)?;
    if !record.key.has_text(key_id) {
        return Err(KmsError::corrupt(format!(
            "the keystore was edited: the record of {key_id} belongs to another key"
        )));
    }
    let mut latest_key = StoredPrivateKey::new(Vec::new());
    let mut older = BTreeMap::new();
    for version in record.held_numbers() {
        let kind = EnvelopeKind::PrivateKey(format!("{key_id}/v{version}"));
        let id = kind.subject();
        let missing = || {
            KmsError::corrupt(format!(
                "the keystore was damaged or edited: the private key of {id} is missing"
            ))
        };
        let row = private_key(id);
        if let Row::Read(encrypted) = row {
            decrypt(&kind, encrypted)?;
        }
        let is_latest = version == record.latest_number();
        let version = version.get();
        if !is_latest && !keeps_older(&record) {
            let was_held = || known?.record.version(version).map(VersionRecord::is_held);
            match row {
                Row::Read(_) => continue,
                Row::Unchanged if was_held() == Some(true) => continue,
                Row::Unchanged | Row::Missing => return Err(missing()),
            }
        }
        let known = known.and_then(|known| known.stored_key(&record, version));
        let key = match (row, known) {
            (Row::Read(encrypted), Some(known)) if known.is_from(encrypted) => Arc::clone(known),
            (Row::Read(encrypted), _) => StoredPrivateKey::new(encrypted.to_vec()),
            (Row::Unchanged, Some(known)) => Arc::clone(known),
            (Row::Unchanged | Row::Missing, _) => return Err(missing()),
        };
        if is_latest {
            latest_key = key;
        } else {
            older.insert(version, key);
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
