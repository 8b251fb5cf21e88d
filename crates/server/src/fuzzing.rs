//! Entry points for the fuzzers in `fuzz/`; not part of the interface.

use std::cell::Cell;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use bulla_kms::metrics::Metrics;
use bulla_kms::{Algorithm, JWT_PURPOSE, Keystore, NewKey, SecretString};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

use crate::access::{Authority, OperationSet, Session};
use crate::config::{Config, JwtConfig, JwtKeyConfig};
use crate::request::{Connection, ConnectionProof, Peer};
use crate::router::router;
use crate::service::{KeystoreSource, OpenKeystore, Service, WorkerState};

/// The endpoints that take a body. `a` is a key of Ed25519, `p` one of ECDSA on P-256, `e` one that
/// encrypts, `m` one that makes MACs, and `j` one that signs JWTs.
const BODIES: [(&str, &str); 46] = [
    ("POST", "/api/v1/sign"),
    ("POST", "/api/v1/verify"),
    ("POST", "/api/v1/keys/a/sign"),
    ("POST", "/api/v1/keys/a/verify"),
    ("POST", "/api/v1/keys/a/sign-digest"),
    ("POST", "/api/v1/keys/a/verify-digest"),
    ("POST", "/api/v1/keys/p/verify"),
    ("POST", "/api/v1/keys"),
    ("PATCH", "/api/v1/keys/a"),
    ("POST", "/api/v1/keys/a/schedule-destruction"),
    ("POST", "/api/v1/keys/a/attest"),
    ("POST", "/api/v1/keys/a/export"),
    ("POST", "/api/v1/keys/a/encapsulate"),
    ("POST", "/api/v1/keys/a/decapsulate"),
    ("POST", "/api/v1/import"),
    ("POST", "/api/v1/keys/a/import"),
    ("POST", "/api/v1/encrypt"),
    ("POST", "/api/v1/decrypt"),
    ("POST", "/api/v1/backup"),
    ("POST", "/api/v1/tokens"),
    ("POST", "/api/v1/tokens/attenuate"),
    ("POST", "/api/v1/tokens/revoke"),
    ("POST", "/api/v1/audit-log/consistency"),
    ("POST", "/api/v1/audit-log/verify"),
    ("POST", "/api/v1/operator/unseal"),
    ("POST", "/v1/transit/sign/a"),
    ("POST", "/v1/transit/sign/p"),
    ("POST", "/v1/transit/sign/a/sha2-512"),
    ("POST", "/v1/transit/verify/a"),
    ("POST", "/v1/transit/verify/p"),
    ("POST", "/v1/transit/keys/b"),
    ("POST", "/v1/transit/keys/a/config"),
    ("POST", "/v1/transit/keys/a/trim"),
    ("PUT", "/v1/sys/unseal"),
    ("POST", "/api/v1/keys/a/sign-statement"),
    ("POST", "/api/v1/keys/j/sign-jwt"),
    ("POST", "/api/v1/keys/e/encrypt"),
    ("POST", "/api/v1/keys/e/decrypt"),
    ("POST", "/api/v1/keys/e/data-key"),
    ("POST", "/api/v1/keys/m/mac"),
    ("POST", "/api/v1/keys/m/verify-mac"),
    ("POST", "/v1/transit/encrypt/e"),
    ("POST", "/v1/transit/decrypt/e"),
    ("POST", "/v1/transit/hmac/m"),
    ("POST", "/v1/transit/keys/p/csr"),
    ("POST", "/api/v1/keys/d/derive-shared-secret"),
];

/// The byte that stands for the first of [`BODIES`]: a letter, because seeds are texts.
const FIRST_BODY: u8 = b'D';

/// After this many requests a fresh service starts, so that their changes do not affect all later
/// ones, and the keystore stays small.
const REQUESTS: u32 = 2_000;

/// A service in this process, which answers the fuzzer's requests.
#[derive(Debug)]
pub struct Fuzzed {
    runtime: Runtime,
    router: Router,
    session: Arc<Session>,
    left: Cell<u32>,
}

/// A connection that proves a session.
#[derive(Debug)]
pub(crate) struct Proving(Option<Arc<Session>>);

