//! Backups of one key.

use bulla_kms::{
    Algorithm, Code, EncryptionOptions, KeyChange, KeyFile, Keystore, Name, NewKey, Unlock, VersionState,
};

const NONE: EncryptionOptions<'static> = EncryptionOptions::NONE;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn a_restored_key_and_all_its_versions_are_there_when_the_keystore_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    KeyFile::create(&folder.path().join("key")).unwrap();
    let (path, unlock) = (folder.path().join("keystore"), Unlock::KeyFile(folder.path().join("key")));
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let new = NewKey::new(name("local"), name("rows"), Algorithm::Aes256Gcm);
    let new = new.label(name("rows")).exportable(true).backup_allowed(true);
    let key = keystore.create_key(new).unwrap().key_id().clone();
    let mut made = Vec::new();
    for number in 0..4_u8 {
        made.push(keystore.encrypt(&key, &[number], &NONE).unwrap().bytes);
        keystore.rotate(&key).unwrap();
    }
    keystore.update(&key, None, &KeyChange::Revoke(2.try_into().unwrap())).unwrap();
    keystore.update(&key, None, &KeyChange::DestroyVersion(3.try_into().unwrap())).unwrap();
    let backup = keystore.backup_key(&key).unwrap();
    assert_eq!(keystore.restore_key(&name("local"), None, &backup).unwrap_err().code, Code::LabelTaken);
    let before = keystore.attest(&key).unwrap();
    keystore.update(&key, None, &KeyChange::Label(None)).unwrap();
    let restored = keystore.restore_key(&name("local"), None, &backup).unwrap();
    assert_eq!(keystore.backed_up_label(&name("local"), &backup).unwrap(), Some(name("rows")));
    assert_eq!(restored.version(), 5);
    drop(keystore);

    let keystore = Keystore::open(&path, &unlock).unwrap();
    let again = keystore.find(&name("local"), &name("rows")).unwrap().unwrap();
    assert_eq!(&again, restored.key_id());
    let states = |key: &bulla_kms::Attestation| {
        key.versions.iter().map(|one| (one.created, one.state, one.origin)).collect::<Vec<_>>()
    };
    let after = keystore.attest(&again).unwrap();
    assert_eq!(states(&after), states(&before));
    assert_eq!(after.versions[1].state, VersionState::Revoked);
    for (number, ciphertext) in made.iter().enumerate() {
        let found = keystore.decrypt(&again, ciphertext, &NONE);
        match number {
            1 => assert_eq!(found.unwrap_err().code, Code::VersionNotUsable),
            2 => assert_eq!(found.unwrap_err().code, Code::KeyDestroyed),
            _ => assert_eq!(**found.unwrap().bytes, [u8::try_from(number).unwrap()]),
        }
    }
}

#[test]
fn what_may_not_leave_is_not_backed_up() {
    let keystore = Keystore::in_memory().unwrap();
    let new = || NewKey::new(name("local"), name("rows"), Algorithm::Ed25519);
    for (exportable, allowed) in [(false, true), (true, false)] {
        let key = keystore.create_key(new().exportable(exportable).backup_allowed(allowed)).unwrap();
        assert_eq!(keystore.backup_key(key.key_id()).unwrap_err().code, Code::NotExportable);
    }
    let key = keystore.create_key(new().exportable(true)).unwrap().key_id().clone();
    keystore.update(&key, None, &KeyChange::AllowBackup).unwrap();
    assert!(keystore.backup_allowed(&key).unwrap());
    keystore.backup_key(&key).unwrap();
    keystore.update(&key, None, &KeyChange::Disable).unwrap();
    assert_eq!(keystore.backup_key(&key).unwrap_err().code, Code::KeyDisabled);
    let root = keystore.create_token_root(&name("local")).unwrap();
    assert_eq!(keystore.backup_key(root.key_id()).unwrap_err().code, Code::NotExportable);
}

#[test]
fn the_certificates_of_a_version_have_a_bound_and_go_with_its_backup() {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new(name("local"), name("tls"), Algorithm::Ed25519);
    let key = keystore.create_key(new.exportable(true).backup_allowed(true)).unwrap();
    let set = |version: u32, chain: Vec<Vec<u8>>| {
        let change = KeyChange::Certificates { version: version.try_into().unwrap(), chain };
        keystore.update(key.key_id(), None, &change).map_err(|error| error.code)
    };
    assert_eq!(set(2, Vec::new()).unwrap_err(), Code::UnknownVersion);
    assert_eq!(set(1, vec![vec![7; 40_000]; 2]).unwrap_err(), Code::InvalidArgument);
    let chain = vec![vec![1, 2, 3], vec![7; 40_000]];
    set(1, chain.clone()).unwrap();
    let backup = keystore.backup_key(key.key_id()).unwrap();
    set(1, Vec::new()).unwrap();
    assert!(keystore.certificates(&key).unwrap().is_empty());
    let restored = keystore.restore_key(&name("local"), Some(&name("again")), &backup).unwrap();
    assert_eq!(keystore.certificates(&restored).unwrap(), chain);
}
