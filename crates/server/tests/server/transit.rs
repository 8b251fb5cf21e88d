//! The API for clients of Vault: signing, verifying, and whatever JSON they send.

use std::sync::OnceLock;

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NewKey, PublicKey};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::on_disk::OnDisk;
use crate::support::{Answer, Service, base64, config, from_base64, keystore, name, token};

/// A service with a key `a` of this type.
pub(crate) fn with_key(kind: &str) -> Service {
    let service = Service::open();
    service.post(None, "/v1/transit/keys/a", &json!({ "type": kind })).ok();
    service
}

/// A service where every caller may do everything, and exports too.
pub(crate) fn permitting_all() -> Service {
    let mut config = config();
    config.service.development = true;
    Service::start(keystore(&["local"]), config)
}

/// Posts to the engine.
pub(crate) fn post(service: &Service, path: &str, body: &Value) -> Answer {
    service.post(None, &format!("/v1/transit/{path}"), body)
}

/// Gets from the engine.
pub(crate) fn get(service: &Service, path: &str) -> Answer {
    service.get(None, &format!("/v1/transit/{path}"))
}

pub(crate) fn sign(service: &Service, body: &Value) -> Answer {
    service.post(None, "/v1/transit/sign/a", body)
}

fn verify(service: &Service, body: &Value) -> Answer {
    service.post(None, "/v1/transit/verify/a", body)
}

