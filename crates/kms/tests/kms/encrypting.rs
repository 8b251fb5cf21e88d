//! Keys that encrypt and keys that make MACs: options, states, versions, batches, the audit log.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use bulla_kms::audit_log::{AuditLog, AuditLogOptions, Entry};
use bulla_kms::{
    Algorithm, CiphertextParts, Code, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions, HmacHash,
    KeyChange, KeyDerivation, KeyId, KeyMessage, KeyVersionId, Keystore, KeystoreOptions, KmsError,
    MAX_PLAINTEXT_LEN, NewKey, RotationPolicy, Timestamp, VerifyMacItem,
};
use proptest::prelude::*;

const CIPHERS: [Algorithm; 4] =
    [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::XChaCha20Poly1305];

const NONE: EncryptionOptions<'static> = EncryptionOptions::NONE;

fn new_key(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "rows".parse().unwrap(), algorithm)
}

fn with_key(new: NewKey) -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new).unwrap();
    (keystore, id)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, KmsError>, code: Code) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    error.message
}

#[test]
fn texts_of_every_length_up_to_the_bound_come_back() {
    for algorithm in CIPHERS {
        let (keystore, id) = with_key(new_key(algorithm));
        let key = id.key_id();
        for (length, data) in [(0, &b""[..]), (0, b"data"), (1, b""), (15, b"x"), (16, b""), (1 << 20, b"y")]
        {
            let (text, options) = (vec![7; length], EncryptionOptions::default().associated_data(data));
            let made = keystore.encrypt(key, &text, &options).unwrap();
            assert_eq!(made.bytes.len(), length + algorithm.output_length());
            assert_eq!(**keystore.decrypt(key, &made.bytes, &options).unwrap().bytes, *text);
        }
        let long = vec![0; MAX_PLAINTEXT_LEN + 1];
        assert!(refused(keystore.encrypt(key, &long, &NONE), Code::InvalidArgument).contains("data key"));
        let long = vec![0; EncryptionOptions::MAX_LEN + 1];
        let options = EncryptionOptions::default().associated_data(&long);
        refused(keystore.encrypt(key, b"", &options), Code::InvalidArgument);
        refused(keystore.decrypt(key, b"", &options), Code::InvalidArgument);
    }
}

#[test]
fn a_context_chooses_the_key_of_a_key_that_derives_keys_and_of_no_other() {
    for algorithm in CIPHERS {
        let (keystore, id) = with_key(new_key(algorithm).derivation(KeyDerivation::PerContext));
        let key = id.key_id();
        let [one, two] = [b"one", b"two"].map(|context| EncryptionOptions::default().context(context));
        let made = keystore.encrypt(key, b"text", &one.associated_data(b"data")).unwrap().bytes;
        let found = keystore.decrypt(key, &made, &one.associated_data(b"data")).unwrap();
        assert_eq!(**found.bytes, *b"text");
        let text =
            refused(keystore.decrypt(key, &made, &two.associated_data(b"data")), Code::InvalidCiphertext);
        assert_eq!(refused(keystore.decrypt(key, &made, &one), Code::InvalidCiphertext), text);
        refused(keystore.encrypt(key, b"text", &NONE), Code::InvalidArgument);
        refused(keystore.decrypt(key, &made, &NONE), Code::InvalidArgument);
        assert_eq!(keystore.attest(key).unwrap().derivation, KeyDerivation::PerContext);
        let (keystore, id) = with_key(new_key(algorithm));
        refused(keystore.encrypt(id.key_id(), b"text", &one), Code::InvalidArgument);
        refused(keystore.decrypt(id.key_id(), &made, &one), Code::InvalidArgument);
    }
    for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
        let new = new_key(algorithm).derivation(KeyDerivation::PerContext);
        refused(Keystore::in_memory().unwrap().create_key(new), Code::InvalidArgument);
    }
}

