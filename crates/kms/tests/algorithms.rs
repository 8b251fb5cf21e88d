//! What holds for every algorithm that this build serves, whatever its backend. A program apart
//! from `kms`: it is built a second time, as a library without features is, and then with little
//! else.

use bulla_kms::backend::Backends;
use bulla_kms::{
    Algorithm, Attestation, Code, DataKeyLength, EncryptionOptions, KeyChange, KeyFile, KeyUsage,
    KeyVersionId, Keystore, KmsError, NewKey, PublicKey, SignatureFile, Statement, Unlock, Verdict,
    VerifyItem,
};

fn served() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.iter().copied().filter(|algorithm| Backends::software().verifier(*algorithm).is_ok())
}

fn of_use(usage: KeyUsage) -> impl Iterator<Item = Algorithm> {
    served().filter(move |algorithm| algorithm.usage() == usage)
}

/// Leaves out all but one set of SLH-DSA: most take seconds to sign.
fn quick(algorithm: &Algorithm) -> bool {
    !algorithm.as_str().starts_with("slh-dsa") || algorithm.as_str() == "slh-dsa-shake-128f"
}

fn new_key(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm)
}

fn with_key(algorithm: Algorithm) -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new_key(algorithm)).unwrap();
    (keystore, id)
}

#[test]
#[cfg(all(feature = "mldsa", feature = "slhdsa", feature = "mlkem", feature = "p256", feature = "nist"))]
fn a_build_with_all_features_serves_all_algorithms() {
    assert_eq!(served().count(), Algorithm::ALL.len());
}

#[test]
fn what_a_build_does_not_serve_is_refused_by_name() {
    for algorithm in
        Algorithm::ALL.iter().copied().filter(|algorithm| !served().any(|served| served == *algorithm))
    {
        let keystore = Keystore::in_memory().unwrap();
        assert_eq!(keystore.create_key(new_key(algorithm)).unwrap_err().code, Code::UnsupportedAlgorithm);
        let bytes = vec![0; algorithm.public_key_length()];
        assert_eq!(PublicKey::from_bytes(algorithm, &bytes).unwrap_err().code, Code::UnsupportedAlgorithm);
    }
}

#[test]
#[cfg(not(feature = "nist"))]
fn a_build_without_rsa_says_which_program_has_it() {
    for name in ["rsa-2048", "rsa-3072", "rsa-4096", "ecdsa-p384", "ecdsa-p521", "ecdh-p256", "x25519"] {
        let keystore = Keystore::in_memory().unwrap();
        let error = keystore.create_key(new_key(name.parse().unwrap())).unwrap_err();
        assert!(error.message.contains(name) && error.message.contains("bulla-serve"), "{error}");
    }
}

#[test]
fn a_public_key_has_one_length_and_one_text() {
    for algorithm in served().filter(|algorithm| !algorithm.is_symmetric()) {
        let (keystore, id) = with_key(algorithm);
        let public_key = keystore.public_key(&id).unwrap();
        assert_eq!(public_key.as_bytes().len(), algorithm.public_key_length(), "{algorithm}");
        assert_eq!(public_key.to_string().parse::<PublicKey>().unwrap(), public_key);
        for bytes in [&[][..], &public_key.as_bytes()[1..], &[public_key.as_bytes(), &[0]].concat()] {
            assert_eq!(PublicKey::from_bytes(algorithm, bytes).unwrap_err().code, Code::InvalidPublicKey);
        }
    }
}

