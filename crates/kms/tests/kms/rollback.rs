//! Yesterday's copy of a keystore in today's place: refused by the guards that lie elsewhere, and
//! nobody locked out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bulla_kms::rollback::{
    FileGuard, NamedGuard, RollbackGuard, SignedTime, StoreGuard, StoreMark, TimeGuard, TimeSource,
};
use bulla_kms::{
    Algorithm, Code, KeyFile, KeyId, Keystore, KeystoreOptions, KmsError, NamedPublicKey, NewKey, Result,
    Timestamp, Unlock,
};

use crate::support::child::again;

struct KeystoreFixture {
    _temporary: Option<tempfile::TempDir>,
    folder: PathBuf,
}

impl KeystoreFixture {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        KeyFile::create(&folder.join("key")).unwrap();
        Self { _temporary: Some(temporary), folder }
    }

    fn store(&self) -> PathBuf {
        self.folder.join("keystore")
    }

    fn guard(&self) -> PathBuf {
        self.folder.join("guard")
    }

    fn unlock(&self) -> Unlock {
        Unlock::KeyFile(self.folder.join("key"))
    }

    fn open(&self, guard: impl RollbackGuard + 'static) -> Result<Keystore> {
        options(guard).open(&self.store(), &self.unlock())
    }

    /// A keystore with a key in it, under a guard in a file.
    fn create(&self) -> (Keystore, KeyId) {
        let guard = FileGuard::create(&self.guard()).unwrap();
        let keystore = options(guard).create(&self.store(), &self.unlock()).unwrap();
        let key = keystore.create_key(new_key()).unwrap().key_id().clone();
        (keystore, key)
    }
}

fn options(guard: impl RollbackGuard + 'static) -> KeystoreOptions {
    KeystoreOptions::default().guard(Arc::new(guard))
}

fn new_key() -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

#[test]
fn yesterdays_copy_of_the_store_is_refused_by_a_guard_in_a_file() {
    let place = KeystoreFixture::new();
    let (keystore, key) = place.create();
    drop(keystore);
    let yesterday = place.folder.join("yesterday");
    copy(&place.store(), &yesterday);
    let keystore = place.open(FileGuard::new(&place.guard())).unwrap();
    keystore.rotate(&key).unwrap();
    drop(keystore);
    let today = place.folder.join("today");
    copy(&place.store(), &today);

    copy(&yesterday, &place.store());
    let error = place.open(FileGuard::new(&place.guard())).unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::RolledBack, false));
    assert!(error.message.contains("older copy"), "{error}");
    // The counter in the store went back with it, and tells nothing.
    assert_eq!(
        Keystore::open(&place.store(), &place.unlock()).unwrap().attest(&key).unwrap().latest_version,
        1
    );

    copy(&today, &place.store());
    let keystore = place.open(FileGuard::new(&place.guard())).unwrap();
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
}

#[test]
fn a_copy_that_went_another_way_is_refused_when_it_has_come_as_far() {
    let place = KeystoreFixture::new();
    let (keystore, key) = place.create();
    drop(keystore);
    let other = place.folder.join("other");
    copy(&place.store(), &other);
    place.open(FileGuard::new(&place.guard())).unwrap().rotate(&key).unwrap();
    // The same number of changes, made to the copy without the guard.
    Keystore::open(&other, &place.unlock()).unwrap().disable(&key).unwrap();
    copy(&other, &place.store());
    let error = place.open(FileGuard::new(&place.guard())).unwrap_err();
    assert_eq!(error.code, Code::RolledBack);
    assert!(error.message.contains("another copy"), "{error}");
}