#[test]
fn convergent_ciphertexts_are_equal_where_text_context_and_version_are() {
    for algorithm in CIPHERS {
        let (keystore, id) = with_key(new_key(algorithm).derivation(KeyDerivation::Convergent));
        let key = id.key_id();
        let [one, two] = [b"one", b"two"].map(|context| EncryptionOptions::default().context(context));
        let made = keystore.encrypt(key, b"text", &one).unwrap().bytes;
        assert_eq!(keystore.encrypt(key, b"text", &one).unwrap().bytes, made);
        let nonce = |bytes: &[u8]| CiphertextParts::parse(algorithm, bytes).unwrap().nonce().to_vec();
        for other in [keystore.encrypt(key, b"test", &one), keystore.encrypt(key, b"text", &two)] {
            assert_ne!(nonce(&other.unwrap().bytes), nonce(&made));
        }
        assert_eq!(**keystore.decrypt(key, &made, &one).unwrap().bytes, *b"text");
        refused(keystore.decrypt(key, &made, &two), Code::InvalidCiphertext);
        // One nonce with two texts of associated data would give away the key of the tags.
        refused(keystore.encrypt(key, b"text", &one.associated_data(b"data")), Code::InvalidArgument);
        keystore.rotate(key).unwrap();
        assert_ne!(nonce(&keystore.encrypt(key, b"text", &one).unwrap().bytes), nonce(&made));
    }
}

#[test]
fn a_key_that_may_not_be_used_neither_encrypts_nor_decrypts_nor_verifies_macs() {
    let keystore = Keystore::in_memory().unwrap();
    let cipher = keystore.create_key(new_key(Algorithm::Aes256Gcm)).unwrap();
    let mac_key = keystore.create_key(new_key(Algorithm::Blake3)).unwrap();
    let made = keystore.encrypt(cipher.key_id(), b"text", &NONE).unwrap().bytes;
    let mac = keystore.mac(mac_key.key_id(), b"message").unwrap();
    let all = |code: Code| {
        refused(keystore.encrypt(cipher.key_id(), b"text", &NONE), code);
        refused(keystore.decrypt(cipher.key_id(), &made, &NONE), code);
        refused(keystore.rewrap(cipher.key_id(), &made, &NONE), code);
        refused(keystore.generate_data_key(cipher.key_id(), DataKeyLength::Bits128, &NONE), code);
        refused(keystore.mac(mac_key.key_id(), b"message"), code);
        refused(keystore.verify_mac(&mac.key, b"message", &mac.bytes), code);
    };
    let both = |change: &KeyChange| {
        for id in [&cipher, &mac_key] {
            keystore.update(id.key_id(), None, change).unwrap();
        }
    };
    both(&KeyChange::Disable);
    all(Code::KeyDisabled);
    both(&KeyChange::Enable);
    keystore.decrypt(cipher.key_id(), &made, &NONE).unwrap();
    both(&KeyChange::ScheduleDestruction(Timestamp::now().unwrap()));
    all(Code::KeyPendingDestruction);
    both(&KeyChange::Destroy);
    all(Code::KeyDestroyed);
    let nowhere = Keystore::in_memory().unwrap();
    refused(nowhere.encrypt(cipher.key_id(), b"text", &NONE), Code::KeyNotFound);
    refused(nowhere.decrypt(cipher.key_id(), &made, &NONE), Code::KeyNotFound);
    refused(nowhere.mac(mac_key.key_id(), b"message"), Code::KeyNotFound);
}