#[test]
fn a_symmetric_key_has_no_public_key_anywhere() {
    for algorithm in served().filter(|algorithm| algorithm.is_symmetric()) {
        let (keystore, id) = with_key(algorithm);
        assert_eq!(algorithm.public_key_length(), 0);
        let refused = |result: Result<(), KmsError>| {
            let error = result.unwrap_err();
            assert_eq!(error.code, Code::KeyUsageMismatch, "{algorithm}: {error}");
            let does = if algorithm.usage() == KeyUsage::Encryption { "encrypts" } else { "MACs" };
            assert!(error.message.contains(does) && error.message.contains(algorithm.as_str()), "{error}");
        };
        refused(keystore.public_key(&id).map(drop));
        refused(keystore.recipient(&id).map(drop));
        refused(keystore.check_usable(&id));
        refused(keystore.verify(&id, b"a message", &[0; 64]).map(drop));
        refused(keystore.sign(id.key_id(), b"a message").map(drop));
        refused(keystore.attest_signed(id.key_id()).map(drop));
        refused(keystore.sign_time(id.key_id(), &[0; 32]).map(drop));
        refused(keystore.successions(id.key_id()).map(drop));
        refused(SignatureFile::sign(&keystore, id.key_id(), Statement::message(b"m")).map(drop));
        refused(PublicKey::from_bytes(algorithm, &[0; 32]).map(drop));
        refused(format!("{algorithm}:AAAA").parse::<PublicKey>().map(drop));
        let item = VerifyItem { key: &id, message: b"m", signature: &[0; 64] };
        assert_eq!(keystore.verify_batch(&[item]), [Verdict::Unusable]);
        let attestation = keystore.attest(id.key_id()).unwrap();
        assert_eq!(attestation.versions[0].public_key, None);
        let json = serde_json::to_string(&attestation).unwrap();
        assert!(!json.contains("public_key") && !json.contains("check_value"), "{json}");
        assert_eq!(serde_json::from_str::<Attestation>(&json).unwrap(), attestation);
    }
}

#[test]
fn what_was_encrypted_is_of_its_key_its_version_and_its_bytes() {
    for algorithm in of_use(KeyUsage::Encryption) {
        let (keystore, id) = with_key(algorithm);
        let options = EncryptionOptions::default().associated_data(b"row 7");
        let made = keystore.encrypt(id.key_id(), b"a plaintext", &options).unwrap();
        assert_eq!((&made.key, made.bytes.len()), (&id, 11 + algorithm.output_length()), "{algorithm}");
        let again = keystore.encrypt(id.key_id(), b"a plaintext", &options).unwrap();
        assert_ne!(made, again, "{algorithm}");
        keystore.rotate(id.key_id()).unwrap();
        let plaintext = keystore.decrypt(id.key_id(), &made.bytes, &options).unwrap();
        assert_eq!((&plaintext.key, &**plaintext.bytes), (&id, &b"a plaintext"[..]), "{algorithm}");
        let refused = |bytes: &[u8], options: &EncryptionOptions<'_>| {
            let error = keystore.decrypt(id.key_id(), bytes, options).unwrap_err();
            assert_eq!(error.code, Code::InvalidCiphertext, "{algorithm}");
            error.message
        };
        let one_text = refused(&made.bytes, &EncryptionOptions::default());
        for place in 0..made.bytes.len() {
            for bit in 0..8 {
                let mut changed = made.bytes.clone();
                changed[place] ^= 1 << bit;
                assert_eq!(refused(&changed, &options), one_text, "{algorithm}, byte {place}, bit {bit}");
            }
            assert_eq!(refused(&made.bytes[..place], &options), one_text);
        }
        assert_eq!(refused(&[&made.bytes[..], &[0]].concat(), &options), one_text);
        let other = keystore.create_key(new_key(algorithm)).unwrap();
        let error = keystore.decrypt(other.key_id(), &made.bytes, &options).unwrap_err();
        assert_eq!((error.code, error.message), (Code::InvalidCiphertext, one_text));
    }
}

#[test]
fn a_mac_is_of_its_message_its_key_and_its_bytes() {
    for algorithm in of_use(KeyUsage::Authentication) {
        let (keystore, id) = with_key(algorithm);
        let mac = keystore.mac(id.key_id(), b"a message").unwrap();
        assert_eq!((&mac.key, mac.bytes.len()), (&id, algorithm.output_length()), "{algorithm}");
        assert_eq!(keystore.mac(id.key_id(), b"a message").unwrap(), mac);
        let next = keystore.rotate(id.key_id()).unwrap();
        let verdict =
            |id: &KeyVersionId, message: &[u8], mac: &[u8]| keystore.verify_mac(id, message, mac).unwrap();
        assert_eq!(verdict(&id, b"a message", &mac.bytes), Verdict::Valid, "{algorithm}");
        assert_eq!(verdict(&id, b"a massage", &mac.bytes), Verdict::Invalid, "{algorithm}");
        assert_eq!(verdict(&next, b"a message", &mac.bytes), Verdict::Invalid, "{algorithm}");
        for place in 0..mac.bytes.len() {
            let mut changed = mac.bytes.clone();
            changed[place] ^= 1;
            assert_eq!(verdict(&id, b"a message", &changed), Verdict::Invalid, "{algorithm}");
            assert_eq!(verdict(&id, b"a message", &mac.bytes[..place]), Verdict::Invalid, "{algorithm}");
        }
        assert_eq!(verdict(&id, b"a message", &[&mac.bytes[..], &[0]].concat()), Verdict::Invalid);
    }
}