#[test]
fn a_guard_that_is_missing_or_damaged_or_anothers_opens_nothing() {
    let place = KeystoreFixture::new();
    let (keystore, _) = place.create();
    drop(keystore);
    let text = fs::read(place.guard()).unwrap();
    fs::remove_file(place.guard()).unwrap();
    let open = || place.open(FileGuard::new(&place.guard())).unwrap_err().code;
    assert_eq!(open(), Code::NotFound);
    fs::write(place.guard(), &text[1..]).unwrap();
    assert_eq!(open(), Code::GuardMismatch);
    let elsewhere = KeystoreFixture::new();
    drop(elsewhere.create());
    copy(&elsewhere.guard(), &place.guard());
    assert_eq!(open(), Code::GuardMismatch);
    fs::write(place.guard(), &text).unwrap();
    assert!(place.open(FileGuard::new(&place.guard())).is_ok());
}

/// Counts as a file does, until it fails.
#[derive(Debug)]
struct Failing {
    guard: FileGuard,
    failures: AtomicU64,
}

impl RollbackGuard for Failing {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        self.guard.check(mark)
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        let fails =
            self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        if fails { Err(KmsError::new(Code::StorageFull, "no room")) } else { self.guard.advance(mark) }
    }
}

#[test]
fn a_guard_that_cannot_be_told_is_an_error_and_is_told_by_the_next_change() {
    let place = KeystoreFixture::new();
    let (keystore, key) = place.create();
    drop(keystore);
    let guard = Arc::new(Failing { guard: FileGuard::new(&place.guard()), failures: AtomicU64::new(0) });
    let options = KeystoreOptions::default().guard(Arc::clone(&guard) as Arc<dyn RollbackGuard>);
    let keystore = options.open(&place.store(), &place.unlock()).unwrap();
    guard.failures.store(1, Ordering::Relaxed);
    let error = keystore.rotate(&key).unwrap_err();
    // The same call would make the change a second time.
    assert_eq!((error.code, error.retryable), (Code::OutcomeUnknown, false));
    assert!(error.message.contains("the change was made"), "{error}");
    // What memory says and what the disk says are the same.
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
    let behind = fs::read(place.guard()).unwrap();
    keystore.disable(&key).unwrap();
    assert_ne!(fs::read(place.guard()).unwrap(), behind);
    drop(keystore);
    let keystore = place.open(FileGuard::new(&place.guard())).unwrap();
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
}

const CHILD: &str = "BULLA_KMS_TEST_FOLDER";

/// A guard in a file whose process is killed at one place of the protocol.
#[derive(Debug)]
struct Killed {
    guard: FileGuard,
    at: &'static str,
    armed: AtomicU64,
}

impl Killed {
    fn here(&self, place: &str) {
        if self.at == place && self.armed.load(Ordering::Relaxed) == 1 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

impl RollbackGuard for Killed {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        self.guard.check(mark)
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        self.here("between store and guard");
        self.guard.advance(mark)?;
        self.here("after the guard");
        Ok(())
    }

    /// Asked just before the store is written.
    fn time(&self) -> Result<Timestamp> {
        self.here("before the store");
        Timestamp::now()
    }
}

const PLACES: [&str; 3] = ["before the store", "between store and guard", "after the guard"];

#[test]
fn a_kill_at_any_place_of_the_protocol_locks_nobody_out() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let place = KeystoreFixture { _temporary: None, folder: folder.into() };
        let name = std::env::var("BULLA_KMS_TEST_PLACE").unwrap();
        let at = PLACES.into_iter().find(|place| *place == name).unwrap();
        let guard = FileGuard::new(&place.guard());
        let guard = Arc::new(Killed { guard, at, armed: AtomicU64::new(0) });
        let options = KeystoreOptions::default().guard(Arc::clone(&guard) as Arc<dyn RollbackGuard>);
        let keystore = options.open(&place.store(), &place.unlock()).unwrap();
        let key = keystore.list().unwrap().remove(0).key;
        keystore.rotate(&key).unwrap();
        guard.armed.store(1, Ordering::Relaxed);
        keystore.rotate(&key).unwrap();
        unreachable!("the process was killed");
    }
    for (at, head) in PLACES.into_iter().zip([2, 3, 3]) {
        let place = KeystoreFixture::new();
        let (keystore, key) = place.create();
        drop(keystore);
        let yesterday = place.folder.join("yesterday");
        copy(&place.store(), &yesterday);
        let test = "rollback::a_kill_at_any_place_of_the_protocol_locks_nobody_out";
        let output = again(test)
            .env(CHILD, &place.folder)
            .env("BULLA_KMS_TEST_PLACE", at)
            .stdout(Stdio::null())
            .output()
            .unwrap();
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(output.status.signal(), Some(9), "{at}: {}", String::from_utf8_lossy(&output.stderr));

        // It opens, with every acknowledged change and perhaps the one that was not, and goes on.
        let keystore = place.open(FileGuard::new(&place.guard())).unwrap();
        assert_eq!(keystore.attest(&key).unwrap().latest_version, head, "{at}");
        keystore.rotate(&key).unwrap();
        drop(keystore);
        // And the guard still guards.
        copy(&yesterday, &place.store());
        let error = place.open(FileGuard::new(&place.guard())).unwrap_err();
        assert_eq!(error.code, Code::RolledBack, "{at}");
    }
}

