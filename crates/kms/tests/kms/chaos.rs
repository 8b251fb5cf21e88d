//! Rotation under load, on every store. For minutes instead of seconds:
//! `BULLA_KMS_CHAOS_SECONDS=300 cargo test --release -p bulla-kms --features etcd --test kms
//! chaos:: -- --nocapture`

use std::time::Duration;

use bulla_kms::{KeyFile, Keystore, Unlock};

use crate::support::chaos;

fn seconds() -> Duration {
    let seconds = std::env::var("BULLA_KMS_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

fn secret() -> (tempfile::TempDir, Unlock) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    KeyFile::create(&path).unwrap();
    (folder, Unlock::KeyFile(path))
}

#[test]
fn rotation_in_memory_disturbs_no_reader() {
    let keystore = Keystore::in_memory().unwrap();
    println!("memory: {:?}", chaos::run(&keystore, &keystore, seconds()));
}

#[test]
fn rotation_in_a_file_disturbs_no_reader_and_all_of_it_is_there_afterwards() {
    let (folder, unlock) = secret();
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, &unlock).unwrap();
    println!("file: {:?}", chaos::run(&keystore, &keystore, seconds()));
    let list = keystore.list().unwrap();
    drop(keystore);
    assert_eq!(Keystore::open(&path, &unlock).unwrap().list().unwrap(), list);
}

#[cfg(feature = "etcd")]
#[test]
fn rotation_in_a_cluster_disturbs_no_reader_on_the_same_node_or_on_another() {
    let (_folder, unlock) = secret();
    let cluster = bulla_testing::etcd::Cluster::start(3);
    let etcd = bulla_kms::EtcdOptions::new(cluster.endpoints(), "chaos");
    let writer = Keystore::create_etcd(&etcd, &unlock).unwrap();
    let other = Keystore::open_etcd(&etcd, &unlock).unwrap();
    println!("etcd, same node: {:?}", chaos::run(&writer, &writer, seconds() / 2));
    println!("etcd, another node: {:?}", chaos::run(&writer, &other, seconds() / 2));
    other.catch_up().unwrap();
    let fresh = Keystore::open_etcd(&etcd, &unlock).unwrap();
    assert_eq!(other.list().unwrap(), writer.list().unwrap());
    assert_eq!(fresh.list().unwrap(), writer.list().unwrap());
}
