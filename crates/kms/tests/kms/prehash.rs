//! Signatures of digests, and that none of them passes for a signature of something else.

use bulla_ed25519::prehash::Prehash as Reference;
use bulla_ed25519::{Verdict as ReferenceVerdict, VerifyItem};
use bulla_kms::prehash::{Digest, Prehash, Prehashed};
use bulla_kms::signature::RESERVED_PREFIXES;
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyVersionId, Keystore, NewKey, SignatureFile, Statement, Verdict,
};

const PREHASHES: [Prehash; 2] = [Prehash::Blake3, Prehash::Ed25519ph];

fn keystore() -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let id = keystore.create_key(new).unwrap();
    (keystore, id)
}

#[test]
fn a_prehashed_signature_is_the_one_of_bulla_ed25519() {
    let (keystore, id) = keystore();
    let key = keystore.public_key(&id).unwrap();
    let public_key = key.as_bytes().try_into().unwrap();
    for context in [&b""[..], b"a use", &[7; 255]] {
        for (prehash, reference) in [
            (Prehash::Blake3, Reference::Blake3 { context }),
            (Prehash::Ed25519ph, Reference::Ed25519ph { context }),
        ] {
            let digest = prehash.of(b"a message", context).unwrap();
            let signature = keystore.sign_prehashed(&id, &digest).unwrap();
            assert_eq!(signature.key, id);
            assert_eq!(key.verify_prehashed(&digest, &signature.bytes), Verdict::Valid);
            let signature = signature.bytes.as_slice().try_into().unwrap();
            let item = VerifyItem { public_key, message: b"a message", signature };
            assert_eq!(reference.verify_many(&[item]).unwrap(), [ReferenceVerdict::Valid], "{prehash}");
        }
    }
}

#[test]
fn a_signature_is_of_one_kind_one_message_and_one_context() {
    let (keystore, id) = keystore();
    let key = keystore.public_key(&id).unwrap();
    let forms: Vec<_> = PREHASHES
        .into_iter()
        .flat_map(|prehash| {
            [(prehash, "m", "c"), (prehash, "m", "d"), (prehash, "m", ""), (prehash, "n", "c")]
        })
        .map(|(prehash, message, context)| prehash.of(message.as_bytes(), context.as_bytes()).unwrap())
        .collect();
    for (place, form) in forms.iter().enumerate() {
        let signature = keystore.sign_prehashed(&id, form).unwrap().bytes;
        for (other, form) in forms.iter().enumerate() {
            assert_eq!(key.verify_prehashed(form, &signature).is_valid(), other == place, "{place}, {other}");
        }
        assert_eq!(key.verify(b"m", &signature), Verdict::Invalid);
    }
    let plain = keystore.sign(&id, b"m").unwrap().bytes;
    assert!(forms.iter().all(|form| !key.verify_prehashed(form, &plain).is_valid()));
}

#[test]
fn a_keystore_verifies_digests_under_versions_that_may_be_used() {
    let (keystore, id) = keystore();
    for prehash in PREHASHES {
        let (right, wrong) = (prehash.of(b"m", b"c").unwrap(), prehash.of(b"n", b"c").unwrap());
        let signature = keystore.sign_prehashed(&id, &right).unwrap().bytes;
        assert_eq!(keystore.verify_prehashed(&id, &right, &signature).unwrap(), Verdict::Valid);
        assert_eq!(keystore.verify_prehashed(&id, &wrong, &signature).unwrap(), Verdict::Invalid);
    }
    let digest = Prehash::Blake3.of(b"m", b"").unwrap();
    let signature = keystore.sign_prehashed(&id, &digest).unwrap().bytes;
    keystore.rotate(id.key_id()).unwrap();
    assert_eq!(keystore.verify_prehashed(&id, &digest, &signature).unwrap(), Verdict::Valid);
    keystore.update(id.key_id(), None, &KeyChange::Revoke(1.try_into().unwrap())).unwrap();
    let error = keystore.verify_prehashed(&id, &digest, &signature).unwrap_err();
    assert_eq!(error.code, Code::VersionNotUsable);
}

#[test]
fn no_message_can_be_chosen_that_is_a_digest_or_a_signature_file() {
    let (keystore, id) = keystore();
    for prefix in RESERVED_PREFIXES {
        assert_eq!(keystore.sign(&id, &[prefix, b"more"].concat()).unwrap_err().code, Code::ReservedMessage);
    }
    assert!(RESERVED_PREFIXES.contains(&&b"bulla ed25519 blake3\0"[..]));
    for context in [&b"bulla "[..], b"bulla signature file", &[b'a'; 256]] {
        let error = Prehash::Blake3.of(b"m", context).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(Prehashed::new(Digest::Sha512([0; 64]), context).is_err());
    }
}

#[cfg(feature = "mldsa")]
#[test]
fn keys_of_other_algorithms_sign_no_digests() {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::MlDsa44);
    let id = keystore.create_key(new).unwrap();
    for prehash in PREHASHES {
        let error = keystore.sign_prehashed(&id, &prehash.of(b"m", b"").unwrap()).unwrap_err();
        assert_eq!(error.code, Code::KeyUsageMismatch);
        let error = keystore.verify_prehashed(&id, &prehash.of(b"m", b"").unwrap(), b"").unwrap_err();
        assert_eq!(error.code, Code::KeyUsageMismatch);
        let error =
            SignatureFile::sign_with(&keystore, &id, Statement::message(b"m"), Some(prehash)).unwrap_err();
        assert_eq!(error.code, Code::KeyUsageMismatch);
    }
}

#[test]
fn a_signature_file_says_how_it_was_hashed_and_verifies_so_alone() {
    let (keystore, id) = keystore();
    for prehash in [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)] {
        let file = SignatureFile::sign_with(&keystore, &id, Statement::message(b"m"), prehash).unwrap();
        let text = file.to_string();
        assert_eq!(SignatureFile::parse(text.as_bytes()).unwrap(), file);
        assert_eq!(file.verify_in(&keystore).unwrap(), Verdict::Valid);
        let first = if prehash.is_none() { "bulla signature v1\n" } else { "bulla signature v2\n" };
        assert!(text.starts_with(first));
        assert_eq!(text.contains("\nprehash: "), prehash.is_some());
        for other in [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)] {
            let changed = SignatureFile { prehash: other, ..file.clone() };
            assert_eq!(changed.verify_in(&keystore).unwrap().is_valid(), other == prehash);
        }
    }
}

#[test]
fn the_second_format_has_its_line_and_the_first_has_none() {
    let (keystore, id) = keystore();
    let sign = |prehash| SignatureFile::sign_with(&keystore, &id, Statement::message(b"m"), prehash).unwrap();
    let refused = |text: String| {
        assert_eq!(
            SignatureFile::parse(text.as_bytes()).unwrap_err().code,
            Code::MalformedSignature,
            "{text}"
        );
    };
    let (first, second) = (sign(None).to_string(), sign(Some(Prehash::Blake3)).to_string());
    refused(first.replace("signature v1", "signature v2"));
    refused(second.replace("signature v2", "signature v1"));
    refused(second.replace("prehash: blake3", "prehash: sha256"));
    refused(second.replace("prehash: blake3\n", ""));
    refused(second.replace("prehash: blake3\n", "prehash: blake3\nprehash: blake3\n"));
}
