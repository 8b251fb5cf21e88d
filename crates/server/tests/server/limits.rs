//! Limits of size, of time, of rate, of memory and of connections.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NewKey};
use bulla_server::{ListenConfig, Server};
use serde_json::{Value, json};

use crate::support::tls::{Authority, Client, Files, Until};
use crate::support::unix::{UnixClient, me, unix_config};
use crate::support::{Prepared, Service, config, keystore, name, token};

#[test]
fn a_body_has_a_length() {
    let mut config = config();
    config.limits.max_body_bytes = 1000;
    config.service.development = true;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
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
fn a_body_without_data_is_short() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    // As values in memory, such a list has many times its length.
    let list = "1,".repeat(80 << 10) + "1";
    for (method, path, body) in [
        (
            "POST",
            "api/v1/approvals",
            format!("{{\"key\":\"a\",\"reason\":\"\",\"subject\":{{\"x\":[{list}]}}}}"),
        ),
        ("POST", "api/v1/keys", format!("{{\"approval_rule\":{{\"approvers\":[{list}]}}}}")),
        ("PATCH", "api/v1/keys/a", format!("{{\"approval_rule\":{{\"approvers\":[{list}]}}}}")),
        ("POST", "api/v1/keys/a/sign-jwt", format!("{{\"claims\":{{\"x\":[{list}]}}}}")),
        ("POST", "v1/auth/token/create", format!("{{\"policies\":\"{list}\"}}")),
        ("POST", "v1/sys/capabilities-self", format!("{{\"paths\":\"{list}\"}}")),
        ("POST", "v1/transit/keys/a/csr", format!("{{\"csr\":\"{list}\"}}")),
        ("POST", "v1/transit/keys/a/set-certificate", format!("{{\"certificate_chain\":\"{list}\"}}")),
    ] {
        let answer = service.send(method, None, &format!("/{path}"), body.as_bytes());
        assert_eq!(answer.error(), (413, "body_too_large".to_owned()), "{path}: {}", answer.text());
    }
}

#[test]
fn a_connection_outlives_a_request_that_was_refused_before_its_body_came() {
    let service = Service::start(Keystore::in_memory().unwrap(), config());
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
    let service = Service::start(Keystore::in_memory().unwrap(), config);
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
        let made = slow.attenuate(&bulla_kms::token::TokenLimits::default().expires(expires)).unwrap();
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
        "POST /api/v1/keys/a/sign HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The service asks for the body: it has begun with this request. To sign takes long.
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut asked).unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&asked));
    stream.write_all(body.as_bytes()).unwrap();
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

const HEALTH: &str = "/api/v1/health";

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads until the service ends the connection.
#[track_caller]
fn ends(mut stream: impl std::io::Read) {
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        let by_service = [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof, ErrorKind::BrokenPipe];
        assert!(by_service.contains(&error.kind()), "{error:?}");
    }
}

/// A request whose head the service has read, and whose body has not come.
struct Half(BufReader<TcpStream>);

