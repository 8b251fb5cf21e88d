//! Keys of ECDSA that sign digests which callers hash themselves, and therefore no statements of
//! the keystore.
#![cfg(all(feature = "p256", feature = "soft-seal"))]

use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::prehash::{Digest, Prehash, Prehashed};
use bulla_kms::{
    Algorithm, Backup, Code, KeyFile, KeyId, Keystore, KeystoreOptions, NewKey, SignatureFile, Statement,
    Unlock,
};
use sha2::{Sha256, Sha384, Sha512};

fn new(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "transit".parse().unwrap(), algorithm)
}

fn of_digests() -> NewKey {
    new(Algorithm::EcdsaP256).signs_digests(true)
}

/// The digests of a message that ECDSA signs.
fn digests(message: &[u8]) -> [Prehashed; 3] {
    use sha2::Digest as _;
    let digests = [
        Digest::Sha256(Sha256::digest(message).into()),
        Digest::Sha384(Sha384::digest(message).into()),
        Digest::Sha512(Sha512::digest(message).into()),
    ];
    digests.map(|digest| Prehashed::new(digest, b"").unwrap())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: bulla_kms::Result<T>, code: Code) {
    assert_eq!(result.unwrap_err().code, code);
}

#[test]
fn the_signature_of_a_digest_is_one_of_its_message() {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(of_digests()).unwrap();
    let key = keystore.public_key(&id).unwrap();
    for message in [&b""[..], b"a message"] {
        let signed = digests(message).map(|digest| {
            let signature = keystore.sign_prehashed(&id, &digest).unwrap();
            assert_eq!(signature.key, id);
            for other in digests(message).iter().chain(&digests(b"another")) {
                let valid = key.verify_prehashed(other, &signature.bytes).is_valid();
                assert_eq!(valid, *other == digest);
                assert_eq!(
                    keystore.verify_prehashed(&id, other, &signature.bytes).unwrap().is_valid(),
                    valid
                );
            }
            signature.bytes
        });
        assert!(key.verify(message, &signed[0]).is_valid());
        let [sha256, ..] = digests(message);
        let plain = keystore.sign(&id, message).unwrap().bytes;
        assert!(key.verify_prehashed(&sha256, &plain).is_valid());
        // Of a longer digest, the leftmost bits count (FIPS 186-5, section 6.4.1).
        use sha2::Digest as _;
        let cut = Sha512::digest(message)[..32].try_into().unwrap();
        let cut = Prehashed::new(Digest::Sha256(cut), b"").unwrap();
        assert!(key.verify_prehashed(&cut, &signed[2]).is_valid());
    }
}

#[test]
fn only_a_key_that_was_made_for_it_signs_digests() {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new(Algorithm::EcdsaP256)).unwrap();
    for digest in digests(b"m") {
        refused(keystore.sign_prehashed(&id, &digest), Code::KeyUsageMismatch);
    }
    // Whoever signs messages may well have digests of them verified.
    let signature = keystore.sign(&id, b"m").unwrap().bytes;
    assert!(keystore.verify_prehashed(&id, &digests(b"m")[0], &signature).unwrap().is_valid());
    let able = keystore.create_key(of_digests()).unwrap();
    refused(keystore.sign_prehashed(&able, &Prehash::Blake3.of(b"m", b"").unwrap()), Code::KeyUsageMismatch);
    refused(
        keystore.sign_prehashed(&able, &Prehash::Ed25519ph.of(b"m", b"use").unwrap()),
        Code::InvalidArgument,
    );
    let ed25519 = keystore.create_key(new(Algorithm::Ed25519)).unwrap();
    refused(keystore.sign_prehashed(&ed25519, &digests(b"m")[0]), Code::KeyUsageMismatch);
    for algorithm in Algorithm::ALL.iter().copied().filter(|algorithm| !algorithm.can_sign_digests()) {
        refused(keystore.create_key(new(algorithm).signs_digests(true)), Code::InvalidArgument);
    }
}

/// Every statement that a keystore composes.
fn signs_no_statement(keystore: &Keystore, key: &KeyId) {
    let statement = || Statement::message(b"m");
    for prehash in [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)] {
        refused(SignatureFile::sign_with(keystore, key, statement(), prehash), Code::KeyUsageMismatch);
    }
    refused(keystore.attest_signed(key), Code::KeyUsageMismatch);
    refused(keystore.sign_time(key, &[7; 32]), Code::KeyUsageMismatch);
    refused(keystore.successions(key), Code::KeyUsageMismatch);
    let checkpoints: &dyn bulla_kms::audit_log::CheckpointSigner = keystore;
    refused(checkpoints.checkpoint_signing_key(key.into()).map(drop), Code::KeyUsageMismatch);
    refused(keystore.sign(key, b"bulla signature\0"), Code::ReservedMessage);
    assert!(keystore.attest(key).unwrap().signs_digests);
    keystore.sign_prehashed(key, &digests(b"m")[1]).unwrap();
}

#[test]
fn a_key_that_signs_digests_signs_no_statements_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (path, secret) = (folder.path().join("keystore"), folder.path().join("secret"));
    KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let key = keystore.create_key(of_digests()).unwrap().key_id().clone();
    let other = keystore.create_key(new(Algorithm::EcdsaP256)).unwrap().key_id().clone();
    signs_no_statement(&keystore, &key);
    keystore.rotate(&key).unwrap();
    signs_no_statement(&keystore, &key);
    let json = |key| serde_json::to_string(&keystore.attest(key).unwrap()).unwrap();
    assert!(json(&key).contains("\"signs_digests\":true") && !json(&other).contains("signs_digests"));
    let identity = Identity::generate(IdentityKind::Age).unwrap();
    let mut backup = Vec::new();
    keystore.backup(&mut backup, &[&identity.recipient()]).unwrap();
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    signs_no_statement(&keystore, &key);
    let backup = Backup::read(&*backup, &[&identity], Backends::software()).unwrap();
    let restored =
        backup.restore(&folder.path().join("restored"), &unlock, &KeystoreOptions::default()).unwrap();
    signs_no_statement(&restored, &key);
    restored.attest_signed(&other).unwrap();
}
