//! The state that all threads of the service share, and how it is sealed and unsealed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bulla_keystore::RevokedTokens;
use bulla_kms::approval::Overrides;
use bulla_kms::audit_log::{Actor, AuditLog, CheckpointThread, Durability};
use bulla_kms::batcher::{Batcher, BatcherOptions};
use bulla_kms::metrics::Metrics;
use bulla_kms::token::{Revocations, TOKEN_ROOT_PURPOSE, Token};
use bulla_kms::{Code, KeyId, Keystore, KmsError, SecretString, Timestamp};

use super::answer_cache::AnswerCache;
use super::blocking_pool::{BlockingPool, PoolLimits, run_off_thread};
use super::body_memory::{AnonymousMemory, BodyMemory, origin_of};
use super::metrics::ServiceMetrics;
use super::mounts::Mounts;
use super::policies::Policies;
use super::revocation_file::{RevocationFile, RevokedBy};
use super::rows::ServiceRows;
use crate::access::{
    Authority, CredentialDigest, CurrentEpoch, Epoch, NodeCount, RateLimiter, RequestRate, Session,
    SessionCache, TenantQuotas, TokenRateLimiters,
};
use crate::cluster::{ClusterListener, ClusterNode, Revocation};
use crate::config::{Config, JwtConfig, LimitsConfig, StoreKind};
use crate::cosigning::CosigningThread;
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::group::GroupNode;
use crate::login::Logins;

/// A keystore and its audit log, as a [`KeystoreSource`] opens them.
#[derive(Debug)]
pub struct OpenKeystore {
    /// The keystore. It records in the log, if there is one.
    pub keystore: Keystore,
    /// The audit log, and when its entries are on the disk.
    pub audit: Option<(Arc<AuditLog>, Durability)>,
}

/// Opens the keystore, at the start and at each unsealing.
pub trait KeystoreSource: Send + Sync {
    /// Whether [`KeystoreSource::open`] needs a passphrase that the service was not given.
    fn needs_passphrase(&self) -> bool;

    /// Opens the keystore, by `passphrase` or by what the service was given. Operations are counted
    /// in `metrics`.
    ///
    /// # Errors
    /// Those of [`Keystore::open`](bulla_kms::Keystore::open), and of opening the audit log.
    fn open(
        &self,
        passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore>;

    /// The file with the revocation ids of tokens that are refused, which the service reads at its
    /// start and writes. With none, revocations are forgotten when the service ends.
    fn revocations(&self) -> Option<PathBuf> {
        None
    }

    /// This node of a group, whose backend the keystore has.
    fn group(&self) -> Option<GroupNode> {
        None
    }

    /// The folder of the service's own rows: secret ids, wrapped answers. With none, they are
    /// forgotten when the service ends.
    fn rows(&self) -> Option<PathBuf> {
        None
    }
}

/// An open keystore, with a batcher for each thread that serves.
#[derive(Debug)]
pub(crate) struct UnsealedService {
    /// It makes the last checkpoint that is due when it is dropped: before the keystore, which
    /// signs it.
    _sealer: Option<CheckpointThread>,
    pub(crate) keystore: Arc<Keystore>,
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// Whether computing a batch waits for the disk.
    pub(crate) waits_for_disk: bool,
    batchers: Vec<Batcher>,
    _cosigning: Option<CosigningThread>,
}

impl UnsealedService {
    pub(crate) fn new(open: OpenKeystore, threads: usize, config: &Config) -> bulla_kms::Result<Self> {
        let keystore = Arc::new(open.keystore);
        let options = BatcherOptions::default();
        let batchers = (0..threads).map(|_| Batcher::without_threads(Arc::clone(&keystore), &options));
        let batchers = batchers.collect::<bulla_kms::Result<_>>()?;
        let waits_for_disk = matches!(open.audit, Some((_, Durability::Grouped)));
        let audit = open.audit.map(|(log, _)| log);
        let cosigning = match &audit {
            Some(log) => CosigningThread::start(config, &keystore, log)?,
            None => None,
        };
        // A batch that is computed must not wait for the disk because a checkpoint is due.
        let sealer = audit.as_ref().map(|log| CheckpointThread::start(&keystore, log)).transpose()?;
        Ok(Self { _sealer: sealer, keystore, audit, waits_for_disk, batchers, _cosigning: cosigning })
    }

