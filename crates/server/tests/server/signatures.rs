//! Attestations, statements, digests and batches.

use bulla_kms::prehash::Prehash;
use bulla_kms::succession::follow;
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{
    Algorithm, KeyChange, NewKey, PublicKey, SignatureFile, SignedAttestation, StatementKind, Succession,
    Verdict,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

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
        assert_eq!(
            from_base64(&view["versions"][1]["public_key"]),
            newest.public_key.as_ref().unwrap().as_bytes()
        );
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
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
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

fn body(content: &[u8]) -> Value {
    let digest = base64(bulla_blake3::hash(content).as_bytes());
    json!({ "kind": "file", "digest": digest, "size": content.len(), "comment": "a word" })
}

#[test]
fn a_signature_file_is_about_the_digest_that_was_sent() {
    let service = Service::open();
    let key = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    for (kind, word) in [
        (StatementKind::File, "file"),
        (StatementKind::Manifest, "manifest"),
        (StatementKind::Message, "message"),
    ] {
        for (prehash, name) in [
            (None, Value::Null),
            (Some(Prehash::Blake3), json!("blake3")),
            (Some(Prehash::Ed25519ph), json!("ed25519ph")),
        ] {
            let mut body = body(b"content");
            body["kind"] = json!(word);
            body["prehash"] = name;
            let signed = service.post(None, "/api/v1/keys/a/sign-statement", &body).ok();
            let text = signed["signature_file"].as_str().unwrap();
            let file = SignatureFile::read_from(&mut text.as_bytes()).unwrap();
            assert_eq!((file.kind, file.prehash, file.size), (kind, prehash, 7));
            assert_eq!(file.digest, bulla_blake3::hash(b"content"));
            assert_eq!(file.comment.as_str(), "a word");
            assert_eq!(signed["key"], json!(file.key.to_string()));
            assert_eq!(signed["key"], key["versions"][0]["id"]);
            assert_eq!(signed["version"], 1);
            let public_key = file.public_key.clone();
            assert_eq!(base64(public_key.as_bytes()), key["versions"][0]["public_key"].as_str().unwrap());
            assert!(file.verify_with(&public_key).is_valid());
        }
    }
}

#[test]
fn what_is_no_statement_is_refused() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    service.post(None, "/api/v1/keys", &json!({ "label": "pq", "algorithm": "ml-dsa-44" })).ok();
    let refused = |key: &str, field: &str, value: Value| {
        let mut body = body(b"content");
        body[field] = value;
        service.post(None, &format!("/api/v1/keys/{key}/sign-statement"), &body).error()
    };
    let malformed = (400, "malformed_request".to_owned());
    assert_eq!(refused("a", "kind", json!("folder")), malformed);
    assert_eq!(refused("a", "digest", json!("AAAA")), malformed);
    assert_eq!(refused("a", "digest", json!("?")), malformed);
    assert_eq!(refused("a", "size", json!(-1)), malformed);
    assert_eq!(refused("a", "prehash", json!("sha1")), malformed);
    assert_eq!(refused("a", "other", json!(1)), malformed);
    assert_eq!(refused("a", "comment", json!("a\nb")), (400, "invalid_argument".to_owned()));
    assert_eq!(refused("pq", "prehash", json!("blake3")), (400, "key_usage_mismatch".to_owned()));
    assert_eq!(refused("none", "size", json!(1)), (404, "key_not_found".to_owned()));
}

/// The digest of a message, as a client computes it.
fn digest(prehash: &str, message: &[u8]) -> String {
    match prehash {
        "blake3" => base64(bulla_blake3::hash(message).as_bytes()),
        _ => base64(&openssl_sha512(message)),
    }
}

fn openssl_sha512(message: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("message");
    std::fs::write(&path, message).unwrap();
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["dgst", "-sha512", "-binary"]).arg(path).output().unwrap().stdout
}

fn sign(service: &Service, body: &Value) -> Value {
    service.post(None, "/api/v1/keys/a/sign-digest", body).ok()
}

/// A key, and its public key.
fn service() -> (Service, PublicKey) {
    let service = Service::open();
    let key = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let bytes = from_base64(&key["versions"][0]["public_key"]);
    (service, PublicKey::from_bytes(Algorithm::Ed25519, &bytes).unwrap())
}

