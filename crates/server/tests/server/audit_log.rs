//! The audit log over HTTP.

use bulla_kms::PublicKey;
use bulla_kms::audit_log::{Checkpoint, ConsistencyProof, InclusionProof};
use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use serde_json::{Value, json};

use crate::support::on_disk::OnDisk;
use crate::support::{Service, base64, config, from_base64, keystore, token};

struct Logged {
    service: Service,
    operator: Token,
    folder: tempfile::TempDir,
}

/// A service whose log has some entries, in several files.
fn logged() -> Logged {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    let prepared = source.keystore();
    let operator = token(&prepared, "local", GrantedKeys::All, TokenOperation::ALL);
    drop(prepared);
    let service = source.start(config());
    service.post(Some(&operator), "/api/v1/keys", &json!({ "label": "a" })).ok();
    for _ in 0..30 {
        let body = json!({ "message": base64(b"x") });
        service.post(Some(&operator), "/api/v1/keys/a/sign", &body).ok();
    }
    Logged { service, operator, folder }
}

impl Logged {
    fn get(&self, path: &str) -> Value {
        self.service.get(Some(&self.operator), &format!("/api/v1/audit-log/{path}")).ok()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.service.post(Some(&self.operator), &format!("/api/v1/audit-log/{path}"), body).ok()
    }

    /// The key that signs checkpoints.
    fn key(&self) -> PublicKey {
        let key = self.service.get(Some(&self.operator), "/api/v1/keys/audit-log").ok();
        let bytes = from_base64(&key["versions"][0]["public_key"]);
        PublicKey::from_bytes(bulla_kms::Algorithm::Ed25519, &bytes).unwrap()
    }
}

#[test]
fn entries_are_read_in_pages() {
    let logged = logged();
    assert!(std::fs::read_dir(logged.folder.path().join("audit-log")).unwrap().count() > 4, "several files");
    let (mut entries, mut after) = (Vec::new(), String::new());
    loop {
        let page = logged.get(&format!("entries?limit=7{after}"));
        entries.extend(page["entries"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_u64() else { break };
        assert_eq!(page["entries"].as_array().unwrap().len(), 7);
        after = format!("&after={next}");
    }
    let numbers: Vec<_> = entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let signed: Vec<_> = entries
        .iter()
        .filter(|entry| {
            let who = entry["who"].as_str().unwrap();
            entry["operation"] == "sign" && entry["result"] == "ok" && who.starts_with("token ")
        })
        .collect();
    assert_eq!(signed.len(), 30);
    assert_eq!(signed[0]["digest"], bulla_blake3::hash(b"x").to_hex().as_str());
    assert!(logged.get("entries?after=100000")["entries"].as_array().unwrap().is_empty());
    for bad in ["limit=0", "limit=1001", "limit=x", "after=-1", "x=1"] {
        let answer = logged.service.get(Some(&logged.operator), &format!("/api/v1/audit-log/entries?{bad}"));
        assert_eq!(answer.error(), (400, "malformed_request".to_owned()), "{bad}");
    }
}

#[test]
fn proofs_and_checkpoints_verify_without_the_service() {
    let logged = logged();
    let key = logged.key();
    let older = logged.get("checkpoint");
    let old: Checkpoint = older["checkpoint"].as_str().unwrap().parse().unwrap();
    assert!(old.verify_with(&key).is_valid());
    let newer = logged.post("checkpoint", &json!({}));
    assert!(newer["size"].as_u64() > older["size"].as_u64());
    assert_eq!(logged.get("checkpoint"), newer);
    let proof: InclusionProof = serde_json::from_value(logged.get("entries/12/proof")).unwrap();
    assert!(proof.verify(&key).unwrap().is_valid());
    assert_eq!(proof.entry().unwrap().number, 12);
    let body = json!({ "checkpoint": older["checkpoint"] });
    let proof: ConsistencyProof = serde_json::from_value(logged.post("consistency", &body)).unwrap();
    assert!(proof.verify(&key, &key).is_valid());
    let get = |path: &str| logged.service.get(Some(&logged.operator), path).error();
    assert_eq!(get("/api/v1/audit-log/entries/100000/proof"), (400, "invalid_argument".to_owned()));
    assert_eq!(get("/api/v1/audit-log/entries/x/proof"), (400, "malformed_request".to_owned()));
    let wrong = json!({ "checkpoint": "nothing" });
    let wrong = logged.service.post(Some(&logged.operator), "/api/v1/audit-log/consistency", &wrong);
    assert_eq!(wrong.error(), (400, "malformed_proof".to_owned()));
}

#[test]
fn a_verification_finds_what_was_altered() {
    let logged = logged();
    let checkpoint = logged.post("checkpoint", &json!({}))["checkpoint"].clone();
    let report = logged.post("verify", &json!({ "checkpoints": [checkpoint] }));
    assert_eq!((&report["valid"], &report["problems"]), (&json!(true), &json!([])));
    assert_eq!(report["checkpoint"]["checkpoint"], checkpoint);
    let folder = OnDisk::existing(logged.folder.path()).log();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let text = std::fs::read_to_string(&files[1]).unwrap();
    std::fs::write(&files[1], text.replacen("\"op\":\"sign\"", "\"op\":\"read\"", 1)).unwrap();
    let report = logged.post("verify", &json!({}));
    assert_eq!((&report["valid"], &report["problems"][0]["kind"]), (&json!(false), &json!("altered")));
}

#[test]
fn a_keystore_without_a_log_says_so() {
    let keystore = keystore(&["local", "other"]);
    let operator = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Audit]);
    let other = token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Audit]);
    let service = Service::start(keystore, config());
    let path = "/api/v1/audit-log/entries";
    assert_eq!(service.get(Some(&operator), path).error(), (409, "no_audit_log".to_owned()));
    assert_eq!(service.get(Some(&other), path).error(), (403, "forbidden".to_owned()));
}
