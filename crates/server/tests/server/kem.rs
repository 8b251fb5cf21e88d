//! Shared keys: what is encapsulated is decapsulated.

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, NewKey, PublicKey};
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

const ALGORITHMS: [&str; 4] = ["ml-kem-512", "ml-kem-768", "ml-kem-1024", "x-wing"];

fn create(service: &Service, algorithm: &str) -> Value {
    service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok()
}

#[test]
fn what_is_encapsulated_is_decapsulated() {
    let service = Service::open();
    for algorithm in ALGORITHMS {
        let key = create(&service, algorithm);
        let mut seen = Vec::new();
        for _ in 0..5 {
            let made = service.post(None, &format!("/api/v1/keys/{algorithm}/encapsulate"), &json!({}));
            assert_eq!(made.headers["cache-control"], "no-store");
            let made = made.ok();
            assert_eq!((&made["key"], &made["version"]), (&key["versions"][0]["id"], &json!(1)));
            let body = json!({ "ciphertext": made["ciphertext"] });
            let opened = service.post(None, &format!("/api/v1/keys/{algorithm}/decapsulate"), &body);
            assert_eq!(opened.headers["cache-control"], "no-store");
            assert_eq!(opened.ok()["shared_key"], made["shared_key"], "{algorithm}");
            assert_eq!(from_base64(&made["shared_key"]).len(), 32);
            seen.push(made["shared_key"].to_string());
        }
        seen.dedup();
        assert_eq!(seen.len(), 5, "each call makes another key");
    }
}

#[test]
fn a_key_that_was_encapsulated_elsewhere_is_decapsulated() {
    let service = Service::open();
    for name in ALGORITHMS {
        let key = create(&service, name);
        let algorithm: Algorithm = name.parse().unwrap();
        let public = from_base64(&key["versions"][0]["public_key"]);
        let made = PublicKey::from_bytes(algorithm, &public).unwrap().encapsulate().unwrap();
        let body = json!({ "ciphertext": base64(&made.ciphertext) });
        let opened = service.post(None, &format!("/api/v1/keys/{name}/decapsulate"), &body).ok();
        assert_eq!(from_base64(&opened["shared_key"]), *made.shared_key, "{name}");
    }
}

#[test]
fn an_older_version_decapsulates_and_a_wrong_ciphertext_does_not() {
    let service = Service::open();
    create(&service, "x-wing");
    let encapsulate = |body: &[u8]| service.send("POST", None, "/api/v1/keys/x-wing/encapsulate", body);
    let made = encapsulate(b"").ok();
    service.post(None, "/api/v1/keys/x-wing/rotate", &json!({})).ok();
    assert_eq!(encapsulate(b"").ok()["version"], 2);
    assert_eq!(encapsulate(br#"{"version":1}"#).ok()["version"], 1);
    let decapsulate = |body: &Value| service.post(None, "/api/v1/keys/x-wing/decapsulate", body);
    let mut body = json!({ "ciphertext": made["ciphertext"] });
    assert_ne!(decapsulate(&body).ok()["shared_key"], made["shared_key"]);
    body["version"] = json!(1);
    assert_eq!(decapsulate(&body).ok()["shared_key"], made["shared_key"]);
    body["ciphertext"] = json!(base64(&[0; 7]));
    assert_eq!(decapsulate(&body).error(), (400, "invalid_ciphertext".to_owned()));
    let disable = json!({ "enabled": false }).to_string();
    service.send("PATCH", None, "/api/v1/keys/x-wing", disable.as_bytes()).ok();
    assert_eq!(encapsulate(b"").error(), (409, "key_disabled".to_owned()));
    create(&service, "ed25519");
    let signs = service.post(None, "/api/v1/keys/ed25519/encapsulate", &json!({}));
    assert_eq!(signs.error(), (400, "key_usage_mismatch".to_owned()));
}

#[test]
fn a_reader_encapsulates_and_only_a_decapsulator_gets_the_key() {
    let keystore = keystore(&["local"]);
    let new = NewKey::new(name("local"), name("transport"), Algorithm::XWing).label(name("a"));
    keystore.create_key(new).unwrap();
    let reads = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let decapsulates = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Decapsulate]);
    let service = Service::start(keystore, config());
    let post =
        |token, path: &str, body: &Value| service.post(Some(token), &format!("/api/v1/keys/a/{path}"), body);
    let made = post(&reads, "encapsulate", &json!({})).ok();
    let body = json!({ "ciphertext": made["ciphertext"] });
    let refused = (403, "forbidden".to_owned());
    assert_eq!(post(&reads, "decapsulate", &body).error(), refused);
    assert_eq!(post(&decapsulates, "encapsulate", &json!({})).error(), refused);
    assert_eq!(post(&decapsulates, "decapsulate", &body).ok()["shared_key"], made["shared_key"]);
}