    /// The batcher of one thread.
    pub(super) fn batcher(&self, thread: usize) -> &Batcher {
        &self.batchers[thread]
    }
}

/// How many lines about connections that are closed the log has at once. Then it has one in each
/// second.
const MAX_CLOSED_LINES: NonZeroU32 = NonZeroU32::new(10).expect("it is not zero");

/// How many passphrases may be tried at once. Then one more is allowed in each interval.
const MAX_UNSEAL_TRIES: NonZeroU32 = NonZeroU32::new(3).expect("it is not zero");
const UNSEAL_TRY_INTERVAL: Duration = Duration::from_secs(20);

/// How often callers of one address may try to log in with what could be guessed.
const LOGIN_TRY_RATE: RequestRate = RequestRate {
    per_second: NonZeroU32::new(10).expect("it is not zero"),
    burst: NonZeroU32::new(100).expect("it is not zero"),
};

/// The most slow jobs of one caller that wait for a thread.
const MAX_WAITING_JOBS: usize = 1024;
/// The most bytes of results of one caller that are kept until all of a batch are there.
const MAX_RESULT_BYTES: usize = 256 << 20;
/// At least so many threads work for one caller: most of them wait for the disk.
const MIN_THREADS_PER_CALLER: usize = 8;

/// The state that all threads of the service share.
pub(crate) struct Service {
    /// The settings with which the service started. [`Service::limits`] returns the current limits.
    pub(crate) config: Config,
    limits: ArcSwap<LimitsConfig>,
    pub(crate) threads: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) http_metrics: ServiceMetrics,
    /// The memory of the bodies of callers who were verified.
    pub(crate) bodies: BodyMemory,
    /// The memory of long answers that their callers have not taken yet.
    pub(crate) answers_under_way: BodyMemory,
    /// The memory of the bodies of all other callers, and of heads that have not ended.
    pub(crate) anonymous_memory: AnonymousMemory,
    /// How often the log says that a connection is closed.
    closed_lines: RateLimiter,
    /// The slow work of callers.
    pub(super) blocking_pool: Arc<BlockingPool>,
    /// The slow work of operators, which never waits behind that of other callers.
    pub(super) operator_pool: Arc<BlockingPool>,
    /// The answers to requests with an idempotency key.
    pub(crate) answers: AnswerCache,
    /// The other nodes, if the keystore is shared.
    pub(crate) cluster: Option<Arc<ClusterNode>>,
    /// What the service keeps beside the keys.
    pub(crate) rows: ServiceRows,
    source: Box<dyn KeystoreSource>,
    /// None while the service is sealed.
    unsealed: ArcSwapOption<UnsealedService>,
    /// Its holder opens the keystore.
    opening: Mutex<()>,
    /// How often callers try to unseal: each caller of the settings, and all others together.
    tries: Mutex<HashMap<Option<Actor>, RateLimiter>>,
    logins: ArcSwap<Logins>,
    policies: ArcSwap<Policies>,
    /// None if the service is no issuer of JWTs.
    jwt: ArcSwapOption<JwtConfig>,
    /// How often callers of each address try to log in with what could be guessed.
    login_tries: TokenRateLimiters,
    revoked_tokens: ArcSwap<RevokedTokens>,
    /// The list of revoked tokens, with its file.
    revoked: Mutex<RevocationFile>,
    /// Grows when remembered sessions may be wrong.
    epoch: CurrentEpoch,
    sessions: SessionCache,
    limiters: TokenRateLimiters,
    quotas: ArcSwap<TenantQuotas>,
    mounts: ArcSwap<Mounts>,
    /// The prefix of request ids, and the number of requests so far.
    requests: (u32, AtomicU64),
    /// The key under which credentials are hashed, so that nobody else can compute their digests.
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
        let cluster = match config.keystore.store {
            StoreKind::Etcd => Some(Arc::new(ClusterNode::new(&config.etcd))),
            StoreKind::File => None,
        };
        let revoked = RevocationFile::read(source.revocations())?;
        let max_threads_per_caller = thread::available_parallelism()
            .map_or(MIN_THREADS_PER_CALLER, usize::from)
            .max(MIN_THREADS_PER_CALLER);
        let pool_limits = PoolLimits {
            max_threads: 2 * max_threads_per_caller,
            max_threads_per_caller,
            max_waiting_jobs: MAX_WAITING_JOBS,
            max_result_bytes: MAX_RESULT_BYTES,
        };
        let limiters = TokenRateLimiters::new(config.limits.request_rate);
        let quotas = TenantQuotas::new(&config.quota, limiters.nodes(), None);
        Ok(Self {
            blocking_pool: BlockingPool::new(pool_limits),
            operator_pool: BlockingPool::new(PoolLimits {
                max_threads: MIN_THREADS_PER_CALLER,
                max_threads_per_caller: MIN_THREADS_PER_CALLER,
                ..pool_limits
            }),
            limits: ArcSwap::from_pointee(config.limits),
            threads,
            metrics: Arc::default(),
            http_metrics: ServiceMetrics::new(threads),
            bodies: BodyMemory::default(),
            answers_under_way: BodyMemory::default(),
            anonymous_memory: AnonymousMemory::default(),
            closed_lines: RateLimiter::spaced(Duration::from_secs(1), MAX_CLOSED_LINES),
            answers: AnswerCache::default(),
            rows: ServiceRows::new(cluster.as_ref(), source.rows()),
            cluster,
            source,
            unsealed: ArcSwapOption::empty(),
            opening: Mutex::new(()),
            tries: Mutex::default(),
            logins: ArcSwap::from_pointee(Logins::new(&config, &Logins::default())?),
            policies: ArcSwap::from_pointee(Policies::new(&config)?),
            jwt: ArcSwapOption::from_pointee(config.jwt.clone()),
            login_tries: TokenRateLimiters::new(Some(LOGIN_TRY_RATE)),
            revoked_tokens: ArcSwap::from_pointee(revoked.tokens().clone()),
            revoked: Mutex::new(revoked),
            epoch: CurrentEpoch::default(),
            sessions: SessionCache::one_of(1),
            limiters,
            quotas: ArcSwap::from_pointee(quotas),
            mounts: ArcSwap::from_pointee(Mounts::new(&config.mount)),
            config,
            requests: (u32::from_le_bytes([secret[0], secret[1], secret[2], secret[3]]), AtomicU64::new(0)),
            secret,
        })
    }

    /// A new request id: unique in this process, and unlikely to equal one of another process.
    pub(crate) fn next_request_id(&self) -> String {
        let (process, requests) = &self.requests;
        format!("{process:08x}-{:010x}", requests.fetch_add(1, Ordering::Relaxed))
    }

    /// The limits as they are now.
    pub(crate) fn limits(&self) -> LimitsConfig {
        **self.limits.load()
    }

    /// Sets the limits for all requests from now on.
    pub(crate) fn set_limits(&self, limits: LimitsConfig) {
        self.limits.store(Arc::new(limits));
        self.limiters.set_rate(limits.request_rate);
        self.forget_sessions();
    }

    /// The quotas of tenants as they are now.
    pub(crate) fn quotas(&self) -> Arc<TenantQuotas> {
        self.quotas.load_full()
    }

    /// Sets the quotas for all requests from now on.
    pub(crate) fn set_quotas(&self, quotas: TenantQuotas) {
        self.quotas.store(Arc::new(quotas));
        self.forget_sessions();
    }

    /// The mounts beside `transit/` as they are now.
    pub(crate) fn mounts(&self) -> Arc<Mounts> {
        self.mounts.load_full()
    }

    /// Sets the mounts beside `transit/` for all requests from now on.
    pub(crate) fn set_mounts(&self, mounts: Mounts) {
        self.mounts.store(Arc::new(mounts));
        self.forget_sessions();
    }

    /// The issuers and roles as they are now.
    pub(crate) fn logins(&self) -> Arc<Logins> {
        self.logins.load_full()
    }

    /// Sets the issuers and roles for all logins from now on. Tokens of earlier logins stay valid.
    pub(crate) fn set_logins(&self, logins: Logins) {
        self.logins.store(Arc::new(logins));
    }

    /// The policies as they are now.
    pub(crate) fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    /// Sets the policies, also for tokens that were made before.
    pub(crate) fn set_policies(&self, policies: Policies) {
        self.policies.store(Arc::new(policies));
        self.forget_sessions();
    }

    /// The settings of the JWTs that the service signs, as they are now.
    pub(crate) fn jwt(&self) -> Option<Arc<JwtConfig>> {
        self.jwt.load_full()
    }

    /// Sets what the service signs as an issuer of JWTs.
    pub(crate) fn set_jwt(&self, jwt: Option<JwtConfig>) {
        self.jwt.store(jwt.map(Arc::new));
    }

    /// How many nodes share the rates of callers.
    pub(crate) fn nodes(&self) -> &NodeCount {
        self.limiters.nodes()
    }

    /// Whether the service can open the keystore without being given a passphrase.
    pub(crate) fn auto_unseals(&self) -> bool {
        !self.source.needs_passphrase()
    }

    /// Opens the keystore, if it is not open. It takes long: a passphrase is stretched.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn unseal(&self, passphrase: Option<SecretString>) -> bulla_kms::Result<()> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.unsealed.load().is_some() {
            return Ok(());
        }
        let unsealed = self.source.open(passphrase, &self.metrics).and_then(|open| self.join(open));
        let unsealed = unsealed.inspect_err(|error| {
            tracing::error!(code = error.code.as_str(), "the service was not unsealed: {}", error.message);
        })?;
        self.unsealed.store(Some(Arc::new(unsealed)));
        self.forget_sessions();
        tracing::info!("the service is unsealed");
        Ok(())
    }

    /// Makes an open keystore ready to serve, together with the other nodes, if there are any.
    fn join(&self, mut open: OpenKeystore) -> bulla_kms::Result<UnsealedService> {
        let Some(cluster) = &self.cluster else {
            return UnsealedService::new(open, self.threads, &self.config);
        };
        open.keystore = open.keystore.leased(cluster.lease());
        let unsealed = UnsealedService::new(open, self.threads, &self.config)?;
        cluster.attach(&unsealed.keystore, unsealed.audit.as_ref())?;
        if let Some(group) = self.source.group() {
            let overrides = match self.config.service.allow_approval_override {
                true => Overrides::Permitted,
                false => Overrides::Forbidden,
            };
            group.attach(&unsealed.keystore, overrides);
        }
        Ok(unsealed)
    }

    /// This node of a group, if it is one.
    pub(crate) fn group(&self) -> Option<GroupNode> {
        self.source.group()
    }

    /// Closes the keystore as soon as the requests that use it are answered.
    pub(crate) fn seal(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.detach();
        }
        if let Some(group) = self.source.group() {
            group.detach();
        }
        if self.unsealed.swap(None).is_some() {
            tracing::info!("the service is sealed");
        }
        self.forget_sessions();
    }

    /// Counts an attempt to unseal by a caller of the settings, or by any other caller.
    ///
    /// # Errors
    /// There were too many.
    pub(super) fn count_unseal_try(&self, identity: Option<&Actor>) -> Result<()> {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter = tries
            .entry(identity.cloned())
            .or_insert_with(|| RateLimiter::spaced(UNSEAL_TRY_INTERVAL, MAX_UNSEAL_TRIES));
        limiter.take(1).map_err(|wait| {
            let message = format!("too many tries to unseal: try again in {} seconds", wait.as_secs() + 1);
            ApiError::new(ApiErrorCode::RateLimited, message)
        })
    }

    /// Says in the log why a connection is closed.
    pub(crate) fn note_closed_connection(&self, why: &str) {
        if self.closed_lines.take(1).is_ok() {
            tracing::warn!("a connection is closed: {why}");
        }
    }

    /// Counts an attempt to log in from an address, with what could be guessed.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn count_login_try(&self, address: Option<IpAddr>) -> Result<()> {
        let limiter = self.login_tries.limiter_for(&origin_of(address));
        limiter.map_or(Ok(()), |limiter| limiter.check(1, "too many logins from this address"))
    }

    /// # Errors
    /// The service is sealed.
    pub(crate) fn unsealed(&self) -> Result<Arc<UnsealedService>> {
        let sealed =
            || ApiError::new(ApiErrorCode::Sealed, "the service is sealed: an operator must unseal it");
        self.unsealed.load_full().ok_or_else(sealed)
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.unsealed.load().is_none()
    }

    /// Whether a caller whose request began may still have its answer: slow work asks before each
    /// step.
    ///
    /// # Errors
    /// The service was sealed, or the credential was revoked or has expired.
    pub(super) fn check_still_permitted(
        &self,
        unsealed: &Arc<UnsealedService>,
        session: &Session,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.unsealed()?, unsealed) {
            return Err(ApiError::new(
                ApiErrorCode::Sealed,
                "the service was sealed meanwhile: send it again",
            ));
        }
        if self.is_revoked(session) {
            Err(ApiError::forbidden())
        } else {
            session.check_time(Timestamp::now()?)
        }
    }

    /// Ends slow work: what is computed ends, and nothing else begins.
    pub(crate) fn stop_blocking_pools(&self) {
        self.blocking_pool.close();
        self.operator_pool.close();
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// Makes the service verify every credential again.
    pub(crate) fn forget_sessions(&self) {
        self.epoch.forget_verdicts();
    }

    /// Whether the token of a session was revoked.
    pub(super) fn is_revoked(&self, session: &Session) -> bool {
        self.revoked_tokens.load().contains_any(session.home(), &session.revocation_ids)
    }

    /// Reacts to a change of a key: sessions depend on the root keys of tokens.
    pub(crate) fn key_changed(&self, key: &KeyId) {
        if key.purpose().as_str() == TOKEN_ROOT_PURPOSE {
            self.forget_sessions();
        }
    }

    pub(crate) fn revoked_tokens(&self) -> Arc<RevokedTokens> {
        self.revoked_tokens.load_full()
    }

    /// Refuses a token, and all that were made from it, from the next request on. It waits for the
    /// disk, or for the other nodes' store.
    ///
    /// # Errors
    /// There are too many; the list cannot be written. The token is refused nonetheless then, until
    /// the service ends.
    pub(crate) fn revoke(&self, revocation: Revocation, by: RevokedBy) -> bulla_kms::Result<()> {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        // Ids that another program wrote into the file must stay in it.
        let read = revoked.read_again();
        revoked.add(revocation.clone(), by)?;
        self.apply_revocations(&revoked);
        read.map_err(|error| {
            let message = format!("the token is refused until the service ends, but {}", error.message);
            KmsError::new(Code::Io, message)
        })?;
        let Some(cluster) = &self.cluster else { return revoked.write() };
        drop(revoked);
        cluster.revoke(&revocation)
    }

    /// Also refuses the tokens that another program wrote into the file.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn reload_revocations(&self) -> bulla_kms::Result<()> {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.read_again()?;
        self.apply_revocations(&revoked);
        Ok(())
    }

    /// Refuses what the list says, from the next request on.
    fn apply_revocations(&self, revoked: &RevocationFile) {
        if **self.revoked_tokens.load() != *revoked.tokens() {
            self.revoked_tokens.store(Arc::new(revoked.tokens().clone()));
            self.epoch.look_at_revocations();
        }
    }

    /// The digest under which a credential is remembered.
    pub(crate) fn digest(&self, credential: &[u8]) -> CredentialDigest {
        *bulla_blake3::keyed_hash(&self.secret, credential).as_bytes()
    }

    /// The session of a token: remembered, or made by verifying it.
    ///
    /// # Errors
    /// The token is refused. The caller does not learn why.
    pub(crate) fn session(
        &self,
        unsealed: &UnsealedService,
        token: &[u8],
        digest: CredentialDigest,
        epoch: Epoch,
    ) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&digest, epoch, |session| self.is_revoked(session)) {
            return Ok(session);
        }
        let session = self.verified(unsealed, token).map_err(|error| {
            tracing::debug!(code = error.code.as_str(), "a token is refused");
            ApiError::forbidden()
        })?;
        Ok(self.sessions.insert(digest, epoch, session))
    }

    fn verified(&self, unsealed: &UnsealedService, token: &[u8]) -> bulla_kms::Result<Session> {
        let not_text = |_| KmsError::new(Code::InvalidToken, "the token is not text");
        let token: Token = std::str::from_utf8(token).map_err(not_text)?.parse()?;
        // The tenant is known only after the token is verified.
        let rights = unsealed.keystore.rights(&token, &Revocations::default())?;
        let ids = rights.token().revocation_ids.clone();
        if self.revoked_tokens.load().contains_any(rights.tenant(), &ids) {
            return Err(KmsError::new(Code::Forbidden, "the token was revoked"));
        }
        let last = ids.last().map_or("", |id| &id[..id.len().min(16)]);
        let actor: Actor = match rights.holder() {
            Some(holder) => format!("{holder} token {last}"),
            None => format!("token {last}"),
        }
        .parse()?;
        // The first block is the minted token. All tokens that are made from it share one rate.
        let limiter = ids.first().and_then(|minted| self.limiters.limiter_for(minted));
        let quota = self.quotas.load().of(rights.tenant());
        let authority = Authority::from(&rights);
        let policies = self.policies.load();
        let acl = |names: &Vec<_>| Arc::new(policies.acl(rights.tenant(), names));
        let acls = authority.policies.iter().map(acl).collect();
        Ok(Session { authority, home: None, actor, limiter, quota, revocation_ids: ids, acls })
    }
}

