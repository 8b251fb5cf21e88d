//! Making a keystore, and opening one with the proof that it is whole.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use arc_swap::ArcSwap;

use super::edit::{Writer, keeps_older};
use super::index::{Index, LoadedKey, Sealed};
use super::{Keystore, KeystoreOptions, follow, guard};
use crate::error::{Code, KmsError, Result};
use crate::files;
use crate::id::KeyId;
use crate::policy::KeyState;
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::rollback::{RollbackGuard, StoreGuard};
use crate::seal::{KeyProvider, Place, Protection, RootKey, Sealer};
use crate::store::{Changes, EmbeddedStore, FORMAT, MemoryStore, PROTECTION, Rows, STATE, Store, Table};
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
    let mut meta = BTreeMap::from([
        (FORMAT.to_owned(), STORE_FORMAT.to_be_bytes().to_vec()),
        (PROTECTION.to_owned(), protection.to_bytes()),
        empty_state(&sealer, guard)?,
    ]);
    if let (_, name, Some(value)) = guard::row(guard) {
        meta.insert(name, value);
    }
    Ok((Rows { meta, ..Rows::default() }, sealer))
}

fn empty_state(sealer: &Sealer, guard: &dyn RollbackGuard) -> Result<(String, Vec<u8>)> {
    let state = StoreState { changed: guard.time()?, guard: guard::digest(guard), ..StoreState::default() };
    Ok((STATE.to_owned(), sealer.seal(Place::StoreState, &state.to_bytes())?))
}

/// The root key is opened first, from a look at the file that changes nothing: a wrong secret or a newer format leaves
/// it as it is, and no other process waits while a passphrase is worked on.
pub(super) fn open(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let rows = EmbeddedStore::peek(path)?;
    let sealer = open_root(&rows, unlock)?;
    // Opening checks the whole file, which takes long for a large one: its rows are opened meanwhile.
    let (store, loaded) = std::thread::scope(|scope| {
        let store = scope.spawn(|| EmbeddedStore::open(path));
        let loaded = index(&sealer, &rows, None);
        (store.join().unwrap_or_else(|panic| resume_unwind(panic)), loaded)
    });
    let mut store = store?;
    // Each change replaces the state: nothing has changed since the look.
    if store.state()?.as_ref() == rows.meta.get(STATE) {
        return begin(Box::new(store), &rows, sealer, loaded?, options);
    }
    let rows = store.load()?;
    unseal(Box::new(store), rows, sealer, options)
}

pub(super) fn unlock_method(path: &Path) -> Result<UnlockMethod> {
    Ok(protection(&peek(path)?)?.method())
}

/// The rows of a store, which is not opened.
pub(super) fn peek(path: &Path) -> Result<Rows> {
    EmbeddedStore::peek(path)
}

