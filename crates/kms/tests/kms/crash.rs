//! Processes that are killed, and disks that are full.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use bulla_kms::{
    Algorithm, Code, EncryptionOptions, KeyFile, KeyId, KeyVersionId, Keystore, NewKey, RotationPolicy,
    Unlock, Verdict,
};

use crate::support::child::{Harm, child, limit_file_size, lines, tell_parent};
use bulla_testing::strikes::strikes;

const MESSAGE: &[u8] = b"a message";
const ROUNDS: u32 = 60;

/// A folder with a key file and, perhaps, a keystore.
struct KeystoreFixture(PathBuf);

impl KeystoreFixture {
    fn unlock(&self) -> Unlock {
        Unlock::KeyFile(self.0.join("key"))
    }

    fn keystore(&self) -> PathBuf {
        self.0.join("keystore")
    }

    fn open(&self) -> Keystore {
        Keystore::open(&self.keystore(), &self.unlock()).unwrap()
    }
}

/// A folder, a keystore with a key in it, closed.
fn parent() -> (tempfile::TempDir, KeystoreFixture, KeyId) {
    let folder = tempfile::tempdir().unwrap();
    let place = KeystoreFixture(folder.path().to_owned());
    KeyFile::create(&folder.path().join("key")).unwrap();
    let keystore = Keystore::create(&place.keystore(), &place.unlock()).unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new).unwrap().key_id().clone();
    (folder, place, key)
}

/// Rotates all keys until it is stopped; tells each version, and a signature of it, after it is
/// acknowledged.
fn rotate_until_stopped(keystore: &Keystore) -> bulla_kms::KmsError {
    let key = keystore.list().unwrap().swap_remove(0).key;
    loop {
        match keystore.rotate(&key) {
            Ok(id) => {
                let signature = keystore.sign(&id, MESSAGE).unwrap();
                tell_parent(serde_json::to_string(&signature).unwrap());
            }
            Err(error) => return error,
        }
    }
}

/// All signatures that children told of verify, and no version they named is lost; gives the head.
fn check(place: &KeystoreFixture, key: &KeyId, told: &[String]) -> u32 {
    let keystore = place.open();
    let head = keystore.attest(key).unwrap().latest_version;
    for line in told {
        let signature: bulla_kms::Signature = serde_json::from_str(line).unwrap();
        assert!(signature.key.version() <= head, "{} is lost: the head is {head}", signature.key);
        let verdict = keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap();
        assert_eq!(verdict, Verdict::Valid, "{}", signature.key);
    }
    head
}

#[test]
fn no_acknowledged_version_is_lost_when_the_process_is_killed() {
    if let Some(place) = child().map(KeystoreFixture) {
        rotate_until_stopped(&place.open());
    }
    let (folder, place, key) = parent();
    let mut told = Vec::new();
    let mut head = 1;
    strikes(ROUNDS, |delay| {
        let before = told.len();
        let test = "crash::no_acknowledged_version_is_lost_when_the_process_is_killed";
        told.extend(lines(test, folder.path(), Harm::Kill(delay)));
        let new = (told.len() - before) as u32;
        let now = check(&place, &key, &told);
        // The kill may fall between the write and the word of it.
        assert!(now == head + new || now == head + new + 1, "{head} and {new} new ones, but {now}");
        head = now;
        new >= 40
    });
}

/// Encrypts until it is stopped, and tells each ciphertext; rotates the key after every fiftieth.
fn encrypt_until_stopped(keystore: &Keystore) -> bulla_kms::KmsError {
    let key = keystore.list().unwrap().swap_remove(0).key;
    for number in 0_u32.. {
        let made = keystore.encrypt(&key, MESSAGE, &EncryptionOptions::NONE);
        let rotated = if number % 50 == 49 { keystore.rotate(&key).map(drop) } else { Ok(()) };
        match made.and_then(|made| rotated.map(|()| made)) {
            Ok(made) => tell_parent(serde_json::to_string(&made.bytes).unwrap()),
            Err(error) => return error,
        }
    }
    unreachable!("the loop has no end")
}

