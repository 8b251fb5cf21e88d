//! A keystore's folder: creating, opening, guarding, losing and restoring it.

use bulla_keystore::{
    AuditLogFolder, ErrorCode, GuardLocation, KeystoreFolder, NewKeystore, NewSecret, OpenFolder,
    PassphraseFile, PassphrasePrompt, PassphraseSource, Result, Secrets, find_key,
};
use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind, KeyFileProvider};
use bulla_kms::{Backup, Code, KeyFile, KeyRef, SecretString, Unlock};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

fn empty() -> (TempDir, KeystoreFolder) {
    let parent = tempfile::tempdir().unwrap();
    let folder = KeystoreFolder::at(parent.path().join("keystore"));
    (parent, folder)
}

/// A keystore that its key file opens.
fn created() -> (TempDir, KeystoreFolder) {
    let (parent, folder) = empty();
    folder.create(&NewKeystore::default(), &Secrets::new()).unwrap();
    (parent, folder)
}

fn passphrase(text: &str) -> Secrets {
    Secrets::new().passphrase(SecretString::from(text))
}

/// Whether the folder opens with these secrets, and its key `default` signs.
fn signs(folder: &KeystoreFolder, secrets: &Secrets) -> Result<bool> {
    let OpenFolder { keystore, .. } = folder.open(secrets)?;
    let key = find_key(&keystore, "default")?;
    let signature = keystore.sign(key.as_ref(), b"a message")?;
    Ok(keystore.verify(&signature.key, b"a message", &signature.bytes)?.is_valid())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_keystore_is_created_once_and_for_its_owner_only() {
    let (_parent, folder) = created();
    assert!(signs(&folder, &Secrets::new()).unwrap());
    assert_eq!(
        (mode(folder.path()), mode(&folder.store_file()), mode(&folder.key_file())),
        (0o700, 0o600, 0o600)
    );
    let before = fs::read(folder.key_file()).unwrap();
    let error = folder.create(&NewKeystore::default(), &Secrets::new()).unwrap_err();
    assert_eq!((error.code, error.code.as_str()), (ErrorCode::KeystoreExists, "already_exists"));
    assert_eq!(fs::read(folder.key_file()).unwrap(), before);
}

#[test]
fn a_passphrase_opens_and_another_one_or_none_does_not() {
    let (_parent, folder) = empty();
    let secrets = passphrase("correct horse");
    folder.create(&NewKeystore::with(NewSecret::Passphrase), &secrets).unwrap();
    assert!(!folder.has_key_file());
    assert!(signs(&folder, &secrets).unwrap());
    let error = signs(&folder, &passphrase("wrong horse")).unwrap_err();
    assert_eq!(error.code, ErrorCode::Kms(Code::WrongPassphrase));
    assert_eq!(error.kms_error().unwrap().code, Code::WrongPassphrase);
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::NoPassphrase);
    let other = folder.unlock_with(Unlock::KeyFile(folder.key_file()), &Secrets::new()).unwrap();
    assert_eq!(other.open().unwrap_err().code, ErrorCode::Kms(Code::WrongUnlockMethod));
}

#[test]
fn a_passphrase_file_opens_unless_others_may_use_it() {
    let (parent, folder) = empty();
    let path = parent.path().join("passphrase");
    fs::write(&path, "\u{feff}correct horse\r\nnothing else\n").unwrap();
    set_mode(&path, 0o600);
    let secrets = Secrets::new().passphrase(PassphraseFile::at(&path));
    folder.create(&NewKeystore::with(NewSecret::Passphrase), &secrets).unwrap();
    assert!(signs(&folder, &passphrase("correct horse")).unwrap());
    for bad in [0o644, 0o640, 0o604, 0o620, 0o601, 0o666] {
        set_mode(&path, bad);
        let error = signs(&folder, &secrets).unwrap_err();
        assert_eq!(error.code, ErrorCode::SecretFileMode);
        assert_eq!(error.subject.as_deref(), path.to_str());
        assert!(error.hint.unwrap().contains("chmod 600"));
    }
    set_mode(&path, 0o400);
    assert!(signs(&folder, &secrets).unwrap());
}

#[test]
fn a_file_without_a_passphrase_is_refused_and_not_quoted() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("passphrase");
    for content in [&b""[..], b"\nsecond\n", "\u{feff}".as_bytes(), b"\xff\xfe\n", &[b'a'; 4097]] {
        fs::write(&path, content).unwrap();
        set_mode(&path, 0o600);
        let error = PassphraseFile::at(&path).read().unwrap_err();
        assert_eq!(error.code, ErrorCode::MalformedPassphrase);
        assert!(!error.to_string().contains("aaa"));
    }
    let missing = PassphraseFile::at(parent.path().join("missing")).read().unwrap_err();
    assert_eq!(missing.code.as_str(), "not_found");
    assert!(std::error::Error::source(&missing).is_some());
}

