//! Shared secrets of keys that agree on them.

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Algorithm, KeyVersionId, Keystore, NewKey, PublicKey};
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

const PATH: &str = "/api/v1/keys/a/derive-shared-secret";

fn new(algorithm: Algorithm) -> NewKey {
    NewKey::new(name("local"), name("mail"), algorithm).label(name("a"))
}

/// A key pair elsewhere.
fn peer(algorithm: Algorithm) -> (Keystore, KeyVersionId, PublicKey) {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new(algorithm)).unwrap();
    let public_key = keystore.public_key(&id).unwrap();
    (keystore, id, public_key)
}

/// A request with a public key in one of the formats.
fn body(key: &PublicKey, format: &str) -> Value {
    let write = |format| export_public(key, format).unwrap();
    let data = match format {
        "pem" => String::from_utf8(write(PublicFormat::Pem)).unwrap(),
        "jwk" => String::from_utf8(write(PublicFormat::Jwk)).unwrap(),
        "der" => base64(&write(PublicFormat::Der)),
        _ => base64(key.as_bytes()),
    };
    json!({ "public_key": { "format": format, "data": data } })
}

#[test]
fn a_key_and_its_peer_derive_one_secret_whatever_the_format() {
    for algorithm in [Algorithm::EcdhP256, Algorithm::EcdhP384, Algorithm::EcdhP521, Algorithm::X25519] {
        let service = Service::open();
        let create = json!({ "label": "a", "algorithm": algorithm });
        let key = service.post(None, "/api/v1/keys", &create).ok();
        let own = from_base64(&key["versions"][0]["public_key"]);
        let own = PublicKey::from_bytes(algorithm, &own).unwrap();
        let (theirs, id, public_key) = peer(algorithm);
        let secret = theirs.derive_shared_secret(&id, &own).unwrap();
        for format in ["pem", "der", "raw", "jwk"] {
            let answer = service.post(None, PATH, &body(&public_key, format));
            assert_eq!(answer.headers["cache-control"], "no-store");
            let answer = answer.ok();
            assert!(from_base64(&answer["shared_secret"]) == **secret, "{algorithm} {format}");
            assert_eq!((&answer["key"], &answer["version"]), (&key["versions"][0]["id"], &json!(1)));
        }
        service.post(None, "/api/v1/keys/a/rotate", &json!({})).ok();
        let mut request = body(&public_key, "pem");
        let newer = service.post(None, PATH, &request).ok();
        assert!(newer["version"] == 2 && from_base64(&newer["shared_secret"]) != **secret);
        request["version"] = json!(1);
        assert!(from_base64(&service.post(None, PATH, &request).ok()["shared_secret"]) == **secret);
        // Such keys verify no signatures.
        assert_eq!(service.get(None, "/api/v1/jwks").ok()["keys"], json!([]));
    }
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a", "algorithm": "ecdh-p256" })).ok();
    service.post(None, "/api/v1/keys", &json!({ "label": "b", "algorithm": "ecdsa-p256" })).ok();
    let (.., other) = peer(Algorithm::EcdhP384);
    let refused = service.post(None, PATH, &body(&other, "pem")).error();
    assert_eq!(refused, (400, "invalid_argument".to_owned()));
    let refused = service.post(None, PATH, &body(&other, "raw")).error();
    assert_eq!(refused, (400, "invalid_public_key".to_owned()));
    let (.., own) = peer(Algorithm::EcdhP256);
    let signs = service.post(None, "/api/v1/keys/b/derive-shared-secret", &body(&own, "pem"));
    assert_eq!(signs.error(), (400, "key_usage_mismatch".to_owned()));
    let sign = service.post(None, "/api/v1/keys/a/sign", &json!({ "message": base64(b"m") }));
    assert_eq!(sign.error(), (400, "key_usage_mismatch".to_owned()));
}

#[test]
fn only_a_caller_with_the_permission_gets_the_secret() {
    let keystore = keystore(&["local"]);
    keystore.create_key(new(Algorithm::EcdhP256)).unwrap();
    let with = |operations: &[TokenOperation]| token(&keystore, "local", GrantedKeys::All, operations);
    let derives = with(&[TokenOperation::DeriveSharedSecret]);
    let others: Vec<_> = TokenOperation::ALL
        .iter()
        .copied()
        .filter(|one| *one != TokenOperation::DeriveSharedSecret)
        .collect();
    let does_all_else = with(&others);
    let service = Service::start(keystore, config());
    let (.., public_key) = peer(Algorithm::EcdhP256);
    let request = body(&public_key, "pem");
    let refused = service.post(Some(&does_all_else), PATH, &request).error();
    assert_eq!(refused, (403, "forbidden".to_owned()));
    let answer = service.post(Some(&derives), PATH, &request).ok();
    assert_eq!(from_base64(&answer["shared_secret"]).len(), 32);
}