#[test]
fn a_signature_is_of_its_message_its_key_and_its_bytes() {
    for algorithm in of_use(KeyUsage::Signature) {
        let (keystore, id) = with_key(algorithm);
        // Once for each algorithm: some take a second.
        let signature = keystore.sign(id.key_id(), b"a message").unwrap();
        let length = signature.bytes.len();
        assert_eq!(length, algorithm.output_length(), "{algorithm}");
        let other = keystore.rotate(id.key_id()).unwrap();
        let verdict = |id: &KeyVersionId, message: &[u8], signature: &[u8]| {
            keystore.verify(id, message, signature).unwrap()
        };
        assert_eq!(verdict(&id, b"a message", &signature.bytes), Verdict::Valid, "{algorithm}");
        assert_eq!(verdict(&id, b"a massage", &signature.bytes), Verdict::Invalid, "{algorithm}");
        assert_eq!(verdict(&other, b"a message", &signature.bytes), Verdict::Invalid, "{algorithm}");
        for place in [0, 31, 63, length / 3, length / 2, length - 64, length - 33, length - 1] {
            let mut flipped = signature.bytes.clone();
            flipped[place] ^= 1;
            assert_eq!(verdict(&id, b"a message", &flipped), Verdict::Invalid, "{algorithm}, byte {place}");
        }
        for wrong in [&[][..], &signature.bytes[..length - 1], &[&signature.bytes[..], &[0]].concat()] {
            assert_eq!(verdict(&id, b"a message", wrong), Verdict::Invalid, "{algorithm}");
        }
    }
}

#[test]
fn a_signature_file_holds_a_signature_of_every_length() {
    for algorithm in of_use(KeyUsage::Signature).filter(quick) {
        let (keystore, id) = with_key(algorithm);
        let file = SignatureFile::sign(&keystore, id.key_id(), Statement::message(b"a message")).unwrap();
        let read = SignatureFile::parse(file.to_string().as_bytes()).unwrap();
        assert_eq!((&read, read.verify_in(&keystore).unwrap()), (&file, Verdict::Valid), "{algorithm}");
        // The public key of another algorithm does not pass for this key's.
        let text = file.to_string().replacen(&format!("/{algorithm}/"), "/ml-dsa-44/", 1);
        if algorithm.as_str() != "ml-dsa-44" {
            let error = SignatureFile::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.code, Code::MalformedSignature);
        }
    }
}

#[test]
#[cfg(feature = "mldsa")]
fn both_halves_of_a_composite_signature_must_verify() {
    let algorithm = Algorithm::MlDsa65Ed25519;
    let (keystore, id) = with_key(algorithm);
    let [one, two] = [0, 1].map(|turn| keystore.sign(id.key_id(), &[turn]).unwrap().bytes);
    let split = Algorithm::MlDsa65.output_length();
    let mixed = [&one[..split], &two[split..]].concat();
    for (message, signature, verdict) in [
        (0, &one, Verdict::Valid),
        (1, &two, Verdict::Valid),
        (0, &mixed, Verdict::Invalid),
        (1, &mixed, Verdict::Invalid),
    ] {
        assert_eq!(keystore.verify(&id, &[message], signature).unwrap(), verdict);
    }
}

