//! Makes a keystore with many keys in etcd: in memory first, then as a backup, which is restored in
//! etcd. One key after another would take a transaction each.
//!
//! `cargo run --release -p bulla-kms --features etcd,soft-seal --example many_in_etcd -- KEYS
//! ENDPOINT PREFIX KEY_FILE`: makes KEY_FILE, which opens the keystore.

use std::path::PathBuf;
use std::time::Instant;

use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::{Algorithm, Backup, EtcdOptions, KeyFile, Keystore, KeystoreOptions, NewKey, Result, Unlock};

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [keys, endpoint, prefix, key_file] = &arguments[..] else {
        panic!("the arguments are KEYS ENDPOINT PREFIX KEY_FILE")
    };
    let keys: usize = keys.parse().expect("KEYS is a number");
    let key_file = PathBuf::from(key_file);
    KeyFile::create(&key_file)?;

    let start = Instant::now();
    let keystore = Keystore::in_memory().unwrap();
    for number in 0..keys {
        let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
        keystore.create_key(new.label(format!("key-{number}").parse()?))?;
    }
    println!("made {keys} keys in memory in {:.1?}", start.elapsed());

    let start = Instant::now();
    let identity = Identity::generate(IdentityKind::Age)?;
    let mut backup_file = Vec::new();
    keystore.backup(&mut backup_file, &[&identity.recipient()])?;
    drop(keystore);
    println!("made a backup of {} bytes in {:.1?}", backup_file.len(), start.elapsed());

    let start = Instant::now();
    let backup = Backup::read(&backup_file[..], &[&identity], Backends::software())?;
    drop(backup_file);
    println!("checked the backup in {:.1?}", start.elapsed());

    let start = Instant::now();
    let (etcd, unlock) = (EtcdOptions::new([endpoint], prefix), Unlock::KeyFile(key_file));
    drop(backup.restore_etcd(&etcd, &unlock, &KeystoreOptions::default())?);
    drop(backup);
    println!("restored it in etcd in {:.1?}", start.elapsed());

    let start = Instant::now();
    let found = Keystore::open_etcd(&etcd, &unlock)?.list()?.len();
    assert_eq!(found, keys, "the keystore has other keys than asked for");
    println!("opened it, and listed its keys, in {:.1?}", start.elapsed());
    Ok(())
}
