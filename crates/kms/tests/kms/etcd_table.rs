//! Rows that services keep beside a keystore in etcd.
#![cfg(feature = "etcd")]

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use bulla_etcd::{EtcdErrorKind, EtcdOptions, EtcdTable, InsertOutcome, TableRow};
use bulla_kms::{Algorithm, Code, KeyFile, Keystore, NewKey, Unlock};

use bulla_testing::etcd::Cluster;

/// How long anything may take that has to happen by itself.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

fn options(cluster: &Cluster, prefix: &str) -> EtcdOptions {
    EtcdOptions::new(cluster.endpoints(), prefix)
}

fn row(name: &str, value: &[u8]) -> TableRow {
    TableRow { name: name.to_owned(), value: value.to_vec() }
}

#[test]
fn a_row_is_placed_once_and_replaced_by_those_who_know_it() {
    let cluster = Cluster::start(1);
    let table = EtcdTable::open(&options(&cluster, "bulla")).unwrap();
    let insert = |name: &str, value: &[u8]| table.insert(name, value, None).unwrap();
    assert_eq!(insert("a/1", b"x"), InsertOutcome::New { rows: 1 });
    assert_eq!(insert("a/2", b"y"), InsertOutcome::New { rows: 2 });
    assert_eq!(insert("a1/1", b"z"), InsertOutcome::New { rows: 1 });
    assert_eq!(insert("a/1", b"other"), InsertOutcome::Exists(row("a/1", b"x")));
    assert_eq!(insert("a/1", b"x"), InsertOutcome::New { rows: 2 }, "it is the same, tried again");
    assert!(!table.replace("a/1", b"other", Some(b"new")).unwrap());
    assert!(table.replace("a/1", b"x", Some(b"new")).unwrap());
    assert!(table.replace("a/1", b"x", Some(b"new")).unwrap(), "it is the same, tried again");
    assert_eq!(table.get("a/1").unwrap(), Some(row("a/1", b"new")));
    assert_eq!(table.oldest("a", 1).unwrap(), [row("a/1", b"new")]);
    assert_eq!([table.count("a").unwrap(), table.count("b").unwrap()], [2, 0]);
    assert!(!table.replace("a/2", b"x", None).unwrap());
    assert!(table.replace("a/2", b"y", None).unwrap());
    assert_eq!(table.get("a/2").unwrap(), None);
    let error = table.insert("a/3", &vec![0; 1 << 20], None).unwrap_err();
    assert_eq!(error.kind(), EtcdErrorKind::TooLarge);
}

#[test]
fn a_reader_gets_what_is_new_and_pages_of_it() {
    let cluster = Cluster::start(1);
    let table = EtcdTable::open(&options(&cluster, "bulla")).unwrap();
    let (none, start) = table.read("many", 0).unwrap();
    assert!(none.is_empty());
    for number in 0..600 {
        table.insert(&format!("many/{number:03}"), b"x", None).unwrap();
    }
    let (all, middle) = table.read("many", start).unwrap();
    assert_eq!(all.len(), 600);
    assert!(all.iter().enumerate().all(|(number, row)| row.name == format!("many/{number:03}")));
    table.insert("other/1", b"x", None).unwrap();
    assert!(table.read("many", middle).unwrap().0.is_empty());
    table.replace("many/007", b"x", Some(b"y")).unwrap();
    table.replace("many/008", b"x", None).unwrap();
    let (new, end) = table.read("many", middle).unwrap();
    assert_eq!(new, [row("many/007", b"y")]);
    assert!(table.read("many", end).unwrap().0.is_empty());
}

#[test]
fn a_page_has_as_many_rows_as_wanted_from_after_a_name_on() {
    let cluster = Cluster::start(1);
    let table = EtcdTable::open(&options(&cluster, "bulla")).unwrap();
    for number in 0..600 {
        table.insert(&format!("many/{number:03}"), b"x", None).unwrap();
    }
    table.insert("many1/1", b"x", None).unwrap();
    let page = |after: &str, most: usize| -> Vec<String> {
        table.page("many", after, most).unwrap().into_iter().map(|row| row.name).collect()
    };
    let names = |from: usize, to: usize| -> Vec<_> { (from..to).map(|n| format!("many/{n:03}")).collect() };
    assert_eq!(page("many/", 3), names(0, 3));
    assert_eq!(page("many/002", 300), names(3, 303));
    assert_eq!(page("many/0025", 1), names(3, 4), "no row has the name");
    assert_eq!(page("many/", usize::MAX), names(0, 600));
    assert_eq!((page("many/599", 1), page("many/", 0)), (vec![], vec![]));
}

#[test]
fn a_row_with_a_time_ends_with_it_unless_it_is_renewed() {
    let cluster = Cluster::start(1);
    let table = EtcdTable::open(&options(&cluster, "bulla")).unwrap();
    let [kept, left] = [(); 2].map(|()| table.lease(Duration::from_secs(3)).unwrap());
    table.insert("nodes/kept", b"1", Some(kept)).unwrap();
    table.insert("nodes/left", b"1", Some(left)).unwrap();
    // A new value may have another time.
    table.insert("nodes/moved", b"1", Some(left)).unwrap();
    assert!(!table.replace_until("nodes/moved", b"2", b"3", kept).unwrap());
    assert!(table.replace_until("nodes/moved", b"1", b"2", kept).unwrap());
    // A new value has the time of the old one.
    assert!(table.replace("nodes/left", b"1", Some(b"2")).unwrap());
    let end = Instant::now() + WAIT_TIMEOUT;
    while table.get("nodes/left").unwrap().is_some() {
        assert!(Instant::now() < end, "the row ends");
        assert!(table.renew(kept).unwrap());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(table.get("nodes/kept").unwrap().is_some());
    assert_eq!(table.get("nodes/moved").unwrap(), Some(row("nodes/moved", b"2")));
    assert!(!table.renew(left).unwrap(), "it has ended");
}

#[test]
fn a_table_is_beside_the_keystore_and_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    KeyFile::create(&path).unwrap();
    let (cluster, unlock) = (Cluster::start(1), Unlock::KeyFile(path));
    let options = options(&cluster, "bulla");
    let keystore = Keystore::create_etcd(&options, &unlock).unwrap();
    let table = EtcdTable::open(&options).unwrap();
    let (changed, changes) = sync_channel(1);
    table.notify("notes", changed);
    // The first notice says that the watch has begun.
    changes.recv_timeout(WAIT_TIMEOUT).unwrap();
    table.insert("notes/1", b"x", None).unwrap();
    changes.recv_timeout(WAIT_TIMEOUT).expect("a row of the folder is announced");
    table.insert("others/1", b"x", None).unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new).unwrap();
    table.insert("notes/2", b"x", None).unwrap();
    changes.recv_timeout(WAIT_TIMEOUT).expect("the next row of the folder is announced");
    assert!(changes.try_recv().is_err(), "other rows and keys are not announced");
    let again = Keystore::open_etcd(&options, &unlock).unwrap();
    assert_eq!(again.list().unwrap(), keystore.list().unwrap());
    assert_eq!(again.revision(), keystore.revision());
    keystore.rotate(key.key_id()).unwrap();
    again.catch_up().unwrap();
    assert_eq!(again.revision(), keystore.revision(), "the number of a change is the same for all");
    // Whoever makes a keystore must not find the rows of another one's services.
    drop((keystore, again));
    let error = Keystore::create_etcd(&options, &unlock).unwrap_err();
    assert_eq!(error.code, Code::AlreadyExists);
}
