//! The API for clients of Vault: keys that leave the keystore.

use bulla_kms::token::{GrantedKeys, TokenOperation};
use serde_json::json;

use crate::support::{Service, base64, config, from_base64, keystore, name, token};
use crate::transit::{get, permitting_all, post, refused};

/// What a key makes for a message, and whether another key takes it: a signature or a ciphertext.
fn are_the_same_key(service: &Service, one: &str, other: &str) -> bool {
    let input = json!({ "input": base64(b"hello"), "plaintext": base64(b"hello") });
    let signed = post(service, &format!("sign/{one}"), &input);
    if signed.status == 200 {
        let body = json!({ "input": input["input"], "signature": signed.ok()["data"]["signature"] });
        return post(service, &format!("verify/{other}"), &body).ok()["data"]["valid"] == true;
    }
    let hmac = post(service, &format!("hmac/{one}"), &input).ok();
    let body = json!({ "input": input["input"], "hmac": hmac["data"]["hmac"] });
    post(service, &format!("verify/{other}"), &body).ok()["data"]["valid"] == true
}

/// An exportable key of a type, with two versions.
fn exportable(service: &Service, name: &str, kind: &str) {
    post(service, &format!("keys/{name}"), &json!({ "type": kind, "exportable": true })).ok();
    post(service, &format!("keys/{name}/rotate"), &json!({})).ok();
}

#[test]
fn an_exported_key_is_the_key() {
    let service = permitting_all();
    let kinds = [
        ("ed25519", "signing-key", "vault"),
        ("ecdsa-p256", "signing-key", "vault"),
        ("ecdsa-p384", "signing-key", "vault"),
        ("ecdsa-p521", "signing-key", "vault"),
        ("rsa-2048", "signing-key", "vault"),
        ("ml-dsa-44", "signing-key", "pem"),
        ("aes256-gcm96", "encryption-key", "raw"),
        ("xchacha20-poly1305", "encryption-key", "raw"),
        ("hmac", "hmac-key", "raw"),
    ];
    for (kind, what, format) in kinds {
        exportable(&service, kind, kind);
        let all = get(&service, &format!("export/{what}/{kind}")).ok()["data"].clone();
        assert_eq!((&all["name"], all["keys"].as_object().unwrap().len()), (&json!(kind), 2), "{kind}");
        for version in ["2", "latest"] {
            let one = get(&service, &format!("export/{what}/{kind}/{version}")).ok()["data"].clone();
            assert_eq!(one["keys"], json!({ "2": all["keys"]["2"] }), "{kind}");
        }
        let text = all["keys"]["2"].as_str().unwrap();
        let data = if format == "raw" { text.to_owned() } else { base64(text.as_bytes()) };
        let algorithm = match kind {
            "aes256-gcm96" => json!("aes-256-gcm"),
            "hmac" => json!("hmac-sha256"),
            kind => json!(kind),
        };
        let key = json!({ "format": format, "data": data, "algorithm": algorithm });
        let copy = format!("{kind}-copy");
        let body = json!({ "label": copy, "private_key": key, "signs_digests": kind.starts_with("ecdsa") });
        service.post(None, "/api/v1/import", &body).ok();
        // The copy has one version.
        post(&service, &format!("keys/{copy}/rotate"), &json!({})).ok();
        post(&service, &format!("keys/{kind}/config"), &json!({ "min_encryption_version": 0 })).ok();
        let copied = get(&service, &format!("keys/{copy}")).ok()["data"]["keys"]["1"].clone();
        let original = get(&service, &format!("keys/{kind}")).ok()["data"]["keys"]["2"].clone();
        assert_eq!(copied["public_key"], original["public_key"], "{kind}");
    }
    // A symmetric key decrypts and authenticates with the copy of its first version.
    exportable(&service, "rows", "aes256-gcm96");
    let text = get(&service, "export/encryption-key/rows/1").ok()["data"]["keys"]["1"].clone();
    let key = json!({ "format": "raw", "data": text, "algorithm": "aes-256-gcm" });
    service.post(None, "/api/v1/import", &json!({ "label": "rows-copy", "private_key": key })).ok();
    let body = json!({ "plaintext": base64(b"hello"), "key_version": 1 });
    let made = post(&service, "encrypt/rows", &body).ok();
    let found =
        post(&service, "decrypt/rows-copy", &json!({ "ciphertext": made["data"]["ciphertext"] })).ok();
    assert_eq!(from_base64(&found["data"]["plaintext"]), b"hello");
}

#[test]
fn a_key_for_hmac_makes_the_hmacs_outside() {
    let service = permitting_all();
    for kind in ["ed25519", "aes256-gcm96", "hmac"] {
        exportable(&service, kind, kind);
        let key = from_base64(&get(&service, &format!("export/hmac-key/{kind}/2")).ok()["data"]["keys"]["2"]);
        let made = post(&service, &format!("hmac/{kind}"), &json!({ "input": base64(b"hello") })).ok();
        let hmac =
            from_base64(&made["data"]["hmac"].as_str().unwrap().strip_prefix("vault:v2:").unwrap().into());
        ring::hmac::verify(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key), b"hello", &hmac).unwrap();
    }
}

