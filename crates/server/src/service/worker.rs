//! One thread that serves, and the batch that it computes for all of its connections.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bulla_kms::token::TokenOperation;
use bulla_kms::{Algorithm, KeyRef, KeySelector, KeyVersionId, Keystore, Signature, Verdict};
use tokio::task::yield_now;

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

/// The state that handlers get: that of their thread.
pub(crate) type Worker = Arc<WorkerState>;

impl WorkerState {
    pub(crate) fn new(service: Arc<Service>, number: usize) -> Worker {
        Arc::new(Self {
            service,
            number,
            recent: SessionCache::default(),
            flush_scheduled: AtomicBool::new(false),
        })
    }

    /// The session of a token.
    ///
    /// # Errors
    /// The token is refused.
    pub(crate) fn session(&self, unsealed: &UnsealedService, token: &[u8]) -> Result<Arc<Session>> {
        let (digest, epoch) = (self.service.digest(token), self.service.epoch());
        match self.recent.get(&digest, epoch) {
            Some(session) => Ok(session),
            None => {
                let session = self.service.session(unsealed, token, digest, epoch)?;
                Ok(self.recent.insert_shared(digest, epoch, session))
            }
        }
    }

    /// Signs a message. With a key of Ed25519, that is in one batch with the calls of the other
    /// connections.
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
        if !unsealed.keystore.signs_quickly(key.as_ref()) {
            let cost = BatchCost::of_signature(&unsealed.keystore, key.as_ref(), message.len());
            let sign = move |keystore: &Keystore| keystore.sign(key.as_ref(), &message);
            return self.run_at_cost(unsealed, session, cost, sign).await;
        }
        let answer = unsealed.batcher(self.number).sign_on_behalf_of(&session.actor, key, message);
        self.schedule_flush(unsealed);
        Ok(answer.await?)
    }

    /// Verifies a signature, in one batch with the calls of the other connections.
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
        if key.key_id().algorithm() != Algorithm::Ed25519 {
            let verify = move |keystore: &Keystore| keystore.verify(&key, &message, &signature);
            return self.run_blocking(unsealed, session, verify).await;
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
    use axum::body::Body;
    use axum::http::Request;
    use bulla_kms::metrics::Metrics;
    use bulla_kms::{NewKey, SecretString};
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};
    use tower_service::Service as _;

    use super::*;
    use crate::config::Config;
    use crate::fuzzing::{Proving, session_for_all};
    use crate::request::encode;
    use crate::router::router;
    use crate::service::{KeystoreSource, OpenKeystore};

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

    #[test]
    fn one_signature_of_p256_waits_for_no_other_thread_and_a_batch_does() {
        let config = Config::default();
        let session = session_for_all(&config);
        let service = Arc::new(Service::new(config, 1, Box::new(Signing)).unwrap());
        service.unseal(None).unwrap();
        // From now on, no other thread computes anything.
        service.blocking_pool.close();
        service.operator_pool.close();
        let router = router(WorkerState::new(service, 0));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ask = |path: &str, body: &Value| {
            let request = Request::post(path).extension(Proving::peer(Some(Arc::clone(&session))));
            let request = request.body(Body::from(body.to_string())).unwrap();
            runtime.block_on(async {
                let response = router.clone().call(request).await.unwrap();
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8_lossy(&body).into_owned())
            })
        };
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
            let (status, answer) = ask(path, body);
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
            let (status, answer) = ask(path, body);
            assert_eq!(status, 503, "{path}: {answer}");
        }
    }
}
