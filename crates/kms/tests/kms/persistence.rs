//! Keystores in files: they open again, with the right secret alone, and tell what is wrong.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bulla_kms::{Algorithm, Code, KeyFile, KeyId, Keystore, NewKey, Unlock, UnlockMethod, Verdict};

const MESSAGE: &[u8] = b"a message";

struct Store {
    folder: tempfile::TempDir,
    path: PathBuf,
    unlock: Unlock,
}

/// A folder with a key file, and a path for a keystore that is not there yet.
fn place() -> Store {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    KeyFile::create(&key_file).unwrap();
    Store { path: folder.path().join("keystore"), unlock: Unlock::KeyFile(key_file), folder }
}

impl Store {
    fn create(&self) -> Keystore {
        Keystore::create(&self.path, &self.unlock).unwrap()
    }

    fn open(&self) -> bulla_kms::Result<Keystore> {
        Keystore::open(&self.path, &self.unlock)
    }
}

fn create_key(keystore: &Keystore) -> KeyId {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
        .label("default".parse().unwrap());
    keystore.create_key(new).unwrap().key_id().clone()
}

#[test]
fn a_keystore_opens_again_with_all_that_was_in_it() {
    let store = place();
    let keystore = store.create();
    let key = create_key(&keystore);
    let first = keystore.sign(&key, MESSAGE).unwrap();
    keystore.rotate(&key).unwrap();
    keystore.disable(&key).unwrap();
    let before = keystore.list().unwrap();
    drop(keystore);

    let keystore = store.open().unwrap();
    assert_eq!(keystore.list().unwrap(), before);
    assert_eq!(keystore.find(key.tenant(), &"default".parse().unwrap()).unwrap().as_ref(), Some(&key));
    assert_eq!(keystore.verify(&first.key, MESSAGE, &first.bytes).unwrap(), Verdict::Valid);
    keystore.enable(&key).unwrap();
    let second = keystore.sign(&key, MESSAGE).unwrap();
    assert_eq!(second.key.version(), 2);
    drop(keystore);

    let keystore = store.open().unwrap();
    assert_eq!(keystore.verify(&second.key, MESSAGE, &second.bytes).unwrap(), Verdict::Valid);
    assert_eq!(keystore.rotate(&key).unwrap().version(), 3);
}

#[test]
fn a_passphrase_opens_what_it_made_and_another_does_not() {
    let store = place();
    let right = Unlock::Passphrase("correct horse battery staple".into());
    let keystore = Keystore::create(&store.path, &right).unwrap();
    let key = create_key(&keystore);
    drop(keystore);
    assert_eq!(Keystore::unlock_method(&store.path).unwrap(), UnlockMethod::Passphrase);
    let wrong = Unlock::Passphrase("correct horse battery stapler".into());
    assert_eq!(Keystore::open(&store.path, &wrong).unwrap_err().code, Code::WrongPassphrase);
    assert_eq!(store.open().unwrap_err().code, Code::WrongUnlockMethod);
    assert!(Keystore::open(&store.path, &right).unwrap().sign(&key, MESSAGE).is_ok());
}

#[test]
fn another_key_file_or_a_passphrase_does_not_open_a_key_files_store() {
    let store = place();
    drop(store.create());
    assert_eq!(Keystore::unlock_method(&store.path).unwrap(), UnlockMethod::KeyFile);
    let other = store.folder.path().join("other");
    KeyFile::create(&other).unwrap();
    let open = |unlock| Keystore::open(&store.path, &unlock).unwrap_err().code;
    assert_eq!(open(Unlock::KeyFile(other)), Code::WrongKeyFile);
    assert_eq!(open(Unlock::KeyFile(store.folder.path().join("none"))), Code::NotFound);
    assert_eq!(open(Unlock::Passphrase("a".into())), Code::WrongUnlockMethod);
    assert!(store.open().is_ok());
}

#[test]
fn an_empty_passphrase_makes_no_keystore() {
    let store = place();
    let error = Keystore::create(&store.path, &Unlock::Passphrase("".into())).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(!store.path.exists());
}