impl Half {
    /// The service says when it wants the body: it has verified the credential then.
    fn send(service: &Service, token: Option<&Token>, path: &str, length: usize, headers: &str) -> Self {
        let mut stream = connect(service);
        let token =
            token.map_or_else(String::new, |token| format!("authorization: Bearer {}\r\n", token.expose()));
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n{token}{headers}\r\n"
        )
        .unwrap();
        let mut half = Self(BufReader::new(stream));
        assert_eq!(half.head().0, 100);
        half
    }

    /// The status of an answer, and the length of its body.
    fn head(&mut self) -> (u16, usize) {
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            status = status.or_else(|| line.get(9..12)?.parse().ok());
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                return (status.unwrap(), length);
            }
        }
    }

    fn write(&mut self, body: &[u8]) {
        self.0.get_mut().write_all(body).unwrap();
    }

    /// Whether the service has answered before it had the whole body.
    fn is_refused(&self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let answered = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        answered
    }

    /// The status and the body of the answer.
    fn answer(&mut self) -> (u16, Value) {
        let (status, length) = self.head();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

fn key(keystore: &Keystore, tenant: &str, label: &str, algorithm: Algorithm) {
    let new = NewKey::new(name(tenant), name("files"), algorithm).label(name(label));
    keystore.create_key(new).unwrap();
}

#[test]
fn a_body_that_needs_no_credential_is_short() {
    let service = Service::start(Keystore::in_memory().unwrap(), config());
    let unseal = |path: &str, length: usize| {
        let method = if path.starts_with("/v1") { "PUT" } else { "POST" };
        service.send(method, None, path, " ".repeat(length).as_bytes()).status
    };
    for path in ["/api/v1/operator/unseal", "/v1/sys/unseal"] {
        assert_ne!(unseal(path, 4096), 413, "{path}");
        assert_eq!(unseal(path, 4097), 413, "{path}");
    }
}

#[test]
fn all_bodies_together_have_a_bound_and_give_back_what_they_had() {
    let mut config = config();
    // Enough for one request whose head counts, too, because its body comes later; not for two.
    (config.limits.max_body_bytes, config.limits.max_total_body_bytes) = (1000, 1900);
    config.service.development = true;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let message = json!({ "message": "A".repeat(880) });
    let sign = || service.post(None, "/api/v1/keys/a/sign", &message);
    sign().ok();
    let text = message.to_string();
    let (first, last) = text.split_at(text.len() - 1);
    let send_half = || {
        let mut half = Half::send(&service, None, "/api/v1/keys/a/sign", text.len(), "");
        half.write(first.as_bytes());
        half
    };
    let mut half = send_half();
    let begin = Instant::now();
    let refused = loop {
        // Until the service has read what was sent.
        let answer = sign();
        if answer.status != 200 {
            break answer;
        }
        // The service may have had the other body first, and refused this one.
        if half.is_refused() {
            half = send_half();
        }
        assert!(begin.elapsed() < LONG);
    };
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.error(), (503, "busy".to_owned()));
    half.write(last.as_bytes());
    assert_eq!(half.answer().0, 200);
    sign().ok();
}

#[cfg(target_os = "linux")]
#[test]
fn an_address_that_sends_bodies_without_their_end_holds_up_no_login_from_another_one() {
    let mut config = config();
    config.limits.body_timeout_seconds = 3600;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
    let address: SocketAddr = service.url.trim_start_matches("http://").parse().unwrap();
    // An address of this machine from which nobody else comes.
    let connect = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        TcpStream::from(socket)
    };
    let head = "PUT /v1/sys/unseal HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4096\r\n\r\n";
    let begin = |stream: &mut TcpStream, length: usize| {
        stream.write_all(format!("{head}{}", " ".repeat(length)).as_bytes()).unwrap();
    };
    let mut others: Vec<_> = (0..256).map(|_| connect()).collect();
    others.iter_mut().for_each(|stream| begin(stream, 4095));
    let waiting = Instant::now();
    loop {
        // Until the service has read what was sent.
        let mut stream = connect();
        begin(&mut stream, 4096);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        if &answer == b"HTTP/1.1 503" {
            break;
        }
        assert!(waiting.elapsed() < LONG, "{}", String::from_utf8_lossy(&answer));
    }
    // As long as a login by JWT.
    let body = format!("{{\"reset\":true}}{}", " ".repeat(2000));
    service.send("PUT", None, "/v1/sys/unseal", body.as_bytes()).ok();
    drop(others);
}

