//! Keys, from their creation to their end, and single signatures.

use bulla_kms::{Algorithm, PublicKey, Verdict};
use serde_json::{Value, json};

use crate::support::{Answer, Service, base64, from_base64};

fn sign(service: &Service, key: &str, message: &[u8]) -> Answer {
    service.post(None, &format!("/api/v1/keys/{key}/sign"), &json!({ "message": base64(message) }))
}

fn verify(service: &Service, key: &str, message: &[u8], signed: &Value) -> Answer {
    let body =
        json!({ "message": base64(message), "signature": signed["signature"], "version": signed["version"] });
    service.post(None, &format!("/api/v1/keys/{key}/verify"), &body)
}

#[test]
fn a_key_signs_rotates_and_verifies_what_each_version_signed() {
    let service = Service::open();
    let made = service.post(None, "/api/v1/keys", &json!({ "label": "invoices" }));
    assert_eq!(made.status, 201);
    let made = made.ok();
    assert_eq!(made["algorithm"], "ed25519");
    let first = sign(&service, "invoices", b"a message").ok();
    assert_eq!(first["key"], made["versions"][0]["id"]);
    let public =
        PublicKey::from_bytes(Algorithm::Ed25519, &from_base64(&made["versions"][0]["public_key"])).unwrap();
    assert_eq!(public.verify(b"a message", &from_base64(&first["signature"])), Verdict::Valid);
    let rotated = service.post(None, "/api/v1/keys/invoices/rotate", &json!({})).ok();
    assert_eq!(rotated["head"], 2);
    let second = sign(&service, "invoices", b"a message").ok();
    assert_eq!(second["version"], 2);
    for signed in [&first, &second] {
        assert_eq!(verify(&service, "invoices", b"a message", signed).ok()["valid"], true);
        assert_eq!(verify(&service, "invoices", b"another", signed).ok()["valid"], false);
    }
    // By its name, too, with each slash escaped.
    let name = made["key"].as_str().unwrap().replace('/', "%2F");
    assert_eq!(service.get(None, &format!("/api/v1/keys/{name}")).ok()["label"], "invoices");
    let version = first["key"].as_str().unwrap().replace('/', "%2F");
    assert_eq!(verify(&service, &version, b"a message", &first).ok()["valid"], true);
    assert_eq!(sign(&service, &version, b"a message").error(), (409, "not_latest_version".to_owned()));
}

#[test]
fn every_algorithm_that_signs_signs() {
    let service = Service::open();
    for algorithm in ["ed25519", "ecdsa-p256", "ml-dsa-65", "ml-dsa-65-ed25519", "slh-dsa-sha2-128f"] {
        service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok();
        let signed = sign(&service, algorithm, b"a message").ok();
        assert_eq!(verify(&service, algorithm, b"a message", &signed).ok()["valid"], true, "{algorithm}");
        assert_eq!(verify(&service, algorithm, b"a massage", &signed).ok()["valid"], false, "{algorithm}");
    }
    let kem = service.post(None, "/api/v1/keys", &json!({ "label": "kem", "algorithm": "x-wing" }));
    kem.ok();
    assert_eq!(sign(&service, "kem", b"a message").error(), (400, "key_usage_mismatch".to_owned()));
    let unknown = service.post(None, "/api/v1/keys", &json!({ "algorithm": "rsa" }));
    assert_eq!(unknown.error(), (400, "malformed_request".to_owned()));
}

#[test]
fn a_key_is_changed_disabled_and_destroyed() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let change = |body: &Value| service.send("PATCH", None, "/api/v1/keys/a", body.to_string().as_bytes());
    assert_eq!(change(&json!({ "enabled": false })).ok()["state"], "disabled");
    assert_eq!(sign(&service, "a", b"x").error(), (409, "key_disabled".to_owned()));
    let stale = change(&json!({ "enabled": true, "revision": 0 }));
    assert_eq!(stale.error(), (409, "conflict".to_owned()));
    assert_eq!(change(&json!({ "enabled": true, "revision": 1 })).ok()["state"], "enabled");
    assert_eq!(change(&json!({})).error(), (400, "malformed_request".to_owned()));
    assert_eq!(change(&json!({ "rotation": { "max_uses": 2 } })).ok()["rotation"]["max_uses"], 2);
    let versions: Vec<_> =
        (0..5).map(|_| sign(&service, "a", b"x").ok()["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 1, 2, 2, 3], "a version signs twice");
    let revoked = service.post(None, "/api/v1/keys/a/versions/1/revoke", &json!({})).ok();
    assert_eq!(revoked["versions"][0]["state"], "revoked");
    let soon = json!({ "after": "2999-01-01T00:00:00.000Z" });
    assert_eq!(
        service.post(None, "/api/v1/keys/a/schedule-destruction", &soon).ok()["state"],
        "pending_destruction"
    );
    let early = service.send("DELETE", None, "/api/v1/keys/a", b"");
    assert_eq!(early.error(), (409, "destruction_not_due".to_owned()));
    assert_eq!(service.post(None, "/api/v1/keys/a/cancel-destruction", &json!({})).ok()["state"], "disabled");
    let past = json!({ "after": "2020-01-01T00:00:00.000Z" });
    service.post(None, "/api/v1/keys/a/schedule-destruction", &past).ok();
    let destroyed = service.send("DELETE", None, "/api/v1/keys/a", b"").ok();
    assert_eq!(destroyed["state"], "destroyed");
    assert_eq!(sign(&service, "a", b"x").error(), (409, "key_destroyed".to_owned()));
}

#[test]
fn keys_are_listed_in_pages() {
    let service = Service::open();
    for number in 0..7 {
        service.post(None, "/api/v1/keys", &json!({ "label": format!("key-{number}") })).ok();
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = service.get(None, &format!("/api/v1/keys?limit=3{after}")).ok();
        seen.extend(
            page["keys"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(seen.len(), 7);
    assert!(seen.is_sorted());
    assert_eq!(service.get(None, "/api/v1/keys?limit=0").error().0, 400);
    assert_eq!(service.get(None, "/api/v1/keys?after=nonsense").error(), (400, "invalid_id".to_owned()));
}
