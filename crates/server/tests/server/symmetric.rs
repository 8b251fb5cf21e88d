//! Keys that encrypt and keys that make MACs, over HTTP.

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, NewKey};
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

fn service_with(algorithms: &[&str]) -> Service {
    let service = Service::open();
    for algorithm in algorithms {
        service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok();
    }
    service
}

fn post(service: &Service, key: &str, what: &str, body: &Value) -> Value {
    service.post(None, &format!("/api/v1/keys/{key}/{what}"), body).ok()
}

fn error(service: &Service, key: &str, what: &str, body: &Value) -> (u16, String) {
    service.post(None, &format!("/api/v1/keys/{key}/{what}"), body).error()
}

#[test]
fn what_is_encrypted_decrypts_with_its_associated_data_and_after_a_rotation() {
    for key in ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"] {
        let service = service_with(&[key]);
        let mut body = json!({ "plaintext": base64(b"text"), "associated_data": base64(b"row 7") });
        let made = post(&service, key, "encrypt", &body);
        assert_eq!(made["version"], 1);
        service.post(None, &format!("/api/v1/keys/{key}/rotate"), &json!({})).ok();
        body.as_object_mut().unwrap().remove("plaintext");
        body["ciphertext"] = made["ciphertext"].clone();
        let answer = service.post(None, &format!("/api/v1/keys/{key}/decrypt"), &body);
        assert_eq!(&answer.headers["cache-control"], "no-store");
        let found = answer.ok();
        assert_eq!((from_base64(&found["plaintext"]), &found["key"]), (b"text".to_vec(), &made["key"]));
        let rewrapped = post(&service, key, "rewrap", &body);
        assert_eq!(rewrapped["version"], 2);
        body["ciphertext"] = rewrapped["ciphertext"].clone();
        assert_eq!(from_base64(&post(&service, key, "decrypt", &body)["plaintext"]), b"text");
        body["associated_data"] = json!(base64(b"row 8"));
        assert_eq!(error(&service, key, "decrypt", &body), (400, "invalid_ciphertext".to_owned()));
        let view = service.get(None, &format!("/api/v1/keys/{key}")).ok();
        assert!(view["versions"][0].get("public_key").is_none(), "{view}");
        let public = service.get(None, &format!("/api/v1/keys/{key}/public"));
        assert_eq!(public.error(), (400, "key_usage_mismatch".to_owned()));
    }
}

#[test]
fn contexts_data_keys_and_random_bytes() {
    let service = Service::open();
    let new = json!({ "label": "a", "algorithm": "aes-256-gcm", "derivation": "convergent" });
    assert_eq!(service.post(None, "/api/v1/keys", &new).status, 201);
    let body = json!({ "plaintext": base64(b"text"), "context": base64(b"column") });
    let made = post(&service, "a", "encrypt", &body);
    assert_eq!(post(&service, "a", "encrypt", &body), made);
    let without = json!({ "plaintext": base64(b"text") });
    assert_eq!(error(&service, "a", "encrypt", &without), (400, "invalid_argument".to_owned()));
    let context = base64(b"disk 3");
    for (bits, length) in [(json!(128), 16), (Value::Null, 32), (json!(512), 64)] {
        let body = json!({ "bits": bits, "context": context });
        let key = post(&service, "a", "data-key", &body);
        let sealed = json!({ "ciphertext": key["ciphertext"], "context": context });
        let found = post(&service, "a", "decrypt", &sealed);
        assert_eq!(
            (from_base64(&found["plaintext"]).len(), &found["plaintext"]),
            (length, &key["plaintext"])
        );
    }
    let wrapped = post(&service, "a", "data-key", &json!({ "plaintext": false, "context": context }));
    assert!(wrapped.get("plaintext").is_none());
    let error = error(&service, "a", "data-key", &json!({ "bits": 192, "context": context }));
    assert_eq!(error, (400, "invalid_argument".to_owned()));
    let random = |bytes: usize| service.post(None, "/api/v1/random", &json!({ "bytes": bytes }));
    assert_eq!(from_base64(&random(32).ok()["random"]).len(), 32);
    assert_ne!(random(32).ok(), random(32).ok());
    assert_eq!(random(0).status, 400);
    assert_eq!(random((64 << 10) + 1).status, 400);
}

#[test]
fn macs_are_made_and_verified() {
    for key in ["hmac-sha256", "hmac-sha384", "hmac-sha512", "blake3"] {
        let service = service_with(&[key]);
        let made = post(&service, key, "mac", &json!({ "message": base64(b"m") }));
        service.post(None, &format!("/api/v1/keys/{key}/rotate"), &json!({})).ok();
        let verify = |message: &[u8], version: u32| {
            let body = json!({ "message": base64(message), "mac": made["mac"], "version": version });
            post(&service, key, "verify-mac", &body)["valid"].as_bool().unwrap()
        };
        assert_eq!([verify(b"m", 1), verify(b"n", 1), verify(b"m", 2)], [true, false, false]);
        let body = json!({ "message": base64(b"m"), "version": 1 });
        assert_eq!(error(&service, key, "mac", &body), (409, "not_latest_version".to_owned()));
    }
}

