//! Signatures of digests.

use bulla_kms::prehash::Prehash;
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, NewKey, PublicKey};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

/// The digest of a message, as a client computes it.
fn digest(prehash: &str, message: &[u8]) -> String {
    match prehash {
        "blake3" => base64(bulla_blake3::hash(message).as_bytes()),
        _ => base64(&openssl_sha512(message)),
    }
}

fn openssl_sha512(message: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("message");
    std::fs::write(&path, message).unwrap();
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["dgst", "-sha512", "-binary"]).arg(path).output().unwrap().stdout
}

fn sign(service: &Service, body: &Value) -> Value {
    service.post(None, "/api/v1/keys/a/sign-digest", body).ok()
}

/// A key, and its public key.
fn service() -> (Service, PublicKey) {
    let service = Service::open();
    let key = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let bytes = from_base64(&key["versions"][0]["public_key"]);
    (service, PublicKey::from_bytes(Algorithm::Ed25519, &bytes).unwrap())
}

#[test]
fn a_digest_is_signed_as_the_keystore_signs_the_message() {
    let (service, key) = service();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let inputs = (any::<Vec<u8>>(), prop::collection::vec(any::<u8>(), 0..255), any::<bool>());
    let run = runner.run(&inputs, |(message, context, is_blake3)| {
        let (text, prehash) =
            if is_blake3 { ("blake3", Prehash::Blake3) } else { ("ed25519ph", Prehash::Ed25519ph) };
        let mut body =
            json!({ "prehash": text, "digest": digest(text, &message), "context": base64(&context) });
        let signed = sign(&service, &body);
        let expected = prehash.of(&message, &context).unwrap();
        let signature = from_base64(&signed["signature"]);
        prop_assert!(key.verify_prehashed(&expected, &signature).is_valid());
        body["signature"] = signed["signature"].clone();
        let verify =
            |body: &Value| service.post(None, "/api/v1/keys/a/verify-digest", body).ok()["valid"].clone();
        prop_assert_eq!(verify(&body), true);
        body["context"] = json!(base64(&[&context[..], b"!"].concat()));
        prop_assert_eq!(verify(&body), false);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn an_older_version_verifies_when_it_is_named() {
    let (service, _) = service();
    let mut body = json!({ "prehash": "blake3", "digest": digest("blake3", b"m") });
    let signed = sign(&service, &body);
    service.post(None, "/api/v1/keys/a/rotate", &json!({})).ok();
    body["signature"] = signed["signature"].clone();
    let verify = |body: &Value| service.post(None, "/api/v1/keys/a/verify-digest", body);
    assert_eq!(verify(&body).ok()["valid"], false);
    body["version"] = json!(1);
    assert_eq!(verify(&body).ok()["valid"], true);
    service.post(None, "/api/v1/keys/a/versions/1/revoke", &json!({})).ok();
    assert_eq!(verify(&body).error(), (409, "version_not_usable".to_owned()));
}

#[test]
fn other_digests_contexts_and_keys_are_refused() {
    let (service, _) = service();
    service.post(None, "/api/v1/keys", &json!({ "label": "p", "algorithm": "ecdsa-p256" })).ok();
    let refused = |key: &str, body: &Value| {
        let mut verify = body.clone();
        verify["signature"] = json!(base64(&[0; 64]));
        let signed = service.post(None, &format!("/api/v1/keys/{key}/sign-digest"), body).error();
        let verified = service.post(None, &format!("/api/v1/keys/{key}/verify-digest"), &verify).error();
        assert_eq!(signed, verified);
        signed
    };
    let (short, long) = (base64(&[7; 32]), base64(&[7; 64]));
    let malformed = (400, "malformed_request".to_owned());
    assert_eq!(refused("a", &json!({ "prehash": "blake3", "digest": long })), malformed);
    assert_eq!(refused("a", &json!({ "prehash": "ed25519ph", "digest": short })), malformed);
    assert_eq!(refused("a", &json!({ "prehash": "sha256", "digest": short })), malformed);
    assert_eq!(refused("a", &json!({ "prehash": "blake3", "digest": "?" })), malformed);
    let reserved =
        json!({ "prehash": "blake3", "digest": short, "context": base64(b"bulla signature file") });
    assert_eq!(refused("a", &reserved), (400, "invalid_argument".to_owned()));
    let too_long = json!({ "prehash": "blake3", "digest": short, "context": base64(&[7; 256]) });
    assert_eq!(refused("a", &too_long), (400, "invalid_argument".to_owned()));
    let other = refused("p", &json!({ "prehash": "blake3", "digest": short }));
    assert_eq!(other, (400, "key_usage_mismatch".to_owned()));
}

#[test]
fn digests_need_the_same_rights_as_messages_and_keys_for_tokens_sign_none() {
    let keystore = keystore(&["local"]);
    let new = NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name("a"));
    keystore.create_key(new).unwrap();
    let signs = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let verifies = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Verify]);
    let service = Service::start(keystore, config());
    let body = json!({ "prehash": "blake3", "digest": base64(&[7; 32]) });
    let sign =
        |token, key: &str| service.post(Some(token), &format!("/api/v1/keys/{key}/sign-digest"), &body);
    let mut signed = body.clone();
    signed["signature"] = sign(&signs, "a").ok()["signature"].clone();
    let verify = |token| service.post(Some(token), "/api/v1/keys/a/verify-digest", &signed);
    assert_eq!(verify(&verifies).ok()["valid"], true);
    let refused = (403, "forbidden".to_owned());
    assert_eq!(sign(&verifies, "a").error(), refused);
    assert_eq!(verify(&signs).error(), refused);
    assert_eq!(sign(&signs, "tokens").error(), (400, "key_usage_mismatch".to_owned()));
}
