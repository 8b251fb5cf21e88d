//! Tests that need internals: a store that is edited row by row, and passphrases at a low cost.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::changes::Edit;
use super::*;
use super::{load, open as opening};
use crate::algorithm::Algorithm;
use crate::attestation::Attestation;
use crate::ciphertext::{DataKeyLength, EncryptionOptions};
use crate::encryption::{Argon2Cost, EnvelopeKind, Passphrase, Unlock};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyId;
use crate::policy::{KeyChange, RotationPolicy};
use crate::rollback::{NamedGuard, RollbackGuard, StoreGuard, StoreMark};
use crate::store::{Change, Changed, Changes, GUARD, MemoryStore, Rows, Store, Table};
use crate::time::Timestamp;

fn new_key(label: &str) -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
        .label(label.parse().unwrap())
}

fn unlock() -> Unlock {
    Unlock::Passphrase("correct horse battery staple".into())
}

fn empty_rows() -> Rows {
    let cheap = Passphrase::with_cost("correct horse battery staple".into(), Argon2Cost::MIN).unwrap();
    opening::new_rows(&cheap, &StoreGuard::default()).unwrap().0
}

/// A store whose rows the test sees and edits.
struct SharedStore(Arc<Mutex<MemoryStore>>);

impl Store for SharedStore {
    fn load(&mut self) -> Result<Rows> {
        self.0.lock().unwrap().load()
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.0.lock().unwrap().load_key(key_id)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.0.lock().unwrap().commit(change)
    }
}

/// The rows of a keystore after each of some changes to it.
fn history(changes: &[&dyn Fn(&Keystore)]) -> Vec<Rows> {
    let store = Arc::new(Mutex::new(MemoryStore::new(empty_rows())));
    let keystore = opening::open_store(Box::new(SharedStore(Arc::clone(&store))), &unlock()).unwrap();
    changes
        .iter()
        .map(|change| {
            change(&keystore);
            store.lock().unwrap().load().unwrap()
        })
        .collect()
}

fn open(rows: &Rows) -> Result<Keystore> {
    opening::open_store(Box::new(MemoryStore::new(rows.clone())), &unlock())
}

#[track_caller]
fn assert_damaged(rows: &Rows) {
    assert_eq!(open(rows).expect_err("the edit is detected").code, Code::KeystoreCorrupt);
}

fn create(label: &'static str) -> impl Fn(&Keystore) {
    move |keystore| {
        keystore.create_key(new_key(label)).unwrap();
    }
}

fn key_a(keystore: &Keystore) -> KeyId {
    keystore.find(&"local".parse().unwrap(), &"a".parse().unwrap()).unwrap().unwrap()
}

fn rotate(keystore: &Keystore) {
    keystore.rotate(&key_a(keystore)).unwrap();
}

fn disable(keystore: &Keystore) {
    keystore.disable(&key_a(keystore)).unwrap();
}

#[test]
fn what_was_changed_is_there_when_the_store_is_opened_again() {
    let rows = history(&[&create("a"), &rotate, &create("b")]).pop().unwrap();
    let keystore = open(&rows).unwrap();
    assert_eq!(keystore.list().unwrap().len(), 2);
    assert_eq!(keystore.attest(&key_a(&keystore)).unwrap().latest_version, 2);
    // It can be changed further.
    rotate(&keystore);
    assert_eq!(keystore.attest(&key_a(&keystore)).unwrap().latest_version, 3);
}

/// What a keystore shows of some tenants: their keys in order, by page and by label, and how many.
fn shown(keystore: &Keystore, tenants: &[&str]) -> Vec<(usize, Vec<Attestation>, Vec<Option<KeyId>>)> {
    let of_tenant = |tenant: &&str| {
        let tenant = tenant.parse().unwrap();
        let page = keystore.list_page(&tenant, None, usize::MAX, &|_| true);
        let rest = page.first().map(|first| keystore.list_page(&tenant, Some(&first.key), 2, &|_| true));
        assert!(rest.is_none_or(|rest| rest.iter().eq(page.iter().skip(1).take(2))));
        let label = |number: usize| format!("label-{number}").parse().unwrap();
        let labels = (0..5).map(|number| keystore.find(&tenant, &label(number)).unwrap()).collect();
        (keystore.count_keys(&tenant), page, labels)
    };
    tenants.iter().map(of_tenant).collect()
}