/// The clock of somebody else: a key in another keystore, and a time that the test sets.
#[derive(Debug)]
struct Clock {
    authority: Keystore,
    key: KeyId,
}

impl TimeSource for Clock {
    fn now(&self, nonce: &[u8; 32]) -> Result<SignedTime> {
        self.authority.sign_time(&self.key, nonce)
    }
}

fn clock() -> (Clock, NamedPublicKey) {
    let authority = Keystore::in_memory().unwrap();
    let id = authority.create_key(new_key()).unwrap();
    let named = NamedPublicKey { public_key: authority.public_key(&id).unwrap(), key: id.clone() };
    (Clock { authority, key: id.key_id().clone() }, named)
}

#[test]
fn a_store_that_is_older_than_allowed_is_refused_by_a_signed_time() {
    let place = KeystoreFixture::new();
    let (keystore, key) = place.create();
    drop(keystore);
    let yesterday = place.folder.join("yesterday");
    copy(&place.store(), &yesterday);
    std::thread::sleep(Duration::from_millis(30));
    Keystore::open(&place.store(), &place.unlock()).unwrap().rotate(&key).unwrap();

    let (source, named) = clock();
    let source: Arc<dyn TimeSource> = Arc::new(source);
    let guard = |oldest| TimeGuard::new(Arc::clone(&source), named.clone(), oldest);
    assert!(place.open(guard(Duration::from_secs(3600))).is_ok());
    copy(&yesterday, &place.store());
    assert_eq!(place.open(guard(Duration::from_millis(10))).unwrap_err().code, Code::RolledBack);
    // Who knows that nothing newer was lost refreshes it.
    Keystore::open(&place.store(), &place.unlock()).unwrap().refresh().unwrap();
    assert!(place.open(guard(Duration::from_secs(3600))).is_ok());
}

/// Says the same again, or what another key signed.
#[derive(Debug)]
struct Replay(SignedTime);

