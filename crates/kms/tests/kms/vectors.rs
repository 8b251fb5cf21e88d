//! The vectors of `spec/vectors`, which other languages read too: written by programs that share no
//! code with this crate, or by the crates that it is built on and checked by others.
#![cfg(all(
    feature = "mldsa",
    feature = "mlkem",
    feature = "nist",
    feature = "p256",
    feature = "slhdsa",
    feature = "tokens",
    feature = "transfer"
))]

use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr as _;

use bulla_kms::prehash::{HashFunction, Prehash, PssSaltLength, RsaPadding};
use bulla_kms::token::{Revocations, Token, TokenOperation, TokenRequest};
use bulla_kms::transfer::{
    PrivateFormat, PrivateKeyData, PublicFormat, WrappedPrivateKey, export_public, import_public,
};
use bulla_kms::{
    Algorithm, CiphertextParts, EncryptionOptions, KeyDerivation, KeyId, KeyVersionId, Keystore, NewKey,
    PublicKey, Verdict,
};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn cases(value: &Value) -> &[Value] {
    let cases = value.as_array().unwrap();
    assert!(!cases.is_empty());
    cases
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("{name} in {case}"))
}

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let hex = text(case, name);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn algorithm(case: &Value) -> Algorithm {
    text(case, "algorithm").parse().unwrap()
}

fn private(algorithm: Algorithm, material: &[u8]) -> PrivateKeyData {
    PrivateKeyData::read(material, PrivateFormat::Raw, Some(algorithm), None).unwrap()
}

/// A keystore with the key in it.
fn keystore(key: &PrivateKeyData) -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), key.algorithm());
    let id = keystore.import_key(new, key).unwrap();
    (keystore, id)
}

#[test]
fn key_ids_are_read_as_they_are_written_and_no_others() {
    let ids = &vectors("keys.json")["key_ids"];
    for case in cases(&ids["valid"]) {
        let id: KeyVersionId = text(case, "id").parse().unwrap();
        assert_eq!(id.to_string(), text(case, "id"));
        assert_eq!(id.key_id().tenant().as_str(), text(case, "tenant"));
        assert_eq!(id.key_id().purpose().as_str(), text(case, "purpose"));
        assert_eq!(id.key_id().algorithm(), algorithm(case));
        assert_eq!(id.key_id().uuid().to_string(), text(case, "uuid"));
        assert_eq!(u64::from(id.version()), case["version"]);
    }
    for id in cases(&ids["invalid"]) {
        assert!(id.as_str().unwrap().parse::<KeyVersionId>().is_err(), "{id}");
    }
}

#[test]
fn public_keys_have_the_forms_of_the_vectors() {
    for case in cases(&vectors("keys.json")["public_keys"]) {
        let key = PublicKey::from_bytes(algorithm(case), &bytes(case, "raw")).unwrap();
        let mut checked = 0;
        for (name, format) in [
            ("pem", PublicFormat::Pem),
            ("openssh", PublicFormat::OpenSsh),
            ("jwk", PublicFormat::Jwk),
            ("minisign", PublicFormat::Minisign),
        ] {
            let Some(expected) = case[name].as_str() else { continue };
            assert_eq!(String::from_utf8(export_public(&key, format).unwrap()).unwrap(), expected);
            assert_eq!(import_public(expected.as_bytes(), format, None).unwrap(), key);
            checked += 1;
        }
        assert!(checked >= 1);
        assert_eq!(export_public(&key, PublicFormat::Der).unwrap(), bytes(case, "der"));
    }
}

