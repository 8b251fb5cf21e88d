//! Batches: each item has its own result, whatever its neighbors are.

use serde_json::{Value, json};

use crate::support::{Service, base64, from_base64};

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
    let public = bulla_kms::PublicKey::from_bytes(bulla_kms::Algorithm::Ed25519, &public).unwrap();
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