#[test]
fn what_is_there_is_not_replaced_and_what_is_not_there_is_not_made() {
    let store = place();
    assert_eq!(store.open().unwrap_err().code, Code::NotFound);
    assert!(!store.path.exists());
    drop(store.create());
    let before = fs::read(&store.path).unwrap();
    assert_eq!(Keystore::create(&store.path, &store.unlock).unwrap_err().code, Code::AlreadyExists);
    assert_eq!(fs::read(&store.path).unwrap(), before);
    let link = store.folder.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    assert_eq!(Keystore::create(&link, &store.unlock).unwrap_err().code, Code::AlreadyExists);
}

#[test]
fn the_file_is_for_its_owner_alone_and_so_is_a_folder_made_for_it() {
    let store = place();
    let path = store.folder.path().join("new/deep/keystore");
    drop(Keystore::create(&path, &store.unlock).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let names: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["keystore"], "no temporary file is left");
}

#[test]
fn nothing_in_the_file_is_a_secret_in_the_clear() {
    let store = place();
    let keystore = store.create();
    let key = create_key(&keystore);
    let public_key =
        keystore.attest(&key).unwrap().versions[0].public_key.as_ref().unwrap().as_bytes().to_vec();
    drop(keystore);
    let file = fs::read(&store.path).unwrap();
    let contains = |bytes: &[u8]| file.windows(bytes.len()).any(|window| window == bytes);
    assert!(contains(key.to_string().as_bytes()), "names are in the clear");
    assert!(!contains(&public_key), "records are sealed");
    assert!(!contains(b"\"label\""));
}

/// What a process that is killed leaves: it opens, and needs no more than the right secret.
#[test]
fn an_unlock_method_is_known_of_a_store_that_was_not_closed() {
    let store = place();
    let keystore = store.create();
    create_key(&keystore);
    let copy = store.folder.path().join("copy");
    fs::copy(&store.path, &copy).unwrap();
    assert_eq!(Keystore::unlock_method(&copy).unwrap(), UnlockMethod::KeyFile);
    assert_eq!(Keystore::open(&copy, &store.unlock).unwrap().list().unwrap(), keystore.list().unwrap());
}

#[test]
fn a_second_keystore_on_the_same_file_is_locked_out() {
    let store = place();
    let keystore = store.create();
    let error = store.open().unwrap_err();
    assert_eq!(error.code, Code::Locked);
    assert!(error.retryable);
    drop(keystore);
    assert!(store.open().is_ok());
}

#[test]
fn a_keystore_that_is_closed_meanwhile_is_waited_for() {
    let store = place();
    let keystore = store.create();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| store.open());
        std::thread::sleep(Duration::from_millis(100));
        drop(keystore);
        assert!(waiting.join().unwrap().is_ok());
    });
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let store = place();
    drop(store.create());
    let unwritable = Path::new("/proc/bulla/keystore");
    assert!(Keystore::create(unwritable, &store.unlock).unwrap_err().message.contains("/proc/bulla"));
    let folder = store.folder.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(
        Keystore::open(&folder, &store.unlock).unwrap_err().code,
        Code::Io | Code::KeystoreCorrupt
    ));
}

const META: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("meta");

