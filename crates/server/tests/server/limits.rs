//! What a caller may ask for at most, and bad requests.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bulla_kms::Keystore;
use bulla_kms::token::{GrantedKeys, TokenOperation};
use serde_json::json;

use crate::support::{Service, config, keystore, token};

#[test]
fn a_body_has_a_length() {
    let mut config = config();
    config.limits.max_body_bytes = 1000;
    config.service.development = true;
    let service = Service::start(Keystore::in_memory(), config);
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let sign =
        |length: usize| service.post(None, "/api/v1/keys/a/sign", &json!({ "message": "A".repeat(length) }));
    sign(900).ok();
    assert_eq!(sign(1000).error(), (413, "body_too_large".to_owned()));
    // The same without a length that is said before.
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    write!(
        stream,
        "POST /api/v1/keys/a/sign HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .unwrap();
    for _ in 0..20 {
        if write!(stream, "64\r\n{}\r\n", "A".repeat(100)).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[test]
fn a_connection_outlives_a_request_that_was_refused_before_its_body_came() {
    let service = Service::start(Keystore::in_memory(), config());
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    let mut answered = |request: &str, status: &[u8]| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(status), "{}", String::from_utf8_lossy(&answer));
    };
    for path in ["/api/v1/keys", "/v1/transit/sign/a"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n");
        answered(&head, if path.starts_with("/api") { b"HTTP/1.1 401" } else { b"HTTP/1.1 403" });
        let next = format!("{}GET /api/v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n", "A".repeat(1000));
        answered(&next, b"HTTP/1.1 200");
    }
}

#[test]
fn a_slow_caller_is_cut_off() {
    let mut config = config();
    (config.limits.body_timeout_seconds, config.limits.idle_timeout_seconds) = (1, 1);
    config.service.development = true;
    let service = Service::start(Keystore::in_memory(), config);
    let send = |text: &str| {
        let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = Vec::new();
        // The service closes it. What it has not read by then makes a reset of that.
        let closed = match stream.read_to_end(&mut answer) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        assert!(closed, "the connection is still open after {text:?}");
        String::from_utf8_lossy(&answer).into_owned()
    };
    let head = send("POST /api/v1/keys HTTP/1.1\r\nhost: ");
    assert!(!head.starts_with("HTTP/1.1 2"), "{head}");
    let body = send("POST /api/v1/keys HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{");
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
}

#[test]
fn a_token_has_a_rate_and_a_batch_counts_as_its_items() {
    let keystore = keystore(&["local"]);
    let (slow, other) = (
        token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read, TokenOperation::Sign]),
        token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]),
    );
    let mut config = config();
    let (per_second, burst) = (1.try_into().unwrap(), 5.try_into().unwrap());
    config.limits.request_rate = Some(bulla_server::RequestRate { per_second, burst });
    let service = Service::start(keystore, config);
    let batch = json!({ "key": "a", "items": vec![json!({ "message": "" }); 6] });
    let refused = service.post(Some(&slow), "/api/v1/sign", &batch);
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.error(), (429, "rate_limited".to_owned()));
    let mut limited = 0;
    for _ in 0..20 {
        limited += usize::from(service.get(Some(&slow), "/api/v1/keys").status == 429);
    }
    assert!(limited >= 5, "{limited} of 20 were refused");
    service.get(Some(&other), "/api/v1/keys").ok();
    let passed = (1..20).filter(|seconds| {
        // Each is another token, which anybody can make of the first.
        let expires = Some(crate::support::after(1000 + seconds));
        let made = slow.attenuate(&bulla_kms::token::TokenLimits { expires, ..Default::default() }).unwrap();
        service.get(Some(&made), "/api/v1/keys").status == 200
    });
    assert!(passed.count() < 15, "they have the rate of the token from which they were made");
}

#[test]
fn bad_requests_get_clear_errors() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let bad = |body: &[u8]| service.send("POST", None, "/api/v1/keys/a/sign", body);
    for body in [
        &b""[..],
        b"{",
        b"null",
        b"[]",
        b"{\"message\":1}",
        b"{\"message\":\"\",\"x\":1}",
        b"{\"message\":\"\xff\"}",
    ] {
        assert_eq!(
            bad(body).error(),
            (400, "malformed_request".to_owned()),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    assert_eq!(bad(b"{\"message\":\"\\u0041A==\"}").status, 200, "an escape is read");
    assert_eq!(service.get(None, "/api/v2").error(), (404, "endpoint_not_found".to_owned()));
    assert_eq!(
        service.send("PUT", None, "/api/v1/keys", b"").error(),
        (405, "method_not_allowed".to_owned())
    );
    assert_eq!(service.get(None, "/api/v1/keys/Not%20A%20Label").error(), (400, "invalid_id".to_owned()));
    let first = service.get(None, "/api/v1/health").headers["x-request-id"].clone();
    assert_ne!(first, service.get(None, "/api/v1/health").headers["x-request-id"]);
}

#[test]
fn a_shutdown_answers_what_was_asked() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a", "algorithm": "slh-dsa-sha2-128s" })).ok();
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    let body = r#"{"message":""}"#;
    let head = format!(
        "POST /api/v1/keys/a/sign HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    // It is being signed, which takes long.
    std::thread::sleep(Duration::from_millis(20));
    drop(service);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// A body that is not read ends the connection, and the next request of a caller who keeps it
/// fails.
#[test]
fn a_connection_outlives_a_body_that_nobody_needs() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_nodelay(true).unwrap();
    let read = |stream: &mut TcpStream| {
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let mut piece = [0; 4096];
            match stream.read(&mut piece).unwrap() {
                0 => break,
                length => answer.extend_from_slice(&piece[..length]),
            }
        }
        String::from_utf8(answer).unwrap()
    };
    for path in ["keys/a/rotate", "keys/a/attest", "keys/a/versions/1/destroy", "keys/a/versions/1/revoke"] {
        write!(stream, "POST /api/v1/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")
            .unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(b"{}").unwrap();
        let answer = read(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
}
