//! Refusals, lost answers and deadlines: which requests are repeated, and which never.

use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use bulla_client::blocking::Client;
use bulla_client::middleware::{Middleware, Next, Request, Response};
use bulla_client::{BoxFuture, Error, ErrorCode, ErrorKind, NewKey, Result, SignItem, Verdict, VerifyItem};
use tokio::net::TcpSocket;

use crate::faulty::{Canned, Fault, Faulty};
use crate::support::Service;
use crate::{blocking, builder, client};

/// A service with the key `a`, and a client that reaches it through a network with faults.
fn faulty(faults: &[Fault]) -> (Service, Faulty, Client) {
    let service = Service::open();
    let new = NewKey { label: Some("a".to_owned()), ..NewKey::default() };
    client(&service.url).create_key(&new).unwrap();
    let network = Faulty::before(&service.url, faults);
    let client = blocking(builder(&network.url).initial_backoff(Duration::from_millis(1)));
    (service, network, client)
}

const RETRYABLE: &str = r#"{"code":"busy","message":"a moment","retryable":true}"#;
const BUSY: Fault = Fault::Answer(Canned(503, 0, RETRYABLE));
const BUSY_FOR_AN_HOUR: Fault = Fault::Answer(Canned(503, 3600, RETRYABLE));
const REFUSED: Fault =
    Fault::Answer(Canned(409, 0, r#"{"code":"conflict","message":"no","retryable":false}"#));
const PROXY_LIMITS: Fault = Fault::Answer(Canned(429, 0, "<html>"));
const PROXY_BUSY: Fault = Fault::Answer(Canned(503, 0, "<html>"));
const BAD_GATEWAY: Fault = Fault::Answer(Canned(502, 0, "<html>"));
const NONSENSE: Fault = Fault::Answer(Canned(200, 0, r#"{"key":"hunter2","version":"hunter2"}"#));

#[test]
fn a_refusal_that_may_help_is_repeated_with_the_same_request() {
    let (_service, network, client) = faulty(&[BUSY, BUSY]);
    let rotated = client.rotate_key("a").unwrap();
    assert_eq!(rotated.latest_version, 2);
    let seen = network.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    let key = seen[0].header("idempotency-key").unwrap();
    assert_eq!(key.len(), 32);
    client.rotate_key("a").unwrap();
    assert_ne!(network.seen()[3].header("idempotency-key").unwrap(), key);
    // A request that changes nothing has no key.
    client.sign("a", b"").unwrap();
    assert_eq!(network.seen()[4].header("idempotency-key"), None);
}

#[test]
fn a_busy_proxy_is_asked_again_unless_the_request_changes_something() {
    let (_service, network, client) = faulty(&[PROXY_LIMITS, PROXY_BUSY]);
    client.sign("a", b"").unwrap();
    assert_eq!(network.seen().len(), 3);
    for answer in [PROXY_LIMITS, PROXY_BUSY] {
        let (_service, network, client) = faulty(&[answer]);
        let error = client.rotate_key("a").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidResponse), "{error:?}");
        assert_eq!(network.seen().len(), 1);
    }
}

#[test]
fn a_refusal_that_stays_one_is_not_repeated() {
    let (_service, network, client) = faulty(&[REFUSED]);
    let error = client.sign("a", b"").unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::Conflict));
    assert_eq!(network.seen().len(), 1);
}

#[test]
fn a_batch_keeps_its_results_when_a_later_request_fails() {
    let passed_on = Fault::Last;
    let (_service, network, _) = faulty(&[passed_on, passed_on, REFUSED, passed_on, REFUSED, REFUSED]);
    let client = blocking(builder(&network.url).max_batch_items(3));
    let failed = client.sign_many(&[SignItem { key: "a", message: b"" }; 8]).unwrap_err();
    assert_eq!(failed.error.code(), Some(&ErrorCode::Conflict));
    assert_eq!(failed.to_string(), "the batch stopped after 6 results");
    let signatures: Vec<_> = failed.results.into_iter().map(|signed| signed.unwrap().bytes).collect();
    assert_eq!(signatures.len(), 6);
    let items = signatures.iter().map(|signature| VerifyItem { key: "a", message: b"", signature });
    let items: Vec<_> = items.collect();
    let failed = client.verify_many(&items).unwrap_err();
    assert_eq!(failed.results, [const { Ok(Verdict::Valid) }; 3]);
    let failed = client.verify_many(&items).unwrap_err();
    assert_eq!(failed.results, []);
    assert_eq!(Error::from(failed).code(), Some(&ErrorCode::Conflict));
}

#[test]
fn repetitions_end() {
    let (_service, network, client) = faulty(&[BUSY; 9]);
    let error = client.sign("a", b"").unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::Busy));
    assert_eq!(network.seen().len(), 4);
    let never = blocking(builder(&network.url).max_retries(0));
    never.sign("a", b"").unwrap_err();
    assert_eq!(network.seen().len(), 5);
}

