//! The keys of an issuer that are fetched from its server, and fetched again when they change.
//!
//! A thread fetches them, so no request waits for a server unless its JWT names a key that is not
//! known yet. Whoever sends many of these makes the thread fetch no more often than its limit.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bulla_kms::{Code, KmsError};
use serde::Deserialize;
use tokio::sync::watch;

use super::https;
use super::keys::{IssuerKeys, MAX_KEYS_LEN};
use crate::access::RateLimiter;
use crate::config::{IssuerConfig, is_protected};

/// How often keys are fetched although nobody misses one.
const REFRESH_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// The time between two fetches because of requests, after the first few.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How many fetches may follow one another at once.
const MAX_FETCHES_AT_ONCE: NonZeroU32 = NonZeroU32::new(6).expect("it is not zero");
/// How long after a failure the thread tries again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// For so long keys are used that cannot be fetched again: an issuer that is down locks nobody out
/// at once, and one that has revoked a key and cannot be reached is not trusted for good.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request waits for a fetch.
const WAIT_TIMEOUT: Duration = Duration::from_secs(15);

/// The keys that were fetched last. The thread that fetches ends when this value is dropped.
#[derive(Debug)]
pub(super) struct FetchedKeys {
    shared: Arc<Shared>,
    /// Wakes the thread.
    wanted: SyncSender<()>,
}

#[derive(Debug)]
struct Shared {
    keys: ArcSwapOption<(IssuerKeys, Instant)>,
    /// How many fetches have ended.
    fetches: watch::Sender<u64>,
}

impl FetchedKeys {
    /// Starts to fetch.
    ///
    /// # Errors
    /// The file of authorities cannot be used; a thread cannot be started.
    pub(super) fn start(issuer: &IssuerConfig) -> bulla_kms::Result<Self> {
        let server = KeyServer::new(issuer)?;
        let shared = Arc::new(Shared { keys: ArcSwapOption::empty(), fetches: watch::Sender::new(0) });
        let (wanted, wishes) = sync_channel(1);
        let (name, state) = (issuer.name.to_string(), Arc::clone(&shared));
        let run = move || run(&name, &server, &state, &wishes);
        let started = thread::Builder::new().name("bulla-issuer".to_owned()).spawn(run);
        started.map_err(|error| KmsError::new(Code::Io, format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, wanted })
    }

    /// The keys, unless they are too old.
    pub(super) fn current(&self) -> Option<Arc<(IssuerKeys, Instant)>> {
        self.shared.keys.load_full().filter(|keys| keys.1.elapsed() < MAX_AGE)
    }

    /// Waits for the next fetch.
    pub(super) async fn fetched_again(&self) {
        let mut fetches = self.shared.fetches.subscribe();
        // A thread that has a wish already fetches for both.
        let _ = self.wanted.try_send(());
        let _ = tokio::time::timeout(WAIT_TIMEOUT, fetches.changed()).await;
    }
}

fn run(name: &str, server: &KeyServer, shared: &Shared, wishes: &Receiver<()>) {
    let limiter = RateLimiter::spaced(MIN_INTERVAL, MAX_FETCHES_AT_ONCE);
    let mut has_failed = false;
    loop {
        match server.fetch() {
            Ok(keys) => {
                shared.keys.store(Some(Arc::new((keys, Instant::now()))));
                if has_failed {
                    tracing::info!(issuer = name, "the issuer's keys can be fetched again");
                }
                has_failed = false;
            }
            Err(reason) => {
                if !has_failed {
                    tracing::error!(issuer = name, "the issuer's keys cannot be fetched: {reason}");
                }
                has_failed = true;
            }
        }
        shared.fetches.send_modify(|fetches| *fetches += 1);
        let interval = if has_failed { RETRY_INTERVAL } else { REFRESH_INTERVAL };
        match wishes.recv_timeout(interval) {
            Ok(()) => {
                while let Err(wait) = limiter.take(1) {
                    thread::sleep(wait);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Where the keys of an issuer are.
struct KeyServer {
    agent: ureq::Agent,
    issuer: String,
    /// None if the issuer's metadata say it.
    jwks_url: Option<String>,
    /// The server of a cluster that may ask who wants to know its keys, and the file with the token
    /// to show there.
    token: Option<(String, PathBuf)>,
}

/// The metadata of an issuer (OpenID Connect Discovery), as far as they count here.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl KeyServer {
    fn new(issuer: &IssuerConfig) -> bulla_kms::Result<Self> {
        let IssuerConfig { issuer: url, jwks_url, token_review, ca, .. } = issuer;
        Ok(Self {
            agent: https::agent(ca.as_deref(), https::ANSWER_TIMEOUT)?,
            issuer: url.clone(),
            jwks_url: jwks_url.clone(),
            token: token_review.as_ref().map(|review| (review.url.clone(), review.token_file.clone())),
        })
    }

    fn fetch(&self) -> Result<IssuerKeys, String> {
        let discovered;
        let url = match &self.jwks_url {
            Some(url) => url,
            None => {
                discovered = self.discover()?;
                &discovered
            }
        };
        IssuerKeys::read(&self.get(url)?).map_err(|reason| format!("{url}: {reason}"))
    }

    /// The URL of the keys, from the issuer's metadata.
    fn discover(&self) -> Result<String, String> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let metadata: Metadata =
            serde_json::from_slice(&self.get(&url)?).map_err(|error| format!("{url}: {error}"))?;
        if metadata.issuer != self.issuer {
            return Err(format!("{url} is of the issuer {:?}", metadata.issuer));
        }
        if !is_protected(&metadata.jwks_uri) {
            return Err(format!(
                "{url} says that the keys are at {:?}, which is not protected",
                metadata.jwks_uri
            ));
        }
        Ok(metadata.jwks_uri)
    }

    fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let mut request = self.agent.get(url);
        if let Some((_, file)) = self.token.as_ref().filter(|(server, _)| https::is_same_server(server, url))
        {
            request = request.header("authorization", https::bearer(file)?);
        }
        let mut response = request.call().map_err(|error| format!("{url}: {error}"))?;
        if response.status() != 200 {
            return Err(format!("{url}: the server answers {}", response.status()));
        }
        let body = response.body_mut().with_config().limit(MAX_KEYS_LEN as u64);
        body.read_to_vec().map_err(|error| format!("{url}: {error}"))
    }
}
