//! Changing the secret of a keystore, and keystores that open with other secrets than passphrases
//! and key files.

use std::path::Path;

use bulla_kms::{Algorithm, Code, KeyFile, KeyId, Keystore, NewKey, Unlock, UnlockMethod};

use crate::support::child::{Harm, child, lines, tell_parent};
use bulla_testing::strikes::strikes;

fn create_key(keystore: &Keystore) -> KeyId {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    keystore.create_key(new).unwrap().key_id().clone()
}

fn key_file(folder: &Path, name: &str) -> Unlock {
    let path = folder.join(name);
    if !path.exists() {
        KeyFile::create(&path).unwrap();
    }
    Unlock::KeyFile(path)
}

fn passphrase(text: &str) -> Unlock {
    Unlock::Passphrase(text.into())
}

#[test]
fn the_old_secret_is_refused_after_it_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore");
    let (file, one, two) = (key_file(folder.path(), "key"), passphrase("one"), passphrase("two"));
    let keystore = Keystore::create(&path, &file).unwrap();
    let key = create_key(&keystore);
    let signature = keystore.sign(&key, b"message").unwrap();
    keystore.rekey(&file, &one).unwrap();
    // It goes on as it was: the root key is the same.
    keystore.rotate(&key).unwrap();
    keystore.rekey(&one, &two).unwrap();
    assert_eq!(keystore.rekey(&one, &file).unwrap_err().code, Code::WrongPassphrase);
    assert_eq!(keystore.rekey(&two, &passphrase("")).unwrap_err().code, Code::InvalidArgument);
    drop(keystore);

    assert_eq!(Keystore::unlock_method(&path).unwrap(), UnlockMethod::Passphrase);
    assert_eq!(Keystore::open(&path, &file).unwrap_err().code, Code::WrongUnlockMethod);
    assert_eq!(Keystore::open(&path, &one).unwrap_err().code, Code::WrongPassphrase);
    let keystore = Keystore::open(&path, &two).unwrap();
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
    assert!(keystore.verify(&signature.key, b"message", &signature.bytes).unwrap().is_valid());
}

#[test]
fn a_keystore_in_memory_has_no_secret_to_change() {
    let error = Keystore::in_memory().unwrap().rekey(&passphrase("one"), &passphrase("two")).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn a_kill_while_the_secret_is_changed_leaves_a_keystore_that_one_of_the_two_opens() {
    if let Some(folder) = child() {
        let mut secrets = [key_file(&folder, "a"), key_file(&folder, "b")];
        let path = folder.join("keystore");
        if Keystore::open(&path, &secrets[0]).is_err() {
            secrets.reverse();
        }
        let keystore = Keystore::open(&path, &secrets[0]).unwrap();
        loop {
            keystore.rekey(&secrets[0], &secrets[1]).unwrap();
            secrets.reverse();
            tell_parent("changed");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore");
    let secrets = [key_file(folder.path(), "a"), key_file(folder.path(), "b")];
    let key = create_key(&Keystore::create(&path, &secrets[0]).unwrap());
    strikes(40, |delay| {
        let test = "rekey::a_kill_while_the_secret_is_changed_leaves_a_keystore_that_one_of_the_two_opens";
        let told = lines(test, folder.path(), Harm::Kill(delay)).len();
        // One after the other: a keystore that is open locks the others out.
        let open = |which: usize| Keystore::open(&path, &secrets[which]);
        let which =
            [0, 1].into_iter().position(|which| open(which).is_ok()).expect("one of the two opens it");
        assert_eq!(open(1 - which).unwrap_err().code, Code::WrongKeyFile);
        assert!(open(which).unwrap().sign(&key, b"message").is_ok());
        told >= 20
    });
}

#[cfg(feature = "soft-seal")]
mod providers {
    use super::*;
    use bulla_kms::encryption::{Identity, IdentityKind};
    use std::sync::Arc;

    #[test]
    fn a_keystore_opens_with_the_identity_of_its_recipient() {
        for kind in [IdentityKind::Age, IdentityKind::XWing] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("keystore");
            let identity = Identity::generate(kind).unwrap();
            let opener = Unlock::Provider(Arc::new(identity.clone()));
            // Only the public half is needed to make it.
            let maker = Unlock::Provider(Arc::new(identity.recipient()));
            let key = create_key(&Keystore::create(&path, &maker).unwrap());
            assert_eq!(Keystore::open(&path, &maker).unwrap_err().code, Code::KeyUsageMismatch);
            let keystore = Keystore::open(&path, &opener).unwrap();
            assert!(keystore.sign(&key, b"message").is_ok());
            let other = Unlock::Provider(Arc::new(Identity::generate(kind).unwrap()));
            keystore.rekey(&opener, &other).unwrap();
            drop(keystore);
            let error = Keystore::open(&path, &opener).unwrap_err();
            assert_eq!(error.code, Code::WrongUnlockMethod, "{error}");
            assert!(matches!(Keystore::unlock_method(&path).unwrap(), UnlockMethod::Provider { .. }));
            assert!(Keystore::open(&path, &other).is_ok());
        }
    }
}
