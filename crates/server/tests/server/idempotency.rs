//! Requests with an idempotency key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bulla_kms::audit_log::{self, AuditEvent, AuditSink};
use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Code, KeystoreOptions, KmsError};
use serde_json::{Value, json};

use crate::support::{Answer, Service, base64, config, keystore, token};

fn post(service: &Service, token: Option<&Token>, path: &str, key: &str, body: &Value) -> Answer {
    service.send_with("POST", token, path, body.to_string().as_bytes(), &[("idempotency-key", key)])
}

fn keys(service: &Service, token: Option<&Token>) -> usize {
    service.get(token, "/api/v1/keys").ok()["keys"].as_array().unwrap().len()
}

#[test]
fn a_repetition_gets_the_same_answer_and_changes_nothing() {
    let service = Service::open();
    let create =
        |key: &str, label: &str| post(&service, None, "/api/v1/keys", key, &json!({ "label": label }));
    let first = create("k1", "a");
    assert!(first.status == 201 && !first.headers.contains_key("idempotency-replayed"));
    let again = create("k1", "a");
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["content-type"], "application/json");
    assert_eq!(keys(&service, None), 1);
    let rotate = || post(&service, None, "/api/v1/keys/a/rotate", "k2", &json!({}));
    assert_eq!((rotate().ok()["head"].clone(), rotate().ok()["head"].clone()), (json!(2), json!(2)));
    assert_eq!(create("k3", "a").error(), (409, "label_taken".to_owned()));
    assert_eq!(create("k3", "a").headers["idempotency-replayed"], "true", "an error is an answer, too");
    let patch = |enabled: bool| {
        let body = json!({ "enabled": enabled }).to_string();
        service.send_with("PATCH", None, "/api/v1/keys/a", body.as_bytes(), &[("idempotency-key", "k4")])
    };
    assert_eq!(patch(false).ok()["revision"], patch(false).ok()["revision"]);
    assert_eq!(patch(true).error(), (409, "idempotency_key_reused".to_owned()));
}

#[test]
fn an_import_is_made_once() {
    let service = Service::open();
    let import = |path: &str, key: &str, seed: u8| {
        let private = json!({ "format": "raw", "data": base64(&[seed; 32]), "algorithm": "ed25519" });
        post(&service, None, path, key, &json!({ "private_key": private }))
    };
    let first = import("/api/v1/import", "k1", 1);
    let again = import("/api/v1/import", "k1", 1);
    assert_eq!((first.status, again.status, &first.body), (201, 201, &again.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(keys(&service, None), 1);
    assert_eq!(import("/api/v1/import", "k1", 2).error(), (409, "idempotency_key_reused".to_owned()));
    let path = format!("/api/v1/keys/{}/import", first.json()["key"].as_str().unwrap().replace('/', "%2F"));
    for _ in 0..2 {
        assert_eq!(import(&path, "k2", 3).ok()["head"], 2);
    }
}

#[test]
fn a_key_is_for_one_request_of_one_caller() {
    let keystore = keystore(&["local"]);
    let mut tokens =
        [(); 2].map(|()| token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL)).to_vec();
    let stranger =
        token(&crate::support::keystore(&["local"]), "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let create = |token: &Token, path: &str, label: &str| {
        post(&service, Some(token), path, "k", &json!({ "label": label }))
    };
    create(&tokens[0], "/api/v1/keys", "a").ok();
    let mismatch = (409, "idempotency_key_reused".to_owned());
    assert_eq!(create(&tokens[0], "/api/v1/keys", "b").error(), mismatch);
    assert_eq!(create(&tokens[0], "/api/v1/keys/a/rotate", "a").error(), mismatch);
    assert_eq!(create(&tokens[0], "/api/v1/keys?x=1", "a").error(), mismatch);
    assert_eq!(create(&stranger, "/api/v1/keys", "a").error().0, 403);
    create(&tokens.remove(1), "/api/v1/keys", "b").ok();
    let none = service.send_with("POST", None, "/api/v1/keys", b"{}", &[("idempotency-key", "k")]);
    assert_eq!(none.error().0, 401);
}

#[test]
fn a_secret_is_not_kept_and_what_was_done_is_not_done_again() {
    let service = Service::open();
    let mint = || {
        let body = json!({ "operations": ["read"], "expires_in_seconds": 60 });
        post(&service, None, "/api/v1/tokens", "k", &body)
    };
    mint().ok();
    let again = mint();
    assert_eq!(again.error(), (409, "conflict".to_owned()));
    assert_eq!(again.json()["retryable"], false);
}

#[test]
fn a_header_that_is_no_key_is_refused() {
    let service = Service::open();
    let long = "k".repeat(129);
    for key in ["", "a b", long.as_str()] {
        let answer = post(&service, None, "/api/v1/keys", key, &json!({}));
        assert_eq!(answer.error(), (400, "malformed_request".to_owned()), "{key:?}");
    }
    let headers = [("idempotency-key", "a"), ("idempotency-key", "b")];
    let twice = service.send_with("POST", None, "/api/v1/keys", b"{}", &headers);
    assert_eq!(twice.error().0, 400);
    post(&service, None, "/api/v1/keys", &"k".repeat(128), &json!({})).ok();
    assert_eq!(keys(&service, None), 1);
}

#[test]
fn many_at_once_make_one_change() {
    let service = Service::open();
    let body = json!({ "algorithm": "ml-dsa-65" });
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| post(&service, None, "/api/v1/keys", "k", &body))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for answer in &answers {
        if answer.status != 201 {
            assert_eq!(answer.error(), (409, "conflict".to_owned()));
            assert!(answer.json()["retryable"] == true && answer.headers["retry-after"] == "1");
        }
    }
    assert!(answers.iter().any(|answer| answer.status == 201));
    assert_eq!(keys(&service, None), 1);
}

