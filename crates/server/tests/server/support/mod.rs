//! A running service, and requests to it.

pub(crate) mod conforms;
#[cfg(feature = "etcd")]
pub(crate) mod nodes;
pub(crate) mod on_disk;
pub(crate) mod tls;
pub(crate) mod unix;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bulla_kms::metrics::Metrics;
use bulla_kms::token::{Grant, GrantedKeys, Token, TokenOperation};
use bulla_kms::{Keystore, KeystoreOptions, Name, SecretString, Timestamp};
use bulla_server::{Config, KeystoreSource, ListenConfig, OpenKeystore, Server, ServerHandle};
use serde_json::Value;

use self::conforms::{Answered, conforms};

/// A keystore in memory that a test prepared. It opens once.
pub(crate) struct Prepared(Mutex<Option<Keystore>>);

impl Prepared {
    pub(crate) fn new(keystore: Keystore) -> Self {
        Self(Mutex::new(Some(keystore)))
    }
}

impl KeystoreSource for Prepared {
    fn needs_passphrase(&self) -> bool {
        false
    }

    fn open(
        &self,
        _passphrase: Option<SecretString>,
        _metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let closed = || bulla_kms::KmsError::new(bulla_kms::Code::ShuttingDown, "it was opened before");
        let keystore = self.0.lock().unwrap().take().ok_or_else(closed)?;
        Ok(OpenKeystore { keystore, audit: None })
    }
}

/// A service that runs until it is dropped.
pub(crate) struct Service {
    pub(crate) url: String,
    agent: ureq::Agent,
    pub(crate) handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

/// A configuration that tests may change.
pub(crate) fn config() -> Config {
    let address = Some("127.0.0.1:0".parse().unwrap());
    let listen = vec![ListenConfig { address, ..ListenConfig::default() }];
    let mut config = Config { listen, ..Config::default() };
    config.service.threads = 2.try_into().ok();
    config.service.shutdown_timeout_seconds = 5;
    config
}

impl Service {
    /// A service over a keystore.
    pub(crate) fn start(keystore: Keystore, config: Config) -> Self {
        let server = Server::bind(config, Box::new(Prepared::new(keystore))).unwrap();
        server.unseal(None).unwrap();
        Self::run(server)
    }

    /// A service whose keystore is empty, and where every caller may do everything.
    pub(crate) fn open() -> Self {
        let mut config = config();
        config.service.development = true;
        Self::start(Keystore::in_memory().unwrap(), config)
    }

    /// Runs a service that listens.
    pub(crate) fn run(server: Server) -> Self {
        let url = server.addresses()[0].clone();
        let handle = server.handle();
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            // The answer itself is what the description describes.
            .max_redirects(0)
            .build()
            .new_agent();
        Self { url, agent, handle, thread }
    }

    /// A request without a body.
    #[track_caller]
    pub(crate) fn get(&self, token: Option<&Token>, path: &str) -> Answer {
        self.send("GET", token, path, &[])
    }

    /// A request with a JSON body.
    #[track_caller]
    pub(crate) fn post(&self, token: Option<&Token>, path: &str, body: &Value) -> Answer {
        self.send("POST", token, path, body.to_string().as_bytes())
    }

    /// Any request.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, token: Option<&Token>, path: &str, body: &[u8]) -> Answer {
        self.send_with(method, token, path, body, &[])
    }

    /// Any request, with more headers. The answer must be what the description of the service says.
    #[track_caller]
    pub(crate) fn send_with(
        &self,
        method: &str,
        token: Option<&Token>,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("content-type", "application/json").body(body).unwrap();
        let mut response = self.agent.run(request).unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.body_mut().with_config().limit(256 << 20).read_to_vec().unwrap();
        let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
        // A wrapped answer only says where the real one is.
        let is_wrapped = body.windows(13).any(|text| text == b"\"wrap_info\":{");
        let path = if is_wrapped { "/v1/sys/wrapping/rewrap" } else { path };
        let method = if is_wrapped { "POST" } else { method };
        conforms(&Answered { method, path, status, content_type, body: &body });
        Answer { status, headers, body }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.handle.shut_down();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// What a service answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, self.text());
        self.json()
    }

    /// The status and the code of an error.
    #[track_caller]
    pub(crate) fn error(&self) -> (u16, String) {
        assert!(self.status >= 400, "{}: {}", self.status, self.text());
        let body = self.json();
        assert!(body["message"].is_string() && body["retryable"].is_boolean(), "{body}");
        (self.status, body["code"].as_str().unwrap().to_owned())
    }
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn after(seconds: u64) -> Timestamp {
    Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + seconds * 1000).unwrap()
}

/// A token of a tenant for an hour.
pub(crate) fn token(
    keystore: &Keystore,
    tenant: &str,
    keys: GrantedKeys,
    operations: &[TokenOperation],
) -> Token {
    let grant = Grant::new(name(tenant), keys, operations.to_vec(), after(3600));
    keystore.mint_token(&grant).unwrap()
}

/// A keystore in memory with root keys for these tenants.
pub(crate) fn keystore(tenants: &[&str]) -> Keystore {
    let keystore = KeystoreOptions::default().in_memory().unwrap();
    for tenant in tenants {
        keystore.create_token_root(&name(tenant)).unwrap();
    }
    keystore
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(bytes)
}

pub(crate) fn from_base64(text: &Value) -> Vec<u8> {
    base64_simd::STANDARD.decode_to_vec(text.as_str().unwrap()).unwrap()
}
