//! The API for clients of Vault: keys that encrypt and HMACs. A running OpenBao answered the same
//! requests.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::transfer::{PublicFormat, export_public, import_public, wrap_aes_kwp};
use bulla_kms::{Algorithm, Keystore, NewKey};
use serde_json::{Value, json};

use crate::support::{Answer, Service, base64, config, from_base64, keystore, name, token};
use crate::transit::{post, refused, with_key};

fn text<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer["data"][field].as_str().unwrap_or_else(|| panic!("{field} of {answer}"))
}

#[test]
fn a_ciphertext_of_each_type_decrypts_and_has_vaults_form() {
    for kind in ["aes128-gcm96", "aes256-gcm96", "chacha20-poly1305", "xchacha20-poly1305"] {
        let service = with_key(kind);
        let key = service.get(None, "/v1/transit/keys/a").ok()["data"].clone();
        assert_eq!((&key["type"], &key["supports_encryption"]), (&json!(kind), &json!(true)));
        assert!(key["keys"]["1"].as_u64().unwrap() > 1_700_000_000, "{key}");
        let body = json!({ "plaintext": base64(b"text"), "associated_data": base64(b"row 7") });
        let made = post(&service, "encrypt/a", &body);
        assert_eq!(&made.headers["cache-control"], "no-store");
        let made = made.ok();
        assert_eq!(made["data"]["key_version"], 1);
        let ciphertext = text(&made, "ciphertext").strip_prefix("vault:v1:").unwrap();
        let nonce = if kind.starts_with('x') { 24 } else { 12 };
        assert_eq!(from_base64(&ciphertext.into()).len(), nonce + 4 + 16);
        let sealed = json!({ "ciphertext": text(&made, "ciphertext"), "associated_data": base64(b"row 7") });
        let found = post(&service, "decrypt/a", &sealed);
        assert_eq!(&found.headers["cache-control"], "no-store");
        assert_eq!(found.ok()["data"], json!({ "plaintext": base64(b"text") }));
        post(&service, "keys/a/rotate", &json!({})).ok();
        let again = post(&service, "rewrap/a", &sealed).ok();
        assert_eq!(again["data"]["key_version"], 2);
        let sealed = json!({ "ciphertext": text(&again, "ciphertext"), "associated_data": base64(b"row 7") });
        assert_eq!(text(&post(&service, "decrypt/a", &sealed).ok(), "plaintext"), base64(b"text"));
        // bulla's own API has the same bytes behind its header.
        let own = [&[1, 0, 0, 0, 1], from_base64(&ciphertext.into()).as_slice()].concat();
        let own = json!({ "ciphertext": base64(&own), "associated_data": base64(b"row 7") });
        let found = service.post(None, "/api/v1/keys/a/decrypt", &own).ok();
        assert_eq!(found["plaintext"], base64(b"text"));
    }
}

