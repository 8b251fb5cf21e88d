//! Signature files: only the digest travels.

use bulla_kms::prehash::Prehash;
use bulla_kms::{Kind, SignatureFile};
use serde_json::{Value, json};

use crate::support::{Service, base64};

fn body(content: &[u8]) -> Value {
    let digest = base64(bulla_blake3::hash(content).as_bytes());
    json!({ "kind": "file", "digest": digest, "size": content.len(), "comment": "a word" })
}

#[test]
fn a_signature_file_is_about_the_digest_that_was_sent() {
    let service = Service::open();
    let key = service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    for (kind, word) in [(Kind::File, "file"), (Kind::Manifest, "manifest"), (Kind::Message, "message")] {
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