/// A tenant's keys are in maps when they are first asked for, or when the store opens if they are
/// many. Nobody sees a difference, whatever is asked first.
#[test]
fn the_keys_of_few_and_of_many_are_found_alike_after_opening() {
    let tenants = ["few", "few-a", "few.b", "many", "other"];
    let store = Arc::new(Mutex::new(MemoryStore::new(empty_rows())));
    let made = opening::open_store(Box::new(SharedStore(Arc::clone(&store))), &unlock()).unwrap();
    let new =
        |tenant: &str| NewKey::new(tenant.parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    for number in 0..3 {
        for tenant in ["few", "few-a", "few.b", "many"] {
            made.create_key(new(tenant).label(format!("label-{number}").parse().unwrap())).unwrap();
        }
    }
    (0..300).for_each(|_| drop(made.create_key(new("many")).unwrap()));
    made.create_token_root(&"few".parse().unwrap()).unwrap();
    let rows = store.lock().unwrap().load().unwrap();
    assert_eq!(shown(&open(&rows).unwrap(), &tenants), shown(&made, &tenants));
    let opened = open(&rows).unwrap();
    assert_eq!(opened.list().unwrap(), made.list().unwrap(), "before a tenant was asked for");
    assert_eq!(opened.token_roots(), made.token_roots());
    assert!(format!("{opened:?}").contains("keys: 313"), "{opened:?}");
    // The first thing that happens to a tenant is a change.
    let opened = open(&rows).unwrap();
    for tenant in ["few", "many"] {
        for keystore in [&made, &opened] {
            let key = keystore.find(&tenant.parse().unwrap(), &"label-0".parse().unwrap()).unwrap().unwrap();
            let label = KeyChange::Label(Some("label-4".parse().unwrap()));
            keystore.update(&key, None, &label).unwrap();
            keystore.disable(&key).unwrap();
        }
    }
    assert_eq!(shown(&opened, &tenants), shown(&made, &tenants));
    assert_eq!(opened.list().unwrap(), made.list().unwrap());
    let before = opened.list().unwrap().len();
    opened.create_key(new("other")).unwrap();
    assert_eq!((opened.list().unwrap().len(), opened.count_keys(&"other".parse().unwrap())), (before + 1, 1));
}

#[test]
fn a_wrong_passphrase_is_told_from_damage() {
    let rows = history(&[&create("a")]).pop().unwrap();
    let wrong = Unlock::Passphrase("incorrect horse".into());
    let error = opening::open_store(Box::new(MemoryStore::new(rows)), &wrong).unwrap_err();
    assert_eq!(error.code, Code::WrongPassphrase);
}

#[test]
fn every_flipped_byte_of_every_row_is_detected() {
    let rows = history(&[&create("a"), &rotate, &create("b")]).pop().unwrap();
    let mut flips = 0;
    for (table, name, value) in rows.iter() {
        for index in 0..value.len() {
            let mut edited = rows.clone();
            edited.table_mut(table).get_mut(name).unwrap()[index] ^= 0x01;
            let code = open(&edited).expect_err("the edit is detected").code;
            let newer = name == crate::store::FORMAT && code == Code::KeystoreTooNew;
            assert!(code == Code::KeystoreCorrupt || newer, "{table:?} {name} byte {index}: {code}");
            flips += 1;
        }
    }
    assert!(flips > 1000, "{flips} bytes were tried");
}

#[test]
fn every_row_that_is_removed_or_renamed_is_detected() {
    let rows = history(&[&create("a"), &rotate, &create("b")]).pop().unwrap();
    for (table, name, value) in rows.iter() {
        let mut edited = rows.clone();
        edited.table_mut(table).remove(name);
        assert_damaged(&edited);
        let mut renamed = name.clone();
        renamed.replace_range(..1, "x");
        edited.table_mut(table).insert(renamed, value.clone());
        assert_damaged(&edited);
    }
}

#[test]
fn nobody_takes_out_changes_or_puts_in_the_name_of_a_guard() {
    let cheap = Passphrase::with_cost("correct horse battery staple".into(), Argon2Cost::MIN).unwrap();
    let guard: Arc<dyn RollbackGuard> =
        Arc::new(NamedGuard::new("mine", Arc::new(StoreGuard::default())).unwrap());
    let rows = opening::new_rows(&cheap, &*guard).unwrap().0;
    let options = KeystoreOptions::default().guard(guard);
    let open = |rows: &Rows| {
        let (store, cipher) =
            (MemoryStore::new(rows.clone()), load::open_root(&rows.meta, &unlock()).unwrap());
        opening::load_keystore(Box::new(store), rows.clone(), cipher, &options)
            .map(drop)
            .map_err(|error| error.code)
    };
    assert_eq!(open(&rows), Ok(()));
    for name in [None, Some(&b"mime"[..]), Some(b""), Some(b"\xff")] {
        let mut edited = rows.clone();
        edited.meta.remove(GUARD);
        edited.meta.extend(name.map(|name| (GUARD.to_owned(), name.to_vec())));
        assert_eq!(open(&edited), Err(Code::KeystoreCorrupt), "{name:?}");
    }
    let mut without = empty_rows();
    assert!(self::open(&without).is_ok());
    without.meta.insert(GUARD.to_owned(), b"mine".to_vec());
    assert_damaged(&without);
}

#[test]
fn values_that_are_swapped_between_rows_are_detected() {
    let rows = history(&[&create("a"), &create("b")]).pop().unwrap();
    for table in [Table::Records, Table::PrivateKeys] {
        let mut edited = rows.clone();
        let mut values = edited.table_mut(table).values_mut();
        std::mem::swap(values.next().unwrap(), values.next().unwrap());
        assert_damaged(&edited);
    }
}

#[test]
fn a_row_that_is_put_back_to_an_older_form_is_detected() {
    let [one, two] = history(&[&create("a"), &rotate]).try_into().unwrap();
    // Put the latest version back to version 1: the record alone, with its private key, and with an
    // older state.
    let record_back = Rows { records: one.records.clone(), ..two.clone() };
    assert_damaged(&record_back);
    assert_damaged(&Rows { private_keys: one.private_keys.clone(), ..record_back });
    assert_damaged(&Rows { meta: one.meta.clone(), ..two.clone() });
    // Make a disabled key look enabled again.
    let [enabled, disabled] = history(&[&create("a"), &disable]).try_into().unwrap();
    assert_damaged(&Rows { records: enabled.records, ..disabled });
}

#[test]
fn a_key_that_is_put_back_after_it_was_not_there_is_detected() {
    let [one, two] = history(&[&create("a"), &create("b")]).try_into().unwrap();
    let without_b =
        Rows { records: one.records.clone(), private_keys: one.private_keys.clone(), ..two.clone() };
    assert_damaged(&without_b);
    assert_damaged(&Rows { meta: one.meta.clone(), ..two.clone() });
    let orphan = Rows { private_keys: two.private_keys, ..one };
    assert_damaged(&orphan);
}

#[test]
fn a_newer_format_is_named_as_such_before_anything_else_is_read() {
    let mut rows = history(&[&create("a")]).pop().unwrap();
    rows.meta.insert(crate::store::FORMAT.to_owned(), 2_u32.to_be_bytes().to_vec());
    rows.meta.remove(crate::store::PROTECTION);
    assert_eq!(open(&rows).unwrap_err().code, Code::KeystoreTooNew);
}

#[test]
fn a_change_to_a_store_that_changed_meanwhile_is_refused_and_changes_nothing() {
    let [one, two] = history(&[&create("a"), &rotate]).try_into().unwrap();
    let store = Arc::new(Mutex::new(MemoryStore::new(one)));
    let keystore = opening::open_store(Box::new(SharedStore(Arc::clone(&store))), &unlock()).unwrap();
    *store.lock().unwrap() = MemoryStore::new(two.clone());
    let key = key_a(&keystore);
    assert_eq!(keystore.rotate(&key).unwrap_err().code, Code::KeystoreChanged);
    assert_eq!(store.lock().unwrap().load().unwrap(), two);
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 1);
}