#[test]
fn versions_decrypt_until_they_are_withdrawn() {
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key(Algorithm::ChaCha20Poly1305)).unwrap().key_id().clone();
    let mac_key = keystore.create_key(new_key(Algorithm::HmacSha512)).unwrap().key_id().clone();
    let made: Vec<_> = (0..4)
        .map(|_| {
            let made = keystore.encrypt(&key, b"text", &NONE).unwrap();
            let mac = keystore.mac(&mac_key, b"message").unwrap();
            keystore.rotate(&key).unwrap();
            keystore.rotate(&mac_key).unwrap();
            (made, mac)
        })
        .collect();
    let number = |number| NonZeroU32::new(number).unwrap();
    let change = |change: KeyChange| {
        keystore.update(&key, None, &change).unwrap();
        keystore.update(&mac_key, None, &change).unwrap();
    };
    change(KeyChange::Revoke(number(1)));
    change(KeyChange::DestroyVersion(number(2)));
    change(KeyChange::MinimumVersion(number(4)));
    let expected = [Code::VersionNotUsable; 3].map(Some).into_iter().chain([None]);
    for ((made, mac), expected) in made.iter().zip(expected) {
        assert_eq!(keystore.decrypt(&key, &made.bytes, &NONE).err().map(|error| error.code), expected);
        assert_eq!(keystore.rewrap(&key, &made.bytes, &NONE).err().map(|error| error.code), expected);
        let verified = keystore.verify_mac(&mac.key, b"message", &mac.bytes);
        assert_eq!(verified.err().map(|error| error.code), expected);
    }
    change(KeyChange::MinimumVersion(number(1)));
    let expected = [Some(Code::VersionNotUsable), Some(Code::KeyDestroyed), None, None];
    for ((made, mac), expected) in made.iter().zip(expected) {
        assert_eq!(keystore.decrypt(&key, &made.bytes, &NONE).err().map(|error| error.code), expected);
        let verified = keystore.verify_mac(&mac.key, b"message", &mac.bytes);
        assert_eq!(verified.err().map(|error| error.code), expected);
    }
    // Nobody made a version with this number: that is no more than another ciphertext.
    let mut future = made[3].0.bytes.clone();
    future[4] = 9;
    refused(keystore.decrypt(&key, &future, &NONE), Code::InvalidCiphertext);
    refused(keystore.verify_mac(&mac_key.version(number(9)), b"", b""), Code::UnknownVersion);
    let rewrapped = keystore.rewrap(&key, &made[2].0.bytes, &NONE).unwrap();
    assert_eq!((rewrapped.key.version(), keystore.attest(&key).unwrap().latest_version), (5, 5));
    assert_eq!(**keystore.decrypt(&key, &rewrapped.bytes, &NONE).unwrap().bytes, *b"text");
}

#[test]
fn a_rewrapped_ciphertext_is_of_the_version_that_is_named() {
    let (keystore, first) = with_key(new_key(Algorithm::Aes256Gcm).minimum_signing_version(0));
    let key = first.key_id();
    keystore.rotate(key).unwrap();
    let made = keystore.encrypt(key, b"text", &NONE).unwrap();
    assert_eq!(keystore.rewrap(&first, &made.bytes, &NONE).unwrap().key, first);
    assert_eq!(keystore.rewrap(key, &made.bytes, &NONE).unwrap().key.version(), 2);
    keystore.update(key, None, &KeyChange::MinimumSigningVersion(2)).unwrap();
    refused(keystore.rewrap(&first, &made.bytes, &NONE), Code::NotLatestVersion);
}

#[test]
fn a_key_that_may_not_be_used_makes_no_hmacs_either() {
    let (keystore, id) = with_key(new_key(Algorithm::Aes256Gcm));
    let mac = keystore.hmac(id.key_id(), HmacHash::Sha256, b"m").unwrap();
    keystore.update(id.key_id(), None, &KeyChange::Disable).unwrap();
    refused(keystore.hmac(id.key_id(), HmacHash::Sha256, b"m"), Code::KeyDisabled);
    refused(keystore.verify_hmac(&id, HmacHash::Sha256, b"m", &mac.bytes), Code::KeyDisabled);
}

#[test]
fn older_versions_encrypt_and_make_macs_for_who_names_them_if_the_key_was_made_for_that() {
    for (new, code) in [
        (new_key(Algorithm::Aes256Gcm), Some(Code::NotLatestVersion)),
        (new_key(Algorithm::Aes256Gcm).minimum_signing_version(0), None),
    ] {
        let (keystore, first) = with_key(new);
        keystore.rotate(first.key_id()).unwrap();
        let made = keystore.encrypt(&first, b"text", &NONE);
        assert_eq!(made.as_ref().err().map(|error| error.code), code);
        if let Ok(made) = made {
            assert_eq!(made.key, first);
            assert_eq!(keystore.decrypt(first.key_id(), &made.bytes, &NONE).unwrap().key, first);
            let destroy = KeyChange::DestroyVersion(NonZeroU32::MIN);
            keystore.update(first.key_id(), None, &destroy).unwrap();
            refused(keystore.encrypt(&first, b"text", &NONE), Code::KeyDestroyed);
        }
    }
    let (keystore, first) = with_key(new_key(Algorithm::HmacSha384).minimum_signing_version(0));
    keystore.rotate(first.key_id()).unwrap();
    assert_eq!(keystore.mac(&first, b"m").unwrap().key, first);
}