#[test]
fn signatures_of_digests_are_those_of_the_vectors() {
    for case in cases(&vectors("keys.json")["prehash"]) {
        let key = private(Algorithm::Ed25519, &bytes(case, "seed"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        let prehash: Prehash = text(case, "prehash").parse().unwrap();
        let message = prehash.of(&bytes(case, "message"), &bytes(case, "context")).unwrap();
        let (keystore, id) = keystore(&key);
        assert_eq!(keystore.sign_prehashed(&id, &message).unwrap().bytes, bytes(case, "signature"));
        assert_eq!(
            key.public_key().unwrap().verify_prehashed(&message, &bytes(case, "signature")),
            Verdict::Valid
        );
    }
}

#[test]
fn signatures_of_ecdsa_verify() {
    for case in cases(&vectors("keys.json")["ecdsa"]) {
        let key = private(Algorithm::EcdsaP256, &bytes(case, "private_key"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        let (keystore, id) = keystore(&key);
        let (message, signature) = (bytes(case, "message"), bytes(case, "signature"));
        assert_eq!(key.public_key().unwrap().verify(&message, &signature), Verdict::Valid);
        assert_eq!(key.public_key().unwrap().verify(b"another message", &signature), Verdict::Invalid);
        // Whether ours are the same depends on who signs: aws-lc-rs takes random nonces.
        let ours = keystore.sign(&id, &message).unwrap().bytes;
        assert_eq!(key.public_key().unwrap().verify(&message, &ours), Verdict::Valid);
    }
}

/// The hash function and the padding of a signature.
fn scheme(case: &Value) -> (HashFunction, RsaPadding) {
    let hash = match text(case, "hash") {
        "sha2-256" => HashFunction::Sha256,
        "sha2-384" => HashFunction::Sha384,
        _ => HashFunction::Sha512,
    };
    match case["padding"].as_str() {
        Some("pkcs1v15") => (hash, RsaPadding::Pkcs1v15),
        Some("pss") => {
            let salt = case["salt_length"].as_u64().unwrap().try_into().unwrap();
            (hash, RsaPadding::Pss(PssSaltLength::Bytes(salt)))
        }
        _ => (hash, RsaPadding::default()),
    }
}

#[test]
fn keys_of_rsa_and_of_larger_curves_verify_and_decrypt_the_vectors() {
    let vectors = vectors("nist.json");
    let key_of = |algorithm: Algorithm| {
        let keys = cases(&vectors["rsa_keys"]);
        let case = keys.iter().find(|case| text(case, "algorithm") == algorithm.as_str()).unwrap();
        let key = private(algorithm, &bytes(case, "private_key"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        key
    };
    let rsa = cases(&vectors["rsa_signatures"]).iter().map(|case| (case, key_of(algorithm(case))));
    let curves = cases(&vectors["ecdsa"]).iter().map(|case| {
        let key = private(algorithm(case), &bytes(case, "private_key"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        (case, key)
    });
    for (case, key) in rsa.chain(curves) {
        let (hash, padding) = scheme(case);
        let verdict = |message: &[u8]| {
            let digest = hash.of(message).rsa_padding(padding);
            key.public_key().unwrap().verify_prehashed(&digest, &bytes(case, "signature"))
        };
        assert_eq!(verdict(&bytes(case, "message")), Verdict::Valid, "{case}");
        assert_eq!(verdict(b"another message"), Verdict::Invalid, "{case}");
    }
    for case in cases(&vectors["rsa_oaep"]) {
        let (keystore, id) = keystore(&key_of(algorithm(case)));
        let body = bytes(case, "ciphertext");
        let ciphertext = CiphertextParts::new(algorithm(case), NonZeroU32::MIN, &body).unwrap().to_bytes();
        let label = bytes(case, "label");
        let options = EncryptionOptions::default().associated_data(&label);
        let found = keystore.decrypt(id.key_id(), &ciphertext, &options).unwrap();
        assert_eq!(**found.bytes, *bytes(case, "plaintext"));
        let other = EncryptionOptions::default().associated_data(b"another label");
        assert!(keystore.decrypt(id.key_id(), &ciphertext, &other).is_err());
    }
}

#[test]
fn signatures_after_quantum_computers_verify() {
    let vectors = vectors("post-quantum.json");
    for case in ["ml_dsa", "composite", "slh_dsa"].iter().flat_map(|group| cases(&vectors[group])) {
        let key = private(algorithm(case), &bytes(case, "private_key"));
        let (message, signature) = (bytes(case, "message"), bytes(case, "signature"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        assert_eq!(key.public_key().unwrap().verify(&message, &signature), Verdict::Valid);
        assert_eq!(key.public_key().unwrap().verify(b"another message", &signature), Verdict::Invalid);
        for index in (0..signature.len()).step_by(997) {
            let mut changed = signature.clone();
            changed[index] ^= 1;
            assert_eq!(
                key.public_key().unwrap().verify(&message, &changed),
                Verdict::Invalid,
                "byte {index}"
            );
        }
    }
}

#[test]
fn encapsulated_keys_are_those_of_the_vectors() {
    for case in cases(&vectors("post-quantum.json")["kem"]) {
        let key = private(algorithm(case), &bytes(case, "private_key"));
        assert_eq!(key.public_key().unwrap().as_bytes(), bytes(case, "public_key"));
        let (keystore, id) = keystore(&key);
        assert_eq!(
            keystore.decapsulate(&id, &bytes(case, "ciphertext")).unwrap().as_slice(),
            bytes(case, "shared_key")
        );
    }
}

#[test]
fn ciphertexts_decrypt_to_what_the_vectors_say() {
    for case in cases(&vectors("symmetric.json")["ciphertexts"]) {
        let key = private(algorithm(case), &bytes(case, "key"));
        let derivation = serde_json::from_value(case["derivation"].clone()).unwrap();
        let keystore = Keystore::in_memory().unwrap();
        let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), key.algorithm());
        let id = keystore.import_key(new.derivation(derivation), &key).unwrap();
        let (context, data) = (bytes(case, "context"), bytes(case, "associated_data"));
        let options = EncryptionOptions::default().context(&context).associated_data(&data);
        let (plaintext, ciphertext) = (bytes(case, "plaintext"), bytes(case, "ciphertext"));
        let parts = CiphertextParts::parse(key.algorithm(), &ciphertext).unwrap();
        assert_eq!(u64::from(parts.key_version.get()), case["key_version"].as_u64().unwrap());
        // The keystore has only version 1.
        let here = CiphertextParts::new(key.algorithm(), NonZeroU32::MIN, parts.nonce_and_ciphertext());
        let here = here.unwrap().to_bytes();
        let found = keystore.decrypt(id.key_id(), &here, &options).unwrap();
        assert_eq!(**found.bytes, *plaintext, "{case}");
        if derivation == KeyDerivation::Convergent {
            assert_eq!(keystore.encrypt(id.key_id(), &plaintext, &options).unwrap().bytes, here, "{case}");
        }
    }
}

#[test]
fn macs_are_those_of_the_vectors() {
    for case in cases(&vectors("symmetric.json")["macs"]) {
        let (keystore, id) = keystore(&private(algorithm(case), &bytes(case, "key")));
        let (message, mac) = (bytes(case, "message"), bytes(case, "mac"));
        assert_eq!(keystore.mac(id.key_id(), &message).unwrap().bytes, mac);
        assert_eq!(keystore.verify_mac(&id, &message, &mac).unwrap(), Verdict::Valid);
    }
}

#[test]
fn a_wrapped_key_of_the_vectors_opens() {
    let case = &vectors("sealing.json")["wrapped_key"];
    let recipient = private(Algorithm::XWing, &bytes(case, "recipient_private_key"));
    let (keystore, id) = keystore(&recipient);
    let wrapped: WrappedPrivateKey = text(case, "text").parse().unwrap();
    let key = keystore.unwrap_key(&id, &wrapped).unwrap();
    assert_eq!(key.public_key(), private(Algorithm::Ed25519, &bytes(case, "private_key")).public_key());
    let same = PrivateKeyData::read(&bytes(case, "pkcs8"), PrivateFormat::Pkcs8Der, None, None).unwrap();
    assert_eq!(key.public_key().unwrap(), same.public_key().unwrap());
}

#[test]
fn tokens_of_the_vectors_permit_what_they_say() {
    let vectors = vectors("tokens.json");
    let root = PublicKey::from_bytes(Algorithm::Ed25519, &bytes(&vectors["root"], "public_key")).unwrap();
    let version = vectors["root"]["version"].as_u64().unwrap();
    for case in cases(&vectors["requests"]) {
        let found = cases(&vectors["tokens"]).iter().find(|token| token["name"] == case["token"]).unwrap();
        let Ok(token) = Token::from_str(text(found, "token")) else {
            assert_eq!((case["permitted"].as_bool(), text(found, "name")), (Some(false), "forged"));
            continue;
        };
        let source = token.inspect().unwrap().blocks[0].source.clone();
        let holder = source.split_once("holder(\"").and_then(|(_, rest)| Some(rest.split_once('"')?.0));
        assert_eq!(serde_json::json!(holder), found["holder"]);
        let ids: Vec<_> =
            token.inspect().unwrap().blocks.into_iter().map(|block| block.revocation_id).collect();
        assert_eq!(serde_json::json!(ids), found["revocation_ids"]);
        let (now, tenant) = (text(case, "now").parse().unwrap(), text(case, "tenant").parse().unwrap());
        let operation: TokenOperation = text(case, "operation").parse().unwrap();
        let key: Option<KeyId> = case["key"].as_str().map(|key| key.parse().unwrap());
        let request = match &key {
            Some(key) => TokenRequest::on_key(operation, key, now),
            None => TokenRequest::in_tenant(operation, &tenant, now),
        };
        let ours = |named: u32| (u64::from(named) == version).then(|| root.clone());
        let permitted = token.authorize(ours, &request, &Revocations::default());
        assert_eq!(permitted.is_ok(), case["permitted"], "{case}");
    }
}
