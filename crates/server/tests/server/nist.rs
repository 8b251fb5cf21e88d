//! Keys of RSA, and of ECDSA on P-384 and P-521.

use bulla_kms::prehash::{HashFunction, RsaPadding};
use bulla_kms::{Algorithm, PublicKey};
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::support::{Service, base64, from_base64};

const MESSAGE: &[u8] = b"a message";

/// A key with its algorithm's name as its label, and its public key.
fn key(service: &Service, algorithm: &str, signs_digests: bool) -> PublicKey {
    let body = json!({ "label": algorithm, "algorithm": algorithm, "signs_digests": signs_digests });
    let key = service.post(None, "/api/v1/keys", &body).ok();
    let bytes = from_base64(&key["versions"][0]["public_key"]);
    PublicKey::from_bytes(algorithm.parse().unwrap(), &bytes).unwrap()
}

fn post(service: &Service, path: &str, body: &Value) -> Value {
    service.post(None, &format!("/api/v1/keys/{path}"), body).ok()
}

#[test]
fn a_request_names_the_hash_function_and_the_padding() {
    let service = Service::open();
    for algorithm in ["rsa-2048", "ecdsa-p384", "ecdsa-p521", "ecdsa-p256"] {
        let public_key = key(&service, algorithm, false);
        let is_rsa = public_key.algorithm().is_rsa();
        let mut schemes = vec![json!({}), json!({ "hash": "sha512" }), json!({ "hash": "sha256" })];
        if is_rsa {
            schemes.push(json!({ "padding": "pkcs1v15" }));
            schemes.push(json!({ "hash": "sha384", "padding": "pss" }));
        }
        for scheme in schemes {
            let mut body = scheme.clone();
            body["message"] = json!(base64(MESSAGE));
            let signed = post(&service, &format!("{algorithm}/sign"), &body);
            let signature = from_base64(&signed["signature"]);
            let named: Option<HashFunction> = scheme["hash"].as_str().map(|hash| hash.parse().unwrap());
            let hash = named.unwrap_or(match public_key.algorithm() {
                Algorithm::EcdsaP384 => HashFunction::Sha384,
                Algorithm::EcdsaP521 => HashFunction::Sha512,
                _ => HashFunction::Sha256,
            });
            let padding =
                if scheme["padding"] == "pkcs1v15" { RsaPadding::Pkcs1v15 } else { RsaPadding::default() };
            let digest = hash.of(MESSAGE).rsa_padding(padding);
            assert!(public_key.verify_prehashed(&digest, &signature).is_valid(), "{algorithm} {scheme}");
            body["signature"] = signed["signature"].clone();
            let verified = post(&service, &format!("{algorithm}/verify"), &body);
            assert_eq!(verified["valid"], true, "{algorithm} {scheme}");
            body["message"] = json!(base64(b"another"));
            assert_eq!(post(&service, &format!("{algorithm}/verify"), &body)["valid"], false);
        }
    }
    let wrong = |path: &str, body: &Value| service.post(None, &format!("/api/v1/keys/{path}"), body).error();
    key(&service, "ed25519", false);
    let body = json!({ "message": base64(MESSAGE), "hash": "sha512" });
    assert_eq!(wrong("ed25519/sign", &body), (400, "key_usage_mismatch".to_owned()));
    let mut verify = body;
    verify["signature"] = json!(base64(&[0; 64]));
    assert_eq!(wrong("ed25519/verify", &verify), (400, "key_usage_mismatch".to_owned()));
    let unknown = json!({ "message": base64(MESSAGE), "padding": "none" });
    assert_eq!(wrong("rsa-2048/sign", &unknown), (400, "malformed_request".to_owned()));
}

#[test]
fn a_key_that_was_made_for_it_signs_digests_of_sha2() {
    let service = Service::open();
    for algorithm in ["rsa-3072", "ecdsa-p384", "ecdsa-p521", "ecdsa-p256"] {
        let public_key = key(&service, algorithm, true);
        let digests = [
            ("sha256", sha2::Sha256::digest(MESSAGE).to_vec()),
            ("sha384", sha2::Sha384::digest(MESSAGE).to_vec()),
            ("sha512", sha2::Sha512::digest(MESSAGE).to_vec()),
        ];
        for (hash, digest) in digests {
            for (padding, known) in [("pss", RsaPadding::default()), ("pkcs1v15", RsaPadding::Pkcs1v15)] {
                let mut body = json!({ "prehash": hash, "digest": base64(&digest), "padding": padding });
                let signed = post(&service, &format!("{algorithm}/sign-digest"), &body);
                let message = hash.parse::<HashFunction>().unwrap().of(MESSAGE).rsa_padding(known);
                let signature = from_base64(&signed["signature"]);
                assert!(public_key.verify_prehashed(&message, &signature).is_valid(), "{algorithm} {hash}");
                body["signature"] = signed["signature"].clone();
                let verified = post(&service, &format!("{algorithm}/verify-digest"), &body);
                assert_eq!(verified["valid"], true);
            }
            let short = json!({ "prehash": hash, "digest": base64(&digest[1..]) });
            let refused = service.post(None, &format!("/api/v1/keys/{algorithm}/sign-digest"), &short);
            assert_eq!(refused.error(), (400, "malformed_request".to_owned()));
        }
    }
}

#[test]
fn a_key_of_rsa_encrypts_wraps_data_keys_and_decrypts_after_a_rotation() {
    let service = Service::open();
    let public_key = key(&service, "rsa-2048", false);
    let data = json!(base64(b"row 7"));
    let body = json!({ "plaintext": base64(b"a secret"), "associated_data": data });
    let sent = post(&service, "rsa-2048/encrypt", &body);
    let outside = public_key.encrypt(b"a secret", b"row 7").unwrap();
    let outside = [&[1, 0, 0, 0, 1][..], &outside].concat();
    post(&service, "rsa-2048/rotate", &json!({}));
    for ciphertext in [sent["ciphertext"].clone(), json!(base64(&outside))] {
        let body = json!({ "ciphertext": ciphertext, "associated_data": data });
        let found = post(&service, "rsa-2048/decrypt", &body);
        assert_eq!(from_base64(&found["plaintext"]), b"a secret");
    }
    let long = json!({ "plaintext": base64(&[7; 191]) });
    let refused = service.post(None, "/api/v1/keys/rsa-2048/encrypt", &long);
    assert_eq!(refused.error(), (400, "invalid_argument".to_owned()));
    let wrong = json!({ "ciphertext": base64(&outside) });
    let refused = service.post(None, "/api/v1/keys/rsa-2048/decrypt", &wrong);
    assert_eq!(refused.error(), (400, "invalid_ciphertext".to_owned()));
}