#[test]
fn a_head_counts_while_its_body_does_not_come() {
    let mut config = config();
    config.limits.body_timeout_seconds = 3600;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
    let wait = |length| {
        let mut stream = connect(&service);
        let head = "PUT /v1/sys/unseal HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4096";
        write!(stream, "{head}\r\nx: {}\r\n\r\n", "v".repeat(length)).unwrap();
        stream
    };
    let mut waiting: Vec<_> = (0..20).map(|_| wait(60_000)).collect();
    let body = " ".repeat(4096);
    let ask = || service.send("PUT", None, "/v1/sys/unseal", body.as_bytes()).status;
    while ask() != 503 {
        // Short ones fill what the long ones left.
        assert!(waiting.len() < 1000, "they do not count");
        waiting.push(wait(3_000));
    }
    drop(waiting);
    let begin = Instant::now();
    while ask() != 200 {
        assert!(begin.elapsed() < LONG);
    }
}

/// Answers the pings of an HTTP/2 connection, and sends nothing else, until the service ends it.
fn only_answers_pings(mut stream: TcpStream) {
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    for _ in 0..100 {
        let mut head = [0; 9];
        match stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return;
            }
            Err(error) => panic!("{error:?}"),
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).unwrap();
        let [_, _, _, kind, flags, ..] = head;
        // PING and SETTINGS, unless they are acknowledgements.
        if flags & 1 == 0 && (kind == 6 || kind == 4) {
            let payload = if kind == 6 { payload } else { Vec::new() };
            let length = u8::try_from(payload.len()).unwrap();
            // It may have ended meanwhile, which the next read tells.
            let _ = stream.write_all(&[&[0, 0, length, kind, 1, 0, 0, 0, 0][..], &payload].concat());
        }
    }
    panic!("the connection goes on");
}

#[test]
fn a_connection_that_asks_nothing_ends() {
    let mut config = config();
    config.limits.idle_timeout_seconds = 1;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
    let streams = ["", "PRI * HTTP/2", "GET / HTTP/1.1\r\nhost: "].map(|text| {
        let mut stream = connect(&service);
        stream.write_all(text.as_bytes()).unwrap();
        stream
    });
    let http2 = connect(&service);
    std::thread::scope(|scope| {
        for stream in streams {
            scope.spawn(move || ends(stream));
        }
        scope.spawn(|| only_answers_pings(http2));
    });
    assert_eq!(service.get(None, HEALTH).status, 200);
}

#[test]
fn a_connection_with_tls_that_asks_nothing_ends() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    let mut config = files.config();
    config.limits.idle_timeout_seconds = 1;
    let service = Service::start(keystore(&[]), config);
    for protocol in [&b"http/1.1"[..], b"h2"] {
        let silent = Client { protocol, ..Client::new(&authority) }.connect(&service.url).unwrap();
        silent.0.sock.set_read_timeout(Some(LONG)).unwrap();
        ends(silent.0);
    }
}

#[test]
fn a_listener_has_its_number_of_connections_whatever_others_have() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut config = config();
    config.limits.max_connections_per_listener = 2;
    config.listen.push(ListenConfig { unix: Some(socket.clone()), ..ListenConfig::default() });
    let service = Service::start(keystore(&[]), config);
    let open = || {
        let mut stream = connect(&service);
        write!(stream, "GET {HEALTH} HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok()?;
        assert_eq!(&status, b"HTTP/1.1 200");
        Some(stream)
    };
    let (first, second) = (open(), open());
    assert!(first.is_some() && second.is_some());
    for _ in 0..5 {
        assert!(open().is_none(), "there are two already");
    }
    let mut operators = [UnixClient::connect(&socket), UnixClient::connect(&socket)];
    for operator in &mut operators {
        assert_eq!(operator.get(HEALTH), 200);
    }
    drop(first);
    let begin = Instant::now();
    while open().is_none() {
        assert!(begin.elapsed() < LONG, "a connection that ended makes room");
    }
}

