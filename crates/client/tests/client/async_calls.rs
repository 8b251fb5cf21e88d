//! What only the async client has: streams, middlewares and token providers. And what it shares
//! with the description of the service.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bulla_client::http::HeaderValue;
use bulla_client::middleware::{Middleware, Next, Request, Response};
use bulla_client::{
    BoxError, BoxFuture, Error, ErrorCode, ErrorKind, NewKey, Operation, Result, Token, TokenProvider,
};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use futures_util::TryStreamExt;

use crate::faulty::{Canned, Fault, Faulty};
use crate::support::{Service, config, keystore, token};
use crate::{blocking, builder, client};

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn lists_are_streams() {
    let service = Service::open();
    run(async {
        let client = builder(&service.url).build().unwrap();
        for _ in 0..3 {
            client.create_key(&NewKey::default()).await.unwrap();
        }
        let by_stream: Vec<_> = TryStreamExt::try_collect(client.keys()).await.unwrap();
        assert_eq!(by_stream.len(), 3);
        assert_eq!(client.keys().try_collect::<Vec<_>>().await.unwrap(), by_stream);
        let mut keys = client.keys();
        for key in by_stream {
            assert_eq!(keys.try_next().await.unwrap(), Some(key));
        }
        assert_eq!(keys.try_next().await.unwrap(), None);
    });
}

/// Notes what it sees, and adds a header.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Middleware for Noting {
    fn handle<'a>(&'a self, mut request: Request<'a>, next: Next<'a>) -> BoxFuture<'a, Result<Response>> {
        Box::pin(async move {
            let before = format!("{} {}", request.operation().id(), request.attempt());
            request.headers_mut().insert("traceparent", HeaderValue::from_static("00-1-2-01"));
            let shown = format!("{request:?}");
            let response = next.run(request).await;
            let status = response.as_ref().map(Response::status);
            self.0.lock().unwrap().push(format!("{before} {status:?} {shown} {response:?}"));
            response
        })
    }
}

/// Ends every call.
struct Refusing;

impl Middleware for Refusing {
    fn handle<'a>(&'a self, _: Request<'a>, _: Next<'a>) -> BoxFuture<'a, Result<Response>> {
        Box::pin(async { Err(Error::middleware("not today")) })
    }
}

#[test]
fn a_middleware_sees_each_attempt_and_no_secret() {
    let service = Service::open();
    let busy = Fault::Answer(Canned(503, 0, r#"{"code":"busy","message":"a","retryable":true}"#));
    let network = Faulty::before(&service.url, &[busy]);
    let noting = Noting::default();
    let client = builder(&network.url)
        .initial_backoff(Duration::from_millis(1))
        .token(Token::new("hunter2").unwrap())
        .middleware(noting.clone())
        .build()
        .unwrap();
    let error = run(client.sign("a", b"message")).unwrap_err();
    let seen = network.seen();
    assert!(seen.iter().all(|request| request.header("traceparent") == Some("00-1-2-01")), "{seen:?}");
    assert!(seen.iter().all(|request| request.header("authorization") == Some("Bearer hunter2")));
    let noted = noting.0.lock().unwrap();
    assert_eq!(noted.len(), 2);
    assert!(noted[0].starts_with("signatures_sign 0 Ok(503)"), "{noted:?}");
    let status = error.status().unwrap();
    assert!(noted[1].starts_with(&format!("signatures_sign 1 Ok({status})")), "{noted:?}");
    assert!(noted.iter().all(|line| !line.contains("hunter2")), "{noted:?}");
}

#[test]
fn a_middleware_ends_a_call() {
    let noting = Noting::default();
    let client = builder("http://127.0.0.1:1").middleware(noting.clone()).middleware(Refusing).build();
    let error = run(client.unwrap().health()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Middleware);
    assert_eq!(format!("{error:#}"), "a middleware failed: not today");
    assert_eq!(noting.0.lock().unwrap().len(), 1);
}

/// Gives a wrong token once, then the right one, and then none.
struct Rotating(AtomicU32, String);

impl TokenProvider for Rotating {
    fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>> {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match asked {
                0 => Ok(Token::new("old")?),
                1 => Ok(Token::new(&self.1)?),
                _ => Err("the vault is closed".into()),
            }
        })
    }
}

#[test]
fn a_provider_gives_the_token_of_each_request() {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let provider = Rotating(AtomicU32::new(0), token.expose().to_owned());
    let client = builder(&service.url).token_provider(provider).build().unwrap();
    run(async {
        let error = client.permissions().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::Forbidden));
        assert_eq!(client.permissions().await.unwrap().operations, ["read"]);
        let error = client.permissions().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenProvider);
        assert_eq!(format!("{error:#}"), "there is no token: the vault is closed");
    });
}

