//! What all threads of the service share.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bulla_kms::audit_log::Actor;
use bulla_kms::metrics::Metrics;
use bulla_kms::token::{ROOT, Revocations, Token};
use bulla_kms::{Code, KeyFamily, KmsError, SecretString, Timestamp};

use super::answers::Answers;
use super::counts::Counts;
use super::open::{KeystoreSource, Opened};
use super::revoked::{Revoked, Revoker};
use crate::access::{Limiter, Seen, Session, Sessions};
use crate::config::{Config, Limits};
use crate::error::{ApiError, Problem, Result};

/// How often the passphrase may be tried: so many times at once, and then once in each interval.
const TRIES: NonZeroU32 = NonZeroU32::new(3).expect("it is not zero");
const BETWEEN_TRIES: Duration = Duration::from_secs(20);

/// What all threads of the service share.
pub(crate) struct Service {
    /// The settings with which the service started. [`Service::limits`] are those of now.
    pub(crate) config: Config,
    limits: ArcSwap<Limits>,
    pub(crate) threads: usize,
    /// What the keystore counts.
    pub(crate) metrics: Arc<Metrics>,
    /// What the service counts.
    pub(crate) counts: Counts,
    /// The answers to requests with an idempotency key.
    pub(crate) answers: Answers,
    source: Box<dyn KeystoreSource>,
    /// None while the service is sealed.
    opened: ArcSwapOption<Opened>,
    /// Whoever holds it opens the keystore.
    opening: Mutex<()>,
    /// How often callers try to open it.
    tries: Limiter,
    revocations: ArcSwap<Revocations>,
    /// The same with the times when tokens expire, and the file.
    revoked: Mutex<Revoked>,
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
    /// [`Code::RandomUnavailable`]; those of reading the list of revoked tokens.
    pub(crate) fn new(
        config: Config,
        threads: usize,
        source: Box<dyn KeystoreSource>,
    ) -> bulla_kms::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
        let revoked = Revoked::read(source.revocations())?;
        Ok(Self {
            limits: ArcSwap::from_pointee(config.limits),
            config,
            threads,
            metrics: Arc::default(),
            counts: Counts::new(threads),
            answers: Answers::default(),
            source,
            opened: ArcSwapOption::empty(),
            opening: Mutex::new(()),
            tries: Limiter::spaced(BETWEEN_TRIES, TRIES),
            revocations: ArcSwap::from_pointee(revoked.ids().clone()),
            revoked: Mutex::new(revoked),
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

    /// Whether the service can open the keystore without being given a passphrase.
    pub(crate) fn opens_by_itself(&self) -> bool {
        !self.source.needs_passphrase()
    }

    /// Opens the keystore, if it is not open. It takes long: a passphrase is stretched.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn unseal(&self, passphrase: Option<SecretString>) -> bulla_kms::Result<()> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Counts a try to open the keystore, of all callers together.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn count_try(&self) -> Result<()> {
        self.tries.take(1).map_err(|wait| {
            let message = format!("too many tries to unseal: try again in {} seconds", wait.as_secs() + 1);
            ApiError::new(Problem::RateLimited, message)
        })
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

    /// Refuses a token, and all that were made from it, from the next request on. `expires` says when it expires, if that is known. It
    /// waits for the disk.
    ///
    /// # Errors
    /// There are too many; the list cannot be written. The token is refused nonetheless then, until the service ends.
    pub(crate) fn revoke(&self, id: &str, expires: Option<Timestamp>, by: Revoker) -> bulla_kms::Result<()> {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.add(id, expires, by, Timestamp::now()?)?;
        self.revocations.store(Arc::new(revoked.ids().clone()));
        self.forget_sessions();
        revoked.write()
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