#[test]
fn every_list_has_a_bound() {
    let keystore = keystore(&["local"]);
    key(&keystore, "local", "a", Algorithm::Ed25519);
    let caller = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    let names = |number: usize| vec!["a"; number];
    let items = vec![json!({ "message": "", "signature": "" }); 100_001];
    let messages = vec![json!({ "message": "" }); 100_001];
    let inputs = vec![json!({ "input": "" }); 100_001];
    let sign = json!(["sign"]);
    for (token, path, body) in [
        (Some(&caller), "/api/v1/tokens/attenuate", json!({ "keys": names(257) })),
        (Some(&caller), "/api/v1/tokens/attenuate", json!({ "operations": vec!["sign"; 33] })),
        (None, "/api/v1/tokens", json!({ "keys": names(257), "operations": sign, "expires_in_seconds": 9 })),
        (None, "/api/v1/tokens", json!({ "operations": vec!["sign"; 33], "expires_in_seconds": 9 })),
        (None, "/api/v1/encrypt", json!({ "data": "", "keys": names(9) })),
        (None, "/api/v1/encrypt", json!({ "data": "", "recipients": names(9) })),
        (None, "/api/v1/backup", json!({ "recipients": names(9) })),
        (None, "/api/v1/audit-log/verify", json!({ "checkpoints": names(1001) })),
        (None, "/api/v1/sign", json!({ "items": messages, "key": "a" })),
        (None, "/api/v1/verify", json!({ "items": items, "key": "a" })),
        (None, "/v1/transit/sign/a", json!({ "batch_input": inputs })),
        (None, "/v1/transit/verify/a", json!({ "batch_input": inputs })),
    ] {
        let answer = service.post(token, path, &body);
        if path.starts_with("/api/v1/audit-log") {
            assert_eq!(answer.error(), (409, "no_audit_log".to_owned()));
            continue;
        }
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(
            answer.text().contains("a list is too long: expected a list of at most"),
            "{}",
            answer.text()
        );
    }
    let weaker = json!({ "keys": names(64), "operations": ["sign"] });
    assert_eq!(service.post(Some(&caller), "/api/v1/tokens/attenuate", &weaker).status, 201);
}

/// Each signature of this algorithm takes long, and the batches here would take hours.
const SLOW: Algorithm = Algorithm::SlhDsaSha2_128s;

#[test]
fn slow_work_of_one_caller_holds_up_nobody_else_and_not_the_end() {
    let keystore = keystore(&["local", "other"]);
    key(&keystore, "other", "slow", SLOW);
    key(&keystore, "local", "quick", Algorithm::Ed25519);
    key(&keystore, "local", "long", SLOW);
    let attacker = token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Sign]);
    let caller = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let operator =
        token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Update, TokenOperation::Read]);
    let mut config = config();
    config.service.threads = 1.try_into().ok();
    config.service.shutdown_timeout_seconds = 1;
    let service = Service::start(keystore, config);
    let batch = json!({ "key": "slow", "items": vec![json!({ "message": "" }); 10_000] }).to_string();
    let mut batches: Vec<_> = (0..48)
        .map(|_| {
            let mut half = Half::send(&service, Some(&attacker), "/api/v1/sign", batch.len(), "");
            half.write(batch.as_bytes());
            half
        })
        .collect();
    // Half of them do not wait for the answer.
    batches.truncate(24);
    let sign = |key: &str| {
        service.post(Some(&caller), &format!("/api/v1/keys/{key}/sign"), &json!({ "message": "" }))
    };
    sign("quick").ok();
    sign("long").ok();
    assert_eq!(service.get(Some(&operator), "/metrics").status, 200);
    service.post(Some(&attacker), "/api/v1/tokens/revoke", &json!({})).ok();
    service.post(Some(&operator), "/api/v1/operator/seal", &json!({})).ok();
    // The credential was revoked, and the service sealed, while the batches were computed.
    for half in &mut batches {
        let (status, body) = half.answer();
        assert!(status == 403 || status == 503, "{status} {body}");
    }
}

