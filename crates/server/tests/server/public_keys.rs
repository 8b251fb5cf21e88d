//! Public keys in the formats of others.

use std::fs;
use std::process::Command;

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::transfer::{PublicFormat, export_public, import_public};
use bulla_kms::{Algorithm, NamedPublicKey, NewKey, PublicKey};
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

const FORMATS: [(&str, PublicFormat); 6] = [
    ("pem", PublicFormat::Pem),
    ("der", PublicFormat::Der),
    ("raw", PublicFormat::Raw),
    ("jwk", PublicFormat::Jwk),
    ("openssh", PublicFormat::OpenSsh),
    ("minisign", PublicFormat::Minisign),
];

fn algorithm(view: &Value) -> Algorithm {
    view["algorithm"].as_str().unwrap().parse().unwrap()
}

fn create(service: &Service, algorithm: &str) -> Value {
    service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok()
}

#[test]
fn a_public_key_is_written_as_the_keystore_writes_it() {
    let service = Service::open();
    for algorithm_name in ["ed25519", "ecdsa-p256", "ml-dsa-65", "slh-dsa-sha2-128f", "x-wing"] {
        let key = create(&service, algorithm_name);
        let bytes = from_base64(&key["versions"][0]["public_key"]);
        let key = PublicKey::from_bytes(algorithm(&key), &bytes).unwrap();
        for (format_name, format) in FORMATS {
            let path = format!("/api/v1/keys/{algorithm_name}/public?format={format_name}");
            let answer = service.get(None, &path);
            match export_public(&key, format) {
                Err(error) => assert_eq!(answer.error(), (400, error.code.as_str().to_owned()), "{path}"),
                Ok(expected) => {
                    let text = &answer.ok()["public_key"];
                    let is_binary = ["der", "raw"].contains(&format_name);
                    let found = if is_binary {
                        from_base64(text)
                    } else {
                        text.as_str().unwrap().as_bytes().to_vec()
                    };
                    assert_eq!(found, expected, "{path}");
                    assert_eq!(answer.headers["cache-control"], "private, max-age=60");
                }
            }
        }
        let pem = service.get(None, &format!("/api/v1/keys/{algorithm_name}/public")).ok();
        assert_eq!((&pem["format"], &pem["algorithm"]), (&json!("pem"), &json!(algorithm_name)));
    }
}

#[test]
fn a_version_is_named_and_a_revoked_one_is_refused() {
    let service = Service::open();
    create(&service, "ed25519");
    let key = service.post(None, "/api/v1/keys/ed25519/rotate", &json!({})).ok();
    let get = |query: &str| service.get(None, &format!("/api/v1/keys/ed25519/public?format=bulla{query}"));
    for (query, place) in [("&version=1", 0), ("&version=2", 1), ("", 1)] {
        let view = get(query).ok();
        let named: NamedPublicKey = view["public_key"].as_str().unwrap().parse().unwrap();
        assert_eq!(view["key"], key["versions"][place]["id"]);
        assert_eq!(json!(named.key.to_string()), key["versions"][place]["id"]);
        assert_eq!(named.public_key.as_bytes(), from_base64(&key["versions"][place]["public_key"]));
    }
    assert_eq!(get("&version=3").error(), (404, "unknown_version".to_owned()));
    for query in ["&version=0", "&version=x", "&color=red"] {
        assert_eq!(get(query).error(), (400, "malformed_request".to_owned()), "{query}");
    }
    let unknown = service.get(None, "/api/v1/keys/ed25519/public?format=pgp");
    assert_eq!(unknown.error(), (400, "malformed_request".to_owned()));
    service.post(None, "/api/v1/keys/ed25519/versions/1/revoke", &json!({})).ok();
    assert_eq!(get("&version=1").error(), (409, "version_not_usable".to_owned()));
}