impl Proving {
    pub(crate) fn peer(session: Option<Arc<Session>>) -> Peer {
        Peer { connection: Arc::new(Self(session)), caller_slot: None }
    }
}

impl Connection for Proving {
    fn session(&self) -> Option<Arc<Session>> {
        self.0.clone()
    }

    fn proof(&self) -> ConnectionProof {
        ConnectionProof::Connection
    }

    fn is_local(&self) -> bool {
        false
    }
}

/// A keystore in memory with a key of each kind.
struct Memory;

impl KeystoreSource for Memory {
    fn needs_passphrase(&self) -> bool {
        false
    }

    fn open(&self, _: Option<SecretString>, _: &Arc<Metrics>) -> bulla_kms::Result<OpenKeystore> {
        let keystore = Keystore::in_memory().unwrap();
        for (label, purpose, algorithm) in [
            ("a", "files", Algorithm::Ed25519),
            ("p", "files", Algorithm::EcdsaP256),
            ("e", "files", Algorithm::Aes256Gcm),
            ("m", "files", Algorithm::HmacSha256),
            ("d", "files", Algorithm::X25519),
            ("j", JWT_PURPOSE, Algorithm::Ed25519),
        ] {
            let new = NewKey::new("local".parse()?, purpose.parse()?, algorithm).label(label.parse()?);
            keystore.create_key(new)?;
        }
        Ok(OpenKeystore { keystore, audit: None })
    }
}

/// The policy of the key `j`.
fn jwt() -> JwtConfig {
    let name = |text: &str| text.parse().expect("it is a name");
    let key = JwtKeyConfig {
        tenant: name("local"),
        label: name("j"),
        audiences: vec!["https://*.example.org".to_owned()],
        max_lifetime_seconds: 60,
    };
    JwtConfig { issuer: "https://keys.example.org".to_owned(), key: vec![key] }
}

/// A session of a caller who may do everything.
pub(crate) fn session_for_all(config: &Config) -> Arc<Session> {
    let authority = Authority {
        tenant: config.service.operator_tenant.clone(),
        operations: OperationSet::ALL,
        keys: None,
        policies: Vec::new(),
        expires: None,
        can_mint_tokens: true,
    };
    let actor = "fuzzer".parse().expect("it is a name");
    Arc::new(Session {
        authority,
        actor,
        home: None,
        limiter: None,
        quota: None,
        revocation_ids: Vec::new(),
        acls: Vec::new(),
    })
}

impl Fuzzed {
    /// A service whose every caller may do everything.
    ///
    /// # Panics
    /// The service cannot be started.
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let config = Config { jwt: Some(jwt()), ..Config::default() };
        let session = session_for_all(&config);
        let service = Arc::new(Service::new(config, 1, Box::new(Memory)).expect("the service starts"));
        service.unseal(None).expect("the keystore opens");
        Self {
            runtime: runtime.expect("the runtime starts"),
            router: router(WorkerState::new(service, 0)),
            session,
            left: Cell::new(REQUESTS),
        }
    }

    /// Whether a fresh service should take its place.
    pub fn is_worn(&self) -> bool {
        self.left.get() == 0
    }

    /// Sends a body. The first byte says to which operation.
    ///
    /// # Panics
    /// The service gave an answer that it should not give.
    pub fn body(&self, bytes: &[u8]) {
        let Some((which, body)) = bytes.split_first() else { return };
        let (method, path) = BODIES[usize::from(which.wrapping_sub(FIRST_BODY)) % BODIES.len()];
        let request = Request::builder().method(method).uri(path);
        let request = request.extension(Proving::peer(Some(Arc::clone(&self.session))));
        self.ask(request.body(Body::from(body.to_vec())).expect("it is a request"));
    }

    /// Sends a request without a body. The bytes are a method, a path with a query, and header
    /// fields, in lines.
    ///
    /// # Panics
    /// The service gave an answer that it should not give.
    pub fn head(&self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let (method, uri) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let mut request = Request::builder().method(method).uri(uri);
        let mut has_token = false;
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            has_token |= name.eq_ignore_ascii_case(b"authorization");
            request = request.header(name, value.get(1..).unwrap_or_default());
        }
        // A token takes precedence over the connection.
        let session = (!has_token).then(|| Arc::clone(&self.session));
        let request = request.extension(Proving::peer(session)).body(Body::empty());
        // The HTTP library rejects bytes that are no request.
        if let Ok(request) = request {
            self.ask(request);
        }
    }

    fn ask(&self, request: Request<Body>) {
        self.left.set(self.left.get().saturating_sub(1));
        let is_vault = request.uri().path().starts_with("/v1/");
        let is_health = request.uri().path() == "/v1/sys/health";
        let what = format!("{} {}", request.method(), request.uri());
        let (status, body) = self.runtime.block_on(async {
            let response: Response<Body> = match self.router.clone().call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes());
            (parts.status, body.expect("the answer has an end"))
        });
        if is_health || !(status.is_client_error() || status.is_server_error()) {
            return;
        }
        let allowed = status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE;
        let text = String::from_utf8_lossy(&body);
        assert!(allowed, "{what}: {status}: {text}");
        if body.is_empty() && what.starts_with("HEAD ") {
            return;
        }
        let error: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        // Vault's clients get the errors of a batch in its results.
        let of_items = || error["data"]["batch_results"].as_array().is_some_and(|items| !items.is_empty());
        let is_error = error["code"].is_string() || is_vault && (error["errors"].is_array() || of_items());
        assert!(is_error, "{what}: {status}: {text}");
    }
}

