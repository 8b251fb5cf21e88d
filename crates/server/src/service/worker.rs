//! One thread that serves, and the batch that it computes for all of its connections.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Algorithm, KeyRef, KeySelector, KeyVersionId, Keystore, Signature, Verdict};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tracing::Span;

use super::blocking_pool::run_off_thread;
use super::blocking_pool::{BlockingPool, JobStep};
use super::state::Service;
use super::state::UnsealedService;
use crate::access::{Session, SessionCache};
use crate::error::Result;

/// The state of one serving thread.
pub(crate) struct WorkerState {
    pub(crate) service: Arc<Service>,
    /// Which thread it is.
    pub(crate) number: usize,
    /// Sessions of this thread's connections, so that threads do not wait for each other.
    recent: SessionCache,
    /// Whether a task is scheduled that computes the waiting calls.
    flush_scheduled: AtomicBool,
}

/// How many signatures one thread computes before it looks at its other connections.
const MAX_STEP_ITEMS: usize = 256;

/// How long a step of slow work should take. A single item may take longer.
const TARGET_STEP_TIME: Duration = Duration::from_millis(10);

/// How many bytes are encrypted, decrypted, authenticated or hashed while other connections wait:
/// less than a millisecond with the slowest algorithm.
const MAX_QUICK_BYTES: usize = 256 << 10;

/// How long an item of a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchCost {
    /// Some microseconds.
    Quick,
    /// It takes longer, or the item waits for a device. All results together have so many bytes.
    Long { results: usize },
}

impl BatchCost {
    /// The cost of items whose results are kept until the last one is there.
    pub(crate) fn of_results(quick: bool, results: usize) -> Self {
        if quick { Self::Quick } else { Self::Long { results } }
    }

    pub(crate) fn quick_if(quick: bool) -> Self {
        Self::of_results(quick, 0)
    }

    /// The cost of one signature of a message of so many bytes, or of a digest.
    pub(crate) fn of_signature(keystore: &Keystore, key: KeyRef<'_>, bytes: usize) -> Self {
        Self::quick_if(bytes <= MAX_QUICK_BYTES && keystore.signs_one_quickly(key))
    }

    /// The cost of encryptions, decryptions or MACs with one key. All inputs together have so many
    /// bytes, and `uses` items count as uses of the key ([`Keystore::computes_quickly`]).
    pub(crate) fn of_secrets(keystore: &Keystore, key: KeyRef<'_>, uses: usize, bytes: usize) -> Self {
        let quick = bytes <= MAX_QUICK_BYTES && keystore.computes_quickly(key, uses as u64);
        Self::of_results(quick, bytes)
    }
}

/// Whether a handler that waits can go on.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// The state that handlers get: that of their thread.
pub(crate) type Worker = Arc<WorkerState>;

impl WorkerState {
    pub(crate) fn new(service: Arc<Service>, number: usize) -> Worker {
        let recent = SessionCache::one_of(service.threads);
        Arc::new(Self { service, number, recent, flush_scheduled: AtomicBool::new(false) })
    }

    /// The session of a token.
    ///
    /// # Errors
    /// The token is refused.
    pub(crate) fn session(&self, unsealed: &UnsealedService, token: &[u8]) -> Result<Arc<Session>> {
        let (digest, epoch) = (self.service.digest(token), self.service.epoch());
        match self.recent.get(&digest, epoch, |session| self.service.is_revoked(session)) {
            Some(session) => Ok(session),
            None => {
                let session = self.service.session(unsealed, token, digest, epoch)?;
                Ok(self.recent.insert_shared(digest, epoch, session))
            }
        }
    }

    /// Signs a message. With a key of Ed25519, that is in one batch with the calls of the other
    /// connections, unless the message is long.
    ///
    /// # Errors
    /// Those of [`Keystore::sign`]; the keystore is too busy.
    pub(crate) async fn sign(
        self: &Arc<Self>,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        key: KeySelector,
        message: Vec<u8>,
    ) -> Result<Signature> {
        let is_quick = message.len() <= MAX_QUICK_BYTES && unsealed.keystore.signs_quickly(key.as_ref());
        if !is_quick {
            let cost = BatchCost::of_signature(&unsealed.keystore, key.as_ref(), message.len());
            let sign = move |keystore: &Keystore| keystore.sign(key.as_ref(), &message);
            // What is rare is boxed: each request would have memory for it.
            return Box::pin(self.run_at_cost(unsealed, session, cost, sign)).await;
        }
        let answer = unsealed.batcher(self.number).sign_on_behalf_of(&session.actor, key, message);
        self.schedule_flush(unsealed);
        Ok(answer.await?)
    }