#[test]
fn a_digest_is_signed_as_the_keystore_signs_the_message() {
    let (service, key) = service();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let inputs = (any::<Vec<u8>>(), prop::collection::vec(any::<u8>(), 0..255), any::<bool>());
    let run = runner.run(&inputs, |(message, context, is_blake3)| {
        let (text, prehash) =
            if is_blake3 { ("blake3", Prehash::Blake3) } else { ("ed25519ph", Prehash::Ed25519ph) };
        let mut body =
            json!({ "prehash": text, "digest": digest(text, &message), "context": base64(&context) });
        let signed = sign(&service, &body);
        let expected = prehash.of(&message, &context).unwrap();
        let signature = from_base64(&signed["signature"]);
        prop_assert!(key.verify_prehashed(&expected, &signature).is_valid());
        body["signature"] = signed["signature"].clone();
        let verify =
            |body: &Value| service.post(None, "/api/v1/keys/a/verify-digest", body).ok()["valid"].clone();
        prop_assert_eq!(verify(&body), true);
        body["context"] = json!(base64(&[&context[..], b"!"].concat()));
        prop_assert_eq!(verify(&body), false);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn an_older_version_verifies_when_it_is_named() {
    let (service, _) = service();
    let mut body = json!({ "prehash": "blake3", "digest": digest("blake3", b"m") });
    let signed = sign(&service, &body);
    service.post(None, "/api/v1/keys/a/rotate", &json!({})).ok();
    body["signature"] = signed["signature"].clone();
    let verify = |body: &Value| service.post(None, "/api/v1/keys/a/verify-digest", body);
    assert_eq!(verify(&body).ok()["valid"], false);
    body["version"] = json!(1);
    assert_eq!(verify(&body).ok()["valid"], true);
    service.post(None, "/api/v1/keys/a/versions/1/revoke", &json!({})).ok();
    assert_eq!(verify(&body).error(), (409, "version_not_usable".to_owned()));
}

#[test]
fn other_digests_contexts_and_keys_are_refused() {
    let (service, _) = service();
    service.post(None, "/api/v1/keys", &json!({ "label": "p", "algorithm": "ecdsa-p256" })).ok();
    let refused = |key: &str, body: &Value| {
        let mut verify = body.clone();
        verify["signature"] = json!(base64(&[0; 64]));
        let signed = service.post(None, &format!("/api/v1/keys/{key}/sign-digest"), body).error();
        let verified = service.post(None, &format!("/api/v1/keys/{key}/verify-digest"), &verify).error();
        assert_eq!(signed, verified);
        signed
    };
    let (short, long) = (base64(&[7; 32]), base64(&[7; 64]));
    let malformed = (400, "malformed_request".to_owned());
    assert_eq!(refused("a", &json!({ "prehash": "blake3", "digest": long })), malformed);
    assert_eq!(refused("a", &json!({ "prehash": "ed25519ph", "digest": short })), malformed);
    assert_eq!(refused("a", &json!({ "prehash": "sha1", "digest": short })), malformed);
    let of_others = refused("a", &json!({ "prehash": "sha256", "digest": short }));
    assert_eq!(of_others, (400, "key_usage_mismatch".to_owned()));
    assert_eq!(refused("a", &json!({ "prehash": "blake3", "digest": "?" })), malformed);
    let reserved =
        json!({ "prehash": "blake3", "digest": short, "context": base64(b"bulla signature file") });
    assert_eq!(refused("a", &reserved), (400, "invalid_argument".to_owned()));
    let too_long = json!({ "prehash": "blake3", "digest": short, "context": base64(&[7; 256]) });
    assert_eq!(refused("a", &too_long), (400, "invalid_argument".to_owned()));
    let other = refused("p", &json!({ "prehash": "blake3", "digest": short }));
    assert_eq!(other, (400, "key_usage_mismatch".to_owned()));
}

#[test]
fn digests_need_the_same_rights_as_messages_and_keys_for_tokens_sign_none() {
    let keystore = keystore(&["local"]);
    let new = NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name("a"));
    keystore.create_key(new).unwrap();
    let signs = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let verifies = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Verify]);
    let service = Service::start(keystore, config());
    let body = json!({ "prehash": "blake3", "digest": base64(&[7; 32]) });
    let sign =
        |token, key: &str| service.post(Some(token), &format!("/api/v1/keys/{key}/sign-digest"), &body);
    let mut signed = body.clone();
    signed["signature"] = sign(&signs, "a").ok()["signature"].clone();
    let verify = |token| service.post(Some(token), "/api/v1/keys/a/verify-digest", &signed);
    assert_eq!(verify(&verifies).ok()["valid"], true);
    let refused = (403, "forbidden".to_owned());
    assert_eq!(sign(&verifies, "a").error(), refused);
    assert_eq!(verify(&signs).error(), refused);
    assert_eq!(sign(&signs, "tokens").error(), (400, "key_usage_mismatch".to_owned()));
}

