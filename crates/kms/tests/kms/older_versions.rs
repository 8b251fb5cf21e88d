//! Older versions sign for callers who name them, if their key was made for that.

use std::num::{NonZeroU32, NonZeroU64};

use bulla_kms::prehash::Prehash;
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyFile, KeyId, KeyMessage, KeyVersionId, Keystore, NewKey, RotationPolicy,
    SignatureFile, Statement, Unlock,
};

fn new() -> NewKey {
    NewKey::new("local".parse().unwrap(), "transit".parse().unwrap(), Algorithm::Ed25519)
}

fn pinned() -> NewKey {
    new().minimum_signing_version(0)
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// A key with three versions, and their ids.
fn three(keystore: &Keystore, new: NewKey) -> (KeyId, [KeyVersionId; 3]) {
    let first = keystore.create_key(new).unwrap();
    let key = first.key_id().clone();
    let second = keystore.rotate(&key).unwrap();
    let third = keystore.rotate(&key).unwrap();
    (key, [first, second, third])
}

/// What the key says to each version: the error's code, or none if the version signs. Alone, in a
/// batch, and of a digest.
#[track_caller]
fn codes(keystore: &Keystore, ids: &[KeyVersionId; 3]) -> [Option<Code>; 3] {
    let digest = Prehash::Ed25519ph.of(b"m", b"").unwrap();
    let items: Vec<_> = ids.iter().map(|id| KeyMessage { key: id.into(), message: b"m" }).collect();
    let mut batch = keystore.sign_batch(&items).into_iter();
    ids.each_ref().map(|id| {
        let public_key = keystore.public_key(id).unwrap();
        let batch = batch.next().unwrap();
        match keystore.sign(id, b"m") {
            Ok(signature) => {
                assert_eq!((&signature, &signature.key), (&batch.unwrap(), id));
                assert!(public_key.verify(b"m", &signature.bytes).is_valid());
                let signed = keystore.sign_prehashed(id, &digest).unwrap();
                assert!(signed.key == *id && public_key.verify_prehashed(&digest, &signed.bytes).is_valid());
                None
            }
            Err(error) => {
                assert_eq!(batch.unwrap_err().code, error.code);
                assert_eq!(keystore.sign_prehashed(id, &digest).unwrap_err().code, error.code);
                Some(error.code)
            }
        }
    })
}

const OLD: Option<Code> = Some(Code::NotLatestVersion);

#[test]
fn older_versions_of_a_usual_key_never_sign() {
    let keystore = Keystore::in_memory().unwrap();
    let (key, ids) = three(&keystore, new());
    assert_eq!(codes(&keystore, &ids), [OLD, OLD, None]);
    let error = keystore.update(&key, None, &KeyChange::MinimumSigningVersion(0)).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(keystore.attest(&key).unwrap().minimum_signing_version, None);
    let error = keystore.create_key(new().minimum_signing_version(2)).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

#[test]
fn older_versions_sign_down_to_the_oldest_that_may() {
    let folder = tempfile::tempdir().unwrap();
    let (path, secret) = (folder.path().join("keystore"), folder.path().join("secret"));
    KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let mut keystore = Keystore::create(&path, &unlock).unwrap();
    let (key, ids) = three(&keystore, pinned());
    assert_eq!(codes(&keystore, &ids), [None; 3]);
    assert_eq!(
        keystore.sign(&key, b"m").unwrap().key,
        ids[2],
        "a key that is named as a whole signs with its head"
    );
    drop(keystore);
    keystore = Keystore::open(&path, &unlock).unwrap();
    assert_eq!(codes(&keystore, &ids), [None; 3]);
    let change = |change: KeyChange| keystore.update(&key, None, &change);
    assert_eq!(change(KeyChange::MinimumSigningVersion(2)).unwrap().minimum_signing_version, Some(2));
    assert_eq!(codes(&keystore, &ids), [OLD, None, None]);
    assert_eq!(change(KeyChange::MinimumSigningVersion(4)).unwrap_err().code, Code::UnknownVersion);
    change(KeyChange::MinimumSigningVersion(3)).unwrap();
    assert_eq!(codes(&keystore, &ids), [OLD, OLD, None]);
    change(KeyChange::MinimumSigningVersion(0)).unwrap();
    change(KeyChange::MinimumVersion(number(2))).unwrap();
    assert_eq!(codes(&keystore, &ids), [Some(Code::VersionNotUsable), None, None]);
    change(KeyChange::MinimumVersion(number(1))).unwrap();
    change(KeyChange::Revoke(number(1))).unwrap();
    change(KeyChange::DestroyVersion(number(2))).unwrap();
    assert_eq!(codes(&keystore, &ids), [Some(Code::VersionNotUsable), Some(Code::KeyDestroyed), None]);
    change(KeyChange::Disable).unwrap();
    let refused = [Some(Code::VersionNotUsable), Some(Code::KeyDisabled), Some(Code::KeyDisabled)];
    assert_eq!(codes(&keystore, &ids), refused);
}

#[test]
fn an_older_version_signs_no_statements() {
    let keystore = Keystore::in_memory().unwrap();
    let (_, [first, _, head]) = three(&keystore, pinned());
    let sign = |id: &KeyVersionId, prehash| {
        SignatureFile::sign_with(&keystore, id, Statement::message(b"m"), prehash)
    };
    for prehash in [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)] {
        assert_eq!(sign(&first, prehash).unwrap_err().code, Code::NotLatestVersion);
        sign(&head, prehash).unwrap();
    }
}

#[test]
fn a_policy_replaces_the_head_and_the_version_that_was_named_signs() {
    let keystore = Keystore::in_memory().unwrap();
    let rotation = RotationPolicy::default().max_age_seconds(NonZeroU64::new(1));
    let first = keystore.create_key(pinned().rotation(rotation)).unwrap();
    let is_too_old = || keystore.sign(first.key_id(), b"m").unwrap().key != first;
    while !is_too_old() {
        std::thread::yield_now();
    }
    assert_eq!(keystore.sign(&first, b"m").unwrap().key, first);
    // Uses of older versions are not counted, so none of these signs.
    let rotation = RotationPolicy::default().max_uses(NonZeroU64::new(2));
    let first = keystore.create_key(pinned().rotation(rotation)).unwrap();
    keystore.sign(&first, b"m").unwrap();
    keystore.sign(&first, b"m").unwrap();
    assert_eq!(keystore.sign(&first, b"m").unwrap_err().code, Code::NotLatestVersion);
    assert_eq!(keystore.attest(first.key_id()).unwrap().latest_version, 2);
}