/// The status of an error, its words in Vault's form, and its code.
#[track_caller]
pub(crate) fn refused(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    if body == json!({ "errors": [] }) {
        return (answer.status, String::new(), String::new());
    }
    let (status, code) = answer.error();
    let words: Vec<_> =
        body["errors"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    (status, words.join("|"), code)
}

#[track_caller]
fn is(answer: &Answer, status: u16, words: &str) {
    let (found, said, _) = refused(answer);
    assert_eq!((found, said.as_str()), (status, words));
}

fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn a_message_is_signed_and_verified_in_the_shapes_of_vault() {
    let service = with_key("ed25519");
    let answer = sign(&service, &json!({ "input": base64(b"a message"), "key_version": 0 }));
    let whole = answer.ok();
    let around =
        ["auth", "data", "lease_duration", "lease_id", "renewable", "request_id", "warnings", "wrap_info"];
    assert_eq!(fields(&whole), around);
    assert_eq!(answer.headers["x-request-id"].to_str().unwrap(), whole["request_id"]);
    assert_eq!(answer.headers["content-type"], "application/json");
    let nothing = json!({ "auth": null, "lease_duration": 0, "lease_id": "", "renewable": false, "warnings": null, "wrap_info": null });
    for (field, value) in nothing.as_object().unwrap() {
        assert_eq!(&whole[field], value, "{field}");
    }
    assert_eq!(fields(&whole["data"]), ["key_version", "signature"]);
    assert_eq!(whole["data"]["key_version"], 1);
    let signature = whole["data"]["signature"].as_str().unwrap();
    let bytes = from_base64(&signature.strip_prefix("vault:v1:").unwrap().into());
    let key = service.get(None, "/v1/transit/keys/a").ok();
    let public = from_base64(&key["data"]["keys"]["1"]["public_key"]);
    let public = PublicKey::from_bytes(Algorithm::Ed25519, &public).unwrap();
    assert!(public.verify(b"a message", &bytes).is_valid());
    let right = json!({ "input": base64(b"a message"), "signature": signature });
    assert_eq!(verify(&service, &right).ok()["data"], json!({ "valid": true }));
    let wrong = json!({ "input": base64(b"another"), "signature": signature });
    assert_eq!(verify(&service, &wrong).ok()["data"], json!({ "valid": false }));
    // As Vault's command line sends everything: by PUT, and as text.
    let body =
        json!({ "input": base64(b"a message"), "key_version": "1", "prehashed": "false", "unknown": 1 });
    let put = service.send("PUT", None, "/v1/transit/sign/a/sha2-256", body.to_string().as_bytes()).ok();
    assert_eq!(put["data"], whole["data"]);
}

#[test]
fn a_body_may_be_a_form() {
    let service = Service::open();
    let url = |path: &str| format!("{}/v1/{path}", service.url);
    let send = |path: &str, fields: &[(&str, &str)]| -> Value {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut answer = agent.post(url(path)).send_form(fields.iter().copied()).unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    };
    let made = send("transit/keys/a", &[("type", "aes256-gcm96"), ("exportable", "true")]);
    assert_eq!(made["data"]["exportable"], true, "{made}");
    let text = base64(b"a message?>");
    let sealed = send("transit/encrypt/a", &[("plaintext", &text), ("key_version", "1")]);
    let sealed = sealed["data"]["ciphertext"].as_str().unwrap();
    assert_eq!(send("transit/decrypt/a", &[("ciphertext", sealed)])["data"]["plaintext"], text);
    let paths = [("paths", "transit/keys/a"), ("paths", "sys/x")];
    let may = send("sys/capabilities-self", &paths)["data"].clone();
    assert_eq!((&may["sys/x"], fields(&may).len()), (&json!(["deny"]), 2));
    let refused = send("auth/approle/login", &[("secret_id", "x")]);
    assert_eq!(refused["errors"], json!(["missing role_id"]));
}

#[test]
fn an_items_error_is_in_its_result() {
    let service = with_key("ed25519");
    let items = json!({ "batch_input": [
        { "input": base64(b"1"), "reference": "a \"b\"" }, {}, { "input": "?" }, { "input": base64(b"2") },
        { "input": base64(b"bulla signature\0") }, { "input": base64(b"3"), "signature_context": "AAAA" },
    ] });
    let signed = sign(&service, &items).ok();
    let results = signed["data"]["batch_results"].as_array().unwrap();
    assert_eq!(fields(&results[0]), ["key_version", "reference", "signature"]);
    assert_eq!(results[0]["reference"], "a \"b\"");
    let expected =
        json!({ "key_version": 0, "error": "missing input", "code": "malformed_request", "reference": "" });
    assert_eq!(results[1], expected);
    assert_eq!(results[2]["error"], "unable to decode input as base64");
    assert_eq!(results[3]["key_version"], 1);
    assert_eq!(results[4]["code"], "reserved_message");
    assert_eq!(results[5]["code"], "not_supported");
    let signature = &results[0]["signature"];
    let items = json!({ "batch_input": [
        { "input": base64(b"1"), "signature": signature, "reference": "x" },
        { "input": base64(b"2"), "signature": signature },
        { "input": base64(b"1"), "signature": "vault:v2:AAAA" },
        { "input": base64(b"1"), "signature": "vault:v0:AAAA" },
        { "signature": signature },
        { "input": base64(b"1"), "signature": "nothing" },
        { "input": base64(b"2"), "signature": results[3]["signature"] },
    ] });
    let verified = verify(&service, &items).ok();
    let results = verified["data"]["batch_results"].as_array().unwrap();
    assert_eq!(results[0], json!({ "valid": true, "reference": "x" }));
    assert_eq!(results[1], json!({ "valid": false, "reference": "" }));
    let errors: Vec<_> = results[2..6].iter().map(|one| one["error"].as_str().unwrap()).collect();
    let expected = [
        "invalid signature: version is too new",
        "ciphertext or signature version is disallowed by policy (too old)",
        "missing input",
        "invalid signature: no prefix",
    ];
    assert_eq!(errors, expected);
    assert!(results[2..6].iter().all(|one| one["valid"] == false));
    assert_eq!(results[6]["valid"], true);
}

#[test]
fn a_batch_signs_what_single_requests_sign() {
    let service = with_key("ed25519");
    for count in [1, 7, 8, 9, 255, 256, 257, 1000] {
        let input = |number: usize| base64(&number.to_le_bytes());
        let items: Vec<_> = (0..count)
            .map(|number| json!({ "input": input(number), "reference": number.to_string() }))
            .collect();
        let signed = sign(&service, &json!({ "batch_input": items })).ok();
        let results = signed["data"]["batch_results"].as_array().unwrap();
        assert_eq!(results.len(), count);
        assert!(
            results
                .iter()
                .enumerate()
                .all(|(number, one)| one["reference"].as_str() == Some(number.to_string().as_str()))
        );
        let last = sign(&service, &json!({ "input": input(count - 1) })).ok();
        assert_eq!(last["data"]["signature"], results[count - 1]["signature"]);
        let items: Vec<_> = results
            .iter()
            .enumerate()
            .map(|(number, one)| json!({ "input": input(number), "signature": one["signature"] }))
            .collect();
        let verified = verify(&service, &json!({ "batch_input": items })).ok();
        assert!(verified["data"]["batch_results"].as_array().unwrap().iter().all(|one| one["valid"] == true));
    }
    let many: Vec<_> = (0..10_001).map(|_| json!({ "input": "" })).collect();
    let (status, _, code) = refused(&sign(&service, &json!({ "batch_input": many })));
    assert_eq!((status, code.as_str()), (400, "too_many_items"));
}

#[test]
fn every_type_signs_alone_and_in_batches() {
    for kind in ["ed25519", "ecdsa-p256", "mldsa-44", "ml-dsa-65-ed25519", "slh-dsa-sha2-128f"] {
        let service = with_key(kind);
        for marshaling in ["asn1", "jws"] {
            let body = json!({ "input": base64(b"x"), "marshaling_algorithm": marshaling });
            let single = sign(&service, &body).ok()["data"]["signature"].clone();
            let body =
                json!({ "batch_input": [{ "input": base64(b"x") }], "marshaling_algorithm": marshaling });
            let batch = sign(&service, &body).ok()["data"]["batch_results"][0]["signature"].clone();
            let items = json!([
                { "input": base64(b"x"), "signature": single }, { "input": base64(b"x"), "signature": batch },
                { "input": base64(b"y"), "signature": batch },
            ]);
            let body = json!({ "batch_input": items, "marshaling_algorithm": marshaling });
            let verified = verify(&service, &body).ok();
            let results = verified["data"]["batch_results"].as_array().unwrap();
            let valid: Vec<_> = results.iter().map(|one| one["valid"].as_bool().unwrap()).collect();
            assert_eq!(valid, [true, true, false], "{kind} {marshaling}: {verified}");
            let body =
                json!({ "input": base64(b"x"), "signature": single, "marshaling_algorithm": marshaling });
            assert_eq!(verify(&service, &body).ok()["data"]["valid"], true);
        }
    }
}

#[test]
fn a_digest_is_signed_as_ed25519ph_by_an_ed25519_key() {
    let service = with_key("ed25519");
    let digest = base64(&[7; 64]);
    let ph = |more: Value| {
        let mut body = json!({ "input": digest, "prehashed": true, "hash_algorithm": "sha2-512" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let plain = sign(&service, &ph(json!({}))).ok()["data"]["signature"].clone();
    let context = base64(b"invoices");
    let with_context =
        sign(&service, &ph(json!({ "signature_context": context }))).ok()["data"]["signature"].clone();
    assert_ne!(plain, with_context);
    let valid = |body: &Value| verify(&service, body).ok()["data"]["valid"].clone();
    assert_eq!(valid(&ph(json!({ "signature": plain }))), true);
    assert_eq!(valid(&ph(json!({ "signature": with_context }))), false);
    assert_eq!(valid(&ph(json!({ "signature": with_context, "signature_context": context }))), true);
    assert_eq!(valid(&json!({ "input": digest, "signature": plain })), false, "it is not one of Ed25519");
    let items = json!([
        { "input": digest }, { "input": digest, "signature_context": context }, { "input": base64(b"short") },
    ]);
    let signed = sign(&service, &ph(json!({ "batch_input": items }))).ok();
    let results = signed["data"]["batch_results"].as_array().unwrap();
    assert_eq!((&results[0]["signature"], &results[1]["signature"]), (&plain, &with_context));
    assert_eq!(results[2]["code"], "malformed_request");
    let items = json!([
        { "input": digest, "signature": plain }, { "input": digest, "signature": with_context, "signature_context": context },
        { "input": digest, "signature": with_context },
    ]);
    let verified = verify(&service, &ph(json!({ "batch_input": items }))).ok();
    let results = verified["data"]["batch_results"].as_array().unwrap();
    let valid: Vec<_> = results.iter().map(|one| one["valid"].as_bool().unwrap()).collect();
    assert_eq!(valid, [true, true, false]);
    let (status, _, code) = refused(&sign(&with_key("mldsa-44"), &ph(json!({}))));
    assert_eq!((status, code.as_str()), (400, "not_supported"));
    let (status, _, code) =
        refused(&sign(&with_key("ecdsa-p256"), &ph(json!({ "signature_context": context }))));
    assert_eq!((status, code.as_str()), (400, "not_supported"), "ECDSA has no contexts");
}

#[test]
fn the_verification_of_a_digest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.service.development = true;
    let service = OnDisk::create(folder.path()).start(config);
    service.post(None, "/v1/transit/keys/a", &json!({ "type": "ed25519" })).ok();
    let item = json!({ "input": base64(&[7; 64]), "signature": format!("vault:v1:{}", base64(&[0; 64])) });
    let mut body = item.clone();
    (body["prehashed"], body["hash_algorithm"]) = (true.into(), "sha2-512".into());
    verify(&service, &body).ok();
    body["batch_input"] = json!([item, item]);
    verify(&service, &body).ok();
    let metrics = service.get(None, "/metrics").text();
    let counted = "kms_ops_total{op=\"verify\",alg=\"ed25519\"} 3";
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");
}

#[test]
fn what_is_wrong_has_the_words_and_the_status_of_vault() {
    let service = with_key("ed25519");
    let signed = sign(&service, &json!({ "input": base64(b"x") })).ok()["data"]["signature"].clone();
    service.post(None, "/v1/transit/keys/a/rotate", &json!({})).ok();
    let missing =
        |path: &str| service.post(None, path, &json!({ "input": "", "signature": "vault:v1:AAAA" }));
    is(&missing("/v1/transit/sign/nobody"), 400, "signing key not found");
    is(&missing("/v1/transit/verify/nobody"), 400, "signature verification key not found");
    is(&service.get(None, "/v1/transit/keys/nobody"), 404, "");
    let version = |version: i64| sign(&service, &json!({ "input": "", "key_version": version }));
    is(&version(-1), 400, "requested version for signing is negative");
    is(&version(3), 400, "requested version for signing is higher than the latest key version");
    is(&version(1 << 40), 400, "requested version for signing is higher than the latest key version");
    version(1).ok();
    version(2).ok();
    service.post(None, "/v1/transit/keys/a/config", &json!({ "min_encryption_version": 2 })).ok();
    is(&version(1), 400, "requested version for signing is less than the minimum encryption key version");
    version(2).ok();
    let words = "invalid signature: version is too new";
    is(&verify(&service, &json!({ "input": "", "signature": "vault:v3:AAAA" })), 400, words);
    is(&sign(&service, &json!({})), 400, "missing input");
    is(&sign(&service, &json!({ "batch_input": [] })), 400, "missing batch input to process");
    is(&verify(&service, &json!({ "batch_input": [] })), 400, "missing batch input to process");
    is(&verify(&service, &json!({ "input": "" })), 400, "no 'signature' was given to verify");
    let some = json!({ "batch_input": [{ "input": "", "signature": signed }, { "input": "" }] });
    is(&verify(&service, &some), 400, "some elements of batch_input are missing 'signature'");
    service.post(None, "/v1/transit/keys/a/config", &json!({ "min_decryption_version": 2 })).ok();
    let old = json!({ "input": base64(b"x"), "signature": signed });
    is(&verify(&service, &old), 400, "ciphertext or signature version is disallowed by policy (too old)");
    for (field, value) in [("hash_algorithm", "md5"), ("marshaling_algorithm", "der")] {
        let (status, _, code) = refused(&sign(&service, &json!({ "input": "", field: value })));
        assert_eq!((status, code.as_str()), (400, "malformed_request"), "{field}");
    }
    for body in ["nonsense", "[]", "\"\"", "{\"input\":1}", "{\"batch_input\":{}}"] {
        let answer = service.send("POST", None, "/v1/transit/sign/a", body.as_bytes());
        assert_eq!(refused(&answer).0, 400, "{body}");
    }
    let (status, _, code) = refused(&service.get(None, "/v1/transit/sign/a"));
    assert_eq!((status, code.as_str()), (405, "method_not_allowed"));
    let (status, _, code) = refused(&service.get(None, "/v1/secret/data/a"));
    assert_eq!((status, code.as_str()), (404, "endpoint_not_found"));
    for unknown in ["Upper", "with%20space", "a%2Fb", "-a", &"a".repeat(65)] {
        let (status, _, code) = refused(&missing(&format!("/v1/transit/sign/{unknown}")));
        assert_eq!((status, code.as_str()), (400, "invalid_id"), "{unknown}");
    }
}

#[test]
fn what_is_not_offered_says_so() {
    let service = with_key("ed25519");
    for path in ["derived-keys/a", "cmac/a"] {
        let (status, _, code) = refused(&service.post(None, &format!("/v1/transit/{path}"), &json!({})));
        assert_eq!((status, code.as_str()), (400, "not_supported"), "{path}");
    }
    let (status, _, code) = refused(&service.post(None, "/v1/auth/token/tidy", &json!({})));
    assert_eq!((status, code.as_str()), (400, "not_supported"));
    for path in ["keys/a/unknown", "unknown", "keys/a/b/c"] {
        assert_eq!(refused(&service.get(None, &format!("/v1/transit/{path}"))).0, 404, "{path}");
    }
    let encrypted = service.post(None, "/v1/transit/encrypt/a", &json!({ "plaintext": "" }));
    assert_eq!(refused(&encrypted).2, "key_usage_mismatch");
}

#[test]
fn without_a_right_everything_is_permission_denied() {
    let keystore = keystore(&["local"]);
    let new = |label: &str| {
        let new = NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name(label));
        keystore.create_key(new).unwrap().key_id().clone()
    };
    let (mine, _) = (new("mine"), new("theirs"));
    let narrow = token(
        &keystore,
        "local",
        GrantedKeys::These(vec![mine]),
        &[TokenOperation::Sign, TokenOperation::Read],
    );
    let all = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign, TokenOperation::Read]);
    let stranger = super::support::keystore(&["local"]);
    let foreign = token(&stranger, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let sign = |token, key: &str| {
        service.post(token, &format!("/v1/transit/sign/{key}"), &json!({ "input": base64(b"x") }))
    };
    sign(Some(&narrow), "mine").ok();
    sign(Some(&all), "theirs").ok();
    let denied = |answer: &Answer, code: &str| {
        assert_eq!(refused(answer), (403, "permission denied".to_owned(), code.to_owned()));
    };
    denied(&sign(None, "mine"), "unauthenticated");
    denied(&sign(Some(&foreign), "mine"), "forbidden");
    denied(&sign(Some(&narrow), "theirs"), "forbidden");
    denied(&sign(Some(&narrow), "nothing"), "forbidden");
    assert_eq!(refused(&sign(Some(&all), "nothing")).1, "signing key not found");
    assert_eq!(
        refused(&sign(Some(&all), "tokens")).1,
        "signing key not found",
        "the root key of tokens is not there"
    );
    let post = |path: &str| service.post(Some(&all), path, &json!({ "type": "ed25519" }));
    for path in ["keys/new", "keys/mine/rotate", "keys/mine/config", "keys/mine/trim", "verify/mine"] {
        denied(&post(&format!("/v1/transit/{path}")), "forbidden");
    }
    denied(&service.send("DELETE", Some(&all), "/v1/transit/keys/mine", b""), "forbidden");
    denied(&service.send("PUT", Some(&all), "/v1/sys/seal", b""), "forbidden");
    let list = |token| service.get(Some(token), "/v1/transit/keys?list=true").ok()["data"]["keys"].clone();
    assert_eq!((list(&narrow), list(&all)), (json!(["mine"]), json!(["mine", "theirs"])));
    let token = service.get(Some(&narrow), "/v1/auth/token/lookup-self").ok();
    assert_eq!(token["data"]["policies"], json!(["sign", "read"]));
    let ttl = token["data"]["ttl"].as_u64().unwrap();
    assert!((3000..=3600).contains(&ttl), "{ttl}");
    assert!(service.get(Some(&all), "/v1/sys/mounts").ok()["data"]["transit/"]["type"] == "transit");
    let mount = service.get(Some(&all), "/v1/sys/internal/ui/mounts/transit/sign/mine").ok();
    assert_eq!(mount["data"]["path"], "transit/");
    denied(&service.get(Some(&all), "/v1/sys/internal/ui/mounts/secret"), "forbidden");
    denied(&service.get(None, "/v1/sys/mounts"), "unauthenticated");
}

#[test]
fn health_answers_with_the_status_that_is_asked_for() {
    let service = Service::start(Keystore::in_memory().unwrap(), config());
    let health = service.get(None, "/v1/sys/health").ok();
    assert_eq!(
        (&health["initialized"], &health["sealed"], &health["standby"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(service.get(None, "/v1/sys/health?activecode=204&standbyok=true").status, 204);
    for without_body in [204, 205, 304] {
        let answer = service.get(None, &format!("/v1/sys/health?activecode={without_body}"));
        assert_eq!(answer.status, without_body);
        assert!(answer.headers.get("content-length").is_none_or(|length| length == "0"), "{without_body}");
    }
    assert_eq!(service.get(None, "/v1/sys/health?sealedcode=299&uninitcode=299").status, 200);
    // Unknown to OpenBao, and so without a form.
    for ignored in
        ["drsecondarycode=", "drsecondarycode=x", "performancestandbycode=", "removedcode=", "perfstandbyok"]
    {
        assert_eq!(service.get(None, &format!("/v1/sys/health?{ignored}")).status, 200, "{ignored}");
    }
    assert_eq!(service.get(None, "/v1/sys/health?activecode=700").status, 700);
    for wrong in ["activecode=100", "activecode=", "sealedcode=1000", "standbycode=x", "activecode=99999"] {
        assert_eq!(refused(&service.get(None, &format!("/v1/sys/health?{wrong}"))).0, 400, "{wrong}");
    }
    assert_eq!(service.send("HEAD", None, "/v1/sys/health", b"").status, 200);
    assert_eq!(service.get(None, "/v1/sys/init").ok()["initialized"], true);
}

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
        1 => Just(base64(&[9; 64])),
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