impl TimeSource for Replay {
    fn now(&self, _nonce: &[u8; 32]) -> Result<SignedTime> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_time_that_was_signed_before_or_by_another_key_is_none() {
    let place = KeystoreFixture::new();
    drop(place.create());
    let (source, named) = clock();
    let said = source.now(&[0; 32]).unwrap();
    let replay = TimeGuard::new(Arc::new(Replay(said)), named.clone(), Duration::MAX);
    assert_eq!(place.open(replay).unwrap_err().code, Code::GuardMismatch);
    let (other, _) = clock();
    let anothers = TimeGuard::new(Arc::new(other), named, Duration::MAX);
    assert_eq!(place.open(anothers).unwrap_err().code, Code::GuardMismatch);
}

#[test]
fn no_caller_has_a_time_signed_as_a_message() {
    let (source, _) = clock();
    let message = SignedTime::signed_bytes(&[0; 32], Timestamp::now().unwrap());
    let error = source.authority.sign(&source.key, &message).unwrap_err();
    assert_eq!(error.code, Code::ReservedMessage);
}

fn named(name: &str, place: &KeystoreFixture) -> NamedGuard {
    NamedGuard::new(name, Arc::new(FileGuard::new(&place.guard()))).unwrap()
}

#[test]
fn a_store_that_remembers_its_guard_opens_with_no_other_and_with_none_at_all() {
    let place = KeystoreFixture::new();
    FileGuard::create(&place.guard()).unwrap();
    drop(options(named("mine", &place)).create(&place.store(), &place.unlock()).unwrap());
    assert_eq!(Keystore::guard_name(&place.store()).unwrap().as_deref(), Some("mine"));
    let error = Keystore::open(&place.store(), &place.unlock()).unwrap_err();
    assert_eq!(error.code, Code::GuardMismatch);
    assert!(error.message.contains("the rollback guard mine"), "{error}");
    assert_eq!(place.open(FileGuard::new(&place.guard())).unwrap_err().code, Code::GuardMismatch);
    assert_eq!(place.open(named("yours", &place)).unwrap_err().code, Code::GuardMismatch);

    let yesterday = place.folder.join("yesterday");
    copy(&place.store(), &yesterday);
    place.open(named("mine", &place)).unwrap().create_key(new_key()).unwrap();
    copy(&yesterday, &place.store());
    assert_eq!(place.open(named("mine", &place)).unwrap_err().code, Code::RolledBack);
}

#[test]
fn a_guard_is_given_replaced_and_taken_away() {
    let place = KeystoreFixture::new();
    drop(Keystore::create(&place.store(), &place.unlock()).unwrap());
    assert_eq!(Keystore::guard_name(&place.store()).unwrap(), None);
    FileGuard::create(&place.guard()).unwrap();
    Keystore::open(&place.store(), &place.unlock()).unwrap().set_guard(&named("first", &place)).unwrap();
    assert_eq!(Keystore::open(&place.store(), &place.unlock()).unwrap_err().code, Code::GuardMismatch);
    let yesterday = place.folder.join("yesterday");
    copy(&place.store(), &yesterday);
    place.open(named("first", &place)).unwrap().create_key(new_key()).unwrap();
    copy(&yesterday, &place.store());

    // The guard was lost, and the owner accepts what is there.
    let accepting = || NamedGuard::new("first", Arc::new(StoreGuard::default())).unwrap();
    assert_eq!(place.open(named("first", &place)).unwrap_err().code, Code::RolledBack);
    let second = place.folder.join("second");
    let second = NamedGuard::new("second", Arc::new(FileGuard::create(&second).unwrap())).unwrap();
    place.open(accepting()).unwrap().set_guard(&second).unwrap();
    assert_eq!(place.open(accepting()).unwrap_err().code, Code::GuardMismatch);
    copy(&yesterday, &place.store());
    assert_eq!(place.open(second.clone()).unwrap_err().code, Code::GuardMismatch, "it knew the first one");
    place.open(accepting()).unwrap().set_guard(&StoreGuard::default()).unwrap();
    assert_eq!(Keystore::guard_name(&place.store()).unwrap(), None);
    assert!(Keystore::open(&place.store(), &place.unlock()).is_ok());
}

#[test]
fn a_guard_of_another_store_is_refused_and_the_store_stays_as_it_was() {
    let (place, other) = (KeystoreFixture::new(), KeystoreFixture::new());
    drop(place.create());
    drop(Keystore::create(&other.store(), &other.unlock()).unwrap());
    let keystore = Keystore::open(&other.store(), &other.unlock()).unwrap();
    assert_eq!(keystore.set_guard(&named("mine", &place)).unwrap_err().code, Code::GuardMismatch);
    assert_eq!(Keystore::guard_name(&other.store()).unwrap(), None);
    assert!(Keystore::open(&other.store(), &other.unlock()).is_ok());
}

#[test]
fn a_name_of_a_guard_is_plain_text() {
    for name in ["", "a\nb", "a\u{202e}b", &"x".repeat(1025)] {
        let error = NamedGuard::new(name, Arc::new(StoreGuard::default())).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
    }
    assert!(NamedGuard::new(&"x".repeat(1024), Arc::new(StoreGuard::default())).is_ok());
}