/// Sets one row of the table "meta".
fn set_meta(path: &Path, name: &str, value: &[u8]) {
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(name.as_bytes(), value).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_newer_format_is_refused_and_the_file_stays_as_it_is() {
    let store = place();
    create_key(&store.create());
    set_meta(&store.path, "format", &2_u32.to_be_bytes());
    let before = fs::read(&store.path).unwrap();
    let error = store.open().unwrap_err();
    assert_eq!(error.code, Code::KeystoreTooNew);
    assert!(error.message.contains("format 2"), "{error}");
    assert_eq!(Keystore::unlock_method(&store.path).unwrap_err().code, Code::KeystoreTooNew);
    assert!(fs::read(&store.path).unwrap() == before, "the file is not touched");
}

#[test]
fn a_wrong_secret_leaves_the_file_as_it_is() {
    let store = place();
    drop(store.create());
    let before = fs::read(&store.path).unwrap();
    let other = store.folder.path().join("other");
    KeyFile::create(&other).unwrap();
    Keystore::open(&store.path, &Unlock::KeyFile(other)).unwrap_err();
    assert!(fs::read(&store.path).unwrap() == before, "the file is not touched");
}

#[test]
fn what_is_no_keystore_is_said_to_be_none() {
    let store = place();
    for content in [&b""[..], b"not a keystore", &[0; 8192], b"redb\x1a\x0a\xa9\x0d\x0a"] {
        fs::write(&store.path, content).unwrap();
        assert_eq!(
            store.open().unwrap_err().code,
            Code::KeystoreCorrupt,
            "{:?}",
            &content[..content.len().min(20)]
        );
        assert_eq!(fs::read(&store.path).unwrap(), content, "the file is not touched");
    }
    fs::remove_file(&store.path).unwrap();
    drop(redb::Database::create(&store.path).unwrap());
    assert_eq!(store.open().unwrap_err().code, Code::KeystoreCorrupt);
}

/// Damage anywhere in the file: an error, or no harm done; never a panic and never another key.
#[test]
fn damage_to_the_file_gives_an_error_or_does_no_harm() {
    let store = place();
    let keystore = store.create();
    let key = create_key(&keystore);
    keystore.rotate(&key).unwrap();
    let keys = keystore.list().unwrap();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    drop(keystore);
    let whole = fs::read(&store.path).unwrap();
    // All of the header, then places all over the file, used pages and free ones.
    let places = (0..320).chain((320..whole.len()).step_by(whole.len() / 100));
    let mut detected = 0;
    for place in places {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << (place % 8);
        let mut filled = whole.clone();
        let end = (place + 512).min(filled.len());
        filled[place..end].fill(0xff);
        let cut = &whole[..place];
        let more = if place < 320 && place % 16 != 0 { &[][..] } else { &[&filled[..], cut] };
        for damaged in [&flipped[..]].into_iter().chain(more.iter().copied()) {
            fs::write(&store.path, damaged).unwrap();
            match store.open() {
                Err(error) => {
                    assert_eq!(error.code, Code::KeystoreCorrupt, "byte {place}: {error}");
                    detected += 1;
                }
                Ok(keystore) => {
                    assert_eq!(keystore.list().unwrap(), keys, "byte {place}");
                    assert_eq!(keystore.sign(&key, MESSAGE).unwrap(), signature, "byte {place}");
                }
            }
        }
    }
    assert!(detected > 200, "{detected} damages were detected");
}

#[test]
fn a_keystore_in_memory_writes_nothing() {
    // The process's own count of bytes that it had written, of everything that is a file or a pipe.
    let written = || {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        text.lines().find(|line| line.starts_with("wchar:")).unwrap().to_owned()
    };
    let before = written();
    let keystore = Keystore::in_memory().unwrap();
    let key = create_key(&keystore);
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    keystore.rotate(&key).unwrap();
    keystore.disable(&key).unwrap();
    assert_eq!(keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
    drop(keystore);
    assert_eq!(written(), before);
}

#[test]
fn a_key_file_is_for_its_owner_alone_and_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/key");
    KeyFile::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("bulla key file v1\n"));
    assert_eq!(text.len(), 18 + 44 + 1);
    assert_eq!(KeyFile::create(&path).unwrap_err().code, Code::AlreadyExists);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let other = folder.path().join("other");
    KeyFile::create(&other).unwrap();
    assert_ne!(fs::read_to_string(&other).unwrap(), text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn a_key_file_that_is_not_well_kept_is_refused() {
    let store = place();
    drop(store.create());
    let Unlock::KeyFile(key_file) = &store.unlock else { unreachable!("the store opens with a key file") };
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666] {
        fs::set_permissions(key_file, fs::Permissions::from_mode(mode)).unwrap();
        let error = store.open().unwrap_err();
        assert_eq!(error.code, Code::KeyFileMode, "{mode:o}");
        assert!(error.message.contains("chmod 600"), "{error}");
    }
    for mode in [0o600, 0o400] {
        fs::set_permissions(key_file, fs::Permissions::from_mode(mode)).unwrap();
        assert!(store.open().is_ok(), "{mode:o}");
    }
    let link = store.folder.path().join("link");
    std::os::unix::fs::symlink(key_file, &link).unwrap();
    let open = |path: &Path| Keystore::open(&store.path, &Unlock::KeyFile(path.to_owned())).unwrap_err().code;
    assert_eq!(open(&link), Code::KeyFileType);
    assert_eq!(open(store.folder.path()), Code::KeyFileType);
    let pipe = store.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status().unwrap().success());
    assert_eq!(open(&pipe), Code::KeyFileType);
}