#[test]
fn what_does_not_decrypt_says_no_more_than_that() {
    let service = with_key("aes256-gcm96");
    let body = json!({ "plaintext": base64(b"hunter2 hunter2"), "associated_data": base64(b"row 7") });
    let ciphertext = text(&post(&service, "encrypt/a", &body).ok(), "ciphertext").to_owned();
    post(&service, "keys/a/rotate", &json!({})).ok();
    post(&service, "keys/b", &json!({})).ok();
    let mut bytes = from_base64(&ciphertext["vault:v1:".len()..].into());
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let changed = format!("vault:v1:{}", base64(&bytes));
    let failed = "cipher: message authentication failed";
    let too_old = "ciphertext or signature version is disallowed by policy (too old)";
    let cases = [
        ("a", changed.as_str(), "row 7", failed),
        ("a", &ciphertext, "row 8", failed),
        ("a", &ciphertext, "", failed),
        ("b", &ciphertext, "row 7", failed),
        ("a", &ciphertext.replace(":v1:", ":v2:"), "row 7", failed),
        ("a", &ciphertext.replace(":v1:", ":v3:"), "row 7", "invalid ciphertext: version is too new"),
        (
            "a",
            &ciphertext.replace(":v1:", ":v99999999999:"),
            "row 7",
            "invalid ciphertext: version is too new",
        ),
        ("a", &ciphertext.replace(":v1:", ":v-1:"), "row 7", too_old),
        (
            "a",
            &ciphertext.replace(":v1:", ":vx:"),
            "row 7",
            "invalid ciphertext: version number could not be decoded",
        ),
        ("a", "vault:v1", "row 7", "invalid ciphertext: wrong number of fields"),
        ("a", "hunter2", "row 7", "invalid ciphertext: no prefix"),
        ("a", "vault:v1:****", "row 7", "invalid ciphertext: could not decode base64"),
        ("a", "vault:v1:AAAA", "row 7", "invalid ciphertext length"),
        ("a", "", "row 7", "missing ciphertext to decrypt"),
        ("c", &ciphertext, "row 7", "encryption key not found"),
    ];
    for (key, ciphertext, data, words) in cases {
        let body = json!({ "ciphertext": ciphertext, "associated_data": base64(data.as_bytes()) });
        for operation in ["decrypt", "rewrap"] {
            let answer = post(&service, &format!("{operation}/{key}"), &body);
            assert_eq!(
                (refused(&answer).0, refused(&answer).1.as_str()),
                (400, words),
                "{operation} {ciphertext}"
            );
            assert!(!answer.text().contains("hunter2") && !answer.text().contains(&base64(b"hunter2")[..8]));
        }
    }
    // As in Vault, version 0 is the first one.
    let first =
        json!({ "ciphertext": ciphertext.replace(":v1:", ":v0:"), "associated_data": base64(b"row 7") });
    assert_eq!(text(&post(&service, "decrypt/a", &first).ok(), "plaintext"), base64(b"hunter2 hunter2"));
    let config = json!({ "min_decryption_version": 2 });
    post(&service, "keys/a/config", &config).ok();
    let old = json!({ "ciphertext": ciphertext, "associated_data": base64(b"row 7") });
    for operation in ["decrypt/a", "rewrap/a"] {
        assert_eq!(refused(&post(&service, operation, &old)).1, too_old);
    }
}

#[test]
fn versions_encrypt_from_the_minimum_on() {
    let service = with_key("aes256-gcm96");
    post(&service, "keys/a/rotate", &json!({})).ok();
    let encrypt = |version: Value| {
        post(&service, "encrypt/a", &json!({ "plaintext": base64(b"text"), "key_version": version }))
    };
    for (version, made) in [(json!(0), 2), (json!(1), 1), (json!("2"), 2), (Value::Null, 2)] {
        assert_eq!(encrypt(version).ok()["data"]["key_version"], made);
    }
    let too_new = "requested version for encryption is higher than the latest key version";
    assert_eq!(refused(&encrypt(json!(3))).1, too_new);
    assert_eq!(refused(&encrypt(json!(1_u64 << 40))).1, too_new);
    assert_eq!(refused(&encrypt(json!(-1))).1, "requested version for encryption is negative");
    let old = encrypt(json!(1)).ok();
    let sealed = |version: u32| json!({ "ciphertext": text(&old, "ciphertext"), "key_version": version });
    assert_eq!(post(&service, "rewrap/a", &sealed(1)).ok()["data"]["key_version"], 1);
    post(&service, "keys/a/config", &json!({ "min_encryption_version": 2 })).ok();
    let too_old = "requested version for encryption is less than the minimum encryption key version";
    assert_eq!(refused(&encrypt(json!(1))).1, too_old);
    assert_eq!(refused(&post(&service, "rewrap/a", &sealed(1))).1, too_old);
    assert_eq!(post(&service, "rewrap/a", &sealed(0)).ok()["data"]["key_version"], 2);
    assert_eq!(refused(&post(&service, "datakey/wrapped/a", &json!({ "key_version": 1 }))).1, too_old);
    assert_eq!(text(&post(&service, "decrypt/a", &sealed(0)).ok(), "plaintext"), base64(b"text"));
}