/// A store that several keystores have open at the same time.
struct ManyWriters(SharedStore);

impl Store for ManyWriters {
    fn load(&mut self) -> Result<Rows> {
        self.0.load()
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.0.load_key(key_id)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.0.commit(change)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[test]
fn writers_on_one_shared_store_lose_none_of_each_others_rotations() {
    let [rows] = history(&[&create("a")]).try_into().unwrap();
    let store = Arc::new(Mutex::new(MemoryStore::new(rows)));
    let open =
        || opening::open_store(Box::new(ManyWriters(SharedStore(Arc::clone(&store)))), &unlock()).unwrap();
    let rotate = || {
        let keystore = open();
        let key = key_a(&keystore);
        (0..50).map(|_| keystore.rotate(&key).unwrap().version()).collect::<Vec<_>>()
    };
    let mut versions: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(rotate)).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    versions.sort_unstable();
    assert!(versions.into_iter().eq(2..=101));
    let keystore = open();
    assert_eq!(keystore.attest(&key_a(&keystore)).unwrap().latest_version, 101);
}

/// A store that is never read whole again once it is open.
struct ReadOnce {
    store: SharedStore,
    is_open: bool,
}

impl Store for ReadOnce {
    fn load(&mut self) -> Result<Rows> {
        assert!(!std::mem::replace(&mut self.is_open, true), "all of the store is read");
        self.store.load()
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.store.load_key(key_id)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.store.commit(change)
    }
}

fn successors(keystore: &Keystore) -> Result<Vec<u32>> {
    let statements = keystore.successions(&key_a(keystore))?;
    Ok(statements.iter().map(|one| one.successor.version()).collect())
}

#[test]
fn statements_of_succession_read_the_rows_of_one_key() {
    let rows = history(&[&create("a"), &create("b"), &rotate]).pop().unwrap();
    let store = SharedStore(Arc::new(Mutex::new(MemoryStore::new(rows))));
    let store = ReadOnce { store, is_open: false };
    let keystore = opening::open_store(Box::new(store), &unlock()).unwrap();
    assert_eq!(successors(&keystore).unwrap(), [2]);
    rotate(&keystore);
    assert_eq!(successors(&keystore).unwrap(), [2, 3]);
}

#[test]
fn statements_of_succession_are_about_what_another_process_has_made_of_the_key() {
    let [rows] = history(&[&create("a")]).try_into().unwrap();
    let store = Arc::new(Mutex::new(MemoryStore::new(rows)));
    let open =
        || opening::open_store(Box::new(ManyWriters(SharedStore(Arc::clone(&store)))), &unlock()).unwrap();
    let [one, other] = [open(), open()];
    rotate(&other);
    assert_eq!(one.attest(&key_a(&one)).unwrap().latest_version, 1, "it has not looked yet");
    assert_eq!(successors(&one).unwrap(), [2]);
    disable(&other);
    assert_eq!(successors(&one).unwrap_err().code, Code::KeyDisabled);
}

/// Nobody makes a keystore vouch by an older record of one key, although the keystore reads no
/// other.
#[test]
fn statements_of_succession_are_not_made_by_a_record_that_was_put_back_or_removed() {
    let [one, two] = history(&[&create("a"), &rotate]).try_into().unwrap();
    let open_shared = |store| opening::open_store(Box::new(ManyWriters(SharedStore(store))), &unlock());
    let open_alone = |store| opening::open_store(Box::new(SharedStore(store)), &unlock());
    type Open<'a> = &'a dyn Fn(Arc<Mutex<MemoryStore>>) -> Result<Keystore>;
    for open in [&open_shared as Open<'_>, &open_alone] {
        for record in [one.records.values().next(), None] {
            let store = Arc::new(Mutex::new(MemoryStore::new(two.clone())));
            let keystore = open(Arc::clone(&store)).unwrap();
            let mut edited = two.clone();
            match record {
                Some(older) => edited.records.values_mut().for_each(|record| record.clone_from(older)),
                None => edited.records.clear(),
            }
            *store.lock().unwrap() = MemoryStore::new(edited);
            assert_eq!(successors(&keystore).unwrap_err().code, Code::KeystoreCorrupt);
        }
    }
}

/// Refuses to check so many times, after it has accepted so many.
#[derive(Debug)]
struct Unreachable {
    accepted: AtomicU32,
    refused: AtomicU32,
    code: Code,
}

impl RollbackGuard for Unreachable {
    fn check(&self, _mark: &StoreMark) -> Result<()> {
        let takes_one = |left: &AtomicU32| {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        };
        if takes_one(&self.accepted) || !takes_one(&self.refused) {
            return Ok(());
        }
        Err(KmsError::new(self.code, "the guard does not answer"))
    }