#[test]
fn a_key_file_of_another_user_is_refused() {
    let store = place();
    drop(store.create());
    let key_file = store.folder.path().join("theirs");
    KeyFile::create(&key_file).unwrap();
    // Only the superuser can give files away; anybody else finds one that is the superuser's.
    let theirs = match std::os::unix::fs::chown(&key_file, Some(1), None) {
        Ok(()) => key_file,
        Err(_) => PathBuf::from("/etc/passwd"),
    };
    let error = Keystore::open(&store.path, &Unlock::KeyFile(theirs)).unwrap_err();
    assert_eq!(error.code, Code::KeyFileOwner);
}

#[test]
fn a_key_file_with_another_content_is_refused() {
    let store = place();
    drop(store.create());
    let Unlock::KeyFile(key_file) = &store.unlock else { unreachable!("the store opens with a key file") };
    let text = fs::read_to_string(key_file).unwrap();
    for bad in [
        String::new(),
        text.trim_end().to_owned(),
        text.replace("v1", "v2"),
        text.replace('\n', "\r\n"),
        format!("{text}\n"),
        format!("{text}{}", "x".repeat(1000)),
        text[..40].to_owned(),
        format!("bulla key file v1\n{}\n", "A".repeat(44)),
    ] {
        fs::write(key_file, &bad).unwrap();
        let error = store.open().unwrap_err();
        assert_eq!(error.code, Code::MalformedKeyFile, "{bad:?}");
        let secret = text.lines().nth(1).unwrap();
        assert!(!error.message.contains(&secret[..10]), "the error shows nothing of the secret");
    }
    fs::write(key_file, [0xff; 63]).unwrap();
    assert_eq!(store.open().unwrap_err().code, Code::MalformedKeyFile);
}

/// How long it may take until somebody notices what the system is asked about once a second.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_store_that_is_replaced_while_it_is_open_is_neither_changed_nor_used() {
    let store = place();
    let keystore = store.create();
    let key = create_key(&keystore);
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    // As a backup is put back: written beside the store, and renamed over it.
    let copy = store.folder.path().join("copy");
    fs::copy(&store.path, &copy).unwrap();
    keystore.rotate(&key).unwrap();
    let former = store.folder.path().join("former");
    fs::rename(&store.path, &former).unwrap();
    for there in ["nothing", "another file"] {
        if there == "another file" {
            fs::rename(&copy, &store.path).unwrap();
        }
        let error = keystore.rotate(&key).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::KeystoreChanged, false), "{there}: {error}");
        assert!(error.message.contains("was replaced"), "{there}: {error}");
        assert_eq!(keystore.disable(&key).unwrap_err().code, Code::KeystoreChanged, "{there}");
        let start = Instant::now();
        let error = loop {
            match keystore.sign(&key, MESSAGE) {
                Ok(_) => assert!(start.elapsed() < WAIT_TIMEOUT, "{there}: nobody notices"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code, Code::KeystoreChanged, "{there}: {error}");
        assert_eq!(keystore.attest_signed(&key).unwrap_err().code, Code::KeystoreChanged, "{there}");
        // The public keys are what they were.
        assert_eq!(keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
    }
    let versions = keystore.attest(&key).unwrap().latest_version;
    drop(keystore);
    // Nothing was written to the file that came.
    let keystore = store.open().unwrap();
    assert_eq!((versions, keystore.attest(&key).unwrap().latest_version), (2, 1));
    keystore.rotate(&key).unwrap();
}