#[test]
fn an_identity_opens_a_keystore_that_was_encrypted_to_its_recipient() {
    let (parent, folder) = created();
    let path = parent.path().join("identities");
    let mine = Identity::generate(IdentityKind::Age).unwrap();
    mine.write(&path).unwrap();
    let second = parent.path().join("second");
    Identity::generate(IdentityKind::XWing).unwrap().write(&second).unwrap();
    let both = fs::read_to_string(&path).unwrap() + &fs::read_to_string(&second).unwrap();
    fs::write(&path, both).unwrap();
    let mut unlocked = folder.unlock(&Secrets::new()).unwrap();
    let keystore = unlocked.open().unwrap().keystore;
    unlocked.rekey(&keystore, Unlock::Provider(Arc::new(mine.recipient()))).unwrap();
    drop(keystore);
    assert!(signs(&folder, &Secrets::new().identity_file(&path)).unwrap());
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::IdentityRequired);
}

/// A source that counts how often it is asked, and for what.
#[derive(Clone, Default)]
struct CountingSource(Arc<[AtomicUsize; 2]>);

impl PassphraseSource for CountingSource {
    fn passphrase(&self, prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        self.0[usize::from(prompt.is_new)].fetch_add(1, Ordering::Relaxed);
        Ok("correct horse".into())
    }
}

#[test]
fn a_source_is_asked_once_and_only_for_a_keystore_that_a_passphrase_opens() {
    let source = CountingSource::default();
    let secrets = Secrets::new().passphrase(source.clone());
    let asked = || source.0.each_ref().map(|count| count.load(Ordering::Relaxed));
    let (_parent, folder) = created();
    assert!(signs(&folder, &secrets).unwrap());
    assert_eq!(asked(), [0, 0]);
    let (_parent, folder) = empty();
    folder.create(&NewKeystore::with(NewSecret::Passphrase), &secrets).unwrap();
    assert_eq!(asked(), [0, 1]);
    let unlocked = folder.unlock(&secrets).unwrap();
    drop(unlocked.open().unwrap());
    drop(unlocked.open().unwrap());
    assert_eq!(asked(), [1, 1]);
}

#[test]
fn an_older_copy_is_refused_by_the_guard_until_the_user_accepts_it() {
    let (parent, folder) = empty();
    let guard = GuardLocation::File(parent.path().join("guard"));
    let new = NewKeystore::default().guard(guard.clone());
    let unlocked = folder.create(&new, &Secrets::new()).unwrap();
    assert_eq!(folder.guard().unwrap(), Some(guard.to_string()));
    let yesterday = parent.path().join("yesterday");
    fs::copy(folder.store_file(), &yesterday).unwrap();
    let keystore = unlocked.open().unwrap().keystore;
    keystore.rotate(find_key(&keystore, "default").unwrap().key_id()).unwrap();
    drop(keystore);
    fs::copy(&yesterday, folder.store_file()).unwrap();
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::Kms(Code::RolledBack));

    let accepted = folder.unlock_unguarded(&Secrets::new()).unwrap();
    let taken = accepted.set_guard(accepted.open().unwrap().keystore, Some(&guard), &Secrets::new());
    assert_eq!(taken.unwrap_err().code, ErrorCode::GuardExists);
    accepted.set_guard(accepted.open().unwrap().keystore, None, &Secrets::new()).unwrap();
    assert_eq!(folder.guard().unwrap(), None);
    assert!(signs(&folder, &Secrets::new()).unwrap());
}

#[test]
fn a_guard_is_outside_of_the_folder_and_has_one_of_two_forms() {
    let (_parent, folder) = empty();
    let inside = NewKeystore::default().guard(GuardLocation::File(folder.path().join("guard")));
    let error = folder.create(&inside, &Secrets::new()).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidGuardLocation);
    let on_device = NewKeystore::default().guard("pkcs11:guard".parse().unwrap());
    let error = folder.create(&on_device, &Secrets::new()).unwrap_err();
    assert_eq!(error.code, ErrorCode::DeviceRequired);
    assert!(!folder.exists());
    for text in ["guard", "file:", "tape:guard", "pkcs11:A B"] {
        let error = text.parse::<GuardLocation>().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidGuardLocation, "{text}");
    }
}

