//! Data that is encrypted to keys and recipients, and keys that are encapsulated.

use bulla_kms::encrypted_file;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NamedPublicKey, NewKey, PublicKey};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

fn encrypt(service: &Service, body: &Value) -> Value {
    service.post(None, "/api/v1/encrypt", body).ok()["encrypted_data"].clone()
}

fn service_with(keys: &[&str]) -> Service {
    let service = Service::open();
    for key in keys {
        service.post(None, "/api/v1/keys", &json!({ "label": key, "algorithm": key })).ok();
    }
    service
}

#[test]
fn encrypted_data_decrypts() {
    let service = service_with(&["x-wing", "ml-kem-768"]);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let long = prop::collection::vec(any::<u8>(), 65_530..65_545);
    let bytes = prop_oneof![any::<Vec<u8>>(), long];
    let associated = prop::option::of(any::<Vec<u8>>());
    let run = runner.run(&(bytes, associated, 0..3_usize), |(bytes, associated, to)| {
        let keys = [&["x-wing"][..], &["ml-kem-768"], &["ml-kem-768", "x-wing"]][to];
        let associated = associated.map(|bytes| base64(&bytes));
        let mut body = json!({ "data": base64(&bytes), "keys": keys });
        if let Some(associated) = &associated {
            body["associated_data"] = json!(associated);
        }
        let encrypted = encrypt(&service, &body);
        let mut body = json!({ "encrypted_data": encrypted });
        if let Some(associated) = &associated {
            body["associated_data"] = json!(associated);
        }
        let decrypted = service.post(None, "/api/v1/decrypt", &body);
        prop_assert_eq!(&decrypted.headers["cache-control"], "no-store");
        prop_assert_eq!(from_base64(&decrypted.ok()["data"]), bytes);
        body["associated_data"] = json!(base64(b"something else"));
        prop_assert_eq!(
            service.post(None, "/api/v1/decrypt", &body).error(),
            (400, "encrypted_file_corrupt".to_owned())
        );
        Ok(())
    });
    run.unwrap();
}

#[test]
fn recipients_elsewhere_decrypt_it_too() {
    let service = service_with(&["x-wing"]);
    let elsewhere = Keystore::in_memory().unwrap();
    let theirs =
        elsewhere.create_key(NewKey::new(name("them"), name("files"), Algorithm::MlKem1024)).unwrap();
    let named = NamedPublicKey { public_key: elsewhere.public_key(&theirs).unwrap(), key: theirs };
    let (age, x_wing) =
        (Identity::generate(IdentityKind::Age).unwrap(), Identity::generate(IdentityKind::XWing).unwrap());
    let recipients = [age.recipient().to_string(), x_wing.recipient().to_string(), named.to_string()];
    let body = json!({ "data": base64(b"for all"), "keys": ["x-wing"], "recipients": recipients });
    let encrypted = from_base64(&encrypt(&service, &body));
    for identity in [&age, &x_wing] {
        // As a file that the command opens.
        assert_eq!(
            **encrypted_file::decrypt(&encrypted, &[identity], b"bulla file v1").unwrap(),
            *b"for all"
        );
    }
    let keystore = bulla_kms::KeystoreProvider(&elsewhere);
    assert_eq!(**encrypted_file::decrypt(&encrypted, &[&keystore], b"bulla file v1").unwrap(), *b"for all");
    let decrypted =
        service.post(None, "/api/v1/decrypt", &json!({ "encrypted_data": base64(&encrypted) })).ok();
    assert_eq!(from_base64(&decrypted["data"]), b"for all");
}

#[test]
fn bad_recipients_and_damaged_data_are_refused() {
    let service = service_with(&["x-wing", "ed25519"]);
    let refused = |body: &Value| service.post(None, "/api/v1/encrypt", body).error();
    let of =
        |keys: &[&str], recipients: &[&str]| json!({ "data": "", "keys": keys, "recipients": recipients });
    assert_eq!(refused(&of(&[], &[])), (400, "invalid_argument".to_owned()));
    assert_eq!(refused(&of(&["x-wing"; 9], &[])), (400, "too_many_items".to_owned()));
    assert_eq!(refused(&of(&["ed25519"], &[])), (400, "key_usage_mismatch".to_owned()));
    assert_eq!(refused(&of(&["nobody"], &[])), (404, "key_not_found".to_owned()));
    for recipient in ["age1nobody", "x-wing:", "someone"] {
        assert_eq!(refused(&of(&[], &[recipient])), (400, "invalid_public_key".to_owned()), "{recipient}");
    }
    let mut reserved = of(&["x-wing"], &[]);
    reserved["associated_data"] = json!(base64(b"bulla keystore backup v1"));
    assert_eq!(refused(&reserved), (400, "invalid_argument".to_owned()));
    let decrypt = |encrypted: &[u8]| {
        service.post(None, "/api/v1/decrypt", &json!({ "encrypted_data": base64(encrypted) }))
    };
    assert_eq!(decrypt(b"no encrypted data").error(), (400, "malformed_encrypted_file".to_owned()));
    let mut encrypted = from_base64(&encrypt(&service, &of(&["x-wing"], &[])));
    decrypt(&encrypted).ok();
    *encrypted.last_mut().unwrap() ^= 1;
    assert_eq!(decrypt(&encrypted).error(), (400, "encrypted_file_corrupt".to_owned()));
}

#[test]
fn only_keys_with_which_the_caller_may_decapsulate_decrypt() {
    let keystore = keystore(&["local", "other"]);
    let new = |tenant: &str, label: &str| {
        let new = NewKey::new(name(tenant), name("transport"), Algorithm::XWing).label(name(label));
        keystore.create_key(new).unwrap().key_id().clone()
    };
    let (mine, theirs, _) = (new("local", "mine"), new("local", "theirs"), new("other", "foreign"));
    let narrow = GrantedKeys::These(vec![mine]);
    let narrow = token(&keystore, "local", narrow, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let all =
        token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let other =
        token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let reads = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let encrypt = |token, keys: &[&str]| {
        service.post(Some(token), "/api/v1/encrypt", &json!({ "data": base64(b"secret"), "keys": keys }))
    };
    let decrypt = |token, encrypted: &Value| {
        service.post(Some(token), "/api/v1/decrypt", &json!({ "encrypted_data": encrypted }))
    };
    let refused = (403, "forbidden".to_owned());
    assert_eq!(encrypt(&narrow, &["theirs"]).error(), refused);
    assert_eq!(encrypt(&other, &[&theirs.to_string()]).error(), refused);
    let both = encrypt(&reads, &["theirs", "mine"]).ok()["encrypted_data"].clone();
    let one = encrypt(&reads, &["theirs"]).ok()["encrypted_data"].clone();
    assert_eq!(decrypt(&reads, &both).error(), refused);
    assert_eq!(from_base64(&decrypt(&narrow, &both).ok()["data"]), b"secret");
    assert_eq!(from_base64(&decrypt(&all, &one).ok()["data"]), b"secret");
    for token in [&narrow, &other] {
        assert_eq!(decrypt(token, &one).error(), (400, "wrong_decryption_key".to_owned()));
    }
}

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