#[test]
fn a_policy_rotates_keys_that_encrypt_and_keys_that_make_macs() {
    let rotation = RotationPolicy::default().max_uses(NonZeroU64::new(3));
    let keystore = Keystore::in_memory().unwrap();
    let cipher = keystore.create_key(new_key(Algorithm::XChaCha20Poly1305).rotation(rotation)).unwrap();
    let mac_key = keystore.create_key(new_key(Algorithm::HmacSha256).rotation(rotation)).unwrap();
    let mut versions = Vec::new();
    for _ in 0..7 {
        let made = keystore.encrypt(cipher.key_id(), b"text", &NONE).unwrap();
        // Decrypting is no use.
        keystore.decrypt(cipher.key_id(), &made.bytes, &NONE).unwrap();
        let mac = keystore.mac(mac_key.key_id(), b"message").unwrap();
        assert_eq!(mac.key.version(), made.key.version());
        versions.push(made.key.version());
    }
    assert_eq!(versions, [1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn a_data_key_is_random_and_comes_back_from_its_wrapped_form() {
    let (keystore, id) = with_key(new_key(Algorithm::Aes256Gcm));
    let options = EncryptionOptions::default().associated_data(b"disk 3");
    for (bits, length) in [(128, 16), (256, 32), (512, 64)] {
        let length_of = DataKeyLength::from_bits(bits).unwrap();
        assert_eq!(length_of.bytes(), length);
        let [one, two] =
            [(); 2].map(|()| keystore.generate_data_key(id.key_id(), length_of, &options).unwrap());
        assert_ne!(one.plaintext, two.plaintext);
        assert_eq!(one.plaintext.len(), length);
        let found = keystore.decrypt(id.key_id(), &one.wrapped.bytes, &options).unwrap();
        assert_eq!(*found.bytes, *one.plaintext);
        assert!(!format!("{one:?} {found:?}").contains(&format!("{:?}", *one.plaintext)));
    }
    for bits in [0, 8, 192, 1024] {
        refused(DataKeyLength::from_bits(bits), Code::InvalidArgument);
    }
}

#[test]
fn each_item_of_a_batch_has_its_own_result() {
    let keystore = Keystore::in_memory().unwrap();
    let cipher = keystore.create_key(new_key(Algorithm::Aes128Gcm)).unwrap().key_id().clone();
    let other = keystore.create_key(new_key(Algorithm::ChaCha20Poly1305)).unwrap().key_id().clone();
    let mac_key = keystore.create_key(new_key(Algorithm::Blake3)).unwrap();
    let item = |key, plaintext| EncryptItem { key, plaintext, options: NONE };
    let made = keystore.encrypt_batch(&[
        item((&cipher).into(), b"one"),
        item(mac_key.key_id().into(), b"two"),
        item((&other).into(), b""),
    ]);
    assert_eq!(made[1].as_ref().unwrap_err().code, Code::KeyUsageMismatch);
    let (one, three) = (made[0].as_ref().unwrap(), made[2].as_ref().unwrap());
    let item = |key, ciphertext| DecryptItem { key, ciphertext, options: NONE };
    let items = [item(&cipher, &one.bytes[..]), item(&other, &one.bytes), item(&other, &three.bytes)];
    let found = keystore.decrypt_batch(&items);
    assert_eq!(**found[0].as_ref().unwrap().bytes, *b"one");
    assert_eq!(found[1].as_ref().unwrap_err().code, Code::InvalidCiphertext);
    assert_eq!(**found[2].as_ref().unwrap().bytes, *b"");
    keystore.rotate(&cipher).unwrap();
    let rewrapped = keystore.rewrap_batch(&items);
    let versions: Vec<_> =
        rewrapped.iter().map(|made| made.as_ref().ok().map(|made| made.key.version())).collect();
    assert_eq!(versions, [Some(2), None, Some(1)]);
    let macs = keystore.mac_batch(&[
        KeyMessage { key: (&mac_key).into(), message: b"m" },
        KeyMessage { key: (&cipher).into(), message: b"m" },
    ]);
    assert_eq!(macs[1].as_ref().unwrap_err().code, Code::KeyUsageMismatch);
    let mac = &macs[0].as_ref().unwrap().bytes;
    let item = |message, mac| VerifyMacItem { key: &mac_key, message, mac };
    let verdicts = keystore.verify_mac_batch(&[item(&b"m"[..], &mac[..]), item(b"n", mac)]);
    let verdicts: Vec<_> = verdicts.into_iter().map(|verdict| verdict.unwrap().is_valid()).collect();
    assert_eq!(verdicts, [true, false]);
    assert!(keystore.encrypt_batch(&[]).is_empty() && keystore.verify_mac_batch(&[]).is_empty());
}

#[test]
fn the_audit_log_has_digests_of_ciphertexts_and_of_nothing_that_could_be_guessed() {
    let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default()).unwrap());
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let cipher = keystore.create_key(new_key(Algorithm::Aes256Gcm)).unwrap();
    let mac_key = keystore.create_key(new_key(Algorithm::HmacSha256)).unwrap();
    let alice = keystore.on_behalf_of(&"alice".parse().unwrap());
    let made = alice.encrypt(cipher.key_id(), b"text", &NONE).unwrap();
    alice.decrypt(cipher.key_id(), &made.bytes, &NONE).unwrap();
    let rewrapped = alice.rewrap(cipher.key_id(), &made.bytes, &NONE).unwrap();
    let data_key = alice.generate_data_key(cipher.key_id(), DataKeyLength::Bits256, &NONE).unwrap();
    let mac = alice.mac(mac_key.key_id(), b"message").unwrap();
    let _ = alice.verify_mac(&mac.key, b"massage", &mac.bytes).unwrap();
    alice.decrypt(cipher.key_id(), b"nothing", &NONE).unwrap_err();
    let items = [DecryptItem { key: cipher.key_id(), ciphertext: &made.bytes, options: NONE }; 2];
    alice.decrypt_batch(&items);
    let item = EncryptItem { key: cipher.key_id().into(), plaintext: b"text", options: NONE };
    let batch = alice.encrypt_batch(&[item]).remove(0).unwrap();
    let of = |bytes: &[u8]| Some(bulla_blake3::hash(bytes));
    let expected = [
        ("encrypt", "ok", of(&made.bytes)),
        ("decrypt", "ok", of(&made.bytes)),
        ("rewrap", "ok", of(&rewrapped.bytes)),
        ("generate_data_key", "ok", of(&data_key.wrapped.bytes)),
        ("mac", "ok", None),
        ("verify_mac", "invalid", None),
        ("decrypt", "invalid_ciphertext", of(b"nothing")),
        ("decrypt", "ok", of(&made.bytes)),
        ("decrypt", "ok", of(&made.bytes)),
        ("encrypt", "ok", of(&batch.bytes)),
    ];
    let entries: Vec<Entry> = log.entries().unwrap();
    let entries: Vec<_> = entries.iter().filter(|entry| entry.actor.as_str() == "alice").collect();
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.operation.as_str(), entry.result.as_str(), entry.digest()))
        .collect();
    assert_eq!(found, expected);
    // The entry of a success names the version.
    assert_eq!(entries[1].key.as_ref().unwrap().to_string(), cipher.to_string());
}