#[test]
fn nothing_that_was_encrypted_is_lost_and_no_bound_is_exceeded_when_the_process_is_killed() {
    const MAX_USES: u64 = 128;
    if let Some(place) = child().map(KeystoreFixture) {
        encrypt_until_stopped(&place.open());
    }
    let folder = tempfile::tempdir().unwrap();
    let place = KeystoreFixture(folder.path().to_owned());
    KeyFile::create(&folder.path().join("key")).unwrap();
    let keystore = Keystore::create(&place.keystore(), &place.unlock()).unwrap();
    let new = NewKey::new("local".parse().unwrap(), "rows".parse().unwrap(), Algorithm::Aes256Gcm);
    let rotation = RotationPolicy::default().max_uses(NonZeroU64::new(MAX_USES));
    let key = keystore.create_key(new.rotation(rotation)).unwrap().key_id().clone();
    drop(keystore);
    let mut told = Vec::new();
    strikes(ROUNDS / 2, |delay| {
        let before = told.len();
        let test =
            "crash::nothing_that_was_encrypted_is_lost_and_no_bound_is_exceeded_when_the_process_is_killed";
        let lines = lines(test, folder.path(), Harm::Kill(delay));
        told.extend(lines.iter().map(|line| serde_json::from_str::<Vec<u8>>(line).unwrap()));
        let keystore = place.open();
        let mut uses = BTreeMap::new();
        for ciphertext in &told {
            let found = keystore.decrypt(&key, ciphertext, &EncryptionOptions::NONE).unwrap();
            assert_eq!(**found.bytes, *MESSAGE);
            *uses.entry(found.key.version()).or_insert(0) += 1;
        }
        assert!(uses.values().all(|uses| *uses <= MAX_USES), "{uses:?}");
        told.len() - before >= 40
    });
}

/// Whether files can be made in the folder that have no name yet.
fn has_files_without_a_name(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags};
        rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR | Mode::WUSR).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}

#[test]
fn a_keystore_is_made_whole_or_not_at_all_when_the_process_is_killed() {
    if let Some(place) = child().map(KeystoreFixture) {
        for number in 0.. {
            let path = place.0.join(format!("made-{number}"));
            drop(Keystore::create(&path, &place.unlock()).unwrap());
            tell_parent(number);
        }
    }
    strikes(ROUNDS, |delay| {
        let (folder, place, _) = parent();
        let test = "crash::a_keystore_is_made_whole_or_not_at_all_when_the_process_is_killed";
        let told = lines(test, folder.path(), Harm::Kill(delay));
        let all: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let made: Vec<_> = all.iter().filter(|path| name(path).starts_with("made-")).cloned().collect();
        // A store that is not whole yet has no name, and so a kill leaves nothing of it: but for
        // the key file and the first store, all that is there was made.
        assert!(!has_files_without_a_name(folder.path()) || all.len() == made.len() + 2, "{all:?}");
        assert!(made.len() == told.len() || made.len() == told.len() + 1);
        for path in made {
            assert_eq!(Keystore::open(&path, &place.unlock()).unwrap().list().unwrap(), []);
        }
        told.len() >= 10
    });
}