#[test]
fn an_encapsulated_key_reaches_the_holder_of_its_version_and_nobody_else() {
    for algorithm in of_use(KeyUsage::KeyEncapsulation) {
        let (keystore, old) = with_key(algorithm);
        let sent = keystore.public_key(&old).unwrap().encapsulate().unwrap();
        let new = keystore.rotate(old.key_id()).unwrap();
        let received = keystore.decapsulate(&old, &sent.ciphertext).unwrap();
        assert_eq!(*received, *sent.shared_key, "{algorithm}");
        // Another key gets nothing, or a key that nobody else has (implicit rejection).
        let stray = keystore.decapsulate(&new, &sent.ciphertext);
        assert!(stray.map_or(true, |key| *key != *sent.shared_key), "{algorithm}");
        let mut flipped = sent.ciphertext.clone();
        flipped[7] ^= 1;
        let stray = keystore.decapsulate(&old, &flipped);
        assert!(stray.map_or(true, |key| *key != *sent.shared_key), "{algorithm}");
        for wrong in [&[][..], &sent.ciphertext[1..], &[&sent.ciphertext[..], &[0]].concat()] {
            assert_eq!(keystore.decapsulate(&old, wrong).unwrap_err().code, Code::InvalidCiphertext);
        }
        keystore.disable(old.key_id()).unwrap();
        assert_eq!(keystore.decapsulate(&old, &sent.ciphertext).unwrap_err().code, Code::KeyDisabled);
        keystore.enable(old.key_id()).unwrap();
        let destroy = KeyChange::DestroyVersion(1.try_into().unwrap());
        keystore.update(old.key_id(), None, &destroy).unwrap();
        assert_eq!(keystore.decapsulate(&old, &sent.ciphertext).unwrap_err().code, Code::KeyDestroyed);
    }
}

fn is_for_agreement(algorithm: &Algorithm) -> bool {
    algorithm.usage() == KeyUsage::KeyAgreement
}

#[test]
fn two_keys_agree_on_a_secret_that_depends_on_both_and_on_the_version() {
    let mut public_keys = Vec::new();
    for algorithm in of_use(KeyUsage::KeyAgreement) {
        let ((ours, our_key), (theirs, their_key)) = (with_key(algorithm), with_key(algorithm));
        let our_public = ours.public_key(&our_key).unwrap();
        let their_public = theirs.public_key(&their_key).unwrap();
        let secret = ours.derive_shared_secret(&our_key, &their_public).unwrap();
        assert_eq!(secret.len(), algorithm.output_length(), "{algorithm}");
        assert!(secret == theirs.derive_shared_secret(&their_key, &our_public).unwrap(), "{algorithm}");
        let next = ours.rotate(our_key.key_id()).unwrap();
        assert!(secret != ours.derive_shared_secret(&next, &their_public).unwrap(), "{algorithm}");
        assert!(secret == ours.derive_shared_secret(&our_key, &their_public).unwrap(), "{algorithm}");
        for other in &public_keys {
            let error = ours.derive_shared_secret(&our_key, other).unwrap_err();
            assert_eq!(error.code, Code::InvalidPublicKey, "{algorithm}");
        }
        public_keys.push(our_public);
        ours.disable(our_key.key_id()).unwrap();
        let error = ours.derive_shared_secret(&our_key, &their_public).unwrap_err();
        assert_eq!(error.code, Code::KeyDisabled, "{algorithm}");
        ours.enable(our_key.key_id()).unwrap();
        let destroy = KeyChange::DestroyVersion(1.try_into().unwrap());
        ours.update(our_key.key_id(), None, &destroy).unwrap();
        let error = ours.derive_shared_secret(&our_key, &their_public).unwrap_err();
        assert_eq!(error.code, Code::KeyDestroyed, "{algorithm}");
    }
}