    fn advance(&self, _mark: &StoreMark) -> Result<()> {
        Ok(())
    }
}

/// A keystore on a store that others may change.
fn open_shared(store: Box<dyn Store>, rows: &Rows, guard: Arc<dyn RollbackGuard>) -> Keystore {
    let cipher = load::open_root(&rows.meta, &unlock()).unwrap();
    let options = KeystoreOptions::default().guard(guard);
    opening::load_keystore(store, rows.clone(), cipher, &options).unwrap()
}

#[test]
fn a_change_of_others_that_the_guard_refuses_is_not_taken_over() {
    let [one, two] = history(&[&create("a"), &rotate]).try_into().unwrap();
    let store = Arc::new(Mutex::new(MemoryStore::new(one.clone())));
    // It is asked once when the store is opened.
    let guard = Unreachable { accepted: 1.into(), refused: 1.into(), code: Code::GuardMismatch };
    let shared = Box::new(ManyWriters(SharedStore(Arc::clone(&store))));
    let keystore = open_shared(shared, &one, Arc::new(guard));
    let key = key_a(&keystore);
    *store.lock().unwrap() = MemoryStore::new(two);
    assert_eq!(keystore.catch_up().unwrap_err().code, Code::GuardMismatch);
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 1);
    keystore.catch_up().unwrap();
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
}