impl ClusterListener for Service {
    fn revoked(&self, revocations: Vec<Revocation>) {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        for revocation in revocations {
            // Only holders can be refused, and another node has decided that already.
            let _ = revoked.add(revocation, RevokedBy::Minter);
        }
        self.apply_revocations(&revoked);
    }

    fn roots_changed(&self) {
        self.forget_sessions();
    }

    fn nodes_counted(&self, number: u32) {
        self.nodes().set(number);
    }
}

impl Service {
    /// Closes the keystore for `actor`, whose request holds `unsealed`.
    ///
    /// # Errors
    /// Closing it panicked.
    pub(crate) async fn seal_by_operator(
        self: &Arc<Self>,
        unsealed: Arc<UnsealedService>,
        actor: &Actor,
    ) -> Result<()> {
        let service = Arc::clone(self);
        // The last user of the keystore closes its files, which takes long.
        run_off_thread(move || {
            service.seal();
            drop(unsealed);
        })
        .await?;
        tracing::warn!(%actor, "an operator sealed the service");
        Ok(())
    }

    /// Opens the keystore for `actor` with what the service was given at its start, if it is not
    /// open. A key file is read again.
    ///
    /// # Errors
    /// The service was not given a passphrase, and the keystore needs one; those of the source.
    pub(crate) async fn unseal_by_operator(self: &Arc<Self>, actor: &Actor) -> Result<()> {
        if !self.auto_unseals() {
            let message = "the keystore opens with a passphrase, which the request does not have";
            return Err(KmsError::new(Code::WrongPassphrase, message).into());
        }
        tracing::warn!(%actor, "an operator unseals the service");
        self.unseal_off_thread(None).await
    }