#[test]
fn a_stop_ends_although_slow_work_is_left() {
    let keystore = keystore(&["local"]);
    key(&keystore, "local", "slow", SLOW);
    let caller = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let mut config = config();
    config.service.shutdown_timeout_seconds = 1;
    let service = Service::start(keystore, config);
    let batch = json!({ "key": "slow", "items": vec![json!({ "message": "" }); 10_000] }).to_string();
    let _waiting: Vec<_> = (0..48)
        .map(|_| {
            let mut half = Half::send(&service, Some(&caller), "/api/v1/sign", batch.len(), "");
            half.write(batch.as_bytes());
            half
        })
        .collect();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        drop(service);
        ended.send(()).unwrap();
    });
    end.recv_timeout(LONG).expect("the service ends");
}

#[test]
fn rights_must_be_there_when_the_body_is_there() {
    let keystore = keystore(&["local"]);
    key(&keystore, "local", "a", Algorithm::Ed25519);
    let operations = [TokenOperation::Sign, TokenOperation::Create, TokenOperation::Read];
    let caller = || token(&keystore, "local", GrantedKeys::All, &operations);
    let tokens: Vec<_> = (0..4).map(|_| caller()).collect();
    let (other, sealing) = (caller(), token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Update]));
    let service = Service::start(keystore, config());
    let message = r#"{"message":"","input":""}"#;
    let create = r#"{"label":"b"}"#;
    let plain = r#"{"message":""}"#;
    let again = "idempotency-key: k\r\n";
    service
        .send_with("POST", Some(&tokens[3]), "/api/v1/keys", create.as_bytes(), &[("idempotency-key", "k")])
        .ok();
    let requests = [
        ("/api/v1/keys/a/sign", plain, ""),
        ("/v1/transit/sign/a", message, ""),
        ("/api/v1/encrypt", r#"{"data":""}"#, ""),
        // A stored answer is one, too.
        ("/api/v1/keys", create, again),
    ];
    let halves: Vec<_> = requests
        .iter()
        .zip(&tokens)
        .map(|((path, body, headers), token)| Half::send(&service, Some(token), path, body.len(), headers))
        .collect();
    let mut unharmed = Half::send(&service, Some(&other), requests[0].0, plain.len(), "");
    for token in &tokens {
        service.post(Some(token), "/api/v1/tokens/revoke", &json!({})).ok();
    }
    for ((path, body, _), mut half) in requests.iter().zip(halves) {
        half.write(body.as_bytes());
        assert_eq!(half.answer().0, 403, "{path}: its token was revoked");
    }
    unharmed.write(plain.as_bytes());
    assert_eq!(unharmed.answer().0, 200);
    let mut sealed = Half::send(&service, Some(&other), requests[0].0, plain.len(), "");
    service.post(Some(&sealing), "/api/v1/operator/seal", &json!({})).ok();
    sealed.write(plain.as_bytes());
    assert_eq!(sealed.answer().0, 503);
}

#[test]
fn a_caller_must_be_in_the_settings_when_the_body_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut config = unix_config(&socket);
    config.caller = vec![me("local", None)];
    let service = Service::start(keystore(&["local"]), config.clone());
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let head = "POST /api/v1/keys HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 25];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 100 Continue\r\n\r\n");
    config.caller.clear();
    service.handle.reload(config).unwrap();
    stream.write_all(b"{}").unwrap();
    stream.read_exact(&mut status).unwrap();
    assert!(status.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&status));
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let refused = |change: fn(&mut bulla_server::LimitsConfig)| {
        let mut config = config();
        change(&mut config.limits);
        Server::bind(config, Box::new(Prepared::new(Keystore::in_memory().unwrap()))).err().unwrap().message
    };
    assert!(
        refused(|limits| limits.max_total_body_bytes = limits.max_body_bytes - 1)
            .contains("max_total_body_bytes")
    );
    assert!(
        refused(|limits| limits.max_batch_items = 100_001).contains("max_batch_items must be at most 100000")
    );
}
