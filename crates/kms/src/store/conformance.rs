//! The tests that every store must pass, written once and run for each store.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Change, EmbeddedStore, MemoryStore, PROTECTION, Rows, STATE, Store, Table};
use crate::error::{Code, Result};

/// The place where a test creates a store and opens it again.
trait StoreFixture {
    fn create(&self, rows: &Rows) -> Result<Box<dyn Store>>;

    /// Opens the store again, after its handles were dropped or if it is shared. `None` for a store
    /// that ends with its handle.
    fn open(&self) -> Option<Result<Box<dyn Store>>>;

    /// The size of a value that the store accepts, and of one that it refuses.
    fn sizes(&self) -> (usize, Option<usize>) {
        (8 << 20, None)
    }

    /// The number of rows in the tests with many rows.
    fn many(&self) -> usize {
        20_000
    }

    /// Whether the store can be open more than once.
    fn is_shared(&self) -> bool {
        false
    }
}

struct Memory;

impl StoreFixture for Memory {
    fn create(&self, rows: &Rows) -> Result<Box<dyn Store>> {
        Ok(Box::new(MemoryStore::new(rows.clone())))
    }

    fn open(&self) -> Option<Result<Box<dyn Store>>> {
        None
    }
}

struct Embedded(tempfile::TempDir);

impl Embedded {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl StoreFixture for Embedded {
    fn create(&self, rows: &Rows) -> Result<Box<dyn Store>> {
        Ok(Box::new(EmbeddedStore::create(&self.0.path().join("store"), rows)?))
    }

    fn open(&self) -> Option<Result<Box<dyn Store>>> {
        let open = || Ok(Box::new(EmbeddedStore::open(&self.0.path().join("store"))?) as Box<dyn Store>);
        Some(open())
    }
}

#[cfg(feature = "etcd")]
mod etcd {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use bulla_testing::etcd::Cluster;

    use crate::store::etcd::{EtcdOptions, EtcdStore};

    /// One cluster for all tests; each test has its own prefix.
    static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(1));

    pub(super) struct Etcd(EtcdOptions);

    impl Etcd {
        pub(super) fn new() -> Self {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let prefix = format!("tests/{}", NEXT.fetch_add(1, Ordering::Relaxed));
            Self(EtcdOptions::new(CLUSTER.endpoints(), prefix))
        }
    }

    impl StoreFixture for Etcd {
        fn create(&self, rows: &Rows) -> Result<Box<dyn Store>> {
            Ok(Box::new(EtcdStore::create(&self.0, rows)?))
        }

        fn open(&self) -> Option<Result<Box<dyn Store>>> {
            let open = || Ok(Box::new(EtcdStore::open(&self.0)?) as Box<dyn Store>);
            Some(open())
        }

        fn sizes(&self) -> (usize, Option<usize>) {
            (1_500_000, Some(1_600_000))
        }

        fn many(&self) -> usize {
            5_000
        }

        fn is_shared(&self) -> bool {
            true
        }
    }
}

