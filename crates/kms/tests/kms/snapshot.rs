//! Looking at the keys of a keystore without writing to it.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bulla_kms::rollback::{FileGuard, RollbackGuard, StoreMark};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyFile, KeyId, Keystore, KeystoreOptions, NewKey, Result, RotationPolicy,
    SecretString, Snapshot, Unlock, Verdict,
};

struct KeystoreFixture(tempfile::TempDir);

impl KeystoreFixture {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        KeyFile::create(&place.path("key")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("keystore")
    }

    fn unlock(&self) -> Unlock {
        Unlock::KeyFile(self.path("key"))
    }

    fn open(&self, guard: Arc<dyn RollbackGuard>) -> Result<Keystore> {
        options(guard).open(&self.store(), &self.unlock())
    }
}

fn options(guard: Arc<dyn RollbackGuard>) -> KeystoreOptions {
    KeystoreOptions::default().guard(guard)
}

fn create_key(keystore: &Keystore, label: &str) -> KeyId {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    keystore.create_key(new.label(label.parse().unwrap())).unwrap().key_id().clone()
}

#[test]
fn a_snapshot_has_the_keys_of_its_keystore() {
    let place = KeystoreFixture::new();
    let keystore = Keystore::create(&place.store(), &place.unlock()).unwrap();
    let key = create_key(&keystore, "one");
    create_key(&keystore, "two");
    keystore.rotate(&key).unwrap();
    let (all, one) = (keystore.list().unwrap(), keystore.attest(&key).unwrap());
    drop(keystore);
    let before = fs::read(place.store()).unwrap();
    let keys = Keystore::snapshot(&place.store(), &place.unlock()).unwrap();
    assert_eq!((keys.list(), keys.attest(&key).unwrap()), (all, one));
    assert_eq!(keys.find(key.tenant(), &"one".parse().unwrap()), Some(key.clone()));
    assert_eq!(keys.find(key.tenant(), &"three".parse().unwrap()), None);
    assert!(fs::read(place.store()).unwrap() == before, "the store is another one now");
    // Nothing stays locked: while the snapshot lives, the keystore changes, and the snapshot does
    // not.
    let keystore = Keystore::open(&place.store(), &place.unlock()).unwrap();
    keystore.disable(&key).unwrap();
    assert_ne!(keys.attest(&key).unwrap(), keystore.attest(&key).unwrap());
}

#[test]
fn a_keystore_that_is_not_needed_for_writing_signs_and_stays_as_it_is() {
    let place = KeystoreFixture::new();
    let keystore = Keystore::create(&place.store(), &place.unlock()).unwrap();
    let key = create_key(&keystore, "one");
    drop(keystore);
    let before = fs::read(place.store()).unwrap();
    let open = |writes: bool| {
        let has_key = |keys: &Snapshot| keys.attest(&key).is_ok() && writes;
        KeystoreOptions::default().open_as_needed(&place.store(), &place.unlock(), has_key).unwrap()
    };
    let reading = open(false);
    let signature = reading.sign(&key, b"message").unwrap();
    let verdict = reading.verify(&signature.key, b"message", &signature.bytes).unwrap();
    assert_eq!(verdict, Verdict::Valid);
    // It is not locked, and it changes nothing.
    let policy = RotationPolicy::default().max_uses(NonZeroU64::new(9));
    let change = KeyChange::Rotation(policy);
    assert_eq!(reading.update(&key, None, &change).unwrap_err().code, Code::PermissionDenied);
    assert_eq!(reading.rotate(&key).unwrap_err().code, Code::PermissionDenied);
    assert!(fs::read(place.store()).unwrap() == before, "the store is another one now");
    // With a policy, a signature is a change.
    open(true).update(&key, None, &change).unwrap();
    assert_eq!(open(false).sign(&key, b"message").unwrap_err().code, Code::PermissionDenied);
    open(true).sign(&key, b"message").unwrap();
}

#[test]
fn a_snapshot_is_refused_as_the_keystore_is() {
    let place = KeystoreFixture::new();
    let snapshot = |unlock: &Unlock| Keystore::snapshot(&place.store(), unlock).unwrap_err().code;
    assert_eq!(snapshot(&place.unlock()), Code::NotFound);
    drop(Keystore::create(&place.store(), &place.unlock()).unwrap());
    KeyFile::create(&place.path("other")).unwrap();
    assert_eq!(snapshot(&Unlock::KeyFile(place.path("other"))), Code::WrongKeyFile);
    let passphrase = Unlock::Passphrase(SecretString::from("no"));
    assert_eq!(snapshot(&passphrase), Code::WrongUnlockMethod);
    fs::write(place.store(), "no keystore").unwrap();
    assert_eq!(snapshot(&place.unlock()), Code::KeystoreCorrupt);
}