#[test]
fn a_shared_store_that_goes_back_or_aside_is_refused_by_itself() {
    let [base] = history(&[&create("a")]).try_into().unwrap();
    let changed = |change: &dyn Fn(&Keystore)| {
        let store = Arc::new(Mutex::new(MemoryStore::new(base.clone())));
        let shared = Box::new(SharedStore(Arc::clone(&store)));
        change(&opening::open_store(shared, &unlock()).unwrap());
        store.lock().unwrap().load().unwrap()
    };
    // Two futures of one store, at the same number of changes.
    let (rotated, disabled) = (changed(&rotate), changed(&disable));
    let store = Arc::new(Mutex::new(MemoryStore::new(rotated.clone())));
    // A guard that accepts everything: the store's own number has to tell.
    let guard = Unreachable { accepted: u32::MAX.into(), refused: 0.into(), code: Code::Internal };
    let shared = Box::new(ManyWriters(SharedStore(Arc::clone(&store))));
    let keystore = open_shared(shared, &rotated, Arc::new(guard));
    let key = key_a(&keystore);
    for other in [&base, &disabled] {
        *store.lock().unwrap() = MemoryStore::new(other.clone());
        assert_eq!(keystore.catch_up().unwrap_err().code, Code::RolledBack);
        let now = keystore.attest(&key).unwrap();
        assert_eq!((now.latest_version, now.state), (2, crate::KeyState::Enabled));
    }
    *store.lock().unwrap() = MemoryStore::new(rotated);
    keystore.catch_up().unwrap();
}