#[test]
fn a_blocking_call_in_async_code_panics_and_its_client_may_be_dropped_there() {
    let service = Service::open();
    let client = client(&service.url);
    client.health().unwrap();
    let waiting = client.clone();
    run(async move {
        let call = std::panic::AssertUnwindSafe(|| waiting.health().map(drop));
        let panic = std::panic::catch_unwind(call).unwrap_err();
        let message = panic.downcast_ref::<&str>().map(ToString::to_string);
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
        assert!(message.contains("asynchronous"), "{message}");
        drop(waiting);
        let other = blocking(builder(&service.url));
        tokio::task::spawn_blocking(move || other.health().unwrap()).await.unwrap();
        drop(client);
    });
}

#[test]
fn public_keys_are_a_set_and_metrics_are_text() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&NewKey::default()).unwrap();
    let set: serde_json::Value = serde_json::from_str(&client.json_web_key_set().unwrap()).unwrap();
    assert_eq!(set["keys"].as_array().unwrap().len(), 1);
    assert!(client.metrics().unwrap().contains("bulla_sealed"));
}

#[test]
fn an_answer_that_is_not_understood_is_named_by_its_path() {
    let service = Service::open();
    let key = r#"{"key":"a","version":1,"signature":"hunter2!"}"#;
    let network = Faulty::before(&service.url, &[Fault::Answer(Canned(200, 0, key))]);
    let error = client(&network.url).sign("a", b"").unwrap_err();
    assert!(error.to_string().contains("at signature, line 1"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

/// Operations of the description that this client does not call, and why.
const NOT_CALLED: [(&str, &str); 4] = [
    ("page_", "a page and its files, for browsers"),
    ("transit_", "the interface of Vault's own clients"),
    ("jwt_metadata ", "for those who verify JWTs, by any OpenID client"),
    ("jwt_keys ", "for those who verify JWTs, by any OpenID client"),
];

#[test]
fn every_operation_of_the_service_has_a_method() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{root}/spec/openapi.json")).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut described = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let parameters = operation["parameters"].as_array();
            let is_change = parameters.is_some_and(|all| all.iter().any(|p| p["name"] == "Idempotency-Key"));
            described.push(format!("{id} {} {path} {is_change}", method.to_ascii_uppercase()));
        }
    }
    described.retain(|line| !NOT_CALLED.iter().any(|(prefix, _)| line.starts_with(prefix)));
    described.sort();
    let called = Operation::ALL.iter().map(|operation| {
        format!("{} {} {} {}", operation.id(), operation.method(), operation.path(), operation.is_change())
    });
    let mut called: Vec<_> = called.collect();
    called.sort();
    assert_eq!(called, described);
}

/// The source of the library, without the table of operations.
fn sources() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.is_file() && !path.ends_with("operation.rs"));
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn every_operation_is_called_and_every_call_has_a_blocking_form() {
    let sources = sources();
    for operation in Operation::ALL {
        let use_of = format!("(Operation::{operation:?}");
        assert!(sources.contains(&use_of), "{operation:?} has no method");
    }
    let blocking = concat!(env!("CARGO_MANIFEST_DIR"), "/src/blocking/mod.rs");
    let blocking = std::fs::read_to_string(blocking).unwrap();
    let calls = sources.split("impl Client {").skip(1).flat_map(|block| {
        let block = block.split("\n}\n").next().unwrap();
        block.split("    pub async fn ").skip(1).map(|call| call.split('(').next().unwrap())
    });
    let calls: Vec<_> = calls.collect();
    assert!(calls.len() >= Operation::ALL.len(), "{calls:?}");
    for call in calls {
        let is_there =
            blocking.contains(&format!("    {call}(")) || blocking.contains(&format!("fn {call}("));
        assert!(is_there, "{call} has no blocking form");
    }
}

#[test]
fn every_code_of_the_service_is_known() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{root}/spec/http-api.md")).unwrap();
    let (_, errors) = text.split_once("## Errors").unwrap();
    let rows = errors.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut listed: Vec<_> = rows.map(|(code, _)| code.to_owned()).collect();
    let mut known: Vec<_> = ErrorCode::KNOWN.iter().map(ToString::to_string).collect();
    listed.sort();
    known.sort();
    assert_eq!(known, listed);
    for code in ErrorCode::KNOWN {
        assert_eq!(ErrorCode::from(code.as_str()), *code);
    }
    assert_eq!(ErrorCode::from("brand_new"), ErrorCode::Other("brand_new".into()));
}