/// A limit on the size of files fails as a full disk does: in the middle of a change, with an error
/// of the system.
#[test]
fn a_full_disk_is_an_error_that_loses_nothing_and_passes() {
    if let Some(place) = child().map(KeystoreFixture) {
        let keystore = place.open();
        limit_file_size(&fs::metadata(place.keystore()).unwrap().len().to_string());
        let error = rotate_until_stopped(&keystore);
        tell_parent(format_args!("{} {}", error.code, error.retryable));
        let key = keystore.list().unwrap().swap_remove(0).key;
        // The old head goes on, and more room makes the next change possible, in the same process.
        tell_parent(serde_json::to_string(&keystore.sign(&key, MESSAGE).unwrap()).unwrap());
        assert_eq!(keystore.rotate(&key).unwrap_err().code, Code::StorageFull);
        limit_file_size("unlimited");
        let id = keystore.rotate(&key).unwrap();
        tell_parent(serde_json::to_string(&keystore.sign(&id, MESSAGE).unwrap()).unwrap());
        std::process::exit(0);
    }
    let (folder, place, key) = parent();
    let test = "crash::a_full_disk_is_an_error_that_loses_nothing_and_passes";
    let mut told = lines(test, folder.path(), Harm::FullDisk);
    let full = told.iter().position(|line| line == "storage_full true").expect("the child ran out of room");
    told.remove(full);
    assert_eq!(told.len(), full + 2, "a signature by the old head, and one after there was room again");
    let version = |line: &String| serde_json::from_str::<bulla_kms::Signature>(line).unwrap().key.version();
    let versions: Vec<_> = told.iter().map(version).collect();
    let old: Option<KeyVersionId> =
        (full > 0).then(|| serde_json::from_str::<bulla_kms::Signature>(&told[full - 1]).unwrap().key);
    assert_eq!(versions[full], old.map_or(1, |id| id.version()));
    assert_eq!(versions[full + 1], versions[full] + 1);
    assert_eq!(check(&place, &key, &told), versions[full + 1]);
}

/// What a machine that loses its power may leave: some pages of a change, and others as they were.
#[test]
fn a_file_that_is_torn_between_two_changes_is_one_of_them_or_an_error() {
    const PAGE: usize = 4096;
    let (_folder, place, key) = parent();
    let now = || (fs::read(place.keystore()).unwrap(), place.open().list().unwrap());
    let (old, old_keys) = now();
    place.open().rotate(&key).unwrap();
    let (new, new_keys) = now();
    let differ = |page: usize| {
        let of = |file: &[u8]| file.chunks(PAGE).nth(page).map(<[u8]>::to_vec);
        of(&old) != of(&new)
    };
    let pages: Vec<_> = (0..old.len().max(new.len()).div_ceil(PAGE)).filter(|page| differ(*page)).collect();
    assert!(pages.len() > 3, "a change writes several pages: {pages:?}");
    let (mut whole, mut refused) = (0, 0);
    let mut check = |file: &[u8], what: &str| {
        fs::write(place.keystore(), file).unwrap();
        match Keystore::open(&place.keystore(), &place.unlock()) {
            Ok(keystore) => {
                let keys = keystore.list().unwrap();
                assert!(keys == old_keys || keys == new_keys, "{what}");
                let signature = keystore.sign(&key, MESSAGE).unwrap();
                assert_eq!(
                    keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(),
                    Verdict::Valid
                );
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.code, Code::KeystoreCorrupt, "{what}: {error}");
                refused += 1;
            }
        }
    };
    for (from, to) in [(&old, &new), (&new, &old)] {
        for page in &pages {
            let range = |file: &[u8]| page * PAGE..((page + 1) * PAGE).min(file.len());
            // One page alone, all pages up to it, and nothing where it was.
            let mut one = from.clone();
            let bytes = to.get(range(to)).unwrap_or_default();
            one.resize(one.len().max(page * PAGE + bytes.len()), 0);
            one[page * PAGE..page * PAGE + bytes.len()].copy_from_slice(bytes);
            check(&one, &format!("page {page} is of the other"));
            let end = ((page + 1) * PAGE).min(to.len());
            let mut begun = from.clone();
            begun.resize(begun.len().max(end), 0);
            begun[..end].copy_from_slice(&to[..end]);
            check(&begun, &format!("pages to {page} are of the other"));
            let mut empty = from.clone();
            let place = range(&empty);
            empty[place].fill(0);
            check(&empty, &format!("page {page} is empty"));
            check(&from[..(page * PAGE).min(from.len())], &format!("cut at page {page}"));
        }
    }
    println!("{whole} opened, {refused} refused");
    assert!(whole > 0 && refused > 0, "{whole} opened, {refused} refused");
}