/// A shared store that announces the rows of one change, once.
struct Announcing {
    store: ManyWriters,
    changed: Option<Receiver<Changed>>,
    rows: Option<Changes>,
}

impl Store for Announcing {
    fn load(&mut self) -> Result<Rows> {
        self.store.load()
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.store.load_key(key_id)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.store.commit(change)
    }

    fn announced(&mut self) -> Option<Changes> {
        Some(self.rows.take().unwrap_or_default())
    }

    fn watch(&mut self) -> Option<Receiver<Changed>> {
        self.changed.take()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[test]
fn a_change_that_is_announced_while_the_guard_does_not_answer_is_read_later() {
    let [one, two] = history(&[&create("a"), &rotate]).try_into().unwrap();
    let store = Arc::new(Mutex::new(MemoryStore::new(one.clone())));
    let rows = two.iter().map(|(table, name, value)| ((table, name.clone()), Some(value.clone())));
    let (tell, changed) = sync_channel(1);
    let announcing = Announcing {
        store: ManyWriters(SharedStore(Arc::clone(&store))),
        changed: Some(changed),
        rows: Some(rows.collect()),
    };
    let guard = Arc::new(Unreachable { accepted: 1.into(), refused: 2.into(), code: Code::Unavailable });
    let keystore = open_shared(Box::new(announcing), &one, Arc::clone(&guard) as Arc<dyn RollbackGuard>);
    let key = key_a(&keystore);
    *store.lock().unwrap() = MemoryStore::new(two);
    tell.send(Changed).unwrap();
    let start = Instant::now();
    while keystore.attest(&key).unwrap().latest_version == 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "the change is not read");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(guard.refused.load(Ordering::SeqCst), 0);
}

/// A store that has no room.
struct FullStore(MemoryStore);

impl Store for FullStore {
    fn load(&mut self) -> Result<Rows> {
        self.0.load()
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.0.load_key(key_id)
    }

    fn commit(&mut self, _change: Change<'_>) -> Result<()> {
        Err(KmsError::new(Code::StorageFull, "no room"))
    }
}

#[test]
fn a_change_that_cannot_be_written_does_not_happen() {
    let rows = history(&[&create("a")]).pop().unwrap();
    let keystore = opening::open_store(Box::new(FullStore(MemoryStore::new(rows))), &unlock()).unwrap();
    let before = keystore.list().unwrap();
    let key = key_a(&keystore);
    assert_eq!(keystore.rotate(&key).unwrap_err().code, Code::StorageFull);
    assert_eq!(keystore.disable(&key).unwrap_err().code, Code::StorageFull);
    assert_eq!(keystore.create_key(new_key("b")).unwrap_err().code, Code::StorageFull);
    assert_eq!(keystore.list().unwrap(), before);
    assert_eq!(keystore.sign(&key, b"message").unwrap().key.version(), 1);
}

#[test]
fn a_version_is_never_older_than_the_one_before_it() {
    let [rows] = history(&[&create("a")]).try_into().unwrap();
    let keystore = open(&rows).unwrap();
    let key = key_a(&keystore);
    // As if the clock had been set back since the key was made.
    let future = Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + 3_600_000).unwrap();
    let edited = keystore.edit(|index| {
        let mut record = index.key(&key)?.record.clone();
        record.versions[0].created = future;
        Ok(Some(Edit::new(record, None)))
    });
    assert!(edited.unwrap().is_some());
    keystore.rotate(&key).unwrap();
    let versions = keystore.attest(&key).unwrap().versions;
    assert_eq!(
        (versions[0].created, versions[0].retired, versions[1].created),
        (future, Some(future), future)
    );
}