/// The keys as they are now, proven as [`open`] does it. The guard is asked and told nothing.
pub(super) fn snapshot(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Index> {
    let mut rows = EmbeddedStore::peek(path)?;
    let sealer = open_root(&rows, unlock)?;
    loop {
        let (state, sealed_state, index) = index(&sealer, &rows, None)?;
        guard::check_name(&state, &rows, &*options.guard)?;
        match options.guard.check(&state.mark(sealer.store(), &sealed_state)) {
            Ok(()) => return Ok(index),
            // Another process may have made a change, and told the guard of it, since the store was read.
            Err(error) if error.code == Code::RolledBack => {
                rows = EmbeddedStore::peek(path)?;
                if rows.meta.get(STATE) == Some(&sealed_state) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// A keystore in etcd.
#[cfg(feature = "etcd")]
pub(super) mod etcd {
    use super::*;
    use crate::store::etcd::{EtcdOptions, EtcdStore};

    pub(in super::super) fn create(
        etcd: &EtcdOptions,
        unlock: &Unlock,
        options: &KeystoreOptions,
    ) -> Result<Keystore> {
        let (rows, sealer) = new_rows(&*unlock.provider()?, &*options.guard)?;
        let store = EtcdStore::create(etcd, &rows)?;
        unseal(Box::new(store), rows, sealer, options)
    }

    pub(in super::super) fn open(
        etcd: &EtcdOptions,
        unlock: &Unlock,
        options: &KeystoreOptions,
    ) -> Result<Keystore> {
        let (store, rows) = read(etcd)?;
        let sealer = open_root(&rows, unlock)?;
        unseal(Box::new(store), rows, sealer, options)
    }

    pub(in super::super) fn unlock_method(etcd: &EtcdOptions) -> Result<UnlockMethod> {
        Ok(protection(&read(etcd)?.1)?.method())
    }

    fn read(etcd: &EtcdOptions) -> Result<(EtcdStore, Rows)> {
        let mut store = EtcdStore::open(etcd)?;
        let rows = store.load()?;
        if rows.meta.contains_key(STATE) {
            return Ok((store, rows));
        }
        let prefix = &etcd.prefix;
        Err(KmsError::new(Code::NotFound, format!("there is no keystore {prefix} in this etcd cluster")))
    }
}

/// Opens whatever store it is handed.
#[cfg(test)]
pub(super) fn open_store(mut store: Box<dyn Store>, unlock: &Unlock) -> Result<Keystore> {
    let rows = store.load()?;
    let sealer = open_root(&rows, unlock)?;
    unseal(store, rows, sealer, &KeystoreOptions::default())
}

pub(super) fn open_root(rows: &Rows, unlock: &Unlock) -> Result<Sealer> {
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
    let loaded = index(&sealer, &rows, None)?;
    begin(store, &rows, sealer, loaded, options)
}

/// The keystore on a store with these rows, of which this was loaded.
fn begin(
    mut store: Box<dyn Store>,
    rows: &Rows,
    sealer: Sealer,
    (state, sealed_state, index): Loaded,
    options: &KeystoreOptions,
) -> Result<Keystore> {
    guard::check_name(&state, rows, &*options.guard)?;
    let mark = state.mark(sealer.store(), &sealed_state);
    options.guard.check(&mark)?;
    options.guard.advance(&mark)?;
    let changed = store.watch();
    let keystore = Keystore {
        index: Arc::new(ArcSwap::from_pointee(index)),
        writer: Arc::new(Mutex::new(Writer { store, state, sealed_state })),
        sealer: Arc::new(sealer),
        backends: options.backends.clone(),
        guard: Arc::clone(&options.guard),
        observers: options.into(),
    };
    if let Some(changed) = changed {
        follow::follow(&keystore, changed)?;
    }
    Ok(keystore)
}

/// A store's state, the row in which it is stored, and the keys.
pub(super) type Loaded = (StoreState, Vec<u8>, Index);

/// Opens all rows and proves that they belong together: each record opens as that of its family, all records are
/// those that the state binds, and there is a private key for each version that has one and for nothing else. What is
/// in `known` as it is in the store is taken from there.
pub(super) fn index(sealer: &Sealer, rows: &Rows, known: Option<&Index>) -> Result<Loaded> {
    let sealed_state = meta(rows, STATE)?.to_vec();
    let state = StoreState::parse(&sealer.open(&Place::StoreState, &sealed_state)?)?;
    let mut found = StoreState::default();
    let mut index = Index::default();
    let mut held = 0;
    for_each_key(sealer, rows, known, |key| {
        found.replace(None, &key.binding);
        held += key.record.held().count();
        index.insert(key);
    })?;
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

/// Fewer records than these are opened by the caller's thread alone.
const SHARED: usize = 1024;

/// Gives the keys of all records to `take`, in their order; they are opened by as many threads as there are processors.
fn for_each_key(
    sealer: &Sealer,
    rows: &Rows,
    known: Option<&Index>,
    take: impl FnMut(Arc<LoadedKey>),
) -> Result<()> {
    let private_key = |id: &str| rows.private_keys.get(id).map_or(Row::Missing, |sealed| Row::Read(sealed));
    let load = |(family, sealed): &(&String, &Vec<u8>)| {
        let binding = sealer.bind(sealed);
        let known = known.and_then(|known| known.key(&family.parse().ok()?).ok());
        match known.filter(|known| known.binding == binding) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let known = known.map(|known| &**known);
                Ok(Arc::new(load_key(sealer, family, sealed, binding, known, private_key)?))
            }
        }
    };
    let records: Vec<_> = rows.records.iter().collect();
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    by_threads(if records.len() < SHARED { 1 } else { processors() }, &records, load, take)
}

/// How many items a thread works on before it hands them over.
const PART: usize = 256;

/// Gives what `run` makes of each item to `take`, in their order, while more is made; or ends with the error of the first for which there
/// is one.
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
            let Some(part) = items.chunks(PART).nth(number) else { return };
            let made = part.iter().map(&run).collect::<Result<Vec<_>>>();
            // Nobody takes it any more after an error in an earlier part.
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

/// What becomes of `index` and `state` by the rows that others changed since; nothing when the rows do not lead from
/// there to a state that binds them, so that everything has to be looked at.
///
/// # Errors
/// [`Code::StoreDamaged`] when a row does not open.
pub(super) fn advance(
    sealer: &Sealer,
    state: &StoreState,
    index: &Index,
    rows: &Changes,
) -> Result<Option<Loaded>> {
    let Some(sealed_state) = rows.get(&(Table::Meta, STATE.to_owned())).and_then(Option::as_ref) else {
        return Ok(None);
    };
    let new_state = StoreState::parse(&sealer.open(&Place::StoreState, sealed_state)?)?;
    let (mut found, mut next) = (*state, index.clone());
    for ((_, family), sealed) in rows.iter().filter(|((table, _), _)| *table == Table::Records) {
        let (Ok(name), Some(sealed)) = (family.parse(), sealed) else { return Ok(None) };
        let known = index.key(&name).ok().map(|known| &**known);
        let binding = sealer.bind(sealed);
        found.replace(known.map(|known| &known.binding), &binding);
        let private_key = |id: &str| match rows.get(&(Table::PrivateKeys, id.to_owned())) {
            Some(Some(sealed)) => Row::Read(sealed),
            Some(None) => Row::Missing,
            None => Row::Unchanged,
        };
        next.insert(Arc::new(load_key(sealer, family, sealed, binding, known, private_key)?));
    }
    let belongs = |id: &str, sealed: &Option<Vec<u8>>| -> bool {
        let held = |id: &KeyId| Some(next.key(id.family()).ok()?.record.version(id.version())?.is_held());
        id.parse().ok().and_then(|id| held(&id)) == Some(sealed.is_some())
    };
    let mut private_keys = rows.iter().filter(|((table, _), _)| *table == Table::PrivateKeys);
    if !found.binds_the_same(&new_state) || !private_keys.all(|((_, id), sealed)| belongs(id, sealed)) {
        return Ok(None);
    }
    Ok(Some((new_state, sealed_state.clone(), next)))
}

/// What is known of the row of a private key.
enum Row<'a> {
    Read(&'a [u8]),
    /// It is as it was when the key was last loaded.
    Unchanged,
    Missing,
}

/// Opens a record and proves that its private keys are there and open. None of them is kept in the clear, except those
/// that `known`, the same key as it was, has in use.
fn load_key<'a>(
    sealer: &Sealer,
    family: &str,
    sealed: &[u8],
    binding: [u8; 32],
    known: Option<&LoadedKey>,
    private_key: impl Fn(&str) -> Row<'a>,
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
        let missing = || {
            KmsError::damaged(format!(
                "the keystore was damaged or edited: the private key of {id} is missing"
            ))
        };
        let row = private_key(&id);
        if let Row::Read(sealed) = row {
            sealer.open(&Place::PrivateKey(id.clone()), sealed)?;
        }
        let is_head = version.version() == record.head().get();
        if !is_head && !keeps_older(&record) {
            let was_held = || known?.record.version(version.version()).map(VersionRecord::is_held);
            match row {
                Row::Read(_) => continue,
                Row::Unchanged if was_held() == Some(true) => continue,
                Row::Unchanged | Row::Missing => return Err(missing()),
            }
        }
        let known = known.and_then(|known| known.sealed_as(&record, version.version()));
        let key = match (row, known) {
            (Row::Read(sealed), Some(known)) if known.is(sealed) => Arc::clone(known),
            (Row::Read(sealed), _) => Sealed::new(sealed.to_vec()),
            (Row::Unchanged, Some(known)) => Arc::clone(known),
            (Row::Unchanged | Row::Missing, _) => return Err(missing()),
        };
        if is_head {
            head = key;
        } else {
            older.insert(version.version(), key);
        }
    }
    let has_none = record.state == KeyState::Destroyed || record.is_public_only();
    if record.head_version().is_held() == has_none {
        return Err(KmsError::damaged(format!("the record of {family} contradicts itself")));
    }
    Ok(LoadedKey { record, binding, head, older })
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
        for (threads, count) in [(1, 1000), (2, 1000), (3, 5 * PART), (9, 1000), (3, 0), (2, 1)] {
            let items: Vec<_> = (0..count).collect();
            let doubled = all(threads, &items, &|item| Ok(2 * item)).unwrap();
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>(), "{threads}, {count}");
            // One in the second part and the last are at fault: the first of them is named, whoever met it.
            let faulty = |item: &usize| match *item == PART + 1 || *item + 1 == count {
                true => Err(KmsError::damaged(format!("record {item}"))),
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