#[cfg(feature = "with-metrics")]
#[test]
fn operations_are_counted_by_their_words() {
    let metrics = Arc::new(bulla_kms::metrics::Metrics::default());
    let keystore = KeystoreOptions::default().metrics(metrics.clone()).in_memory().unwrap();
    let cipher = keystore.create_key(new_key(Algorithm::XChaCha20Poly1305)).unwrap();
    let mac_key = keystore.create_key(new_key(Algorithm::Blake3)).unwrap();
    let made = keystore.encrypt(cipher.key_id(), b"text", &NONE).unwrap();
    keystore.rewrap(cipher.key_id(), &made.bytes, &NONE).unwrap();
    keystore.generate_data_key(cipher.key_id(), DataKeyLength::Bits256, &NONE).unwrap();
    keystore.decrypt(cipher.key_id(), &made.bytes[1..], &NONE).unwrap_err();
    let mac = keystore.mac(mac_key.key_id(), b"m").unwrap();
    let _ = keystore.verify_mac(&mac.key, b"n", &mac.bytes).unwrap();
    let text = metrics.text();
    for sample in [
        r#"kms_ops_total{op="encrypt",alg="xchacha20-poly1305"} 1"#,
        r#"kms_ops_total{op="rewrap",alg="xchacha20-poly1305"} 1"#,
        r#"kms_ops_total{op="generate_data_key",alg="xchacha20-poly1305"} 1"#,
        r#"kms_ops_total{op="decrypt",alg="xchacha20-poly1305"} 1"#,
        r#"kms_failures_total{op="decrypt",kind="invalid_ciphertext"} 1"#,
        r#"kms_ops_total{op="mac",alg="blake3"} 1"#,
        r#"kms_failures_total{op="verify_mac",kind="invalid"} 1"#,
    ] {
        assert!(text.lines().any(|line| line == sample), "{sample} in:\n{text}");
    }
}