    /// Verifies a signature. With a key of Ed25519, that is in one batch with the calls of the
    /// other connections, unless the message is long.
    ///
    /// # Errors
    /// Those of [`Keystore::verify`]; the keystore is too busy.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        key: KeyVersionId,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<Verdict> {
        if key.key_id().algorithm() != Algorithm::Ed25519 || message.len() > MAX_QUICK_BYTES {
            let verify = move |keystore: &Keystore| keystore.verify(&key, &message, &signature);
            return Box::pin(self.run_blocking(unsealed, session, verify)).await;
        }
        let answer =
            unsealed.batcher(self.number).verify_on_behalf_of(&session.actor, key, message, signature);
        self.schedule_flush(unsealed);
        Ok(answer.await?)
    }

    /// Runs slow work, or work that waits for a disk or a device, on another thread, so that this
    /// thread goes on serving. Callers have turns. If the caller goes away before its turn, the
    /// work does not begin.
    ///
    /// # Errors
    /// Those of `run`; it panicked; too much work of the caller waits.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        run: impl FnOnce(&Keystore) -> bulla_kms::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (service, unsealed, caller) =
            (Arc::clone(&self.service), Arc::clone(unsealed), Arc::clone(session));
        let work = move || {
            service.check_still_permitted(&unsealed, &caller)?;
            Ok(run(&unsealed.keystore.on_behalf_of(&caller.actor))?)
        };
        let mut work = Some(work);
        let step = move || work.take().map_or(JobStep::More, |work| JobStep::Done(work()));
        self.blocking_pool(session).run(session.slow_jobs(), 0, step).await?
    }

    /// Has a handler go on on other threads, where callers have turns. While it waits for other
    /// work, it has no thread.
    ///
    /// # Errors
    /// Too much work of the caller waits; the handler panicked.
    pub(crate) async fn answer_blocking(
        &self,
        session: &Session,
        mut handler: Pin<Box<dyn Future<Output = Response> + Send>>,
    ) -> Result<Response> {
        let (woken, thread, span) = (Arc::new(Woken::default()), Handle::current(), Span::current());
        loop {
            let (waker, thread, span) = (Waker::from(Arc::clone(&woken)), thread.clone(), span.clone());
            let mut waiting = Some(handler);
            let step = move || {
                let Some(mut handler) = waiting.take() else { return JobStep::More };
                // What it spawns, and its timers, are of the thread that serves.
                let (_thread, _span) = (thread.enter(), span.enter());
                let poll = handler.as_mut().poll(&mut Context::from_waker(&waker));
                JobStep::Done(match poll {
                    Poll::Ready(response) => Ok(response),
                    Poll::Pending => Err(handler),
                })
            };
            match self.blocking_pool(session).run(session.slow_jobs(), 0, step).await? {
                Ok(response) => return Ok(response),
                Err(pending) => handler = pending,
            }
            woken.0.notified().await;
        }
    }

    /// Runs quick work on this thread, and slow work as [`WorkerState::run_blocking`] does.
    ///
    /// # Errors
    /// Those of `run`, and of [`WorkerState::run_blocking`].
    pub(crate) async fn run_at_cost<T: Send + 'static>(
        &self,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        cost: BatchCost,
        run: impl FnOnce(&Keystore) -> bulla_kms::Result<T> + Send + 'static,
    ) -> Result<T> {
        if cost != BatchCost::Quick || unsealed.waits_for_disk {
            return self.run_blocking(unsealed, session, run).await;
        }
        Ok(run(&unsealed.keystore.on_behalf_of(&session.actor))?)
    }

    /// Runs slow work for callers who have shown nothing yet. All that ask for the same have one
    /// turn among the other callers.
    ///
    /// # Errors
    /// Those of `run`; it panicked; too much of this work waits.
    pub(crate) async fn run_anonymous<T: Send + 'static>(
        &self,
        what: &str,
        run: impl FnOnce() -> bulla_kms::Result<T> + Send + 'static,
    ) -> Result<T> {
        let mut run = Some(run);
        let step = move || run.take().map_or(JobStep::More, |run| JobStep::Done(run()));
        Ok(self.service.blocking_pool.run((what, None), 0, step).await??)
    }

    /// Where the slow work of a caller waits.
    fn blocking_pool(&self, session: &Session) -> &Arc<BlockingPool> {
        let is_operator = session.authority.tenant == self.service.config.service.operator_tenant
            && session.authority.permits_in_tenant(TokenOperation::Update);
        if is_operator { &self.service.operator_pool } else { &self.service.blocking_pool }
    }

    /// The results of a batch of `items`, in their order. `step` computes those of a range of them.
    /// A quick batch is computed on this thread, and other connections have a turn between two
    /// steps.
    ///
    /// # Errors
    /// `step` panicked.
    pub(crate) async fn run_batch_sliced<B: Send + Sync + 'static, T: Send + 'static>(
        &self,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        cost: BatchCost,
        batch: B,
        items: usize,
        step: fn(&B, &Keystore, Range<usize>) -> Vec<T>,
    ) -> Result<Vec<T>> {
        if cost != BatchCost::Quick || unsealed.waits_for_disk {
            return self.run_batch_blocking(unsealed, session, cost, batch, items, step).await;
        }
        let steps =
            (0..items).step_by(MAX_STEP_ITEMS).map(move |begin| begin..items.min(begin + MAX_STEP_ITEMS));
        let mut results = Vec::with_capacity(items);
        let keystore = unsealed.keystore.on_behalf_of(&session.actor);
        for range in steps {
            if range.start > 0 {
                yield_now().await;
            }
            results.extend(step(&batch, &keystore, range));
        }
        Ok(results)
    }

    /// The results of a batch that is computed on other threads. The steps are short, so that
    /// nobody waits long for one.
    async fn run_batch_blocking<B: Send + Sync + 'static, T: Send + 'static>(
        &self,
        unsealed: &Arc<UnsealedService>,
        session: &Arc<Session>,
        cost: BatchCost,
        batch: B,
        items: usize,
        step: fn(&B, &Keystore, Range<usize>) -> Vec<T>,
    ) -> Result<Vec<T>> {
        let (service, unsealed, caller) =
            (Arc::clone(&self.service), Arc::clone(unsealed), Arc::clone(session));
        let mut results = Vec::with_capacity(items);
        let (mut length, bytes) = match cost {
            BatchCost::Quick => (MAX_STEP_ITEMS, 0),
            BatchCost::Long { results } => (1, results),
        };
        let run = move || {
            if let Err(error) = service.check_still_permitted(&unsealed, &caller) {
                return JobStep::Done(Err(error));
            }
            let (first, begin) = (results.len(), Instant::now());
            let range = first..items.min(first + length);
            results.extend(step(&batch, &unsealed.keystore.on_behalf_of(&caller.actor), range));
            if begin.elapsed() < TARGET_STEP_TIME {
                length = (2 * length).min(MAX_STEP_ITEMS);
            } else {
                length = (length / 2).max(1);
            }
            if results.len() < items {
                JobStep::More
            } else {
                JobStep::Done(Ok(std::mem::take(&mut results)))
            }
        };
        self.blocking_pool(session).run(session.slow_jobs(), bytes, run).await?
    }

    /// Schedules the waiting calls for after every ready connection had its turn, so that the batch
    /// has all their calls.
    fn schedule_flush(self: &Arc<Self>, unsealed: &Arc<UnsealedService>) {
        if self.flush_scheduled.swap(true, Ordering::Relaxed) {
            return;
        }
        let (worker, unsealed) = (Arc::clone(self), Arc::clone(unsealed));
        tokio::spawn(async move {
            yield_now().await;
            if unsealed.waits_for_disk {
                worker.flush_blocking(&unsealed).await;
            }
            // From here on, new calls begin another batch.
            worker.flush_scheduled.store(false, Ordering::Relaxed);
            while unsealed.batcher(worker.number).compute_waiting() > 0 {
                yield_now().await;
            }
        });
    }

    /// Computes the waiting calls on another thread. Meanwhile new calls gather for the next batch.
    async fn flush_blocking(&self, unsealed: &Arc<UnsealedService>) {
        while unsealed.batcher(self.number).waiting() > 0 {
            let (unsealed, number) = (Arc::clone(unsealed), self.number);
            // The batcher itself answers after a panic.
            let _ = run_off_thread(move || unsealed.batcher(number).compute_waiting()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::IpAddr;

    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use bulla_kms::metrics::Metrics;
    use bulla_kms::token::{Grant, GrantedKeys, Token};
    use bulla_kms::{Name, NewKey, SecretString, Timestamp};
    use http_body_util::BodyExt as _;
    use hyper::body::{Body as HttpBody, Bytes, Frame};
    use serde_json::{Value, json};
    use tokio::runtime::{Builder, Runtime};
    use tower_service::Service as _;

    use super::*;
    use crate::api::ensure_root;
    use crate::cluster::Revocation;
    use crate::config::{AppRoleConfig, Config};
    use crate::fuzzing::{Proving, session_for_all};
    use crate::request::{Connection, ConnectionProof, Peer, encode};
    use crate::router::{openapi, router};
    use crate::service::{KeystoreSource, OpenKeystore, RevokedBy};

    /// A keystore in memory with keys that sign, each with its algorithm as its label.
    struct Signing;

    impl KeystoreSource for Signing {
        fn needs_passphrase(&self) -> bool {
            false
        }

        fn open(&self, _: Option<SecretString>, _: &Arc<Metrics>) -> bulla_kms::Result<OpenKeystore> {
            let keystore = Keystore::in_memory()?;
            for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::EcdsaP384] {
                let new = NewKey::new("local".parse()?, "files".parse()?, algorithm);
                let new = new.label(algorithm.to_string().parse()?);
                keystore.create_key(new.signs_digests(algorithm != Algorithm::Ed25519))?;
            }
            Ok(OpenKeystore { keystore, audit: None })
        }
    }

    /// A service in this process, which a caller asks who may do everything.
    struct Asked {
        runtime: Runtime,
        router: Router,
        service: Arc<Service>,
        session: Arc<Session>,
    }

    impl Asked {
        fn new() -> Self {
            Self::with(Config::default())
        }

        fn with(config: Config) -> Self {
            let session = session_for_all(&config);
            let service = Arc::new(Service::new(config, 1, Box::new(Signing)).unwrap());
            service.unseal(None).unwrap();
            let router = router(WorkerState::new(Arc::clone(&service), 0));
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            Self { runtime, router, service, session }
        }

        /// From now on, no other thread computes anything.
        fn stop_other_threads(&self) {
            self.service.stop_blocking_pools();
        }

        fn ask(&self, method: &str, path: &str, body: Body) -> (u16, String) {
            self.ask_as(Proving::peer(Some(Arc::clone(&self.session))), method, path, body)
        }

        fn ask_as(&self, peer: Peer, method: &str, path: &str, body: Body) -> (u16, String) {
            let request = Request::builder().method(method).uri(path).extension(peer);
            let request = request.body(body).unwrap();
            self.runtime.block_on(async {
                let response = self.router.clone().call(request).await.unwrap();
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8_lossy(&body).into_owned())
            })
        }

        fn post(&self, path: &str, body: &Value) -> (u16, String) {
            self.ask("POST", path, Body::from(body.to_string()))
        }
    }

    #[test]
    fn one_signature_of_p256_waits_for_no_other_thread_and_a_batch_does() {
        let asked = Asked::new();
        asked.stop_other_threads();
        let one = json!({ "message": encode(b"a message") });
        let hashed = json!({ "message": encode(b"a message"), "hash": "sha512" });
        let digest =
            |prehash: &str, length| json!({ "prehash": prehash, "digest": encode(&vec![7; length]) });
        let transit = json!({ "input": encode(&[7; 32]), "prehashed": true });
        let long = json!({ "message": encode(&vec![7; MAX_QUICK_BYTES + 1]) });
        for (path, body) in [
            ("/api/v1/keys/ed25519/sign-digest", &digest("blake3", 32)),
            ("/api/v1/keys/ecdsa-p256/sign-digest", &digest("sha256", 32)),
            ("/api/v1/keys/ecdsa-p256/sign-digest", &digest("sha384", 48)),
            ("/api/v1/keys/ecdsa-p256/sign", &one),
            ("/api/v1/keys/ecdsa-p256/sign", &hashed),
            ("/v1/transit/sign/ecdsa-p256", &transit),
        ] {
            let (status, answer) = asked.post(path, body);
            assert_eq!(status, 200, "{path} {body}: {answer}");
        }
        let batch = json!({ "key": "ecdsa-p256", "items": [one, one] });
        let transit_batch = json!({ "batch_input": [transit, transit], "prehashed": true });
        for (path, body) in [
            ("/api/v1/keys/ecdsa-p384/sign-digest", &digest("sha384", 48)),
            ("/api/v1/keys/ecdsa-p384/sign", &one),
            ("/v1/transit/sign/ecdsa-p384", &transit),
            ("/api/v1/keys/ecdsa-p256/sign", &long),
            ("/api/v1/sign", &batch),
            ("/v1/transit/sign/ecdsa-p256", &transit_batch),
        ] {
            let (status, answer) = asked.post(path, body);
            assert_eq!(status, 503, "{path}: {answer}");
        }
    }

    /// A body whose length nobody knows before its end.
    struct OfUnknownLength(Option<Bytes>);

    impl HttpBody for OfUnknownLength {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    #[test]
    fn a_long_body_is_read_on_another_thread_at_every_endpoint_and_a_short_one_is_not() {
        let asked = Asked::new();
        asked.stop_other_threads();
        let long = format!("{{{}}}", " ".repeat(128 << 10));
        let description: Value = serde_json::from_str(&openapi()).unwrap();
        let mut checked = 0;
        for (path, operations) in description["paths"].as_object().unwrap() {
            let parts = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            for (method, operation) in operations.as_object().unwrap() {
                if operation["requestBody"].is_null() {
                    continue;
                }
                let (status, answer) = asked.ask(&method.to_uppercase(), &path, long.clone().into());
                // Whoever has shown nothing sends no long body.
                let expected = if operation["x-permission"] == "open" { 413 } else { 503 };
                assert_eq!(status, expected, "{method} {path}: {answer}");
                let answer: Value = serde_json::from_str(&answer).unwrap();
                assert!(
                    answer["code"].is_string() || path.starts_with("/v1/") && answer["errors"].is_array()
                );
                checked += 1;
            }
        }
        assert!(checked > 80, "{checked}");
        let sign = "/api/v1/keys/ed25519/sign";
        let of_unknown_length = |text: String| Body::new(OfUnknownLength(Some(text.into())));
        assert_eq!(asked.ask("POST", sign, of_unknown_length(long)).0, 503);
        let mut short = json!({ "message": encode(&[7; 90_000]) }).to_string();
        short.push_str(&" ".repeat((128 << 10) - short.len()));
        for body in [short.clone().into(), of_unknown_length(short)] {
            let (status, answer) = asked.ask("POST", sign, body);
            assert_eq!(status, 200, "{answer}");
        }
    }

    #[test]
    fn requests_with_long_bodies_are_answered_as_others_are() {
        let asked = Asked::new();
        let message = encode(&vec![7; 300 << 10]);
        for key in ["ed25519", "ecdsa-p256"] {
            let (status, signed) =
                asked.post(&format!("/api/v1/keys/{key}/sign"), &json!({ "message": message }));
            assert_eq!(status, 200, "{signed}");
            let signed: Value = serde_json::from_str(&signed).unwrap();
            let verify = json!({ "message": message, "signature": signed["signature"] });
            let verdict = asked.post(&format!("/api/v1/keys/{key}/verify"), &verify);
            assert_eq!(verdict, (200, r#"{"valid":true}"#.to_owned()));
            let items = vec![json!({ "message": encode(&[7; 200]) }); 1000];
            let (status, signed) = asked.post("/api/v1/sign", &json!({ "key": key, "items": items }));
            assert_eq!(status, 200, "{signed}");
            assert_eq!(signed.matches("\"signature\"").count(), 1000, "{signed}");
        }
        let (_, refused) = asked.post("/v1/transit/sign/none", &json!({ "input": message }));
        assert!(refused.contains("signing key not found"), "{refused}");
    }

    /// A service with an AppRole in each of two tenants, `local` and `other`.
    fn with_approles() -> Asked {
        let role = |tenant: &str| AppRoleConfig {
            name: "build".parse().unwrap(),
            role_id: Some(format!("{tenant}-id")),
            bind_secret_id: true,
            secret_id_num_uses: 0,
            secret_id_ttl_seconds: 0,
            secret_id_bound_cidrs: Vec::new(),
            tenant: tenant.parse().unwrap(),
            operations: vec![TokenOperation::Sign],
            policies: Vec::new(),
            keys: None,
            lifetime_seconds: 60,
        };
        Asked::with(Config { approle: vec![role("local"), role("other")], ..Config::default() })
    }

    #[test]
    fn whoever_revokes_a_token_has_no_other_token_verified_again() {
        let asked = Asked::new();
        let unsealed = asked.service.unsealed().unwrap();
        let tenant: Name = "local".parse().unwrap();
        ensure_root(&unsealed.keystore, &tenant).unwrap();
        let until = Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + 3_600_000).unwrap();
        let [own, other] = [(); 2].map(|()| {
            let grant = Grant::new(tenant.clone(), GrantedKeys::All, vec![TokenOperation::Sign], until);
            unsealed.keystore.mint_token(&grant).unwrap()
        });
        let workers = [0, 1].map(|number| WorkerState::new(Arc::clone(&asked.service), number));
        let session = |worker: &Worker, token: &Token| worker.session(&unsealed, token.expose().as_bytes());
        let before = session(&workers[0], &other).unwrap();
        let id = session(&workers[0], &own).unwrap().revocation_ids[0].clone();
        asked
            .service
            .revoke(Revocation { tenant: Some(tenant), id, expires: None }, RevokedBy::Holder)
            .unwrap();
        for worker in &workers {
            assert!(Arc::ptr_eq(&before, &session(worker, &other).unwrap()));
            assert!(session(worker, &own).is_err());
        }
    }

    /// A connection from an address, which proves nothing.
    #[derive(Debug)]
    struct From(IpAddr);

    impl Connection for From {
        fn session(&self) -> Option<Arc<Session>> {
            None
        }

        fn is_local(&self) -> bool {
            false
        }

        fn proof(&self) -> ConnectionProof {
            ConnectionProof::Nothing
        }

        fn address(&self) -> Option<IpAddr> {
            Some(self.0)
        }
    }

    impl Asked {
        /// The status of a login to the role of a tenant with a secret id that is guessed.
        fn guess(&self, address: &str, tenant: &str) -> u16 {
            let peer = Peer { connection: Arc::new(From(address.parse().unwrap())), caller_slot: None };
            let guess = json!({ "role_id": format!("{tenant}-id"), "secret_id": "a guess" }).to_string();
            self.ask_as(peer, "POST", "/v1/auth/approle/login", guess.into()).0
        }
    }

    #[test]
    fn logins_of_a_tenant_wait_for_each_other_and_keep_nobody_else_waiting() {
        let asked = with_approles();
        let batch = json!({ "key": "ecdsa-p256", "items": [{ "message": "" }] });
        asked.service.blocking_pool.fill("approle local");
        assert_eq!(asked.guess("192.0.2.1", "local"), 503);
        assert_eq!(asked.guess("192.0.2.1", "other"), 400);
        assert_eq!(asked.post("/api/v1/sign", &batch).0, 200);
        // Nor do other callers keep anybody from logging in.
        let asked = with_approles();
        asked.service.operator_pool.fill(asked.session.slow_jobs().0);
        asked.service.blocking_pool.fill(asked.session.slow_jobs().0);
        assert_eq!(asked.post("/api/v1/sign", &batch).0, 503);
        assert_eq!(asked.guess("192.0.2.1", "local"), 400);
    }

    #[test]
    fn guesses_from_one_address_have_a_rate_and_keep_no_other_address_out() {
        for (guesser, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ] {
            let (asked, start) = (with_approles(), Instant::now());
            let passing = |address: &str, tenant: &str| {
                (0..10_000).take_while(|_| asked.guess(address, tenant) == 400).count() as u64
            };
            // Of every role, and by every address that the same caller has.
            let passed = [(guesser, "local"), (guesser, "other"), (same, "other")];
            let passed = passed.map(|(address, tenant)| passing(address, tenant));
            assert!(passed[0] >= 100, "{passed:?}");
            // Ten have become due in each second.
            let due = 100 + 10 * (start.elapsed().as_secs() + 1);
            assert!(passed.iter().sum::<u64>() <= due, "{passed:?}, {due} were due");
            assert!(passing(other, "local") >= 100);
        }
    }
}
