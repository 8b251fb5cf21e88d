//! Backups: all of a keystore comes back, or nothing does.
#![cfg(feature = "soft-seal")]

use std::fs;

use bulla_kms::backend::Backends;
use bulla_kms::encrypted_file;
use bulla_kms::encryption::{Identity, IdentityKind, Passphrase};
use bulla_kms::{
    Algorithm, Backup, Code, KeyChange, KeyFile, KeyId, Keystore, KeystoreOptions, NewKey, Unlock,
};

fn create_key(keystore: &Keystore, label: &str, algorithm: Algorithm) -> KeyId {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm);
    keystore.create_key(new.label(label.parse().unwrap())).unwrap().key_id().clone()
}

#[cfg(feature = "etcd")]
#[test]
fn a_backup_of_more_keys_than_a_transaction_takes_is_restored_in_etcd() {
    use bulla_kms::EtcdOptions;
    use bulla_testing::etcd::Cluster;
    let folder = tempfile::tempdir().unwrap();
    KeyFile::create(&folder.path().join("key")).unwrap();
    let unlock = Unlock::KeyFile(folder.path().join("key"));
    let keystore = Keystore::in_memory().unwrap();
    let keys: Vec<_> =
        (0..150).map(|key| create_key(&keystore, &format!("key-{key}"), Algorithm::Ed25519)).collect();
    let head = keystore.rotate(&keys[149]).unwrap();
    let signed = keystore.sign(&keys[149], b"message").unwrap();
    let identity = Identity::generate(IdentityKind::Age).unwrap();
    let mut backup = Vec::new();
    keystore.backup(&mut backup, &[&identity.recipient()]).unwrap();

    let backup = read(&backup, &identity).unwrap();
    let cluster = Cluster::start(1);
    let options = EtcdOptions::new(cluster.endpoints(), "bulla/restored");
    let restored = backup.restore_etcd(&options, &unlock, &KeystoreOptions::default()).unwrap();
    let other = Keystore::open_etcd(&options, &unlock).unwrap();
    assert_eq!(restored.list().unwrap(), keystore.list().unwrap());
    assert_eq!(other.list().unwrap(), keystore.list().unwrap());
    assert!(other.revision() > keystore.revision(), "it goes on counting changes");
    assert!(other.verify(&head, b"message", &signed.bytes).unwrap().is_valid());
    assert_eq!(other.rotate(&keys[149]).unwrap().version(), 3);
    let error = backup.restore_etcd(&options, &unlock, &KeystoreOptions::default()).err().unwrap();
    assert_eq!(error.code, Code::AlreadyExists);
}

fn read(bytes: &[u8], with: &Identity) -> bulla_kms::Result<Backup> {
    Backup::read(bytes, &[with], Backends::software())
}