/// Copies a store that is open for writing: what a process that is killed leaves.
fn left_by_a_killed_process(from: &Path, to: &Path) -> KeyId {
    let unlock = Unlock::KeyFile(from.with_file_name("key"));
    let keystore = Keystore::create(from, &unlock).unwrap();
    let key = create_key(&keystore, "one");
    keystore.rotate(&key).unwrap();
    fs::copy(from, to).unwrap();
    key
}

#[test]
fn a_store_whose_writer_was_killed_is_read_and_not_repaired() {
    let place = KeystoreFixture::new();
    let left = place.path("left");
    let key = left_by_a_killed_process(&place.store(), &left);
    let before = fs::read(&left).unwrap();
    assert!(Keystore::unlock_method(&left).is_ok());
    let keys = Keystore::snapshot(&left, &place.unlock()).unwrap();
    assert_eq!(keys.attest(&key).unwrap().latest_version, 2);
    assert!(fs::read(&left).unwrap() == before, "the store was repaired on the disk");
    // The next writer repairs it, and comes to the same.
    let keystore = Keystore::open(&left, &place.unlock()).unwrap();
    assert_eq!(keystore.list().unwrap(), keys.list());
    assert!(fs::read(&left).unwrap() != before, "it needed no repair");
}

/// A writer has the store for itself: a snapshot waits for it, and then has what it wrote.
#[test]
fn a_snapshot_waits_for_a_writer() {
    let place = KeystoreFixture::new();
    let keystore = Keystore::create(&place.store(), &place.unlock()).unwrap();
    let key = create_key(&keystore, "one");
    let (path, unlock) = (place.store(), place.unlock());
    let reader = std::thread::spawn(move || Keystore::snapshot(&path, &unlock).unwrap());
    for _ in 0..20 {
        keystore.rotate(&key).unwrap();
    }
    drop(keystore);
    assert_eq!(reader.join().unwrap().attest(&key).unwrap().latest_version, 21);
}

#[test]
fn an_older_copy_is_refused_and_the_guard_is_told_nothing() {
    let place = KeystoreFixture::new();
    let guard: Arc<dyn RollbackGuard> = Arc::new(FileGuard::create(&place.path("guard")).unwrap());
    let keystore = options(Arc::clone(&guard)).create(&place.store(), &place.unlock()).unwrap();
    let key = create_key(&keystore, "one");
    drop(keystore);
    let (store, known) = (fs::read(place.store()).unwrap(), fs::read(place.path("guard")).unwrap());
    drop(place.open(Arc::clone(&guard)).map(|keystore| keystore.rotate(&key).unwrap()).unwrap());
    let snapshot = || options(Arc::clone(&guard)).snapshot(&place.store(), &place.unlock());
    assert_eq!(snapshot().unwrap().attest(&key).unwrap().latest_version, 2);
    // A guard that is behind, as a kill leaves it, stays behind until the keystore is opened.
    fs::write(place.path("guard"), &known).unwrap();
    snapshot().unwrap();
    assert_eq!(fs::read(place.path("guard")).unwrap(), known);
    drop(place.open(Arc::clone(&guard)).unwrap());
    assert_ne!(fs::read(place.path("guard")).unwrap(), known);
    fs::write(place.store(), store).unwrap();
    assert_eq!(snapshot().unwrap_err().code, Code::RolledBack);
}

/// A guard before whose first answer another process changes the keystore.
#[derive(Debug)]
struct Outrun {
    guard: FileGuard,
    store: PathBuf,
    was_asked: AtomicBool,
}

impl RollbackGuard for Outrun {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        if !self.was_asked.swap(true, Ordering::Relaxed) {
            let unlock = Unlock::KeyFile(self.store.with_file_name("key"));
            let other = options(Arc::new(self.guard.clone())).open(&self.store, &unlock)?;
            other.rotate(&other.list()?[0].key)?;
        }
        self.guard.check(mark)
    }

    fn advance(&self, _mark: &StoreMark) -> Result<()> {
        unreachable!("a snapshot tells its guard nothing")
    }
}

#[test]
fn a_change_between_reading_and_asking_the_guard_is_no_rollback() {
    let place = KeystoreFixture::new();
    let guard = FileGuard::create(&place.path("guard")).unwrap();
    let keystore = options(Arc::new(guard.clone())).create(&place.store(), &place.unlock()).unwrap();
    let key = create_key(&keystore, "one");
    drop(keystore);
    let outrun = Outrun { guard, store: place.store(), was_asked: AtomicBool::new(false) };
    let keys = options(Arc::new(outrun)).snapshot(&place.store(), &place.unlock()).unwrap();
    assert_eq!(keys.attest(&key).unwrap().latest_version, 2);
}