#[test]
fn derived_keys_need_their_context() {
    let service = Service::open();
    let derived = json!({ "derived": true, "convergent_encryption": true });
    let made = post(&service, "keys/a", &derived).ok()["data"].clone();
    let shown = [
        &made["derived"],
        &made["kdf"],
        &made["convergent_encryption"],
        &made["convergent_encryption_version"],
    ];
    assert_eq!(shown, [&json!(true), &json!("hkdf_sha256"), &json!(true), &json!(-1)]);
    let body = json!({ "plaintext": base64(b"text"), "context": base64(b"column") });
    let made = post(&service, "encrypt/a", &body).ok()["data"].clone();
    assert_eq!(post(&service, "encrypt/a", &body).ok()["data"], made, "it is convergent");
    let without = post(&service, "encrypt/a", &json!({ "plaintext": base64(b"text") }));
    assert!(refused(&without).1.starts_with("missing 'context' for key derivation"), "{}", without.text());
    let with_data =
        json!({ "plaintext": base64(b"text"), "context": base64(b"column"), "associated_data": "AAAA" });
    assert_eq!(refused(&post(&service, "encrypt/a", &with_data)).0, 400);
    let sealed = |context: &[u8]| json!({ "ciphertext": made["ciphertext"], "context": base64(context) });
    assert_eq!(text(&post(&service, "decrypt/a", &sealed(b"column")).ok(), "plaintext"), base64(b"text"));
    let failed = "cipher: message authentication failed";
    assert_eq!(refused(&post(&service, "decrypt/a", &sealed(b"another"))).1, failed);
    // A key that is not derived takes no notice of a context, as in Vault.
    post(&service, "keys/b", &json!({})).ok();
    let made = post(&service, "encrypt/b", &body).ok();
    let sealed = json!({ "ciphertext": text(&made, "ciphertext") });
    assert_eq!(text(&post(&service, "decrypt/b", &sealed).ok(), "plaintext"), base64(b"text"));
    for (kind, body) in [
        ("c", json!({ "convergent_encryption": true })),
        ("d", json!({ "type": "hmac", "derived": true })),
        ("e", json!({ "type": "hmac", "key_size": 64 })),
    ] {
        assert_eq!(refused(&post(&service, &format!("keys/{kind}"), &body)).0, 400, "{body}");
    }
}

