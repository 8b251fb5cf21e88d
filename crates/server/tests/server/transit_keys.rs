//! Keys as clients of Vault make, change and delete them, and sealing.

use std::sync::Arc;

use bulla_kms::metrics::Metrics;
use bulla_kms::{Code, KeystoreOptions, KmsError, SecretString};
use bulla_server::{KeystoreSource, OpenKeystore, Server};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::support::{Answer, Service, base64, config};
use crate::transit::{refused, sign, with_key};

fn change(service: &Service, what: &str, body: &Value) -> Answer {
    service.post(None, &format!("/v1/transit/keys/a/{what}"), body)
}

#[test]
fn a_key_is_made_as_vault_shows_it() {
    let service = Service::open();
    let made = service
        .post(None, "/v1/transit/keys/a", &json!({ "type": "ed25519", "auto_rotate_period": "24h" }))
        .ok();
    assert_eq!(made["warnings"], Value::Null);
    let read = service.get(None, "/v1/transit/keys/a").ok();
    assert_eq!(read["data"], made["data"]);
    let mut data = read["data"].clone();
    let version = data["keys"]["1"].take();
    assert_eq!(version["name"], "ed25519");
    assert!(version["creation_time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(version["certificate_chain"], "");
    let expected = json!({
        "name": "a", "type": "ed25519", "keys": { "1": null }, "latest_version": 1, "min_available_version": 0,
        "min_decryption_version": 1, "min_encryption_version": 0, "deletion_allowed": false, "auto_rotate_period": 86400,
        "exportable": false, "allow_plaintext_backup": false, "derived": false, "imported_key": false,
        "supports_encryption": false, "supports_decryption": false, "supports_derivation": false, "supports_signing": true,
        "soft_deleted": false,
    });
    assert_eq!(data, expected);
    let again = service.send("PUT", None, "/v1/transit/keys/a", br#"{"type":"ed25519"}"#).ok();
    assert_eq!(again["data"], made["data"]);
    assert_eq!(again["warnings"], json!(["key a already existed"]));
    let other = service.post(None, "/v1/transit/keys/a", &json!({ "type": "ecdsa-p256" }));
    assert_eq!((refused(&other).0, refused(&other).2.as_str()), (400, "label_taken"));
}

#[test]
fn types_are_those_of_vault_and_openbao_that_sign() {
    let service = Service::open();
    let make = |name: &str, body: &Value| service.post(None, &format!("/v1/transit/keys/{name}"), body);
    for (name, body, kind, set) in [
        ("b", json!({ "type": "ml-dsa", "parameter_set": "65" }), "ml-dsa", json!("65")),
        ("c", json!({ "type": "mldsa-87" }), "ml-dsa", json!("87")),
        ("d", json!({ "type": "slh-dsa-sha2-128f" }), "slh-dsa", json!("slh-dsa-sha2-128f")),
        ("e", json!({ "type": "ecdsa-p256", "exportable": "true" }), "ecdsa-p256", Value::Null),
        ("f", json!({ "type": "ecdsa-p521" }), "ecdsa-p521", Value::Null),
        ("g", json!({ "type": "rsa-3072" }), "rsa-3072", Value::Null),
    ] {
        let made = make(name, &body).ok();
        assert_eq!((&made["data"]["type"], &made["data"]["parameter_set"]), (&json!(kind), &set), "{name}");
    }
    let key = service.get(None, "/v1/transit/keys/e").ok();
    assert!(
        key["data"]["keys"]["1"]["public_key"].as_str().unwrap().starts_with("-----BEGIN PUBLIC KEY-----\n")
    );
    assert_eq!(
        (&key["data"]["exportable"], &key["data"]["keys"]["1"]["name"]),
        (&json!(true), &json!("P-256"))
    );
    for body in [
        json!({ "type": "rsa-1024" }),
        json!({ "type": "rsa-2048", "derived": true }),
        json!({ "type": "x-wing" }),
        json!({ "type": "ed25519", "derived": true }),
        json!({ "type": "ed25519", "derived": true, "convergent_encryption": true }),
    ] {
        let (status, _, code) = refused(&make("h", &body));
        assert_eq!((status, code.as_str()), (400, "not_supported"), "{body}");
    }
    let empty = service.send("POST", None, "/v1/transit/keys/i", b"").ok();
    assert_eq!(empty["data"]["type"], "aes256-gcm96", "as Vault's default");
    for body in [
        json!({ "type": "ml-dsa" }),
        json!({ "type": "ml-dsa", "parameter_set": "66" }),
        json!({ "type": "ed25519", "auto_rotate_period": "59m" }),
        json!({ "type": "ed25519", "auto_rotate_period": "soon" }),
        json!({ "type": "ed25519", "auto_rotate_period": -1 }),
        json!({ "type": "ed25519", "convergent_encryption": true }),
        json!({ "type": 7 }),
    ] {
        let (status, _, code) = refused(&make("h", &body));
        assert_eq!((status, code.as_str()), (400, "malformed_request"), "{body}");
    }
    assert_eq!(service.get(None, "/v1/transit/keys/h").status, 404);
}

#[test]
fn names_are_listed_by_list_and_by_get() {
    let service = Service::open();
    let (status, words, _) = refused(&service.send("LIST", None, "/v1/transit/keys", b""));
    assert_eq!((status, words.as_str()), (404, ""));
    for name in ["b", "a", "c"] {
        service.post(None, &format!("/v1/transit/keys/{name}"), &json!({ "type": "ed25519" })).ok();
    }
    service.post(None, "/api/v1/keys", &json!({ "label": "from-our-api" })).ok();
    service.post(None, "/api/v1/keys", &json!({})).ok();
    let expected = json!({ "keys": ["a", "b", "c", "from-our-api"] });
    for (method, path) in [
        ("LIST", "/v1/transit/keys"),
        ("LIST", "/v1/transit/keys/"),
        ("GET", "/v1/transit/keys?list=true"),
        ("GET", "/v1/transit/keys/?list=true"),
    ] {
        assert_eq!(service.send(method, None, path, b"").ok()["data"], expected, "{method} {path}");
    }
    for (method, path) in
        [("GET", "/v1/transit/keys"), ("PATCH", "/v1/transit/keys"), ("LIST", "/v1/transit/keys/a")]
    {
        assert_eq!(refused(&service.send(method, None, path, b"")).0, 405, "{method} {path}");
    }
    assert_eq!(service.get(None, "/v1/transit/keys?list=true&list=true").status, 400);
}

#[test]
fn a_key_is_rotated_configured_and_trimmed() {
    let service = with_key("ed25519");
    let first = sign(&service, &json!({ "input": base64(b"x") })).ok()["data"]["signature"].clone();
    for version in [2, 3, 4] {
        assert_eq!(change(&service, "rotate", &json!({})).ok()["data"]["latest_version"], version);
    }
    let versions = |answer: &Value| {
        answer["data"]["keys"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let trim = |version: i64| change(&service, "trim", &json!({ "min_available_version": version }));
    assert_eq!(
        refused(&trim(2)).1,
        "minimum available version cannot be greater than minimum decryption version"
    );
    let configured = change(
        &service,
        "config",
        &json!({ "min_decryption_version": "3", "deletion_allowed": "true", "auto_rotate_period": 7200 }),
    )
    .ok();
    let data = &configured["data"];
    assert_eq!(
        (&data["min_decryption_version"], &data["deletion_allowed"], &data["auto_rotate_period"]),
        (&json!(3), &json!(true), &json!(7200))
    );
    assert_eq!(versions(&configured), "3 4");
    let trimmed = trim(2).ok();
    assert_eq!((&trimmed["data"]["min_available_version"], versions(&trimmed).as_str()), (&json!(2), "3 4"));
    assert_eq!(trim(3).ok()["data"]["min_available_version"], 3);
    assert_eq!(trim(3).ok()["data"]["min_available_version"], 3);
    assert_eq!(refused(&trim(2)).1, "minimum available version cannot be decremented");
    for (version, words) in [
        (0, "minimum available version should be positive"),
        (-1, "minimum available version cannot be negative"),
    ] {
        assert_eq!(refused(&trim(version)).1, words);
    }
    assert_eq!(refused(&change(&service, "trim", &json!({}))).1, "missing min_available_version");
    // Versions that were trimmed do not come back.
    let lower = change(&service, "config", &json!({ "min_decryption_version": 1 }));
    assert_eq!(refused(&lower).1, "min decryption version should not be less then min available version");
    let old =
        service.post(None, "/v1/transit/verify/a", &json!({ "input": base64(b"x"), "signature": first }));
    assert_eq!(refused(&old).1, "ciphertext or signature version is disallowed by policy (too old)");
    let set =
        change(&service, "config", &json!({ "min_encryption_version": 4, "auto_rotate_period": "0" })).ok();
    assert_eq!(set["warnings"], Value::Null);
    assert_eq!(
        (&set["data"]["min_encryption_version"], &set["data"]["auto_rotate_period"]),
        (&json!(4), &json!(0))
    );
    for body in [
        json!({ "min_decryption_version": 5 }),
        json!({ "min_decryption_version": -1 }),
        json!({ "min_encryption_version": 5 }),
        json!({ "min_encryption_version": -1 }),
        json!({ "auto_rotate_period": 60 }),
        json!({ "exportable": true }),
        json!({ "deletion_allowed": false, "min_decryption_version": 9 }),
    ] {
        assert_eq!(refused(&change(&service, "config", &body)).0, 400, "{body}");
    }
    let key = service.get(None, "/v1/transit/keys/a").ok();
    assert_eq!(key["data"]["deletion_allowed"], true, "of a refused request nothing is done");
    for what in ["rotate", "config", "trim"] {
        let answer = service.post(None, &format!("/v1/transit/keys/nobody/{what}"), &json!({}));
        assert_eq!((refused(&answer).0, refused(&answer).2.as_str()), (400, "key_not_found"), "{what}");
    }
}

#[test]
fn a_key_is_deleted_when_that_is_allowed_and_its_name_is_free_again() {
    let service = with_key("ed25519");
    let full = service.get(None, "/api/v1/keys/a").ok()["key"].as_str().unwrap().replace('/', "%2F");
    let delete = |name: &str| service.send("DELETE", None, &format!("/v1/transit/keys/{name}"), b"");
    let (status, words, _) = refused(&delete("a"));
    assert_eq!(
        (status, words.as_str()),
        (400, "error deleting policy a: deletion is not allowed for this key")
    );
    sign(&service, &json!({ "input": "" })).ok();
    change(&service, "config", &json!({ "deletion_allowed": true })).ok();
    sign(&service, &json!({ "input": "" })).ok();
    let deleted = delete("a");
    assert_eq!((deleted.status, deleted.text().as_str()), (204, ""));
    assert_eq!(service.get(None, "/v1/transit/keys/a").status, 404);
    assert_eq!(refused(&sign(&service, &json!({ "input": "" }))).1, "signing key not found");
    let (status, words, _) = refused(&delete("a"));
    assert_eq!((status, words.as_str()), (400, "error deleting policy a: could not delete key; not found"));
    // The private keys are gone, and not only the name.
    assert_eq!(service.get(None, &format!("/api/v1/keys/{full}")).ok()["state"], "destroyed");
    let new = service.post(None, "/v1/transit/keys/a", &json!({ "type": "ecdsa-p256" })).ok();
    assert_eq!(
        (&new["data"]["latest_version"], &new["data"]["deletion_allowed"]),
        (&json!(1), &json!(false))
    );
}

/// A keystore that opens with the passphrase `right`.
struct WithPassphrase;

impl KeystoreSource for WithPassphrase {
    fn needs_passphrase(&self) -> bool {
        true
    }

    fn open(
        &self,
        passphrase: Option<SecretString>,
        _metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        match passphrase {
            Some(passphrase) if passphrase.expose_secret() == "right" => {
                Ok(OpenKeystore { keystore: KeystoreOptions::default().in_memory().unwrap(), audit: None })
            }
            _ => Err(KmsError::new(Code::WrongPassphrase, "the passphrase is wrong")),
        }
    }
}

#[test]
fn a_service_is_sealed_and_unsealed() {
    let mut config = config();
    config.service.development = true;
    let service = Service::run(Server::bind(config, Box::new(WithPassphrase)).unwrap());
    let sealed = || service.get(None, "/v1/sys/seal-status").ok()["sealed"].clone();
    let put = |path: &str, body: &Value| service.send("PUT", None, path, body.to_string().as_bytes());
    assert_eq!(sealed(), true);
    assert_eq!(service.get(None, "/v1/sys/health").status, 503);
    assert_eq!(service.get(None, "/v1/sys/health?sealedcode=299").status, 299);
    let (status, words, code) = refused(&service.post(None, "/v1/transit/sign/a", &json!({ "input": "" })));
    assert_eq!((status, words.as_str(), code.as_str()), (503, "Vault is sealed", "sealed"));
    let wrong = put("/v1/sys/unseal", &json!({ "key": "wrong" }));
    assert_eq!((refused(&wrong).0, refused(&wrong).2.as_str()), (400, "wrong_passphrase"));
    assert_eq!(refused(&put("/v1/sys/unseal", &json!({}))).0, 400);
    assert_eq!(put("/v1/sys/unseal", &json!({ "reset": true })).ok()["sealed"], true);
    assert_eq!(put("/v1/sys/unseal", &json!({ "key": "right", "migrate": false })).ok()["sealed"], false);
    assert_eq!(sealed(), false);
    service.post(None, "/v1/transit/keys/a", &json!({ "type": "ed25519" })).ok();
    assert_eq!(put("/v1/sys/seal", &json!({})).status, 204);
    assert_eq!((sealed(), service.get(None, "/v1/sys/health").status), (json!(true), 503));
    // The right one is not tried either when there were too many.
    let guess = |_| refused(&put("/v1/sys/unseal", &json!({ "key": "wrong" }))).2;
    let guesses: Vec<_> = (0..4).map(guess).collect();
    assert_eq!(guesses.last().unwrap(), "rate_limited", "{guesses:?}");
    assert_eq!(refused(&put("/v1/sys/unseal", &json!({ "key": "right" }))).0, 429);
}

#[test]
fn who_may_only_create_learns_nothing_of_a_key_that_exists() {
    use bulla_kms::token::{GrantedKeys, TokenOperation};
    let keystore = crate::support::keystore(&["local"]);
    let [creator, reader] =
        [vec![TokenOperation::Create], vec![TokenOperation::Create, TokenOperation::Read]]
            .map(|may| crate::support::token(&keystore, "local", GrantedKeys::All, &may));
    let service = Service::start(keystore, config());
    let create = |token| service.post(Some(token), "/v1/transit/keys/a", &json!({ "type": "ed25519" }));
    create(&creator).ok();
    let answer = create(&creator);
    assert_eq!((answer.status, answer.error().1), (400, "label_taken".to_owned()));
    assert!(!answer.text().contains("public_key"), "{}", answer.text());
    assert_eq!(create(&reader).ok()["data"]["name"], "a");
}