impl Default for Fuzzed {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads texts that are values in bodies: base64, durations, signatures as Vault writes them.
///
/// # Panics
/// A value was read that differs from the text.
pub fn values(text: &str) {
    if let Ok(bytes) = crate::request::decode(text, "fuzz") {
        assert_eq!(crate::request::encode(&bytes), text, "base64 has one text for each value");
    }
    crate::transit::fuzz(text);
}

/// Reads the keys of an issuer, which stand before the first zero byte, and a JWT.
pub fn login(text: &str) {
    let (keys, jwt) = text.split_once('\0').unwrap_or((text, ""));
    crate::login::fuzz(keys.as_bytes(), jwt);
}

/// Reads a policy, which stands after the first zero byte, and asks it about a path.
///
/// # Panics
/// The line of an error is not one of the text; a denial of the same path does not deny.
pub fn policy(text: &str) {
    let (path, text) = text.split_once('\0').unwrap_or(("transit/sign/a", text));
    let policy = match crate::policy::Policy::read(text) {
        Ok(policy) => policy,
        Err(error) => return assert!(error.line <= text.split('\n').count(), "{error}"),
    };
    let name: bulla_kms::Name = "fuzzer".parse().expect("it is a name");
    let policy = (name.clone(), Arc::new(policy));
    let acl = crate::policy::Acl::new(vec![policy.clone()]);
    let Some(decision) = acl.decision(path) else { return };
    let denial = format!("path {:?} {{\n  capabilities = [\"deny\"]\n}}\n", decision.pattern);
    // A pattern with other characters has another form in HCL than in Rust.
    let Ok(denial) = crate::policy::Policy::read(&denial) else { return };
    if denial.rules.iter().any(|rule| rule.path() != decision.pattern) {
        return;
    }
    let acl = crate::policy::Acl::new(vec![policy, (name, Arc::new(denial))]);
    assert_eq!(acl.capabilities(path).words(), ["deny"], "{path} {text}");
}

/// Reads settings: TOML, and before the first zero byte a variable that overrides a setting.
///
/// # Panics
/// The printed settings do not read as the same settings.
pub fn settings(text: &str) {
    let (variable, text) = text.split_once('\0').unwrap_or(("", text));
    let variables = variable.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Ok(config) = Config::read(text, variables.into_iter()) else { return };
    let printed = config.to_toml().expect("settings have a form in TOML");
    let again = Config::read(&printed, std::iter::empty()).expect("what is printed reads");
    assert_eq!(again, config, "{printed}");
}

/// Reads what a node of a group asks another one, and what that answers.
///
/// # Panics
/// What was read does not read again as the same.
pub fn group(bytes: &[u8]) {
    crate::group::fuzz(bytes);
}

/// Reads a certificate's times.
pub fn certificate(bytes: &[u8]) {
    crate::serve::fuzz_certificate(bytes);
}