#[cfg(all(feature = "tokens", feature = "transfer", feature = "mlkem"))]
#[test]
fn a_symmetric_key_goes_to_another_keystore_wrapped_and_alone() {
    use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
    use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey};
    let (ours, theirs) = (Keystore::in_memory().unwrap(), Keystore::in_memory().unwrap());
    let recipient = theirs.create_key(new_key(Algorithm::XWing)).unwrap();
    let tenant: bulla_kms::Name = "local".parse().unwrap();
    ours.create_token_root(&tenant).unwrap();
    let grant = Grant::new(
        tenant,
        GrantedKeys::All,
        vec![TokenOperation::Export],
        "2999-01-01T00:00:00.000Z".parse().unwrap(),
    );
    let token = ours.mint_token(&grant).unwrap();
    for algorithm in Algorithm::ALL.iter().copied().filter(|algorithm| algorithm.is_symmetric()) {
        let first = ours.create_key(new_key(algorithm).exportable(true)).unwrap();
        ours.rotate(first.key_id()).unwrap();
        let to = theirs.public_key(&recipient).unwrap();
        let file = ours.export_key(&first, &to, &token, &Revocations::default()).unwrap().to_string();
        assert!(!file.contains("public-key"), "{file}");
        let wrapped: WrappedPrivateKey = file.parse().unwrap();
        let data = theirs.unwrap_key(&recipient, &wrapped).unwrap();
        assert_eq!((data.algorithm(), data.public_key()), (algorithm, None));
        assert!(!format!("{data:?}").contains('['), "{data:?}");
        let copy = theirs.import_key(new_key(algorithm), &data).unwrap();
        let message = theirs.import_version(copy.key_id(), &data).unwrap_err().message;
        assert!(message.contains("secret"), "{message}");
        if algorithm.max_encryptions().is_some() || algorithm == Algorithm::XChaCha20Poly1305 {
            let made = theirs.encrypt(copy.key_id(), b"text", &NONE).unwrap().bytes;
            assert_eq!(ours.decrypt(first.key_id(), &made, &NONE).unwrap().key, first);
        } else {
            let mac = theirs.mac(copy.key_id(), b"m").unwrap().bytes;
            assert!(ours.verify_mac(&first, b"m", &mac).unwrap().is_valid());
        }
        // A line that was changed changes the wrapping key.
        let changed = file.replacen("/rows/", "/cows/", 1);
        let wrapped: WrappedPrivateKey = changed.parse().unwrap();
        assert_eq!(theirs.unwrap_key(&recipient, &wrapped).unwrap_err().code, Code::MalformedKey);
        let kept = ours.create_key(new_key(algorithm)).unwrap();
        let error = ours.export_key(&kept, &to, &token, &Revocations::default()).unwrap_err();
        assert_eq!(error.code, Code::NotExportable);
        for length in [0, 1, 15, 513] {
            let read = PrivateKeyData::read(&vec![7; length], PrivateFormat::Raw, Some(algorithm), None);
            assert_eq!(read.unwrap_err().code, Code::MalformedKey, "{algorithm}, {length}");
        }
    }
}

