//! Refusals, lost answers and deadlines: which requests are repeated, and which never.

use std::time::Duration;

use bulla_client::{Blocking, Error, NewKey, Settings};

use crate::faulty::{Canned, Fault, Faulty};
use crate::support::Service;
use crate::{address, client, of};

/// A service with the key `a`, and a client that reaches it through a network with faults.
fn faulty(faults: &[Fault]) -> (Service, Faulty, Blocking) {
    let service = Service::open();
    let new = NewKey { label: Some("a".to_owned()), ..NewKey::default() };
    client(&service.url).wait(async |client| client.create_key(&new).await.unwrap());
    let network = Faulty::before(&service.url, faults);
    let client = of(Settings::new(address(&network.url)).backoff(Duration::from_millis(1)));
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
    let rotated = client.wait(async |client| client.rotate("a").await.unwrap());
    assert_eq!(rotated.head, 2);
    let seen = network.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    let key = seen[0].header("idempotency-key").unwrap();
    assert_eq!(key.len(), 32);
    client.wait(async |client| client.rotate("a").await.unwrap());
    assert_ne!(network.seen()[3].header("idempotency-key").unwrap(), key);
    // A request that changes nothing has no key.
    client.wait(async |client| client.sign("a", b"").await.unwrap());
    assert_eq!(network.seen()[4].header("idempotency-key"), None);
}

#[test]
fn a_busy_proxy_is_asked_again_unless_the_request_changes_something() {
    let (_service, network, client) = faulty(&[PROXY_LIMITS, PROXY_BUSY]);
    client.wait(async |client| client.sign("a", b"").await.unwrap());
    assert_eq!(network.seen().len(), 3);
    for answer in [PROXY_LIMITS, PROXY_BUSY] {
        let (_service, network, client) = faulty(&[answer]);
        let error = client.wait(async |client| client.rotate("a").await.unwrap_err());
        assert!(matches!(error, Error::Unexpected(_)), "{error:?}");
        assert_eq!(network.seen().len(), 1);
    }
}

#[test]
fn a_refusal_that_stays_one_is_not_repeated() {
    let (_service, network, client) = faulty(&[REFUSED]);
    let error = client.wait(async |client| client.sign("a", b"").await.unwrap_err());
    assert_eq!(error.code(), Some("conflict"));
    assert_eq!(network.seen().len(), 1);
}

#[test]
fn repetitions_end() {
    let (_service, network, client) = faulty(&[BUSY; 9]);
    let error = client.wait(async |client| client.sign("a", b"").await.unwrap_err());
    assert_eq!(error.code(), Some("busy"));
    assert_eq!(network.seen().len(), 4);
    let never = of(Settings::new(address(&network.url)).retries(0));
    never.wait(async |client| client.sign("a", b"").await.unwrap_err());
    assert_eq!(network.seen().len(), 5);
}

// This also shows that the client obeys `Retry-After`: the next answer would be a success.
#[test]
fn a_repetition_after_the_deadline_is_not_made() {
    let (_service, network, client) = faulty(&[BUSY_FOR_AN_HOUR]);
    let error = client.wait(async |client| client.sign("a", b"").await.unwrap_err());
    assert_eq!(error.code(), Some("busy"));
    assert_eq!(network.seen().len(), 1);
}

#[test]
fn a_lost_answer_is_asked_for_again_if_nothing_was_changed() {
    let (_service, network, client) = faulty(&[Fault::Cut, Fault::Lost, Fault::Short]);
    client.wait(async |client| client.sign("a", b"").await.unwrap());
    assert_eq!(network.seen().len(), 4);
}

#[test]
fn a_change_whose_answer_was_lost_is_not_made_again() {
    let (service, network, client) = faulty(&[Fault::Lost, Fault::Short]);
    for asked in [1, 2] {
        let error = client.wait(async |client| client.rotate("a").await.unwrap_err());
        assert!(matches!(error, Error::Interrupted(_)), "{error:?}");
        assert_eq!(network.seen().len(), asked);
    }
    // The first was made.
    let key = crate::client(&service.url).wait(async |client| client.key("a").await.unwrap());
    assert_eq!(key.head, 2);
}

#[test]
fn a_service_that_does_not_listen_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = of(Settings::new(address(&url)).retries(1).backoff(Duration::from_millis(1)));
    for error in client.wait(async |client| {
        [client.sign("a", b"").await.unwrap_err(), client.rotate("a").await.unwrap_err()]
    }) {
        assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[test]
fn a_service_that_begins_to_listen_is_found() {
    let service = Service::open();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    drop(listener);
    let url = service.url.strip_prefix("http://").unwrap().to_owned();
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        let listener = std::net::TcpListener::bind(place).unwrap();
        let (mut from, _) = listener.accept().unwrap();
        let mut to = std::net::TcpStream::connect(url).unwrap();
        let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let _ = std::io::copy(&mut from, &mut to);
    });
    let patient =
        Settings::new(address(&format!("http://{place}"))).retries(100).backoff(Duration::from_millis(10));
    let client = of(patient);
    client.wait(async |client| client.version().await.unwrap());
    drop(client);
    late.join().unwrap();
}

#[test]
fn a_call_ends_at_its_deadline() {
    let (_service, network, client) = faulty(&[Fault::Silence, Fault::Silence]);
    let short = Duration::from_millis(100);
    let errors = client.wait(async |client| {
        let client = client.with_deadline(short);
        [client.sign("a", b"").await.unwrap_err(), client.rotate("a").await.unwrap_err()]
    });
    assert_eq!(errors, [Error::Deadline(short), Error::Deadline(short)]);
    assert_eq!(network.seen().len(), 2);
    // The connection of a call that ended early is not used again.
    client.wait(async |client| client.sign("a", b"").await.unwrap());
    assert_eq!(network.seen().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn an_answer_of_something_else_is_an_error() {
    for answer in [BAD_GATEWAY, NONSENSE] {
        let (_service, network, client) = faulty(&[answer]);
        let error = client.wait(async |client| client.sign("a", b"").await.unwrap_err());
        assert!(matches!(error, Error::Unexpected(_)), "{error:?}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert_eq!(network.seen().len(), 1);
    }
}

#[test]
fn connections_are_used_again_and_closed_ones_replaced() {
    let (_service, network, client) = faulty(&[Fault::Last]);
    for _ in 0..4 {
        client.wait(async |client| client.sign("a", b"").await.unwrap());
    }
    // A change has a connection of its own, which others use after it.
    client.wait(async |client| client.rotate("a").await.unwrap());
    client.wait(async |client| client.sign("a", b"").await.unwrap());
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
                    let signature = client.wait(async |client| client.sign("a", &[number]).await.unwrap());
                    let verified =
                        client.wait(async |client| client.verify("a", &[number], &signature.bytes).await);
                    assert_eq!(verified, Ok(true));
                }
            });
        }
    });
    assert_eq!(network.seen().len(), 128);
}