/// Nothing that can be printed contains a key's seed, neither as text nor as raw bytes.
#[test]
fn nothing_that_is_printed_shows_a_secret() {
    let keystore = open(&empty_rows()).unwrap();
    let id = keystore.create_key(new_key("a")).unwrap();
    let seed = {
        let mut writer = keystore.writer();
        let rows = writer.store.load().unwrap();
        let encrypted = &rows.private_keys[&id.to_string()];
        keystore.cipher.decrypt(&EnvelopeKind::PrivateKey(id.to_string()), encrypted).unwrap()
    };
    assert_eq!(seed.len(), 32);
    let printed = [
        format!("{keystore:?} {keystore:#?}"),
        format!("{:?} {}", unlock(), unlock_error()),
        format!("{:?}", keystore.attest(id.key_id()).unwrap()),
        format!("{:?}", keystore.sign(id.key_id(), b"message").unwrap()),
        serde_json::to_string(&keystore.list().unwrap()).unwrap(),
    ]
    .concat();
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let list = format!("{:?}", &seed[..8]);
    let list = list.trim_matches(['[', ']']);
    for secret in [&hex, &crate::encoding::base64(&seed)[..20], list, "correct horse"] {
        assert!(!printed.contains(secret), "a secret is printed");
    }
    assert!(printed.contains("Keystore"));
}

fn unlock_error() -> KmsError {
    let rows = history(&[&create("a")]).pop().unwrap();
    let wrong = Unlock::Passphrase("correct horse but wrong".into());
    opening::open_store(Box::new(MemoryStore::new(rows)), &wrong).unwrap_err()
}

/// A keystore in memory with a key, of which one version was used so many times.
fn used(new: NewKey, version: usize, uses: u64) -> (Keystore, KeyId) {
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new).unwrap().key_id().clone();
    while keystore.attest(&key).unwrap().versions.len() < version {
        keystore.rotate(&key).unwrap();
    }
    set_uses(&keystore, &key, version, uses);
    (keystore, key)
}

fn set_uses(keystore: &Keystore, key: &KeyId, version: usize, uses: u64) {
    let changed = keystore.edit(|index| {
        let mut record = index.key(key)?.record.clone();
        record.versions[version - 1].uses = uses;
        Ok(Some(Edit::new(record, None)))
    });
    changed.unwrap();
}

fn encrypting(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "rows".parse().unwrap(), algorithm)
}

#[test]
fn a_version_encrypts_as_often_as_random_nonces_allow_and_not_once_more() {
    for algorithm in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
        let bound = algorithm.max_encryptions().unwrap().get();
        assert_eq!(bound, 1 << 32);
        let (keystore, key) = used(encrypting(algorithm), 1, bound - 3);
        let encrypt = || keystore.encrypt(&key, b"text", &EncryptionOptions::NONE);
        for _ in 0..3 {
            assert_eq!(encrypt().unwrap().key.version(), 1);
        }
        for _ in 0..2 {
            assert_eq!(encrypt().unwrap_err().code, Code::UsesExhausted);
        }
        let data_key = keystore.generate_data_key(&key, DataKeyLength::Bits256, &EncryptionOptions::NONE);
        assert_eq!(data_key.unwrap_err().code, Code::UsesExhausted);
        keystore.rotate(&key).unwrap();
        assert_eq!(encrypt().unwrap().key.version(), 2);
    }
    // Nonces of 192 bits need no bound, and neither do MACs.
    let (keystore, key) = used(encrypting(Algorithm::XChaCha20Poly1305), 1, 1 << 40);
    keystore.encrypt(&key, b"text", &EncryptionOptions::NONE).unwrap();
    let (keystore, key) = used(encrypting(Algorithm::HmacSha256), 1, 1 << 40);
    keystore.mac(&key, b"message").unwrap();
}

