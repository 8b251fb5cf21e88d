//! What all threads of the service share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::http::StatusCode;
use bulla_kms::audit_log::Actor;
use bulla_kms::metrics::Metrics;
use bulla_kms::token::{ROOT, Revocations, Token};
use bulla_kms::{Code, KeyFamily, KmsError, SecretString};

use super::open::{KeystoreSource, Opened};
use crate::access::{Limiter, Seen, Session, Sessions};
use crate::config::{Config, Limits};
use crate::error::{ApiError, Problem, Result};

/// What all threads of the service share.
pub(crate) struct Service {
    /// The settings with which the service started. [`Service::limits`] are those of now.
    pub(crate) config: Config,
    limits: ArcSwap<Limits>,
    pub(crate) threads: usize,
    pub(crate) metrics: Arc<Metrics>,
    source: Box<dyn KeystoreSource>,
    /// None while the service is sealed.
    opened: ArcSwapOption<Opened>,
    revocations: ArcSwap<Revocations>,
    /// Grows when remembered sessions may be wrong.
    epoch: AtomicU64,
    sessions: Sessions,
    /// What names of requests begin with, and how many there were.
    requests: (u32, AtomicU64),
    /// Under which credentials are hashed: nobody else can compute their digests.
    secret: [u8; 32],
}

impl Service {
    /// A sealed service.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub(crate) fn new(
        config: Config,
        threads: usize,
        source: Box<dyn KeystoreSource>,
    ) -> bulla_kms::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
        Ok(Self {
            limits: ArcSwap::from_pointee(config.limits),
            config,
            threads,
            metrics: Arc::default(),
            source,
            opened: ArcSwapOption::empty(),
            revocations: ArcSwap::default(),
            epoch: AtomicU64::new(0),
            sessions: Sessions::default(),
            requests: (u32::from_le_bytes([secret[0], secret[1], secret[2], secret[3]]), AtomicU64::new(0)),
            secret,
        })
    }

    /// A name for a request, unlike all others of this process and unlikely to be one of another.
    pub(crate) fn next_request_id(&self) -> String {
        let (process, requests) = &self.requests;
        format!("{process:08x}-{:010x}", requests.fetch_add(1, Ordering::Relaxed))
    }

    /// What a caller may ask for at most, as it is now.
    pub(crate) fn limits(&self) -> Limits {
        **self.limits.load()
    }

    /// From now on, callers may ask for this at most. Each caller's rate begins anew.
    pub(crate) fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
        self.forget_sessions();
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, _status: StatusCode) {}

    /// Whether the service can open the keystore without being given a passphrase.
    pub(crate) fn opens_by_itself(&self) -> bool {
        !self.source.needs_passphrase()
    }

    /// Opens the keystore, if it is not open. It takes long: a passphrase is stretched.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn unseal(&self, passphrase: Option<SecretString>) -> bulla_kms::Result<()> {
        if self.opened.load().is_some() {
            return Ok(());
        }
        let opened =
            self.source.open(passphrase, &self.metrics).and_then(|open| Opened::new(open, self.threads));
        let opened = opened.inspect_err(|error| {
            tracing::error!(code = error.code.as_str(), "the service was not unsealed: {}", error.message);
        })?;
        self.opened.store(Some(Arc::new(opened)));
        self.forget_sessions();
        tracing::info!("the service is unsealed");
        Ok(())
    }

    /// Closes the keystore as soon as the requests that use it are answered.
    pub(crate) fn seal(&self) {
        if self.opened.swap(None).is_some() {
            tracing::info!("the service is sealed");
        }
        self.forget_sessions();
    }

    /// # Errors
    /// The service is sealed.
    pub(crate) fn opened(&self) -> Result<Arc<Opened>> {
        let sealed = || ApiError::new(Problem::Sealed, "the service is sealed: an operator must unseal it");
        self.opened.load_full().ok_or_else(sealed)
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.opened.load().is_none()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Has every credential verified again.
    pub(crate) fn forget_sessions(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// Takes note of a change to a key: the root keys of tokens decide about sessions.
    pub(crate) fn key_changed(&self, key: &KeyFamily) {
        if key.purpose().as_str() == ROOT {
            self.forget_sessions();
        }
    }

    pub(crate) fn revocations(&self) -> Arc<Revocations> {
        self.revocations.load_full()
    }

    pub(crate) fn set_revocations(&self, revocations: Revocations) {
        self.revocations.store(Arc::new(revocations));
        self.forget_sessions();
    }

    /// The digest by which a credential is remembered.
    pub(crate) fn digest(&self, credential: &[u8]) -> Seen {
        *bulla_blake3::keyed_hash(&self.secret, credential).as_bytes()
    }

    /// The session of a token: remembered, or made by verifying it.
    ///
    /// # Errors
    /// Whatever is wrong with the token, the caller learns only that it is refused.
    pub(crate) fn session(
        &self,
        opened: &Opened,
        token: &[u8],
        seen: Seen,
        epoch: u64,
    ) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&seen, epoch) {
            return Ok(session);
        }
        let session = self.verified(opened, token).map_err(|error| {
            tracing::debug!(code = error.code.as_str(), "a token is refused");
            ApiError::refused()
        })?;
        Ok(self.sessions.insert(seen, epoch, session))
    }

    fn verified(&self, opened: &Opened, token: &[u8]) -> bulla_kms::Result<Session> {
        let not_text = |_| KmsError::new(Code::InvalidToken, "the token is not text");
        let token: Token = std::str::from_utf8(token).map_err(not_text)?.parse()?;
        let rights = opened.keystore.rights(&token, &self.revocations())?;
        let ids = rights.permit().revocation_ids.clone();
        let last = ids.last().map_or("", |id| &id[..id.len().min(16)]);
        let actor: Actor = format!("token {last}").parse()?;
        let limiter = self.limits().rate.map(Limiter::new);
        Ok(Session { authority: (&rights).into(), actor, limiter, revocation_ids: ids })
    }
}