/// OpenSSL verifies what the service signed, by the public key that the service gives.
#[test]
fn openssl_verifies_under_the_pem() {
    let service = Service::open();
    create(&service, "ed25519");
    let signed =
        service.post(None, "/api/v1/keys/ed25519/sign", &json!({ "message": base64(b"a message") })).ok();
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    let pem = service.get(None, "/api/v1/keys/ed25519/public").ok();
    fs::write(at("key.pem"), pem["public_key"].as_str().unwrap()).unwrap();
    fs::write(at("signature"), from_base64(&signed["signature"])).unwrap();
    for (message, verifies) in [("a message", true), ("a massage", false)] {
        fs::write(at("message"), message).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["pkeyutl", "-verify", "-pubin", "-rawin", "-inkey"]).arg(at("key.pem"));
        openssl.arg("-sigfile").arg(at("signature")).arg("-in").arg(at("message"));
        assert_eq!(openssl.output().unwrap().status.success(), verifies, "{message}");
    }
}

/// Algorithms whose public keys are JSON Web Keys.
const WITH_JWK: [&str; 7] =
    ["ed25519", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "rsa-2048", "ml-dsa-44", "ml-dsa-87"];

#[test]
fn the_set_has_every_usable_version_as_the_keystore_writes_it() {
    let service = Service::open();
    let mut keys = Vec::new();
    for algorithm in [WITH_JWK.as_slice(), &["slh-dsa-sha2-128f", "x-wing"]].concat() {
        create(&service, algorithm);
        keys.push(service.post(None, &format!("/api/v1/keys/{algorithm}/rotate"), &json!({})).ok());
    }
    service.post(None, "/api/v1/keys/ml-dsa-44/versions/1/revoke", &json!({})).ok();
    let answer = service.get(None, "/api/v1/jwks");
    assert_eq!(answer.headers["cache-control"], "private, max-age=60");
    assert_eq!(answer.headers["vary"], "authorization, x-vault-token");
    let set = answer.ok()["keys"].as_array().unwrap().clone();
    let mut expected = 0;
    for key in &keys {
        for version in key["versions"].as_array().unwrap() {
            let found = set.iter().find(|jwk| jwk["kid"] == version["id"]);
            let has_form = WITH_JWK.contains(&key["algorithm"].as_str().unwrap());
            let is_revoked = key["algorithm"] == "ml-dsa-44" && version["version"] == 1;
            assert_eq!(found.is_some(), has_form && !is_revoked, "{version}");
            let Some(jwk) = found else { continue };
            expected += 1;
            let public = PublicKey::from_bytes(algorithm(key), &from_base64(&version["public_key"])).unwrap();
            // A reader of our own keys reads this one.
            let read = import_public(jwk.to_string().as_bytes(), PublicFormat::Jwk, None).unwrap();
            assert_eq!(read, public);
            let ours: Value =
                serde_json::from_slice(&export_public(&public, PublicFormat::Jwk).unwrap()).unwrap();
            for (member, value) in ours.as_object().unwrap() {
                assert_eq!(jwk[member], *value);
            }
            assert_eq!(jwk["use"], "sig");
            let alg = match algorithm(key) {
                Algorithm::Ed25519 => json!("EdDSA"),
                Algorithm::EcdsaP256 => json!("ES256"),
                Algorithm::EcdsaP384 => json!("ES384"),
                Algorithm::EcdsaP521 => json!("ES512"),
                _ => ours["alg"].clone(),
            };
            assert_eq!(jwk["alg"], alg);
            assert_eq!(alg.is_null(), jwk["kty"] == "RSA");
        }
    }
    assert_eq!((set.len(), expected), (13, 13));
}

#[test]
fn the_set_has_only_keys_that_the_caller_may_read() {
    let keystore = keystore(&["local", "other"]);
    let new = |tenant: &str| {
        let new = NewKey::new(name(tenant), name("files"), Algorithm::Ed25519);
        keystore.create_key(new).unwrap()
    };
    let (mine, _, _) = (new("local"), new("local"), new("other"));
    let narrow =
        token(&keystore, "local", GrantedKeys::These(vec![mine.key_id().clone()]), &[TokenOperation::Read]);
    let all = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let signs = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let service = Service::start(keystore, config());
    let kids = |token| {
        let set = service.get(Some(token), "/api/v1/jwks").ok();
        let keys = set["keys"].as_array().unwrap().clone();
        keys.iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kids(&narrow), [mine.to_string()]);
    let kids = kids(&all);
    assert!(kids.len() == 3 && kids.iter().all(|kid| kid.starts_with("local/")), "{kids:?}");
    assert_eq!(service.get(Some(&signs), "/api/v1/jwks").error(), (403, "forbidden".to_owned()));
}