#[test]
fn an_item_of_a_batch_that_fails_disturbs_no_other() {
    let service = service_with(&["aes-256-gcm", "blake3", "ed25519"]);
    let items =
        json!({ "items": [{ "plaintext": base64(b"a") }, { "plaintext": "?" }, { "plaintext": "" }] });
    let made = post(&service, "aes-256-gcm", "encrypt/batch", &items);
    assert_eq!(made["results"][1]["error"]["code"], "malformed_request");
    let texts = [&made["results"][0]["ciphertext"], &made["results"][2]["ciphertext"]];
    let items = json!({ "items": [
        { "ciphertext": texts[0] }, { "ciphertext": base64(b"nothing") }, { "ciphertext": texts[1] },
    ] });
    let found = post(&service, "aes-256-gcm", "decrypt/batch", &items);
    assert_eq!(from_base64(&found["results"][0]["plaintext"]), b"a");
    assert_eq!(found["results"][1]["error"]["code"], "invalid_ciphertext");
    assert!(found["results"][1].get("plaintext").is_none());
    assert_eq!(from_base64(&found["results"][2]["plaintext"]), b"");
    let rewrapped = post(&service, "aes-256-gcm", "rewrap/batch", &items);
    assert_eq!(rewrapped["results"][1]["error"]["code"], "invalid_ciphertext");
    assert!(rewrapped["results"][2]["ciphertext"].is_string());
    let items = json!({ "items": [{ "message": base64(b"m") }, { "message": base64(b"n") }] });
    let macs = post(&service, "blake3", "mac/batch", &items);
    let mac = &macs["results"][0]["mac"];
    let items = json!({ "items": [
        { "message": base64(b"m"), "mac": mac }, { "message": base64(b"n"), "mac": mac },
        { "message": base64(b"m"), "mac": mac, "version": 9 },
    ] });
    let verdicts = post(&service, "blake3", "verify-mac/batch", &items);
    assert_eq!(verdicts["results"][0], json!({ "valid": true }));
    assert_eq!(verdicts["results"][1], json!({ "valid": false }));
    assert_eq!(verdicts["results"][2]["error"]["code"], "unknown_version");
    // A whole batch with a key of another usage: each item says which usage it has.
    let items = json!({ "items": [{ "plaintext": base64(b"a") }] });
    let refused = post(&service, "ed25519", "encrypt/batch", &items);
    assert_eq!(refused["results"][0]["error"]["code"], "key_usage_mismatch");
    assert_eq!(error(&service, "aes-256-gcm", "encrypt/batch", &json!({ "items": [] })).0, 400);
    for (what, body) in [
        ("sign", json!({ "message": "" })),
        ("verify", json!({ "message": "", "signature": "" })),
        ("attest", json!({})),
    ] {
        assert_eq!(error(&service, "blake3", what, &body), (400, "key_usage_mismatch".to_owned()), "{what}");
    }
}

#[test]
fn a_token_to_encrypt_does_nothing_else() {
    let keystore = keystore(&["local"]);
    let new = NewKey::new(name("local"), name("rows"), Algorithm::Aes256Gcm).label(name("a"));
    let key = keystore.create_key(new).unwrap().key_id().clone();
    let of = |operation| token(&keystore, "local", GrantedKeys::These(vec![key.clone()]), &[operation]);
    let (encrypts, decrypts) = (of(TokenOperation::Encrypt), of(TokenOperation::Decrypt));
    let rewraps = of(TokenOperation::Rewrap);
    let service = Service::start(keystore, config());
    let plain = json!({ "plaintext": base64(b"text") });
    let made = service.post(Some(&encrypts), "/api/v1/keys/a/encrypt", &plain).ok();
    let sealed = json!({ "ciphertext": made["ciphertext"] });
    let post = |token, what: &str, body: &Value| {
        service.post(Some(token), &format!("/api/v1/keys/a/{what}"), body).status
    };
    let all = |token| {
        [
            post(token, "encrypt", &plain),
            post(token, "decrypt", &sealed),
            post(token, "rewrap", &sealed),
            post(token, "data-key", &json!({})),
            post(token, "mac", &json!({ "message": "" })),
            post(token, "rotate", &json!({})),
        ]
    };
    assert_eq!(all(&encrypts), [200, 403, 403, 403, 403, 403]);
    assert_eq!(all(&decrypts), [403, 200, 403, 403, 403, 403]);
    assert_eq!(all(&rewraps), [403, 403, 200, 403, 403, 403]);
}