#[test]
fn an_item_that_fails_has_its_error_and_the_answer_says_so() {
    let service = with_key("aes256-gcm96");
    let items = json!([{ "plaintext": base64(b"1"), "reference": "a \"b\"" }, { "plaintext": "?" }]);
    let mut body = json!({ "batch_input": items });
    let answer = post(&service, "encrypt/a", &body);
    assert_eq!(answer.status, 400);
    let results = answer.json()["data"]["batch_results"].clone();
    assert_eq!((&results[0]["key_version"], &results[0]["reference"]), (&json!(1), &json!("a \"b\"")));
    assert_eq!(results[1]["code"], "malformed_request");
    assert!(results[1].get("ciphertext").is_none() && results[1].get("key_version").is_none());
    for (code, status, warnings) in
        [(207, 207, 0), (200, 200, 0), (204, 400, 1), (100, 400, 1), (700, 400, 1), (-1, 400, 1)]
    {
        body["partial_failure_response_code"] = json!(code);
        let answer = post(&service, "encrypt/a", &body);
        let warned = answer.json()["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!((answer.status, warned), (status, warnings), "{code}");
    }
    // If all fail, it is a failure.
    let none = json!({ "batch_input": [{ "plaintext": "?" }], "partial_failure_response_code": 207 });
    assert_eq!(post(&service, "encrypt/a", &none).status, 400);
    let sealed = json!([{ "ciphertext": results[0]["ciphertext"] }, { "ciphertext": "vault:v1:AAAA", "reference": "x" }]);
    let body = json!({ "batch_input": sealed, "partial_failure_response_code": 202 });
    let found = post(&service, "decrypt/a", &body);
    assert_eq!(found.status, 202);
    let found = found.json()["data"]["batch_results"].clone();
    assert_eq!(found[0], json!({ "plaintext": base64(b"1"), "reference": "" }));
    assert_eq!((&found[1]["plaintext"], &found[1]["reference"]), (&json!(""), &json!("x")));
    let again = post(&service, "rewrap/a", &body).ok()["data"]["batch_results"].clone();
    assert!(again[0]["ciphertext"].is_string() && again[1]["error"].is_string());
    for (body, words) in [
        (json!({ "batch_input": [] }), "missing batch input to process"),
        (
            json!({ "batch_input": [{}] }),
            "failed to parse batch input: '[0].plaintext' missing plaintext to encrypt",
        ),
        (json!({}), "missing plaintext to encrypt"),
        (
            json!({ "batch_input": [{ "plaintext": "", "context": "AAAA" }, { "plaintext": "" }] }),
            "context should be set either in all the request blocks or in none",
        ),
    ] {
        assert_eq!(refused(&post(&service, "encrypt/a", &body)).1, words);
    }
    let many: Vec<_> =
        (0..10_001).map(|_| json!({ "plaintext": "", "ciphertext": "", "input": "" })).collect();
    for operation in ["encrypt/a", "decrypt/a", "rewrap/a", "hmac/a"] {
        let (status, _, code) = refused(&post(&service, operation, &json!({ "batch_input": many })));
        assert_eq!((status, code.as_str()), (400, "too_many_items"), "{operation}");
    }
}

#[test]
fn a_data_key_is_shown_only_where_the_path_asks() {
    let service = with_key("aes256-gcm96");
    for (bits, length) in [(json!(128), 16), (Value::Null, 32), (json!("512"), 64)] {
        let made = post(&service, "datakey/plaintext/a", &json!({ "bits": bits })).ok();
        let sealed = json!({ "ciphertext": text(&made, "ciphertext") });
        let found = post(&service, "decrypt/a", &sealed).ok();
        assert_eq!(found["data"]["plaintext"], made["data"]["plaintext"]);
        assert_eq!(from_base64(&found["data"]["plaintext"]).len(), length);
    }
    let wrapped = post(&service, "datakey/wrapped/a", &json!({})).ok();
    assert!(wrapped["data"].get("plaintext").is_none());
    assert_eq!(
        refused(&post(&service, "datakey/plaintext/a", &json!({ "bits": 192 }))).1,
        "invalid bit length"
    );
    assert_eq!(refused(&post(&service, "datakey/nothing/a", &json!({}))).0, 400);
}

#[test]
fn every_key_makes_hmacs() {
    for kind in ["hmac", "aes256-gcm96", "ed25519", "ecdsa-p256", "blake3", "hmac-sha512"] {
        let service = with_key(kind);
        let made = |body: &Value| text(&post(&service, "hmac/a", body).ok(), "hmac").to_owned();
        let body = json!({ "input": base64(b"message") });
        let hmac = made(&body);
        let other = made(&json!({ "input": base64(b"message"), "algorithm": "sha2-512" }));
        assert_eq!(from_base64(&other["vault:v1:".len()..].into()).len(), 64);
        post(&service, "keys/a/rotate", &json!({})).ok();
        assert_eq!(made(&json!({ "input": base64(b"message"), "key_version": 1 })), hmac);
        assert!(made(&body).starts_with("vault:v2:"));
        let verify = |path: &str, input: &[u8], hmac: &str| {
            post(&service, path, &json!({ "input": base64(input), "hmac": hmac }))
        };
        let valid = |answer: &Answer| answer.ok()["data"]["valid"].as_bool().unwrap();
        assert!(valid(&verify("verify/a", b"message", &hmac)), "{kind}");
        assert!(valid(&verify("verify/a/sha2-512", b"message", &other)), "{kind}");
        assert!(!valid(&verify("verify/a", b"another", &hmac)));
        assert!(!valid(&verify("verify/a", b"message", &hmac.replace(":v1:", ":v2:"))));
        assert!(!valid(&verify("verify/a/sha2-512", b"message", &hmac)));
        let too_new = refused(&verify("verify/a", b"message", &hmac.replace(":v1:", ":v3:"))).1;
        assert_eq!(too_new, "invalid HMAC: version is too new");
        let items = json!({ "batch_input": [
            { "input": base64(b"message"), "hmac": hmac, "reference": "r" }, { "input": base64(b"another"), "hmac": hmac },
            { "input": base64(b"message"), "hmac": "nothing" },
        ] });
        let results = post(&service, "verify/a", &items).ok()["data"]["batch_results"].clone();
        assert_eq!(results[0], json!({ "valid": true, "reference": "r" }));
        assert_eq!((&results[1]["valid"], &results[2]["valid"]), (&json!(false), &json!(false)));
        // As in Vault, the signature counts if both are given.
        let both = json!({ "input": base64(b"message"), "hmac": hmac, "signature": "nothing" });
        assert_eq!(refused(&post(&service, "verify/a", &both)).0, 400);
        let batch = post(&service, "verify/a", &json!({ "batch_input": [both, both] }));
        if ["ed25519", "ecdsa-p256"].contains(&kind) {
            let results = batch.ok()["data"]["batch_results"].clone();
            assert_eq!(results[1]["error"], "invalid signature: no prefix", "{kind}");
        } else {
            assert!(refused(&batch).1.ends_with("does not support signing"), "{kind}");
        }
        let mixed = json!({ "batch_input": [both, { "input": base64(b"message"), "hmac": hmac }] });
        let mixed = refused(&post(&service, "verify/a", &mixed)).1;
        assert!(mixed.starts_with("elements of batch_input must all provide"), "{mixed}");
    }
}

/// RFC 4231, test case 2, whose key is imported.
#[test]
fn a_key_for_hmac_is_the_key_of_the_hmac() {
    let service = with_key("hmac");
    let own = json!({ "message": base64(b"what do ya want for nothing?") });
    let own = service.post(None, "/api/v1/keys/a/mac", &own).ok();
    let hmac = post(&service, "hmac/a", &json!({ "input": base64(b"what do ya want for nothing?") })).ok();
    assert_eq!(text(&hmac, "hmac"), format!("vault:v1:{}", own["mac"].as_str().unwrap()));
}

/// The requests about a key `a` that a token may or may not make, and their statuses.
fn statuses(service: &Service, token: &Token, ciphertext: &str, hmac: &str) -> Vec<(&'static str, u16)> {
    let bodies = [
        ("encrypt/a", json!({ "plaintext": base64(b"text") })),
        ("decrypt/a", json!({ "ciphertext": ciphertext })),
        ("rewrap/a", json!({ "ciphertext": ciphertext })),
        ("datakey/plaintext/a", json!({})),
        ("datakey/wrapped/a", json!({})),
        ("hmac/a", json!({ "input": "" })),
        ("verify/a", json!({ "input": "", "hmac": hmac })),
        ("verify/a", json!({ "input": "", "signature": hmac })),
        ("keys/a/rotate", json!({})),
        ("encrypt/new", json!({ "plaintext": base64(b"text") })),
    ];
    let send = |path: &str, body| service.post(Some(token), &format!("/v1/transit/{path}"), body).status;
    bodies.iter().map(|(path, body)| (*path, send(path, body))).filter(|(_, status)| *status != 403).collect()
}

#[test]
fn a_token_for_one_operation_does_nothing_else() {
    use TokenOperation::{Create, Decrypt, Encrypt, GenerateDataKey, Mac, Rewrap, Verify, VerifyMac};
    let keystore = keystore(&["local"]);
    let new = NewKey::new(name("local"), name("rows"), Algorithm::Aes256Gcm).label(name("a"));
    let key = keystore.create_key(new).unwrap().key_id().clone();
    let some = |may: &[TokenOperation]| token(&keystore, "local", GrantedKeys::These(vec![key.clone()]), may);
    let all = |may: &[TokenOperation]| token(&keystore, "local", GrantedKeys::All, may);
    let every = all(TokenOperation::ALL);
    let tokens = [
        (vec![("encrypt/a", 200)], some(&[Encrypt]), all(&[Encrypt])),
        (vec![("decrypt/a", 200)], some(&[Decrypt]), all(&[Decrypt])),
        (vec![("rewrap/a", 200)], some(&[Rewrap]), all(&[Rewrap])),
        (
            vec![("datakey/plaintext/a", 200), ("datakey/wrapped/a", 200)],
            some(&[GenerateDataKey]),
            all(&[GenerateDataKey]),
        ),
        (vec![("hmac/a", 200)], some(&[Mac]), all(&[Mac])),
        (vec![("verify/a", 200)], some(&[VerifyMac]), all(&[VerifyMac])),
        // An encryption key verifies no signatures.
        (vec![("verify/a", 400)], some(&[Verify]), all(&[Verify])),
        (vec![], some(&[Create]), all(&[Create])),
    ];
    let creates = all(&[Create, Encrypt]);
    let service = Service::start(keystore, config());
    let made =
        |path: &str, body: &Value| service.post(Some(&every), &format!("/v1/transit/{path}"), body).ok();
    let ciphertext =
        text(&made("encrypt/a", &json!({ "plaintext": base64(b"text") })), "ciphertext").to_owned();
    let hmac = text(&made("hmac/a", &json!({ "input": "" })), "hmac").to_owned();
    for (expected, some, all) in &tokens {
        for token in [some, all] {
            assert_eq!(statuses(&service, token, &ciphertext, &hmac), *expected);
        }
    }
    let expected = [("encrypt/a", 200), ("encrypt/new", 200)];
    assert_eq!(statuses(&service, &creates, &ciphertext, &hmac), expected, "it makes the key");
    let key = service.get(Some(&every), "/v1/transit/keys/new").ok();
    assert_eq!((&key["data"]["type"], &key["data"]["derived"]), (&json!("aes256-gcm96"), &json!(false)));
}

#[test]
fn a_key_is_made_by_the_first_encryption() {
    let service = Service::open();
    let encrypt = |key: &str, more: Value| {
        let mut body = json!({ "plaintext": base64(b"text") });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        post(&service, &format!("encrypt/{key}"), &body)
    };
    let key = |name: &str| service.get(None, &format!("/v1/transit/keys/{name}"));
    encrypt("a", json!({})).ok();
    assert_eq!(key("a").ok()["data"]["type"], "aes256-gcm96");
    encrypt("b", json!({ "context": base64(b"c"), "type": "chacha20-poly1305" })).ok();
    assert_eq!(
        (&key("b").ok()["data"]["derived"], &key("b").ok()["data"]["type"]),
        (&json!(true), &json!("chacha20-poly1305"))
    );
    encrypt("c", json!({ "context": base64(b"c"), "convergent_encryption": true })).ok();
    assert_eq!(key("c").ok()["data"]["convergent_encryption"], true);
    let without = encrypt("d", json!({ "convergent_encryption": true }));
    assert!(refused(&without).1.starts_with("convergent encryption requires"));
    for kind in ["ed25519", "hmac", "nonsense", "rsa-2048"] {
        assert_eq!(refused(&encrypt("d", json!({ "type": kind }))).1, "unknown key type", "{kind}");
    }
    assert_eq!(refused(&post(&service, "encrypt/d", &json!({}))).1, "missing plaintext to encrypt");
    assert_eq!(key("d").status, 404, "no key was made");
    assert_eq!(refused(&post(&service, "datakey/plaintext/d", &json!({}))).1, "encryption key not found");
    // A key that does not encrypt says so.
    post(&service, "keys/e", &json!({ "type": "ed25519" })).ok();
    assert_eq!(refused(&encrypt("e", json!({}))).1, "message encryption not supported for key type ed25519");
}

/// What a client sends: an AES key for the wrapping key, and what that key wraps.
fn wrapped(service: &Service, key: &[u8]) -> String {
    let pem = service.get(None, "/v1/transit/wrapping_key").ok();
    let public = import_public(text(&pem, "public_key").as_bytes(), PublicFormat::Pem, None).unwrap();
    let ephemeral = [9; 32];
    let encrypted = public.encrypt(&ephemeral, b"").unwrap();
    base64(&[encrypted, wrap_aes_kwp(&ephemeral, key).unwrap()].concat())
}

#[test]
fn a_key_that_was_wrapped_for_the_service_is_imported() {
    let service = Service::open();
    let secret = [7; 32];
    let sealed = wrapped(&service, &secret);
    let again = service.get(None, "/v1/transit/wrapping_key").ok();
    assert!(text(&again, "public_key").starts_with("-----BEGIN PUBLIC KEY-----"));
    let import = |name: &str, body: &Value| post(&service, &format!("keys/{name}"), body);
    assert_eq!(import("a/import", &json!({ "ciphertext": sealed, "hash_function": "SHA256" })).status, 204);
    let key = service.get(None, "/v1/transit/keys/a").ok()["data"].clone();
    assert_eq!((&key["type"], &key["imported_key"]), (&json!("aes256-gcm96"), &json!(true)));
    // Another keystore with the same secret decrypts.
    let made = post(&service, "encrypt/a", &json!({ "plaintext": base64(b"text") })).ok();
    let data = json!({ "format": "raw", "data": base64(&secret), "algorithm": "aes-256-gcm" });
    service.post(None, "/api/v1/import", &json!({ "label": "b", "private_key": data })).ok();
    let sealed_text = json!({ "ciphertext": text(&made, "ciphertext") });
    assert_eq!(text(&post(&service, "decrypt/b", &sealed_text).ok(), "plaintext"), base64(b"text"));
    let existing = refused(&import("a/import", &json!({ "ciphertext": sealed }))).1;
    assert!(existing.starts_with("the import path cannot be used with an existing key"), "{existing}");
    let next = json!({ "ciphertext": wrapped(&service, &[8; 32]) });
    assert_eq!(import("a/import_version", &next).status, 204);
    assert_eq!(service.get(None, "/v1/transit/keys/a").ok()["data"]["latest_version"], 2);
    let unwrapped = "failed to unwrap the key: it was not wrapped for this wrapping key";
    let mut bytes = from_base64(&json!(sealed));
    for place in [0, 511, 512, 530] {
        bytes[place] ^= 1;
        assert_eq!(
            refused(&import("c/import", &json!({ "ciphertext": base64(&bytes) }))).1,
            unwrapped,
            "{place}"
        );
        bytes[place] ^= 1;
    }
    for (body, status) in [
        (json!({}), 400),
        (json!({ "ciphertext": "AAAA" }), 400),
        (json!({ "ciphertext": sealed, "hash_function": "SHA1" }), 400),
        (json!({ "ciphertext": sealed, "type": "aes128-gcm96" }), 400),
        (json!({ "ciphertext": sealed, "type": "ed25519" }), 400),
        (json!({ "ciphertext": sealed, "type": "hmac" }), 204),
    ] {
        assert_eq!(import("d/import", &body).status, status, "{body}");
    }
    assert_eq!(service.get(None, "/v1/transit/keys/c").status, 404);
}

#[test]
fn what_an_import_cannot_do_is_refused_and_not_ignored() {
    let service = Service::open();
    let sealed = json!(wrapped(&service, &[7; 32]));
    let import = |name: &str, more: Value| {
        let mut body = json!({ "ciphertext": sealed });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        post(&service, &format!("keys/{name}"), &body)
    };
    assert_eq!(import("a/import", json!({ "auto_rotate_period": "24h" })).status, 204);
    assert_eq!(service.get(None, "/v1/transit/keys/a").ok()["data"]["auto_rotate_period"], 86_400);
    for (name, more, words) in [
        ("b/import", json!({ "auto_rotate_period": "1m" }), "auto rotate period must be"),
        (
            "b/import",
            json!({ "derived": true, "convergent_encryption": true }),
            "import cannot be used on keys",
        ),
        ("a/import_version", json!({ "version": 1 }), "an imported version gets the next number"),
    ] {
        let (status, said, _) = refused(&import(name, more.clone()));
        assert!(status == 400 && said.starts_with(words), "{name} {more}: {said}");
    }
    assert_eq!(service.get(None, "/v1/transit/keys/b").status, 404);
}

#[test]
fn a_wrapping_key_that_does_not_unwrap_gives_way_to_another() {
    let service = Service::open();
    let public = || text(&service.get(None, "/v1/transit/wrapping_key").ok(), "public_key").to_owned();
    let path_of = |key: &Value| format!("/api/v1/keys/{}", key.as_str().unwrap().replace('/', "%2F"));
    let of_wrapping = |key: &&Value| key["key"].as_str().unwrap().contains("/transit-wrapping/");
    let keys = || {
        let all = service.get(None, "/api/v1/keys").ok()["keys"].as_array().unwrap().clone();
        all.iter().filter(of_wrapping).cloned().collect::<Vec<_>>()
    };
    // Somebody brings one before the service makes one, and could read what is wrapped for it.
    let theirs = Keystore::in_memory().unwrap();
    let brought = NewKey::new(name("local"), name("transit"), Algorithm::Rsa4096);
    let brought = theirs.public_key(&theirs.create_key(brought).unwrap()).unwrap();
    let der = export_public(&brought, PublicFormat::Der).unwrap();
    let body =
        json!({ "public_key": { "format": "der", "data": base64(&der) }, "purpose": "transit-wrapping" });
    service.post(None, "/api/v1/import", &body).ok();
    let first = public();
    assert_ne!(first.as_bytes(), export_public(&brought, PublicFormat::Pem).unwrap());
    assert_eq!((public(), keys().len()), (first.clone(), 2));
    let made = keys().iter().find(|key| key["versions"][0]["origin"] == "generated").unwrap()["key"].clone();
    service.send("PATCH", None, &path_of(&made), br#"{"enabled":false}"#).ok();
    let second = public();
    assert_ne!(first, second);
    let sealed = json!({ "ciphertext": wrapped(&service, &[7; 32]) });
    assert_eq!(post(&service, "keys/a/import", &sealed).status, 204);
}

#[test]
fn an_imported_public_key_of_rsa_encrypts() {
    let (here, there) = (Service::open(), with_key("rsa-2048"));
    let pem = there.get(None, "/v1/transit/keys/a").ok()["data"]["keys"]["1"]["public_key"].clone();
    let import = json!({ "type": "rsa-2048", "public_key": pem });
    assert_eq!(post(&here, "keys/b/import", &import).status, 204);
    let items = json!([{ "plaintext": base64(b"text") }, { "plaintext": base64(b"more"), "key_version": 1 }]);
    let made = post(&here, "encrypt/b", &json!({ "batch_input": items })).ok();
    for (place, expected) in [(0, b"text"), (1, b"more")] {
        let sealed = json!({ "ciphertext": made["data"]["batch_results"][place]["ciphertext"] });
        assert_eq!(text(&post(&there, "decrypt/a", &sealed).ok(), "plaintext"), base64(expected));
        assert_eq!(refused(&post(&here, "decrypt/b", &sealed)).2, "no_private_key");
    }
    assert_eq!(refused(&post(&here, "sign/b", &json!({ "input": "" }))).2, "no_private_key");
}

#[test]
fn the_ciphertext_alone_says_which_version_decrypts() {
    let service = with_key("aes256-gcm96");
    let made = post(&service, "encrypt/a", &json!({ "plaintext": base64(b"text") })).ok();
    for version in [json!(-1), json!(0), json!(99), json!(1_u64 << 40)] {
        let item = json!({ "ciphertext": text(&made, "ciphertext"), "key_version": version });
        assert_eq!(text(&post(&service, "decrypt/a", &item).ok(), "plaintext"), base64(b"text"), "{version}");
        let batch = post(&service, "decrypt/a", &json!({ "batch_input": [item] })).ok();
        assert_eq!(batch["data"]["batch_results"][0]["plaintext"], base64(b"text"), "{version}");
        assert_eq!(post(&service, "rewrap/a", &item).status, if version == 0 { 200 } else { 400 });
    }
}

#[test]
fn capabilities_are_what_the_token_may_do() {
    let keystore = keystore(&["local"]);
    let new = |label| NewKey::new(name("local"), name("rows"), Algorithm::Aes256Gcm).label(name(label));
    let key = keystore.create_key(new("a")).unwrap().key_id().clone();
    keystore.create_key(new("b")).unwrap();
    let may = [TokenOperation::Encrypt, TokenOperation::Rewrap];
    let narrow = token(&keystore, "local", GrantedKeys::These(vec![key]), &may);
    let wide = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let ask = |token, what: &str, body: &Value| service.post(Some(token), &format!("/v1/sys/{what}"), body);
    let paths = json!([
        "transit/encrypt/a",
        "/transit/rewrap/a",
        "transit/decrypt/a",
        "transit/encrypt/b",
        "transit/encrypt/c",
        "sys/x"
    ]);
    let told = ask(&narrow, "capabilities-self", &json!({ "paths": paths })).ok()["data"].clone();
    let expected = json!({
        "transit/encrypt/a": ["update"], "/transit/rewrap/a": ["update"], "transit/decrypt/a": ["deny"],
        "transit/encrypt/b": ["deny"], "transit/encrypt/c": ["deny"], "sys/x": ["deny"],
    });
    assert_eq!(told, expected);
    let one = json!({ "token": narrow.expose(), "path": "transit/encrypt/a" });
    let told = ask(&wide, "capabilities", &one).ok()["data"].clone();
    assert_eq!(told, json!({ "capabilities": ["update"], "transit/encrypt/a": ["update"] }));
    let told =
        ask(&wide, "capabilities-self", &json!({ "paths": "transit/encrypt/c,transit/keys/a,transit/keys" }))
            .ok();
    let expected = json!({
        "transit/encrypt/c": ["create", "update"], "transit/keys/a": ["create", "delete", "read", "update"],
        "transit/keys": ["list"],
    });
    assert_eq!(told["data"], expected);
    for (body, words) in [
        (json!({}), "no token found"),
        (json!({ "token": "nonsense", "paths": ["a"] }), "invalid token"),
        (json!({ "token": wide.expose() }), "paths must be supplied"),
    ] {
        assert_eq!(refused(&ask(&wide, "capabilities", &body)).1, words);
    }
    let many: Vec<_> = (0..1001).map(|_| "a").collect();
    for paths in [json!(many), json!(many.join(","))] {
        let (status, _, code) = refused(&ask(&wide, "capabilities-self", &json!({ "paths": paths })));
        assert_eq!((status, code.as_str()), (400, "too_many_items"));
    }
}