#[test]
fn a_keystore_that_others_may_change_is_neither_opened_nor_created() {
    let (_parent, folder) = created();
    let store = folder.store_file();
    for (path, good, bad) in
        [(folder.path(), 0o755, [0o777, 0o775, 0o702, 0o1777]), (&store, 0o600, [0o666, 0o620, 0o602, 0o660])]
    {
        for bad in bad {
            set_mode(path, bad);
            assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::KeystoreMode);
        }
        set_mode(path, good);
        assert!(signs(&folder, &Secrets::new()).unwrap());
    }
    let (_parent, folder) = empty();
    fs::create_dir(folder.path()).unwrap();
    set_mode(folder.path(), 0o777);
    let error = folder.create(&NewKeystore::default(), &Secrets::new()).unwrap_err();
    assert_eq!(error.code, ErrorCode::KeystoreMode);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_lost_keystore_is_told_and_no_new_one_takes_its_place() {
    let (_parent, folder) = empty();
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::NoKeystore);
    let (_parent, folder) = created();
    fs::remove_file(folder.store_file()).unwrap();
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::KeystoreLost);
    let error = folder.create(&NewKeystore::default(), &Secrets::new()).unwrap_err();
    assert_eq!(error.code, ErrorCode::KeystoreLost);
}

#[test]
fn a_creation_that_stopped_at_any_file_is_completed() {
    // The key file alone: the next creation uses it.
    let (_parent, folder) = empty();
    let next = folder.create_key_file().unwrap();
    let secret = fs::read(&next).unwrap();
    folder.create(&NewKeystore::default(), &Secrets::new()).unwrap();
    assert_eq!(fs::read(folder.key_file()).unwrap(), secret);
    assert!(!next.exists());

    // The keystore too, and the key file has not got its name: opening gives it.
    fs::rename(folder.key_file(), &next).unwrap();
    assert!(signs(&folder, &Secrets::new()).unwrap());
    assert!(folder.has_key_file() && !next.exists());

    // A next key file that does not open the keystore stays where it is.
    KeyFile::create(&next).unwrap();
    assert!(signs(&folder, &Secrets::new()).unwrap());
    assert!(folder.has_key_file() && next.exists());
}

/// The variable with the folder in which a copy of this program creates a keystore.
const CREATE_IN: &str = "BULLA_KEYSTORE_TEST_CREATE_IN";

