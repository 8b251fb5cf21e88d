//! Keys that sign certificates: no function of the keystore is a way around their policy.

use std::num::NonZeroU64;

use bulla_kms::prehash::{HashFunction, Prehash, RsaPadding};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyMessage, KeyVersionId, Keystore, NewKey, SshAuthority, SshCertificateKind,
    X509Authority, X509CertificateKind, X509Usage,
};

fn key(keystore: &Keystore, algorithm: Algorithm) -> KeyVersionId {
    keystore.create_key(NewKey::new("local".parse().unwrap(), "ca".parse().unwrap(), algorithm)).unwrap()
}

fn policies() -> [KeyChange; 2] {
    let mut x509 = X509Authority::new(vec![X509CertificateKind::Leaf], NonZeroU64::MAX);
    x509.dns_names = vec!["*".to_owned()];
    x509.usages = X509Usage::ALL.to_vec();
    let mut ssh = SshAuthority::new(vec![SshCertificateKind::User], NonZeroU64::MAX);
    ssh.principals = vec!["*".to_owned()];
    [KeyChange::X509Authority(Some(x509)), KeyChange::SshAuthority(Some(ssh))]
}

#[test]
fn an_authority_signs_no_other_message_and_no_digest() {
    for policy in policies() {
        let keystore = Keystore::in_memory().unwrap();
        let id = key(&keystore, Algorithm::Ed25519);
        keystore.update(id.key_id(), None, &policy).unwrap();
        let digest = |prehash: Prehash| prehash.of(b"a message", b"").unwrap();
        let batch = keystore.sign_batch(&[KeyMessage { key: id.key_id().into(), message: b"a message" }]);
        let tried = [
            keystore.sign(&id, b"a message"),
            keystore.sign(&id, b""),
            keystore.sign_prehashed(&id, &digest(Prehash::Ed25519ph)),
            keystore.sign_prehashed(&id, &digest(Prehash::Blake3)),
            batch.into_iter().next().unwrap(),
        ];
        for (place, signed) in tried.into_iter().enumerate() {
            assert_eq!(signed.unwrap_err().code, Code::KeyUsageMismatch, "{place}");
        }
        keystore.attest_signed(id.key_id()).unwrap();
        // A new version has the policy, too.
        let next = keystore.rotate(id.key_id()).unwrap();
        assert_eq!(keystore.sign(&next, b"a message").unwrap_err().code, Code::KeyUsageMismatch);
    }
}

#[test]
fn an_authority_contributes_to_no_other_message() {
    for policy in policies() {
        let keystore = Keystore::in_memory().unwrap();
        let id = key(&keystore, Algorithm::Ed25519);
        let contribute = |message: &[u8]| {
            for key in [(&id).into(), id.key_id().into()] {
                let item = KeyMessage { key, message };
                keystore.contribute_batch(&[item], |_, _| Ok(())).remove(0)?;
            }
            Ok::<_, bulla_kms::KmsError>(())
        };
        contribute(b"a message").unwrap();
        keystore.update(id.key_id(), None, &policy).unwrap();
        assert_eq!(contribute(b"a message").unwrap_err().code, Code::KeyUsageMismatch);
        // The statements of the keystore pass for no certificate.
        contribute(&keystore.attest(id.key_id()).unwrap().signed_bytes()).unwrap();
    }
}

#[test]
fn a_hash_function_that_a_caller_chooses_is_no_way_around() {
    let keystore = Keystore::in_memory().unwrap();
    let id = key(&keystore, Algorithm::EcdsaP256);
    for policy in policies() {
        keystore.update(id.key_id(), None, &policy).unwrap();
        let signed = keystore.sign_hashed(&id, b"a message", HashFunction::Sha512, RsaPadding::default());
        assert_eq!(signed.unwrap_err().code, Code::KeyUsageMismatch);
        let removed = match policy {
            KeyChange::X509Authority(_) => KeyChange::X509Authority(None),
            _ => KeyChange::SshAuthority(None),
        };
        keystore.update(id.key_id(), None, &removed).unwrap();
        keystore.sign(&id, b"a message").unwrap();
    }
}

#[test]
fn a_key_is_an_authority_of_one_kind_and_never_one_that_signs_digests() {
    let keystore = Keystore::in_memory().unwrap();
    let id = key(&keystore, Algorithm::Ed25519);
    let [x509, ssh] = policies();
    for (first, second) in [(&x509, &ssh), (&ssh, &x509)] {
        let id = key(&keystore, Algorithm::Ed25519);
        keystore.update(id.key_id(), None, first).unwrap();
        let refused = keystore.update(id.key_id(), None, second).unwrap_err();
        assert_eq!(refused.code, Code::KeyUsageMismatch);
    }
    let digests = NewKey::new("local".parse().unwrap(), "ca".parse().unwrap(), Algorithm::EcdsaP256);
    let digests = keystore.create_key(digests.signs_digests(true)).unwrap();
    for policy in [&x509, &ssh] {
        assert!(keystore.update(digests.key_id(), None, policy).is_err());
    }
    // A policy that permits nothing.
    let empty = X509Authority::new(Vec::new(), NonZeroU64::MIN);
    let refused = keystore.update(id.key_id(), None, &KeyChange::X509Authority(Some(empty))).unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
}