#[test]
fn a_restored_keystore_is_the_one_that_was_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    KeyFile::create(&folder.path().join("key")).unwrap();
    let unlock = Unlock::KeyFile(folder.path().join("key"));
    let keystore = Keystore::create(&folder.path().join("keystore"), &unlock).unwrap();
    let signing = create_key(&keystore, "signing", Algorithm::Ed25519);
    let carrying = create_key(&keystore, "carrying", Algorithm::XWing);
    let disabled = create_key(&keystore, "disabled", Algorithm::Ed25519);
    let destroyed = create_key(&keystore, "destroyed", Algorithm::Ed25519);
    keystore.rotate(&signing).unwrap();
    let first = keystore.sign(&signing, b"message").unwrap();
    let head = keystore.rotate(&signing).unwrap();
    keystore.update(&signing, None, &KeyChange::Revoke(std::num::NonZeroU32::MIN)).unwrap();
    keystore.rotate(&carrying).unwrap();
    keystore.disable(&disabled).unwrap();
    let after = bulla_kms::Timestamp::now().unwrap();
    keystore.update(&destroyed, None, &KeyChange::ScheduleDestruction(after)).unwrap();
    keystore.update(&destroyed, None, &KeyChange::Destroy).unwrap();
    let old = carrying.version(std::num::NonZeroU32::MIN);
    let sent = keystore.public_key(&old).unwrap().encapsulate().unwrap();

    let identity = Identity::generate(IdentityKind::XWing).unwrap();
    let mut backup = Vec::new();
    let summary = keystore.backup(&mut backup, &[&identity.recipient()]).unwrap();
    assert_eq!((summary.keys, summary.private_keys), (4, 5));
    let before = keystore.list().unwrap();
    drop(keystore);

    let opened = read(&backup, &identity).unwrap();
    assert_eq!(opened.summary(), summary);
    let path = folder.path().join("restored");
    let other = Unlock::Passphrase("another secret".into());
    drop(opened.restore(&path, &other, &KeystoreOptions::default()).unwrap());
    let error = opened.restore(&path, &other, &KeystoreOptions::default()).err().unwrap();
    assert_eq!(error.code, Code::AlreadyExists);

    let restored = Keystore::open(&path, &other).unwrap();
    assert_eq!(restored.list().unwrap(), before);
    assert!(restored.verify(&first.key, b"message", &first.bytes).unwrap().is_valid());
    assert_eq!(restored.sign(&signing, b"message").unwrap().key, head);
    assert_eq!(*restored.decapsulate(&old, &sent.ciphertext).unwrap(), *sent.shared_key);
    assert_eq!(restored.sign(&disabled, b"message").unwrap_err().code, Code::KeyDisabled);
    restored.rotate(&signing).unwrap();
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_backup_restores_nothing() {
    let keystore = Keystore::in_memory().unwrap();
    create_key(&keystore, "a", Algorithm::Ed25519);
    let identity = Identity::generate(IdentityKind::Age).unwrap();
    let mut backup = Vec::new();
    keystore.backup(&mut backup, &[&identity]).unwrap();
    assert!(read(&backup, &identity).is_ok());
    for at in 0..backup.len() {
        assert!(read(&backup[..at], &identity).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut flipped = backup.clone();
            flipped[at] ^= 1 << bit;
            assert!(read(&flipped, &identity).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_backup_opens_for_its_keys_alone_and_other_sealed_data_is_none() {
    let keystore = Keystore::in_memory().unwrap();
    create_key(&keystore, "a", Algorithm::Ed25519);
    let passphrase = Passphrase::new("of the backup".into()).unwrap();
    let mut backup = Vec::new();
    keystore.backup(&mut backup, &[&passphrase]).unwrap();
    let read = |bytes: &[u8], passphrase: &str| {
        let passphrase = Passphrase::new(passphrase.into()).unwrap();
        Backup::read(bytes, &[&passphrase], Backends::software()).map(|backup| backup.summary().keys)
    };
    assert_eq!(read(&backup, "of the backup").unwrap(), 1);
    assert_eq!(read(&backup, "of something").unwrap_err().code, Code::WrongPassphrase);
    let sealed = encrypted_file::encrypt(b"BBAK\x01", &[&passphrase], b"").unwrap();
    assert_eq!(read(&sealed, "of the backup").unwrap_err().code, Code::EncryptedFileCorrupt);
    let inside = encrypted_file::encrypt(b"BBAK\x01", &[&passphrase], b"bulla keystore backup v1").unwrap();
    assert_eq!(read(&inside, "of the backup").unwrap_err().code, Code::MalformedBackup);
}

#[test]
fn nothing_in_a_backup_is_in_the_clear() {
    let keystore = Keystore::in_memory().unwrap();
    let key = create_key(&keystore, "a-label-to-look-for", Algorithm::Ed25519);
    let identity = Identity::generate(IdentityKind::XWing).unwrap();
    let mut backup = Vec::new();
    keystore.backup(&mut backup, &[&identity]).unwrap();
    let contains = |text: &str| backup.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("x-wing"), "who can open it is in the clear");
    assert!(!contains("a-label-to-look-for") && !contains(&key.to_string()));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("backup"), &backup).unwrap();
    let file = fs::File::open(folder.path().join("backup")).unwrap();
    assert!(Backup::read(file, &[&identity], Backends::software()).is_ok());
}
