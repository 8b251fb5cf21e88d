//! Whatever JSON a client sends, the service answers, and never that it failed itself.

use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Service;
use crate::transit::with_key;

fn service(kind: &'static str) -> &'static Service {
    static ED25519: OnceLock<Service> = OnceLock::new();
    static P256: OnceLock<Service> = OnceLock::new();
    let place = if kind == "ed25519" { &ED25519 } else { &P256 };
    place.get_or_init(|| with_key(kind))
}

/// Texts that mean something to the parsers, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "", "AAAA", "aGVsbG8=", "====", "sha2-256", "sha2-512", "none", "asn1", "jws", "true", "0", "1", "-1", "24h",
            "vault:v1:AAAA", "vault:v1:MAYCAQECAQE=", "vault:v99999999999:", "vault:v0:", "vault:v:", "vault:", "ml-dsa",
            "ed25519", "99999999999999999999999", "\u{0}", "\u{e9}\u{1f511}",
        ]).prop_map(str::to_owned),
        1 => ".{0,40}",
        1 => "vault:v[0-9]{1,3}:[A-Za-z0-9+/]{0,90}={0,2}",
        1 => Just(crate::support::base64(&[9; 64])),
    ]
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => prop::sample::select(vec![
            "input", "signature", "hmac", "key_version", "hash_algorithm", "algorithm", "prehashed", "signature_algorithm",
            "signature_context", "marshaling_algorithm", "batch_input", "reference", "context", "type", "parameter_set",
            "exportable", "auto_rotate_period", "min_decryption_version", "min_available_version", "deletion_allowed",
        ]).prop_map(str::to_owned),
        1 => ".{0,8}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => (-2..4_i64).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        2 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            2 => prop::collection::vec((field(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// A body that is at least an object, most often with items that are.
fn body() -> impl Strategy<Value = Value> {
    let items = prop::collection::vec(prop::collection::vec((field(), value()), 0..5), 0..4);
    let fields = || prop::collection::vec((field(), value()), 0..6);
    prop_oneof![
        3 => fields().prop_map(|fields| fields.into_iter().collect()),
        3 => (fields(), items).prop_map(|(fields, items)| {
            let mut body: Value = fields.into_iter().collect();
            let items: Vec<Value> = items.into_iter().map(|item| item.into_iter().collect()).collect();
            body["batch_input"] = json!(items);
            body
        }),
        1 => value(),
    ]
}

/// Answers are whole: data, or errors with a code.
fn check(service: &Service, path: &str, body: &[u8]) -> Result<(), TestCaseError> {
    let answer = service.send("POST", None, path, body);
    prop_assert!(answer.status < 500, "{path}: {}: {}", answer.status, answer.text());
    let json = answer.json();
    if answer.status >= 400 {
        prop_assert!(
            json["errors"].is_array() && json["code"].is_string() && json["retryable"] == false,
            "{json}"
        );
    } else {
        prop_assert!(json["data"].is_object(), "{json}");
    }
    Ok(())
}

const PATHS: [&str; 8] = [
    "sign/a",
    "verify/a",
    "sign/a/sha2-512",
    "verify/a/sha2-256",
    "keys/b",
    "keys/a/config",
    "keys/a/trim",
    "keys/a/rotate",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_json_is_answered(body in body(), path in 0..6_usize, ed25519: bool) {
        let service = service(if ed25519 { "ed25519" } else { "ecdsa-p256" });
        check(service, &format!("/v1/transit/{}", PATHS[path]), body.to_string().as_bytes())?;
    }

    #[test]
    fn any_bytes_are_answered(body: Vec<u8>, path in 0..8_usize) {
        check(service("ed25519"), &format!("/v1/transit/{}", PATHS[path]), &body)?;
    }

    #[test]
    fn any_change_of_a_good_body_is_answered(at in 0..200_usize, byte: u8, insert: bool, path in 0..2_usize) {
        let good = json!({ "batch_input": [
            { "input": "aGVsbG8=", "signature": "vault:v1:AAAA", "reference": "r" }, { "input": "", "signature": "vault:v1:" },
        ], "key_version": 1, "marshaling_algorithm": "jws", "prehashed": false });
        let mut body = good.to_string().into_bytes();
        let at = at % body.len();
        if insert {
            body.insert(at, byte);
        } else {
            body[at] = byte;
        }
        check(service("ecdsa-p256"), &format!("/v1/transit/{}", PATHS[path]), &body)?;
    }
}