fn items(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({ "message": base64(&number.to_le_bytes()) })).collect()
}

#[test]
fn a_batch_signs_what_single_requests_sign() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    for count in [1, 2, 7, 8, 9, 64, 255, 256, 257, 1000] {
        let batch = json!({ "key": "a", "items": items(count) });
        let signed = service.post(None, "/api/v1/sign", &batch).ok();
        let results = signed["results"].as_array().unwrap();
        assert_eq!(results.len(), count);
        let to_verify: Vec<_> = (0..count)
            .map(|number| {
                json!({ "key": results[number]["key"], "message": base64(&number.to_le_bytes()), "signature": results[number]["signature"] })
            })
            .collect();
        let verified = service.post(None, "/api/v1/verify", &json!({ "items": to_verify })).ok();
        assert!(verified["results"].as_array().unwrap().iter().all(|one| one["valid"] == true), "{count}");
    }
    // Ed25519 is deterministic.
    let single = service.post(None, "/api/v1/keys/a/sign", &items(1)[0]).ok();
    let batch = service.post(None, "/api/v1/sign", &json!({ "key": "a", "items": items(1) })).ok();
    assert_eq!(single, batch["results"][0]);
}

#[test]
fn a_bad_item_spoils_no_other() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    service.post(None, "/api/v1/keys", &json!({ "label": "slow", "algorithm": "ml-dsa-44" })).ok();
    let batch = json!({ "items": [
        { "key": "a", "message": base64(b"1") },
        { "key": "nobody", "message": base64(b"2") },
        { "message": base64(b"3") },
        { "key": "a", "message": "not base64" },
        { "key": "slow", "message": base64(b"4") },
        { "key": "a", "message": base64(b"bulla signature\0") },
    ]});
    let signed = service.post(None, "/api/v1/sign", &batch).ok();
    let codes: Vec<_> =
        signed["results"].as_array().unwrap().iter().map(|one| one["error"]["code"].clone()).collect();
    let expected = [
        Value::Null,
        json!("key_not_found"),
        json!("malformed_request"),
        json!("malformed_request"),
        Value::Null,
    ];
    assert_eq!(codes[..5], expected);
    let good = &signed["results"][0];
    let mut wrong = from_base64(&good["signature"]);
    wrong[0] ^= 1;
    let batch = json!({ "key": "a", "items": [
        { "message": base64(b"1"), "signature": good["signature"] },
        { "message": base64(b"1"), "signature": base64(&wrong) },
        { "message": base64(b"1"), "signature": "" },
        { "message": base64(b"1"), "signature": good["signature"], "version": 2 },
        { "key": "slow", "message": base64(b"4"), "signature": signed["results"][4]["signature"] },
        { "key": "nobody", "message": base64(b"4"), "signature": "" },
    ]});
    let verified = service.post(None, "/api/v1/verify", &batch).ok();
    let results = verified["results"].as_array().unwrap();
    let valid: Vec<_> = results.iter().map(|one| one["valid"].as_bool().unwrap()).collect();
    assert_eq!(valid, [true, false, false, false, true, false]);
    assert_eq!(results[3]["error"]["code"], "unknown_version");
    assert_eq!(results[5]["error"]["code"], "key_not_found");
    assert!(results[1]["error"].is_null());
}

#[test]
fn a_batch_has_a_length() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let post = |count| service.post(None, "/api/v1/sign", &json!({ "key": "a", "items": items(count) }));
    assert_eq!(post(10_000).ok()["results"].as_array().unwrap().len(), 10_000);
    assert_eq!(post(10_001).error(), (400, "too_many_items".to_owned()));
    assert_eq!(post(0).error(), (400, "malformed_request".to_owned()));
}

#[test]
fn concurrent_callers_get_their_own_signatures() {
    let service = Service::open();
    let key = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let public = from_base64(&key["versions"][0]["public_key"]);
    let public = PublicKey::from_bytes(Algorithm::Ed25519, &public).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..16_u8 {
            let (service, public) = (&service, &public);
            scope.spawn(move || {
                for number in 0..50_u8 {
                    let message = [caller, number];
                    let body = json!({ "message": base64(&message) });
                    let signed = service.post(None, "/api/v1/keys/a/sign", &body).ok();
                    assert!(public.verify(&message, &from_base64(&signed["signature"])).is_valid());
                }
            });
        }
    });
}