#[test]
fn a_creation_that_is_killed_at_any_moment_is_completed_by_the_next() {
    if let Some(path) = std::env::var_os(CREATE_IN) {
        KeystoreFolder::at(path).create(&NewKeystore::default(), &Secrets::new()).unwrap();
        return;
    }
    /// A step of a creation, and whether the folder shows that it was reached.
    type CreationStep = (&'static str, fn(&KeystoreFolder) -> bool);
    fn files(folder: &KeystoreFolder) -> usize {
        fs::read_dir(folder.path()).map_or(0, Iterator::count)
    }
    let steps: [CreationStep; 7] = [
        ("the process is started", |_| true),
        ("the folder is there", |folder| folder.path().exists()),
        ("the folder has its first file", |folder| files(folder) > 0),
        ("the folder has a second file", |folder| files(folder) > 1),
        ("the keystore is there", KeystoreFolder::exists),
        ("the key file has its name", |folder| folder.key_file().exists()),
        ("the process has ended", |_| false),
    ];
    let this = std::env::current_exe().unwrap();
    for (step, is_reached) in steps.into_iter().cycle().take(6 * steps.len()) {
        let (_parent, folder) = empty();
        let mut creation = Command::new(&this)
            .args(["--exact", "a_creation_that_is_killed_at_any_moment_is_completed_by_the_next"])
            .env(CREATE_IN, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !is_reached(&folder) && creation.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // It may have ended by now.
        let _ = creation.kill();
        creation.wait().unwrap();
        match folder.create(&NewKeystore::default(), &Secrets::new()) {
            Err(error) if error.code != ErrorCode::KeystoreExists => panic!("killed when {step}: {error}"),
            _ => {}
        }
        let keystore = folder.open(&Secrets::new()).unwrap().keystore;
        let key = bulla_keystore::ensure_default_key(&keystore).unwrap();
        keystore.sign(KeyRef::from(&key), b"a message").unwrap();
    }
}

#[test]
fn a_new_key_file_replaces_the_secret_and_the_old_one_no_longer_opens() {
    let (parent, folder) = created();
    let old = parent.path().join("old");
    fs::copy(folder.key_file(), &old).unwrap();
    let mut unlocked = folder.unlock(&Secrets::new()).unwrap();
    let keystore = unlocked.open().unwrap().keystore;
    unlocked.rekey_to_key_file(&keystore).unwrap();
    drop(keystore);
    assert!(unlocked.open().is_ok());
    assert!(signs(&folder, &Secrets::new()).unwrap());
    let refused = folder.unlock_with(Unlock::KeyFile(old), &Secrets::new()).unwrap().open();
    assert_eq!(refused.unwrap_err().code, ErrorCode::Kms(Code::WrongKeyFile));
}

#[test]
fn an_audit_log_records_what_is_signed_and_is_missed_when_it_is_gone() {
    let (parent, folder) = created();
    let unlocked = folder.unlock(&Secrets::new()).unwrap();
    let error = unlocked.with_audit_log(|_, _, _| Ok(())).unwrap_err();
    assert_eq!(error.code, ErrorCode::NoAuditLog);
    let started = unlocked.begin_audit_log().unwrap();
    drop(started);
    assert!(folder.audit_log().is_complete().unwrap());
    assert!(signs(&folder, &Secrets::new()).unwrap());
    let size = |()| unlocked.with_audit_log(|log, keystore, key| log.checkpoint(keystore, key)).unwrap().size;
    let before = size(());
    assert!(signs(&folder, &Secrets::new()).unwrap());
    assert!(size(()) > before);
    assert_eq!(unlocked.audit_log_key().unwrap().label.unwrap().as_str(), "audit-log");

    let elsewhere = parent.path().join("elsewhere");
    fs::rename(folder.audit_log().path(), &elsewhere).unwrap();
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::AuditLogMissing);

    // A whole log beside a keystore without the key that signs it.
    let (_parent, other) = created();
    fs::rename(&elsewhere, other.audit_log().path()).unwrap();
    assert_eq!(signs(&other, &Secrets::new()).unwrap_err().code, ErrorCode::AuditLogWithoutKey);
}

#[test]
fn the_start_of_an_audit_log_that_stopped_is_completed() {
    let (_parent, folder) = created();
    drop(
        AuditLogFolder::at(folder.audit_log().path())
            .create_or_complete(bulla_keystore::audit_log::options())
            .unwrap(),
    );
    assert_eq!(signs(&folder, &Secrets::new()).unwrap_err().code, ErrorCode::AuditLogUnfinished);
    folder.unlock(&Secrets::new()).unwrap().begin_audit_log().unwrap();
    assert!(signs(&folder, &Secrets::new()).unwrap());
}

#[test]
fn a_restored_keystore_opens_with_its_new_secret_and_begins_another_audit_log() {
    let (parent, folder) = created();
    let unlocked = folder.unlock(&Secrets::new()).unwrap();
    unlocked.begin_audit_log().unwrap();
    let key = parent.path().join("backup.key");
    KeyFile::create(&key).unwrap();
    let provider = KeyFileProvider::new(&key);
    let mut bytes = Vec::new();
    unlocked.open().unwrap().keystore.backup(&mut bytes, &[&provider]).unwrap();
    let backup = Backup::read(&bytes[..], &[&provider], Backends::software()).unwrap();

    let copy = KeystoreFolder::at(parent.path().join("copy"));
    let secrets = passphrase("correct horse");
    let restored = copy.restore(&backup, &NewSecret::Passphrase, &secrets).unwrap();
    assert!(restored.audit_log.is_some());
    drop(restored);
    assert!(signs(&copy, &secrets).unwrap());
    assert!(copy.restore(&backup, &NewSecret::Passphrase, &secrets).is_err());
}

#[test]
fn keys_are_found_by_label_id_and_version() {
    let (_parent, folder) = created();
    let keys = folder.unlock(&Secrets::new()).unwrap().snapshot().unwrap();
    let by_label = find_key(&keys, "default").unwrap();
    let id = by_label.key_id().to_string();
    assert_eq!(find_key(&keys, &id).unwrap(), by_label);
    let version = find_key(&keys, &format!("{id}/v1")).unwrap();
    assert_eq!(version.key_id(), by_label.key_id());
    assert_ne!(version, by_label);
    for text in ["other", "No Label", ""] {
        assert_eq!(find_key(&keys, text).unwrap_err().code, ErrorCode::UnknownLabel);
    }
    assert_eq!(find_key(&keys, "a/b").unwrap_err().code, ErrorCode::InvalidKeyId);
}