/// Each test for each store.
macro_rules! for_every_store {
    ($($test:ident)*) => {
        mod memory { $(#[test] fn $test() { super::$test(&super::Memory); })* }
        mod embedded { $(#[test] fn $test() { super::$test(&super::Embedded::new()); })* }
        #[cfg(feature = "etcd")]
        mod in_etcd { $(#[test] fn $test() { super::$test(&super::etcd::Etcd::new()); })* }
    };
}

for_every_store! {
    a_new_store_has_exactly_the_rows_it_was_made_with
    a_change_adds_replaces_and_removes_all_its_rows
    a_change_to_another_state_is_refused_whole
    of_two_changes_to_one_state_one_is_made
    values_of_all_bytes_and_none_come_back_as_they_were
    large_values_come_back_and_too_large_ones_are_refused_whole
    many_rows_come_back_all_and_sorted
    the_rows_of_one_key_come_back_alone
    a_store_that_is_opened_again_has_what_was_last_committed
    a_store_is_not_made_over_another_one
    two_writers_make_each_change_once
    who_reads_sees_changes_whole
    a_store_that_tells_changes_tells_all_of_them
}

fn meta(state: u64) -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([
        ("format".to_owned(), vec![0, 0, 0, 1]),
        (PROTECTION.to_owned(), b"protection".to_vec()),
        (STATE.to_owned(), state.to_be_bytes().to_vec()),
    ])
}

fn some_rows() -> Rows {
    let row = |name: &str| (format!("local/files/ed25519/{name}"), name.as_bytes().to_vec());
    let key = |name: &str| (format!("local/files/ed25519/{name}/v1"), vec![7; 100]);
    Rows {
        meta: meta(0),
        records: ["a", "b", "c"].map(row).into(),
        private_keys: ["a", "b", "c"].map(key).into(),
    }
}

type Row<'a> = (Table, &'a str, Option<&'a [u8]>);

/// Makes a change from one state to the next.
fn commit(store: &mut dyn Store, from: u64, rows: &[Row<'_>]) -> Result<()> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|(table, name, value)| (*table, (*name).to_owned(), value.map(<[u8]>::to_vec)))
        .collect();
    rows.push((Table::Meta, STATE.to_owned(), Some((from + 1).to_be_bytes().to_vec())));
    store.commit(Change { expected_state: &from.to_be_bytes(), rows })
}

/// The number of a store's state.
fn state(rows: &Rows) -> u64 {
    u64::from_be_bytes(rows.meta[STATE].as_slice().try_into().unwrap())
}

fn a_new_store_has_exactly_the_rows_it_was_made_with(place: &impl StoreFixture) {
    let rows = some_rows();
    assert_eq!(place.create(&rows).unwrap().load().unwrap(), rows);
}

fn a_change_adds_replaces_and_removes_all_its_rows(place: &impl StoreFixture) {
    let mut rows = some_rows();
    let mut store = place.create(&rows).unwrap();
    let change: [Row<'_>; 4] = [
        (Table::Records, "local/files/ed25519/d", Some(b"new")),
        (Table::Records, "local/files/ed25519/a", Some(b"replaced")),
        (Table::PrivateKeys, "local/files/ed25519/b/v1", None),
        (Table::PrivateKeys, "never/there/ed25519/x/v1", None),
    ];
    commit(&mut *store, 0, &change).unwrap();
    rows.meta = meta(1);
    rows.records.insert("local/files/ed25519/d".to_owned(), b"new".to_vec());
    rows.records.insert("local/files/ed25519/a".to_owned(), b"replaced".to_vec());
    rows.private_keys.remove("local/files/ed25519/b/v1");
    assert_eq!(store.load().unwrap(), rows);
    // A table may become empty and fill again.
    commit(&mut *store, 1, &[(Table::Records, "local/files/ed25519/d", None)]).unwrap();
    commit(&mut *store, 2, &[(Table::Records, "local/files/ed25519/d", Some(b"again"))]).unwrap();
    assert_eq!(store.load().unwrap().records["local/files/ed25519/d"], b"again");
}

fn a_change_to_another_state_is_refused_whole(place: &impl StoreFixture) {
    let rows = some_rows();
    let mut store = place.create(&rows).unwrap();
    let change: [Row<'_>; 2] = [
        (Table::Records, "local/files/ed25519/d", Some(b"new")),
        (Table::Records, "local/files/ed25519/a", None),
    ];
    for wrong in [1, 7, u64::MAX - 1] {
        assert_eq!(commit(&mut *store, wrong, &change).unwrap_err().code, Code::KeystoreChanged);
        assert_eq!(store.load().unwrap(), rows);
    }
    let nothing = Change { expected_state: b"", rows: Vec::new() };
    assert_eq!(store.commit(nothing).unwrap_err().code, Code::KeystoreChanged);
    // The store still works.
    commit(&mut *store, 0, &change).unwrap();
}

fn of_two_changes_to_one_state_one_is_made(place: &impl StoreFixture) {
    let mut store = place.create(&some_rows()).unwrap();
    for round in 0..20 {
        commit(&mut *store, round, &[(Table::Records, "first", Some(&round.to_be_bytes()))]).unwrap();
        let second = commit(&mut *store, round, &[(Table::Records, "second", Some(&round.to_be_bytes()))]);
        assert_eq!(second.unwrap_err().code, Code::KeystoreChanged);
    }
    let rows = store.load().unwrap();
    assert_eq!((state(&rows), rows.records.contains_key("second")), (20, false));
    assert_eq!(rows.records["first"], 19_u64.to_be_bytes());
}

fn values_of_all_bytes_and_none_come_back_as_they_were(place: &impl StoreFixture) {
    let mut store = place.create(&some_rows()).unwrap();
    let all: Vec<u8> = (0..=255).cycle().take(1000).collect();
    commit(&mut *store, 0, &[(Table::Records, "all", Some(&all)), (Table::Records, "none", Some(b""))])
        .unwrap();
    let rows = store.load().unwrap();
    assert_eq!((&rows.records["all"], &rows.records["none"]), (&all, &Vec::new()));
}

fn large_values_come_back_and_too_large_ones_are_refused_whole(place: &impl StoreFixture) {
    let mut store = place.create(&some_rows()).unwrap();
    let (taken, refused) = place.sizes();
    let large: Vec<u8> = (0..taken).map(|i| (i * 7 % 251) as u8).collect();
    for state in 0..4 {
        let name = format!("large {state}");
        commit(&mut *store, state, &[(Table::Records, &name, Some(&large))]).unwrap();
    }
    let rows = store.load().unwrap();
    assert!((0..4).all(|state| rows.records[&format!("large {state}")] == large));
    let Some(refused) = refused else { return };
    let error =
        commit(&mut *store, 4, &[(Table::Records, "too large", Some(&vec![1; refused]))]).unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::TooLarge, false), "{error}");
    let names: Vec<_> = (0..200).map(|i| format!("row {i}")).collect();
    let many: Vec<Row<'_>> =
        names.iter().map(|name| (Table::Records, name.as_str(), Some(&b"x"[..]))).collect();
    assert_eq!(commit(&mut *store, 4, &many).unwrap_err().code, Code::TooLarge);
    assert!(store.load().unwrap() == rows, "a change that is refused leaves everything as it was");
    commit(&mut *store, 4, &[(Table::Records, "small", Some(b"x"))]).unwrap();
}

fn many_rows_come_back_all_and_sorted(place: &impl StoreFixture) {
    let mut rows = some_rows();
    for number in 0..place.many() {
        rows.records.insert(format!("many/{number}"), vec![(number % 251) as u8; 300]);
        rows.private_keys.insert(format!("many/{number}/v1"), vec![(number % 241) as u8; 100]);
    }
    let mut store = place.create(&rows).unwrap();
    assert!(store.load().unwrap() == rows);
    commit(&mut *store, 0, &[(Table::Records, "many/77", None)]).unwrap();
    rows.records.remove("many/77");
    rows.meta = meta(1);
    assert!(store.load().unwrap() == rows);
}

fn the_rows_of_one_key_come_back_alone(place: &impl StoreFixture) {
    let mut rows = some_rows();
    let key = "local/files/ed25519/b";
    // Names that come right before and after those of the key, and more versions than a page has.
    for other in ["b-", "b0", "b1", "b\u{7f}"] {
        rows.records.insert(format!("local/files/ed25519/{other}"), b"another".to_vec());
        rows.private_keys.insert(format!("local/files/ed25519/{other}/v1"), b"another".to_vec());
    }
    for version in 2..1500 {
        rows.private_keys.insert(format!("{key}/v{version}"), vec![(version % 251) as u8; 100]);
    }
    let mut store = place.create(&rows).unwrap();
    let of_key = |rows: &Rows| {
        let mut rows = rows.clone();
        rows.meta.clear();
        rows.records.retain(|name, _| name == key);
        rows.private_keys.retain(|name, _| name.starts_with("local/files/ed25519/b/"));
        rows
    };
    assert!(store.load_key(key).unwrap() == of_key(&rows));
    assert_eq!(store.load_key("local/files/ed25519/d").unwrap(), Rows::default());
    let change: [Row<'_>; 2] =
        [(Table::Records, key, Some(b"replaced")), (Table::PrivateKeys, "local/files/ed25519/b/v7", None)];
    commit(&mut *store, 0, &change).unwrap();
    assert!(store.load_key(key).unwrap() == of_key(&store.load().unwrap()));
    // What was read does not keep the store from telling what others change.
    commit(&mut *store, 1, &[]).unwrap();
}

fn a_store_that_is_opened_again_has_what_was_last_committed(place: &impl StoreFixture) {
    let mut store = place.create(&some_rows()).unwrap();
    for state in 0..10 {
        commit(&mut *store, state, &[(Table::Records, "a", Some(&state.to_be_bytes()))]).unwrap();
        if let Err(error) = commit(&mut *store, state, &[(Table::Records, "a", None)]) {
            assert_eq!(error.code, Code::KeystoreChanged);
        }
    }
    let before = store.load().unwrap();
    drop(store);
    let Some(store) = place.open() else { return };
    let mut store = store.unwrap();
    assert_eq!(store.load().unwrap(), before);
    commit(&mut *store, 10, &[]).unwrap();
}

fn a_store_is_not_made_over_another_one(place: &impl StoreFixture) {
    let rows = some_rows();
    let store = place.create(&rows).unwrap();
    drop(store);
    let Some(store) = place.open() else { return };
    drop(store);
    let other = Rows { meta: meta(5), ..Rows::default() };
    assert_eq!(place.create(&other).err().expect("there is one").code, Code::AlreadyExists);
    assert_eq!(place.open().unwrap().unwrap().load().unwrap(), rows);
}

/// Whether the store is shared. It must say so itself.
fn is_shared(place: &impl StoreFixture, store: &dyn Store) -> bool {
    assert_eq!(store.is_shared(), place.is_shared());
    place.is_shared()
}

/// Two handles of a shared store. A store that is not shared passes without a check.
fn two_writers_make_each_change_once(place: &impl StoreFixture) {
    const EACH: u64 = 25;
    let mut first = place.create(&some_rows()).unwrap();
    let Some(second) = is_shared(place, &*first).then(|| place.open().unwrap().unwrap()) else { return };
    let write = |store: &mut dyn Store, who: &str| {
        let (mut made, mut refused) = (0, 0);
        while made < EACH {
            let from = state(&store.load().unwrap());
            let name = format!("{who} {made}");
            match commit(store, from, &[(Table::Records, &name, Some(&from.to_be_bytes()))]) {
                Ok(()) => made += 1,
                Err(error) if error.code == Code::KeystoreChanged => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        refused
    };
    let mut handles = [second];
    let refused: u64 = std::thread::scope(|scope| {
        let [second] = &mut handles;
        let other = scope.spawn(|| write(&mut **second, "second"));
        write(&mut *first, "first") + other.join().unwrap()
    });
    let rows = first.load().unwrap();
    assert_eq!(state(&rows), 2 * EACH, "each change counted once; {refused} were refused");
    let mut states: Vec<_> = rows.records.values().filter(|value| value.len() == 8).collect();
    states.sort();
    states.dedup();
    assert_eq!(states.len() as u64, 2 * EACH, "no two changes were made to one state");
}

fn who_reads_sees_changes_whole(place: &impl StoreFixture) {
    let mut writer = place.create(&some_rows()).unwrap();
    let Some(mut reader) = is_shared(place, &*writer).then(|| place.open().unwrap().unwrap()) else { return };
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            for from in 0..60 {
                let value = (from + 1_u64).to_be_bytes();
                let rows: [Row<'_>; 2] =
                    [(Table::Records, "one", Some(&value)), (Table::PrivateKeys, "two", Some(&value))];
                commit(&mut *writer, from, &rows).unwrap();
            }
        });
        let mut last = 0;
        while !writing.is_finished() {
            let rows = reader.load().unwrap();
            let now = state(&rows);
            assert!(now >= last, "a reader never goes back");
            last = now;
            if now > 0 {
                let value = now.to_be_bytes();
                assert_eq!(
                    (&rows.records["one"][..], &rows.private_keys["two"][..]),
                    (&value[..], &value[..])
                );
            }
        }
        writing.join().unwrap();
        assert_eq!(state(&reader.load().unwrap()), 60);
    });
}

fn a_store_that_tells_changes_tells_all_of_them(place: &impl StoreFixture) {
    let mut writer = place.create(&some_rows()).unwrap();
    if !is_shared(place, &*writer) {
        assert_eq!(writer.changes(&0_u64.to_be_bytes()).unwrap(), None);
        assert!(writer.watch().is_none());
        return;
    }
    let mut other = place.open().unwrap().unwrap();
    let mut known = other.load().unwrap();
    let word = other.watch().expect("a shared store tells of changes");
    assert_eq!(other.changes(&0_u64.to_be_bytes()).unwrap(), Some(super::Changes::new()));
    for from in (0..30).step_by(3) {
        for state in from..from + 3_u64 {
            let name = format!("row {}", state % 7);
            let value = state.to_be_bytes();
            let gone = state % 5 == 4;
            commit(&mut *writer, state, &[(Table::Records, &name, (!gone).then_some(&value[..]))]).unwrap();
        }
        word.recv_timeout(Duration::from_secs(30)).expect("there is word of the change");
        let end = Instant::now() + Duration::from_secs(30);
        while state(&known) < from + 3 {
            assert!(Instant::now() < end, "the changes are told");
            for ((table, name), value) in
                other.changes(&known.meta[STATE].clone()).unwrap().expect("nothing was compacted")
            {
                match value {
                    Some(value) => known.table_mut(table).insert(name, value),
                    None => known.table_mut(table).remove(&name),
                };
            }
        }
        assert_eq!(known, writer.load().unwrap());
        assert_eq!(known, other.load().unwrap());
    }
}