#[cfg(feature = "soft-seal")]
#[test]
fn a_restored_backup_decrypts_and_verifies_macs() {
    use bulla_kms::encryption::{Identity, IdentityKind};
    use bulla_kms::{Backup, KeyFile, Unlock};
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let keystore = Keystore::in_memory().unwrap();
    let cipher =
        keystore.create_key(new_key(Algorithm::Aes256Gcm).derivation(KeyDerivation::Convergent)).unwrap();
    let mac_key = keystore.create_key(new_key(Algorithm::HmacSha512)).unwrap();
    let options = EncryptionOptions::default().context(b"context");
    let made = keystore.encrypt(cipher.key_id(), b"text", &options).unwrap().bytes;
    let mac = keystore.mac(mac_key.key_id(), b"m").unwrap().bytes;
    keystore.rotate(cipher.key_id()).unwrap();
    let identity = Identity::generate(IdentityKind::Age).unwrap();
    let mut file = Vec::new();
    keystore.backup(&mut file, &[&identity.recipient()]).unwrap();
    let defaults = KeystoreOptions::default();
    let backup = Backup::read(&file[..], &[&identity], &defaults.backends).unwrap();
    let restored = backup.restore(&folder.path().join("restored"), &unlock, &defaults).unwrap();
    assert_eq!(restored.list().unwrap(), keystore.list().unwrap());
    let found = restored.decrypt(cipher.key_id(), &made, &options).unwrap();
    assert_eq!((found.key, &**found.bytes), (cipher.clone(), &b"text"[..]));
    assert!(restored.verify_mac(&mac_key, b"m", &mac).unwrap().is_valid());
}