#[test]
fn a_caller_who_goes_away_finds_the_answer_later() {
    use std::io::Write as _;
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let path = "/api/v1/keys/a/rotate";
    let mut stream = std::net::TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{{}}")
        .unwrap();
    drop(stream);
    // Whether or not the request arrived before its caller went away, the key has two versions in
    // the end.
    let answer = loop {
        let answer = post(&service, None, path, "k", &json!({}));
        if answer.status == 200 {
            break answer.ok();
        }
        assert_eq!(answer.json()["retryable"], true, "{}", answer.text());
    };
    assert_eq!(answer["head"], 2);
    assert_eq!(service.get(None, "/api/v1/keys/a").ok()["head"], 2);
}

/// A log that had room for an entry when the change began, and has none when it was made.
#[derive(Debug)]
struct Full(AtomicU32);

impl AuditSink for Full {
    fn wants(&self, operation: audit_log::AuditOperation) -> bool {
        operation == audit_log::AuditOperation::Rotate
    }

    fn record(&self, _events: &[AuditEvent<'_>]) -> bulla_kms::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(KmsError::new(Code::StorageFull, "there is no room"))
    }
}

#[test]
fn a_change_that_could_not_be_recorded_is_not_made_again() {
    let log = Arc::new(Full(AtomicU32::new(0)));
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    for times in 0..3 {
        let answer = post(&service, None, "/api/v1/keys/a/rotate", "k", &json!({}));
        assert_eq!(answer.error(), (504, "outcome_unknown".to_owned()));
        assert_eq!(answer.json()["retryable"], false);
        assert_eq!(answer.headers.contains_key("idempotency-replayed"), times > 0);
    }
    assert_eq!(service.get(None, "/api/v1/keys/a").ok()["head"], 2);
    assert_eq!(log.0.load(Ordering::Relaxed), 1);
}

#[test]
fn requests_that_are_refused_for_their_key_or_their_body_count_towards_the_rate() {
    let keystore = keystore(&["local"]);
    let [one, other] =
        [(); 2].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Create]));
    let mut config = config();
    config.limits.max_body_bytes = 1000;
    config.limits.request_rate =
        Some(bulla_server::RequestRate { per_second: 1.try_into().unwrap(), burst: 3.try_into().unwrap() });
    let service = Service::start(keystore, config);
    let limited = (429, "rate_limited".to_owned());
    let malformed = || post(&service, Some(&one), "/api/v1/keys", &"k".repeat(200), &json!({})).error();
    assert_eq!(malformed().0, 400);
    while malformed() != limited {}
    let too_large =
        || post(&service, Some(&other), "/api/v1/keys", "k", &json!({ "label": "a".repeat(2000) })).error();
    assert_eq!(too_large().0, 413);
    while too_large() != limited {}
}