#[test]
fn a_key_that_rotates_by_itself_goes_on_after_the_bound() {
    let policies = [
        RotationPolicy::default().max_age_seconds(NonZeroU64::new(1 << 40)),
        RotationPolicy::default().max_uses(NonZeroU64::new(1 << 50)),
    ];
    for policy in policies {
        let new = encrypting(Algorithm::Aes256Gcm).rotation(policy);
        let (keystore, key) = used(new, 1, (1 << 32) - 1);
        let versions = [(); 3]
            .map(|()| keystore.encrypt(&key, b"text", &EncryptionOptions::NONE).unwrap().key.version());
        assert_eq!(versions, [1, 2, 2]);
    }
}

#[test]
fn an_older_version_that_encrypts_has_the_same_bound() {
    let new = encrypting(Algorithm::Aes256Gcm).minimum_signing_version(0);
    let (keystore, key) = used(new, 2, 0);
    set_uses(&keystore, &key, 1, (1 << 32) - 1);
    let first = key.version(NonZeroU32::MIN);
    let encrypt = || keystore.encrypt(&first, b"text", &EncryptionOptions::NONE);
    assert_eq!(encrypt().unwrap().key, first);
    assert_eq!(encrypt().unwrap_err().code, Code::UsesExhausted);
    assert_eq!(keystore.encrypt(&key, b"text", &EncryptionOptions::NONE).unwrap().key.version(), 2);
}

#[test]
fn a_process_counts_encryptions_before_it_makes_them_and_in_portions() {
    let (keystore, key) = used(encrypting(Algorithm::Aes256Gcm), 1, 0);
    let uses = || keystore.index.load().key(&key).unwrap().record.versions[0].uses;
    for _ in 0..3 {
        keystore.encrypt(&key, b"text", &EncryptionOptions::NONE).unwrap();
        assert_eq!(uses(), 1 << 16, "one change of the store for many encryptions");
    }
}

/// The key of a store that somebody edits, for a private key of another version: the record has a
/// digest of each symmetric key.
#[test]
fn a_symmetric_key_under_another_versions_name_is_noticed() {
    let rows = history(&[&|keystore| {
        let key = keystore.create_key(encrypting(Algorithm::Aes256Gcm).label("a".parse().unwrap())).unwrap();
        keystore.rotate(key.key_id()).unwrap();
    }]);
    let keystore = open(&rows[0]).unwrap();
    let key = key_a(&keystore);
    let place = |version: u32| EnvelopeKind::PrivateKey(format!("{key}/v{version}"));
    let mut edited = rows[0].clone();
    let [first, second] = [1, 2].map(|version| format!("{key}/v{version}"));
    let material = keystore.cipher.decrypt(&place(1), &edited.private_keys[&first]).unwrap();
    let moved = keystore.cipher.encrypt(place(2), &material).unwrap();
    edited.private_keys.insert(second, moved);
    let error = open(&edited).unwrap().encrypt(&key, b"text", &EncryptionOptions::NONE).unwrap_err();
    assert_eq!(error.code, Code::KeystoreCorrupt);
}

#[test]
fn a_record_of_an_unknown_algorithm_is_of_a_newer_program() {
    let rows = history(&[&create("a")]);
    let keystore = open(&rows[0]).unwrap();
    let record = keystore.index.load().key(&key_a(&keystore)).unwrap().record.to_bytes();
    let text = String::from_utf8(record).unwrap();
    let newer = text.replacen("/ed25519/", "/ed448/", 1);
    let error = crate::record::KeyRecord::parse(newer.as_bytes()).unwrap_err();
    assert_eq!(error.code, Code::KeystoreTooNew, "{error}");
    assert!(error.message.contains("ed448"), "{error}");
    for broken in [text.replacen("/ed25519/", "/aes-256-gcm/", 1), text.replacen("versions", "version", 1)] {
        let error = crate::record::KeyRecord::parse(broken.as_bytes()).unwrap_err();
        assert_eq!(error.code, Code::KeystoreCorrupt, "{error}");
    }
}