/// The other implementation: aws-lc-rs.
#[cfg(feature = "fast")]
mod differential {
    use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
    use aws_lc_rs::{hkdf, hmac};
    use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};

    use super::*;

    fn imported(algorithm: Algorithm, secret: &[u8]) -> (Keystore, KeyId) {
        let data = PrivateKeyData::read(secret, PrivateFormat::Raw, Some(algorithm), None).unwrap();
        let keystore = Keystore::in_memory().unwrap();
        let id = keystore.import_key(new_key(algorithm), &data).unwrap();
        (keystore, id.key_id().clone())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_one_implementation_encrypts_the_other_decrypts(
            secret: [u8; 32], text in prop::collection::vec(any::<u8>(), 0..300), data: Vec<u8>, nonce: [u8; 12],
        ) {
            for (algorithm, theirs) in [
                (Algorithm::Aes128Gcm, &AES_128_GCM),
                (Algorithm::Aes256Gcm, &AES_256_GCM),
                (Algorithm::ChaCha20Poly1305, &CHACHA20_POLY1305),
            ] {
                let secret = &secret[..theirs.key_len()];
                let (keystore, key) = imported(algorithm, secret);
                let other = LessSafeKey::new(UnboundKey::new(theirs, secret).unwrap());
                let options = EncryptionOptions::default().associated_data(&data);
                let made = keystore.encrypt(&key, &text, &options).unwrap().bytes;
                let parts = CiphertextParts::parse(algorithm, &made).unwrap();
                let mut found = parts.ciphertext().to_vec();
                let taken = Nonce::try_assume_unique_for_key(parts.nonce()).unwrap();
                prop_assert_eq!(&*other.open_in_place(taken, Aad::from(&data), &mut found).unwrap(), &text[..]);
                let mut sealed = text.clone();
                let taken = Nonce::assume_unique_for_key(nonce);
                other.seal_in_place_append_tag(taken, Aad::from(&data), &mut sealed).unwrap();
                let body = [&nonce[..], &sealed].concat();
                let parts = CiphertextParts::new(algorithm, NonZeroU32::MIN, &body).unwrap();
                let found = keystore.decrypt(&key, &parts.to_bytes(), &options).unwrap();
                prop_assert_eq!(&**found.bytes, &text[..]);
            }
        }

        #[test]
        fn both_implementations_make_the_same_macs(
            secret in prop::collection::vec(any::<u8>(), 16..200), message: Vec<u8>,
        ) {
            for (algorithm, theirs) in [
                (Algorithm::HmacSha256, hmac::HMAC_SHA256),
                (Algorithm::HmacSha384, hmac::HMAC_SHA384),
                (Algorithm::HmacSha512, hmac::HMAC_SHA512),
            ] {
                let (keystore, key) = imported(algorithm, &secret);
                let other = hmac::sign(&hmac::Key::new(theirs, &secret), &message);
                prop_assert_eq!(&keystore.mac(&key, &message).unwrap().bytes[..], other.as_ref());
            }
        }

        /// A key of HMAC is the key itself, with each hash function. Every other key has one that
        /// is derived.
        #[test]
        fn hmacs_of_every_key_are_those_of_the_specification(secret: [u8; 32], message: Vec<u8>) {
            let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"bulla keystore v1 key for HMAC");
            let mut derived = [0; 32];
            salt.extract(&secret).expand(&[], hkdf::HKDF_SHA256).unwrap().fill(&mut derived).unwrap();
            for (algorithm, own) in [
                (Algorithm::HmacSha256, &secret),
                (Algorithm::HmacSha512, &secret),
                (Algorithm::Blake3, &derived),
                (Algorithm::Aes256Gcm, &derived),
                (Algorithm::Ed25519, &derived),
            ] {
                let (keystore, key) = imported(algorithm, &secret);
                for (hash, theirs) in [
                    (HmacHash::Sha224, hmac::HMAC_SHA224),
                    (HmacHash::Sha256, hmac::HMAC_SHA256),
                    (HmacHash::Sha384, hmac::HMAC_SHA384),
                    (HmacHash::Sha512, hmac::HMAC_SHA512),
                ] {
                    let other = hmac::sign(&hmac::Key::new(theirs, own), &message);
                    let made = keystore.hmac(&key, hash, &message).unwrap();
                    prop_assert_eq!(&made.bytes[..], other.as_ref());
                    let verdict = |mac: &[u8]| keystore.verify_hmac(&made.key, hash, &message, mac).unwrap();
                    prop_assert!(verdict(&made.bytes).is_valid());
                    prop_assert!(!verdict(&made.bytes[1..]).is_valid());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_encrypted_comes_back_and_no_single_change_does(
        text in prop::collection::vec(any::<u8>(), 0..100),
        data in prop::collection::vec(any::<u8>(), 0..50),
        derivation in prop::sample::select(vec![KeyDerivation::None, KeyDerivation::PerContext]),
        algorithm in prop::sample::select(CIPHERS.to_vec()),
        at: prop::sample::Index,
        bit in 0..8_u32,
    ) {
        let (keystore, id) = with_key(new_key(algorithm).derivation(derivation));
        let context: &[u8] = if derivation == KeyDerivation::None { b"" } else { b"context" };
        let options = EncryptionOptions::default().associated_data(&data).context(context);
        let made = keystore.encrypt(id.key_id(), &text, &options).unwrap().bytes;
        prop_assert_eq!(&**keystore.decrypt(id.key_id(), &made, &options).unwrap().bytes, &text[..]);
        let mut changed = made.clone();
        changed[at.index(made.len())] ^= 1 << bit;
        let error = keystore.decrypt(id.key_id(), &changed, &options).unwrap_err();
        prop_assert_eq!(error.code, Code::InvalidCiphertext);
    }
}