    /// Opens the keystore with a passphrase, if it is not open. Callers need no other credential,
    /// so all of them together have few tries. A caller of the settings has tries of its own,
    /// which no other caller uses up.
    ///
    /// # Errors
    /// There were too many tries; those of the source.
    pub(crate) async fn try_passphrase(
        self: &Arc<Self>,
        passphrase: SecretString,
        peer: Option<&Session>,
    ) -> Result<()> {
        if !self.is_sealed() {
            return Ok(());
        }
        self.count_unseal_try(peer.map(|session| &session.actor))?;
        self.unseal_off_thread(Some(passphrase)).await
    }

    /// Opens the keystore on a thread that may wait.
    async fn unseal_off_thread(self: &Arc<Self>, passphrase: Option<SecretString>) -> Result<()> {
        let service = Arc::clone(self);
        Ok(run_off_thread(move || service.unseal(passphrase)).await??)
    }
}

#[cfg(test)]
mod shared_tests {
    use proptest::prelude::*;

    use super::*;

    struct NoKeystore;

    impl KeystoreSource for NoKeystore {
        fn needs_passphrase(&self) -> bool {
            true
        }

        fn open(
            &self,
            _passphrase: Option<SecretString>,
            _metrics: &Arc<Metrics>,
        ) -> bulla_kms::Result<OpenKeystore> {
            Err(KmsError::new(Code::ShuttingDown, "there is no keystore"))
        }
    }