// This also shows that the client obeys `Retry-After`: the next answer would be a success.
#[test]
fn a_repetition_after_the_deadline_is_not_made() {
    let (_service, network, client) = faulty(&[BUSY_FOR_AN_HOUR]);
    let error = client.sign("a", b"").unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::Busy));
    assert_eq!(network.seen().len(), 1);
}

#[test]
fn a_lost_answer_is_asked_for_again_if_nothing_was_changed() {
    let (_service, network, client) = faulty(&[Fault::Cut, Fault::Lost, Fault::Short]);
    client.sign("a", b"").unwrap();
    assert_eq!(network.seen().len(), 4);
}

#[test]
fn a_change_whose_answer_was_lost_is_not_made_again() {
    let (service, network, client) = faulty(&[Fault::Lost, Fault::Short]);
    for asked in [1, 2] {
        let error = client.rotate_key("a").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error:?}");
        assert_eq!(network.seen().len(), asked);
    }
    // The first was made.
    let key = crate::client(&service.url).key("a").unwrap();
    assert_eq!(key.latest_version, 2);
}

/// A port that is taken, and refuses connections: nobody listens yet.
fn silent_port() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    (socket, url)
}

#[test]
fn a_service_that_does_not_listen_is_unreachable() {
    let (_socket, url) = silent_port();
    let client = blocking(builder(&url).max_retries(1).initial_backoff(Duration::from_millis(1)));
    for error in [client.sign("a", b"").unwrap_err(), client.rotate_key("a").unwrap_err()] {
        assert!(matches!(error.kind(), ErrorKind::Connect), "{error:?}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
        assert!(error.is_retryable() && !error.is_outcome_unknown(), "{error}");
        let cause = std::error::Error::source(&error).unwrap();
        assert!(cause.is::<std::io::Error>() && !error.to_string().contains(&cause.to_string()), "{cause}");
    }
}

/// Lets a port listen when an attempt has failed, and leads one connection from there to a service.
struct LateListener {
    socket: Mutex<Option<TcpSocket>>,
    service: String,
}

impl Middleware for LateListener {
    fn handle<'a>(&'a self, request: Request<'a>, next: Next<'a>) -> BoxFuture<'a, Result<Response>> {
        Box::pin(async move {
            let result = next.run(request).await;
            let socket = self.socket.lock().unwrap().take();
            let Some(socket) = socket else { return result };
            assert_eq!(result.as_ref().err().map(Error::kind), Some(ErrorKind::Connect));
            let listener = socket.listen(1).unwrap().into_std().unwrap();
            listener.set_nonblocking(false).unwrap();
            let mut to = TcpStream::connect(&self.service).unwrap();
            std::thread::spawn(move || {
                let (mut from, _) = listener.accept().unwrap();
                let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
                let _ = std::io::copy(&mut from, &mut to);
            });
            result
        })
    }
}

#[test]
fn a_service_that_begins_to_listen_is_found() {
    let (service, (socket, url)) = (Service::open(), silent_port());
    let address = service.url.strip_prefix("http://").unwrap().to_owned();
    let late = LateListener { socket: Mutex::new(Some(socket)), service: address };
    let builder = builder(&url).max_retries(1).initial_backoff(Duration::from_millis(1));
    blocking(builder.middleware(late)).health().unwrap();
}

#[test]
fn a_call_ends_at_its_deadline() {
    let (_service, network, client) = faulty(&[Fault::Silence, Fault::Silence]);
    let short = Duration::from_millis(100);
    let errors = {
        let client = client.with_timeout(short);
        [client.sign("a", b"").unwrap_err(), client.rotate_key("a").unwrap_err()]
    };
    for error in errors {
        assert!(error.kind() == ErrorKind::Timeout && error.is_outcome_unknown(), "{error:?}");
        assert_eq!(error.to_string(), "the service did not answer within 100ms");
    }
    assert_eq!(network.seen().len(), 2);
    // The connection of a call that ended early is not used again.
    client.sign("a", b"").unwrap();
    assert_eq!(network.seen().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn an_answer_of_something_else_is_an_error() {
    for answer in [BAD_GATEWAY, NONSENSE] {
        let (_service, network, client) = faulty(&[answer]);
        let error = client.sign("a", b"").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidResponse), "{error:?}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert_eq!(network.seen().len(), 1);
    }
}

#[test]
fn connections_are_used_again_and_closed_ones_replaced() {
    let (_service, network, client) = faulty(&[Fault::Last]);
    for _ in 0..4 {
        client.sign("a", b"").unwrap();
    }
    // A change has a connection of its own, which others use after it.
    client.rotate_key("a").unwrap();
    client.sign("a", b"").unwrap();
    let connections: Vec<_> = network.seen().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 1, 1, 2, 2]);
}

#[test]
fn threads_share_a_client() {
    let (_service, network, client) = faulty(&[]);
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            let client = &client;
            scope.spawn(move || {
                for _ in 0..8 {
                    let signature = client.sign("a", &[number]).unwrap();
                    let verified = client.verify("a", &[number], &signature.bytes);
                    assert_eq!(verified.unwrap(), Verdict::Valid);
                }
            });
        }
    });
    assert_eq!(network.seen().len(), 128);
}