#[test]
fn an_algorithm_does_not_do_what_it_is_not_for() {
    for algorithm in served() {
        let (keystore, id) = with_key(algorithm);
        let error = match algorithm.usage() {
            KeyUsage::Signature => {
                assert_eq!(
                    keystore.public_key(&id).unwrap().encapsulate().err().unwrap().code,
                    Code::KeyUsageMismatch
                );
                keystore.decapsulate(&id, &[]).unwrap_err()
            }
            KeyUsage::KeyEncapsulation | KeyUsage::KeyAgreement => {
                let verdict = keystore.verify(&id, b"a message", &[0; 64]).unwrap();
                assert_eq!(verdict, Verdict::Invalid);
                keystore.sign(id.key_id(), b"a message").unwrap_err()
            }
            KeyUsage::Encryption | KeyUsage::Authentication => keystore.decapsulate(&id, &[]).unwrap_err(),
            other => panic!("no test of {other:?}"),
        };
        assert_eq!(error.code, Code::KeyUsageMismatch, "{algorithm}");
        if let Some(public_key) = keystore.public_key(&id).ok().filter(|_| !is_for_agreement(&algorithm)) {
            let error = keystore.derive_shared_secret(&id, &public_key).unwrap_err();
            assert_eq!(error.code, Code::KeyUsageMismatch, "{algorithm}");
        }
        let options = EncryptionOptions::default();
        if !algorithm.has_usage(KeyUsage::Encryption) {
            for error in [
                keystore.encrypt(id.key_id(), b"", &options).unwrap_err(),
                keystore.decrypt(id.key_id(), b"", &options).unwrap_err(),
                keystore.rewrap(id.key_id(), b"", &options).unwrap_err(),
                keystore.generate_data_key(id.key_id(), DataKeyLength::Bits256, &options).unwrap_err(),
            ] {
                assert_eq!(error.code, Code::KeyUsageMismatch, "{algorithm}");
            }
        }
        if algorithm.usage() != KeyUsage::Authentication {
            assert_eq!(keystore.mac(id.key_id(), b"").unwrap_err().code, Code::KeyUsageMismatch);
            assert_eq!(keystore.verify_mac(&id, b"", &[]).unwrap_err().code, Code::KeyUsageMismatch);
        }
    }
}

#[test]
fn keys_are_there_when_the_store_is_opened_again() {
    // One of each kind: the small sets of SLH-DSA take seconds to sign.
    let quick = |algorithm: &Algorithm| {
        !algorithm.as_str().starts_with("slh-dsa") || algorithm.as_str().ends_with("128f")
    };
    let folder = tempfile::tempdir().unwrap();
    let (path, secret) = (folder.path().join("keys.redb"), folder.path().join("secret"));
    KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let made: Vec<_> = served()
        .filter(quick)
        .map(|algorithm| {
            let id = keystore.create_key(new_key(algorithm)).unwrap();
            let before = algorithm
                .has_usage(KeyUsage::Encryption)
                .then(|| keystore.encrypt(id.key_id(), b"a plaintext", &Default::default()).unwrap().bytes);
            keystore.rotate(id.key_id()).unwrap();
            let public_key = keystore.public_key(&id).ok();
            assert_eq!(public_key.is_none(), algorithm.is_symmetric());
            (id, public_key, before)
        })
        .collect();
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    for (id, public_key, before) in made {
        assert_eq!(keystore.public_key(&id).ok(), public_key);
        if let Some(before) = before {
            let found = keystore.decrypt(id.key_id(), &before, &Default::default()).unwrap();
            assert_eq!((&found.key, &**found.bytes), (&id, &b"a plaintext"[..]));
        }
        match id.key_id().algorithm().usage() {
            KeyUsage::Signature => {
                let signature = keystore.sign(id.key_id(), b"a message").unwrap();
                let verdict = keystore.verify(&signature.key, b"a message", &signature.bytes);
                assert_eq!((signature.key.version(), verdict.unwrap()), (2, Verdict::Valid));
            }
            KeyUsage::KeyEncapsulation => {
                let sent = public_key.unwrap().encapsulate().unwrap();
                assert_eq!(*keystore.decapsulate(&id, &sent.ciphertext).unwrap(), *sent.shared_key);
            }
            KeyUsage::KeyAgreement => {
                let own = public_key.unwrap();
                assert!(!keystore.derive_shared_secret(&id, &own).unwrap().is_empty());
            }
            KeyUsage::Encryption => {}
            KeyUsage::Authentication => {
                let mac = keystore.mac(id.key_id(), b"a message").unwrap();
                let verdict = keystore.verify_mac(&mac.key, b"a message", &mac.bytes).unwrap();
                assert_eq!((mac.key.version(), verdict), (2, Verdict::Valid));
            }
            other => panic!("no test of {other:?}"),
        }
    }
}
