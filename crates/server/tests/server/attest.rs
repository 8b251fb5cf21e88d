//! What keys say of themselves.

use bulla_kms::succession::follow;
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, KeyChange, NewKey, PublicKey, SignedAttestation, Succession, Verdict};
use serde_json::json;

use crate::support::{Service, config, from_base64, keystore, name, token};

#[test]
fn an_attestation_is_the_keystores_and_its_signature_verifies() {
    let service = Service::open();
    for algorithm in ["ed25519", "ecdsa-p256", "ml-dsa-44"] {
        service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok();
        service.post(None, &format!("/api/v1/keys/{algorithm}/rotate"), &json!({})).ok();
        let answer = service.post(None, &format!("/api/v1/keys/{algorithm}/attest"), &json!({}));
        answer.ok();
        let attested: SignedAttestation = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(attested.verify(), Verdict::Valid, "{algorithm}");
        assert_eq!(serde_json::to_vec(&attested).unwrap(), answer.body, "its fields have their order");
        let view = service.get(None, &format!("/api/v1/keys/{algorithm}")).ok();
        assert_eq!(view["key"], attested.attestation.key.to_string());
        assert_eq!(view["head"], 2);
        let newest = attested.attestation.versions.last().unwrap();
        assert_eq!(from_base64(&view["versions"][1]["public_key"]), newest.public_key.as_bytes());
    }
    service.post(None, "/api/v1/keys", &json!({ "label": "kem", "algorithm": "x-wing" })).ok();
    let kem = service.post(None, "/api/v1/keys/kem/attest", &json!({}));
    assert_eq!(kem.error(), (400, "key_usage_mismatch".to_owned()));
}

#[test]
fn successions_lead_from_an_older_public_key_to_the_newest() {
    let service = Service::open();
    let made = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let get = || {
        let body = service.get(None, "/api/v1/keys/a/successions").ok();
        let texts: Vec<_> = body["successions"].as_array().unwrap().clone();
        texts.iter().map(|text| text.as_str().unwrap().parse().unwrap()).collect::<Vec<Succession>>()
    };
    assert!(get().is_empty());
    for _ in 0..3 {
        service.post(None, "/api/v1/keys/a/rotate", &json!({})).ok();
    }
    let first = from_base64(&made["versions"][0]["public_key"]);
    let first = PublicKey::from_bytes(Algorithm::Ed25519, &first).unwrap();
    let found = follow(&first, None, &get());
    assert_eq!(found.iter().map(|key| key.key.version()).collect::<Vec<_>>(), [2, 3, 4]);
    let newest = service.get(None, "/api/v1/keys/a").ok()["versions"][3]["public_key"].clone();
    assert_eq!(found[2].public_key.as_bytes(), from_base64(&newest));
}

#[test]
fn a_caller_without_the_right_learns_nothing_and_a_key_for_tokens_attests_nothing() {
    let keystore = keystore(&["local"]);
    let label =
        |label: &str| NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name(label));
    let mine = keystore.create_key(label("mine")).unwrap();
    keystore.create_key(label("theirs")).unwrap();
    let root = keystore.find(&name("local"), &name("tokens")).unwrap().unwrap();
    keystore.update(&root, None, &KeyChange::Label(Some(name("tokens")))).unwrap();
    let narrow =
        token(&keystore, "local", GrantedKeys::These(vec![mine.key_id().clone()]), &[TokenOperation::Read]);
    let signs = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let all = token(&keystore, "local", GrantedKeys::All, &TokenOperation::ALL);
    let service = Service::start(keystore, config());
    for (method, path) in [("POST", "attest"), ("GET", "successions")] {
        let ask =
            |token, key: &str| service.send(method, Some(token), &format!("/api/v1/keys/{key}/{path}"), b"");
        ask(&narrow, "mine").ok();
        let (forbidden, missing) = (ask(&narrow, "theirs"), ask(&narrow, "nothing"));
        assert_eq!(forbidden.error(), (403, "forbidden".to_owned()));
        assert_eq!((forbidden.status, &forbidden.body), (missing.status, &missing.body));
        assert_eq!(ask(&signs, "mine").error(), (403, "forbidden".to_owned()));
        assert_eq!(ask(&all, "nothing").error(), (404, "key_not_found".to_owned()));
        assert_eq!(ask(&all, "tokens").error(), (400, "key_usage_mismatch".to_owned()));
    }
}