    /// A node that drops a token as soon as its end has passed.
    fn node() -> Service {
        let node = Service::new(Config::default(), 1, Box::new(NoKeystore)).unwrap();
        node.revoked.lock().unwrap().clock = crate::access::ExpiryClock::without_grace();
        node
    }

    /// The node that revokes, whether the others hear of it late, and what it revokes.
    fn revocations() -> impl Strategy<Value = (usize, bool, Revocation)> {
        let ends = prop_oneof![Just(None), Just(Some(1_000)), Just(Some(u64::from(u32::MAX) * 1_000))];
        let ids = (prop::option::of("[ab]"), "0[0-7]", ends);
        (0..3_usize, any::<bool>(), ids).prop_map(|(node, is_late, (tenant, id, end))| {
            let tenant = tenant.map(|tenant| tenant.parse().unwrap());
            let expires = end.map(|end| Timestamp::from_unix_millis(end).unwrap());
            (node, is_late, Revocation { tenant, id, expires })
        })
    }

    proptest! {
        #[test]
        fn what_any_node_revokes_is_refused_by_all(said in prop::collection::vec(revocations(), 1..24)) {
            let nodes: Vec<_> = (0..3).map(|_| node()).collect();
            for (by, is_late, revocation) in &said {
                nodes[*by].revoke(revocation.clone(), RevokedBy::Minter).unwrap();
                let epoch = nodes[*by].epoch();
                // A node is also notified of its own revocations.
                nodes[*by].revoked(vec![revocation.clone()]);
                prop_assert_eq!(nodes[*by].epoch(), epoch, "what is known makes no node verify again");
                nodes.iter().filter(|_| !is_late).for_each(|node| node.revoked(vec![revocation.clone()]));
            }
            let all: Vec<_> = said.iter().map(|(_, _, revocation)| revocation.clone()).collect();
            for node in &nodes {
                node.revoked(all.clone());
                for Revocation { tenant, id, expires } in &all {
                    let stays = expires.is_none_or(|end| end.unix_millis() > 1_000);
                    let tenant = tenant.clone().unwrap_or_else(|| "c".parse().unwrap());
                    let refused = node.revoked_tokens().contains_any(&tenant, std::slice::from_ref(id));
                    prop_assert!(refused || !stays, "{tenant} {id}");
                }
                let known = node.revoked.lock().unwrap().tokens().clone();
                prop_assert_eq!(&known, &*node.revoked_tokens(), "what it knows is what it refuses");
            }
        }
    }
}