#[test]
fn what_is_not_exported_says_why() {
    let service = permitting_all();
    post(&service, "keys/stays", &json!({ "type": "ed25519" })).ok();
    exportable(&service, "leaves", "ed25519");
    exportable(&service, "rows", "aes256-gcm96");
    let cases = [
        ("signing-key/stays", "private key material is not exportable"),
        ("hmac-key/stays", "private key material is not exportable"),
        ("encryption-key/leaves", "encryption not supported for the key"),
        ("signing-key/rows", "signing not supported for the key"),
        ("public-key/rows", "unknown key type for export type: public-key"),
        ("key/leaves", "invalid export type: key"),
        ("signing-key/leaves/x", "invalid key version"),
        ("signing-key/leaves/0", "version for export is below minimum decryption version"),
        ("signing-key/leaves/3", "version does not exist or cannot be found"),
    ];
    for (path, words) in cases {
        let answer = refused(&get(&service, &format!("export/{path}")));
        assert_eq!((answer.0, answer.1.as_str()), (400, words), "{path}");
    }
    assert_eq!(refused(&get(&service, "export/signing-key/nobody")).0, 404);
    // The public key of a key that stays.
    let public = get(&service, "export/public-key/stays").ok()["data"]["keys"]["1"].clone();
    assert_eq!(public, get(&service, "keys/stays").ok()["data"]["keys"]["1"]["public_key"]);
    // A version that was trimmed, or that the minimum forbids.
    post(&service, "keys/leaves/config", &json!({ "min_decryption_version": 2 })).ok();
    let all = get(&service, "export/signing-key/leaves").ok()["data"]["keys"].clone();
    assert_eq!(all.as_object().unwrap().keys().collect::<Vec<_>>(), ["2"]);
}

#[test]
fn a_private_key_leaves_as_plain_text_only_by_a_token_for_exactly_that() {
    let keystore = keystore(&["local", "other"]);
    let all =
        |tenant: &str, operations: &[TokenOperation]| token(&keystore, tenant, GrantedKeys::All, operations);
    let others: Vec<_> =
        TokenOperation::ALL.iter().copied().filter(|one| *one != TokenOperation::ExportPlaintext).collect();
    let everything_else = all("local", &others);
    let exporter = all("local", &[TokenOperation::ExportPlaintext]);
    let stranger = all("other", &[TokenOperation::ExportPlaintext]);
    let service = Service::start(keystore, config());
    let body = json!({ "type": "ed25519", "exportable": true });
    service.post(Some(&everything_else), "/v1/transit/keys/a", &body).ok();
    let export = |token| service.get(Some(token), "/v1/transit/export/signing-key/a");
    assert_eq!(refused(&export(&everything_else)).0, 403);
    assert_eq!(export(&exporter).ok()["data"]["type"], "ed25519");
    assert_eq!(refused(&export(&stranger)).0, 404, "another tenant has no such key");
    let public = |token| service.get(Some(token), "/v1/transit/export/public-key/a").status;
    assert_eq!((public(&everything_else), public(&exporter)), (200, 403));
}

#[test]
fn a_wrapped_key_moves_to_another_service() {
    let (here, there) = (permitting_all(), permitting_all());
    let wrapping = get(&there, "wrapping_key").ok()["data"]["public_key"].clone();
    let body = json!({ "type": "rsa-4096", "public_key": wrapping });
    assert_eq!(post(&here, "keys/there/import", &body).status, 204);
    for kind in ["ed25519", "aes256-gcm96"] {
        exportable(&here, kind, kind);
        let moved = get(&here, &format!("byok-export/there/{kind}")).ok()["data"].clone();
        assert_eq!(moved["type"], kind);
        let import = json!({ "type": kind, "ciphertext": moved["keys"]["1"] });
        assert_eq!(post(&there, &format!("keys/{kind}/import"), &import).status, 204);
        let next = get(&here, &format!("byok-export/there/{kind}/latest")).ok()["data"]["keys"]["2"].clone();
        let version = json!({ "ciphertext": next });
        assert_eq!(post(&there, &format!("keys/{kind}/import_version"), &version).status, 204);
        let made = post(&here, &format!("hmac/{kind}"), &json!({ "input": "" })).ok();
        let body = json!({ "input": "", "hmac": made["data"]["hmac"] });
        assert_eq!(post(&there, &format!("verify/{kind}"), &body).ok()["data"]["valid"], true, "{kind}");
    }
    assert!(are_the_same_key(&there, "ed25519", "ed25519"));
    let both = json!({ "type": "rsa-4096", "public_key": wrapping, "ciphertext": "AAAA" });
    assert_eq!(refused(&post(&here, "keys/both/import", &both)).2, "malformed_request");
    let bad = json!({ "type": "rsa-4096", "public_key": "-----BEGIN PUBLIC KEY-----" });
    assert_eq!(refused(&post(&here, "keys/bad/import", &bad)).0, 400);
    // Only an RSA key is a destination, and only an exportable key leaves.
    assert_eq!(refused(&get(&here, "byok-export/ed25519/aes256-gcm96")).2, "key_usage_mismatch");
    post(&here, "keys/stays", &json!({})).ok();
    let refusal = refused(&get(&here, "byok-export/there/stays"));
    assert_eq!(refusal.1, "private key material is not exportable");
    assert_eq!(refused(&get(&here, "byok-export/nobody/ed25519")).1, "no such destination key to export");
}

#[test]
fn a_token_that_may_only_export_wrapped_needs_to_read_the_destination() {
    let keystore = keystore(&["local"]);
    let new = |label: &str, algorithm| {
        let new = bulla_kms::NewKey::new(name("local"), name("transit"), algorithm);
        keystore.create_key(new.label(name(label)).exportable(true)).unwrap();
    };
    new("rows", bulla_kms::Algorithm::Aes256Gcm);
    new("to", bulla_kms::Algorithm::Rsa2048);
    let only = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Export]);
    let both = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Export, TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let export = |token| service.get(Some(token), "/v1/transit/byok-export/to/rows").status;
    assert_eq!((export(&only), export(&both)), (403, 200));
}
