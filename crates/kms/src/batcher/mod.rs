//! A [`Batcher`] computes concurrent calls together.

mod oneshot;
mod queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::oneshot::{Oneshot, Reply, Unpark, Wakers, internal};
pub use self::queue::Reason;
use self::queue::{Next, Queue, Refused, Shape, Waiting};
use crate::audit_log::{Actor, AuditOperation};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeySelector, KeyVersionId, Name};
use crate::key_signature::{Signature, Verdict};
use crate::keystore::{KeyMessage, Keystore, Threads, VerifyItem};

/// When a batch begins, and how many calls may wait.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatcherOptions {
    /// While another batch is computed, a batch begins as soon as this many calls wait. It begins
    /// with fewer if one worker's share of all callers is smaller.
    pub target_batch: usize,
    /// The most calls of a batch.
    pub max_batch: usize,
    /// The longest time that a call waits for its batch to fill, while another batch is computed.
    pub max_wait: Duration,
    /// The most calls that wait. Further calls are refused with [`Code::Busy`].
    pub capacity: usize,
    /// The maximum number of waiting calls of one tenant, so that no tenant can fill the queue
    /// alone.
    pub tenant_capacity: usize,
    /// How many threads compute; as many as there are processors by default.
    pub workers: Option<NonZeroUsize>,
}

impl Default for BatcherOptions {
    /// 64, at most 256, 500 microseconds; 8192 calls, 2048 of one tenant; a thread for each
    /// processor.
    fn default() -> Self {
        Self {
            target_batch: 64,
            max_batch: 256,
            max_wait: Duration::from_micros(500),
            capacity: 8192,
            tenant_capacity: 2048,
            workers: None,
        }
    }
}

impl BatcherOptions {
    /// Sets how many waiting calls begin a batch.
    #[must_use]
    pub fn target_batch(mut self, target_batch: usize) -> Self {
        self.target_batch = target_batch;
        self
    }

    /// Sets the most calls of a batch.
    #[must_use]
    pub fn max_batch(mut self, max_batch: usize) -> Self {
        self.max_batch = max_batch;
        self
    }

    /// Sets the longest time that a call waits for its batch to fill.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets the most calls that wait.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets the most waiting calls of one tenant.
    #[must_use]
    pub fn tenant_capacity(mut self, tenant_capacity: usize) -> Self {
        self.tenant_capacity = tenant_capacity;
        self
    }

    /// Sets how many threads compute.
    #[must_use]
    pub fn workers(mut self, workers: NonZeroUsize) -> Self {
        self.workers = Some(workers);
        self
    }

    fn shape(&self) -> Result<Shape> {
        let Self { target_batch: target, max_batch: max, max_wait, capacity, tenant_capacity, workers } =
            *self;
        let ordered = 1 <= target && target <= max && max <= capacity;
        if !ordered || !(1..=capacity).contains(&tenant_capacity) {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "a batcher needs 1 <= target_batch <= max_batch <= capacity, and 1 <= tenant_capacity <= capacity",
            ));
        }
        let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let workers = workers.unwrap_or_else(processors);
        Ok(Shape { target, max, max_wait, capacity, tenant_capacity, workers })
    }
}

/// Combines concurrent calls into batches, because many signatures verify faster together than
/// alone.
///
/// If nothing is being computed, a call begins at once, alone. Calls that come meanwhile begin when
/// that computation is finished, when enough of them wait, or when the first of them has waited
/// long enough ([`BatcherOptions`]). Tenants take turns, however many calls each has waiting. Calls
/// of one tenant are computed and answered in order.
///
/// Futures need no particular runtime. Work begins with the call, not with the first poll. A
/// dropped future removes its call from the queue, and changes nothing for others. If a backend
/// panics, only the faulty call fails, with [`Code::Internal`]. Dropping the batcher answers all
/// calls that it accepted.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::batcher::{Batcher, BatcherOptions};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Arc::new(Keystore::in_memory()?);
/// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// let batcher = Batcher::new(keystore, &BatcherOptions::default())?;
/// let answers: Vec<_> = (0..9_u8).map(|number| batcher.sign(key.clone(), [number])).collect();
/// for (number, answer) in (0..9_u8).zip(answers) {
///     // An async program awaits the answer.
///     let signature = answer.wait()?.bytes;
///     assert!(batcher.verify_blocking(&key, &[number], &signature)?.is_valid());
/// }
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub struct Batcher {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    keystore: Arc<Keystore>,
    queue: Mutex<Queue<Call>>,
    /// No batch has more calls.
    max_batch: usize,
    /// A call came in, or the queue was closed.
    changed: Condvar,
    start: Instant,
}

/// A call: its input, and where the answer goes.
enum Call {
    Verify {
        actor: Option<Actor>,
        key: KeyVersionId,
        message: Vec<u8>,
        signature: Vec<u8>,
        reply: Reply<Verdict>,
    },
    Sign {
        actor: Option<Actor>,
        key: KeySelector,
        message: Vec<u8>,
        reply: Reply<Signature>,
    },
}

impl Batcher {
    /// Starts the threads that compute.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for options that contradict each other; those of starting threads.
    pub fn new(keystore: Arc<Keystore>, options: &BatcherOptions) -> Result<Self> {
        let shape = options.shape()?;
        let mut batcher = Self { shared: Shared::new(keystore, shape), workers: Vec::new() };
        for number in 0..shape.workers.get() {
            let shared = Arc::clone(&batcher.shared);
            let builder = std::thread::Builder::new().name(format!("bulla-batch-{number}"));
            let worker = builder.spawn(move || shared.work());
            batcher.workers.push(worker.map_err(|error| KmsError::io("cannot start a thread", error))?);
        }
        Ok(batcher)
    }

    /// A batcher without threads: calls wait until a thread calls [`Batcher::compute_waiting`]. It
    /// suits a thread that serves many callers, and computes for all of them when it has read what
    /// they ask for. That thread must not wait for an answer itself.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for options that contradict each other.
    pub fn without_threads(keystore: Arc<Keystore>, options: &BatcherOptions) -> Result<Self> {
        Ok(Self { shared: Shared::new(keystore, options.shape()?), workers: Vec::new() })
    }

    /// Computes and answers one batch of the calls that wait, on the caller's thread. Returns how
    /// many calls wait after it.
    pub fn compute_waiting(&self) -> usize {
        let mut queue = self.shared.queue();
        let count = queue.len().min(self.shared.max_batch);
        if count == 0 {
            return 0;
        }
        let batch = queue.take(count);
        drop(queue);
        self.shared.compute(batch, Reason::Idle);
        let mut queue = self.shared.queue();
        queue.done(count);
        queue.len()
    }

    /// Does the same as [`Keystore::verify`], together with other calls.
    ///
    /// # Errors
    /// The future has those of [`Keystore::verify`]; [`Code::Busy`] when too many calls wait;
    /// [`Code::ShuttingDown`]; [`Code::Internal`].
    pub fn verify(
        &self,
        key: impl Into<KeyVersionId>,
        message: impl Into<Vec<u8>>,
        signature: impl Into<Vec<u8>>,
    ) -> Answer<Verdict> {
        self.submit_verify(None, key.into(), message.into(), signature.into())
    }

    /// Like [`Batcher::verify`], on behalf of `actor`: see [`Keystore::on_behalf_of`].
    ///
    /// # Errors
    /// Those of [`Batcher::verify`].
    pub fn verify_on_behalf_of(
        &self,
        actor: &Actor,
        key: impl Into<KeyVersionId>,
        message: impl Into<Vec<u8>>,
        signature: impl Into<Vec<u8>>,
    ) -> Answer<Verdict> {
        self.submit_verify(Some(actor.clone()), key.into(), message.into(), signature.into())
    }

    fn submit_verify(
        &self,
        actor: Option<Actor>,
        key: KeyVersionId,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Answer<Verdict> {
        let tenant = key.key_id().tenant().clone();
        self.submit(tenant, AuditOperation::Verify, |reply| Call::Verify {
            actor,
            key,
            message,
            signature,
            reply,
        })
    }

    /// Does the same as [`Keystore::sign`], together with other calls.
    ///
    /// # Errors
    /// The future has those of [`Keystore::sign`]; [`Code::Busy`] when too many calls wait;
    /// [`Code::ShuttingDown`]; [`Code::Internal`].
    pub fn sign(&self, key: impl Into<KeySelector>, message: impl Into<Vec<u8>>) -> Answer<Signature> {
        self.submit_sign(None, key.into(), message.into())
    }

    /// Like [`Batcher::sign`], on behalf of `actor`: see [`Keystore::on_behalf_of`].
    ///
    /// # Errors
    /// Those of [`Batcher::sign`].
    pub fn sign_on_behalf_of(
        &self,
        actor: &Actor,
        key: impl Into<KeySelector>,
        message: impl Into<Vec<u8>>,
    ) -> Answer<Signature> {
        self.submit_sign(Some(actor.clone()), key.into(), message.into())
    }

    fn submit_sign(&self, actor: Option<Actor>, key: KeySelector, message: Vec<u8>) -> Answer<Signature> {
        let tenant = key.as_ref().key_id().tenant().clone();
        self.submit(tenant, AuditOperation::Sign, |reply| Call::Sign { actor, key, message, reply })
    }

    /// Like [`Batcher::verify`], for a thread that waits. If nothing else is waiting, the thread
    /// computes the call itself.
    ///
    /// # Errors
    /// Those of [`Batcher::verify`].
    pub fn verify_blocking(&self, key: &KeyVersionId, message: &[u8], signature: &[u8]) -> Result<Verdict> {
        match self.shared.run_if_idle(|keystore| keystore.verify(key, message, signature)) {
            Some(verdict) => verdict,
            None => self.verify(key.clone(), message, signature).wait(),
        }
    }

    /// Like [`Batcher::sign`], for a thread that waits. If nothing else is waiting, the thread
    /// computes the call itself.
    ///
    /// # Errors
    /// Those of [`Batcher::sign`].
    pub fn sign_blocking<'a>(&self, key: impl Into<KeyRef<'a>>, message: &[u8]) -> Result<Signature> {
        let key = key.into();
        match self.shared.run_if_idle(|keystore| keystore.sign(key, message)) {
            Some(signature) => signature,
            None => self.sign(key, message).wait(),
        }
    }

    /// How many calls wait for their batch.
    pub fn waiting(&self) -> usize {
        self.shared.queue().len()
    }

    /// Accepts no more calls; accepted calls are answered.
    pub fn close(&self) {
        self.shared.queue().close();
        self.shared.changed.notify_all();
    }

    fn submit<T>(
        &self,
        tenant: Name,
        operation: AuditOperation,
        call: impl FnOnce(Reply<T>) -> Call,
    ) -> Answer<T> {
        let cell = Oneshot::new();
        let call = call(Reply::to(&cell));
        let mut queue = self.shared.queue();
        let pushed = queue.push(&tenant, self.shared.now(), call);
        let wakes = pushed.is_ok() && queue.wakes_for_call();
        drop(queue);
        let place = match pushed {
            Ok(number) => Some(QueuePlace { shared: Arc::clone(&self.shared), tenant, number }),
            Err((refused, call)) => {
                self.shared.refuse(operation, refused, &cell);
                drop(call);
                None
            }
        };
        if wakes {
            self.shared.changed.notify_one();
        }
        Answer { cell, place }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.close();
        if self.workers.is_empty() {
            while self.compute_waiting() > 0 {}
        }
        for worker in self.workers.drain(..) {
            // A worker catches its own panics.
            let _ = worker.join();
        }
    }
}

impl fmt::Debug for Batcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(keystore: Arc<Keystore>, shape: Shape) -> Arc<Self> {
        let (queue, changed) = (Mutex::new(Queue::new(shape)), Condvar::new());
        Arc::new(Self { keystore, queue, max_batch: shape.max, changed, start: Instant::now() })
    }

    /// No code of a caller runs while the lock is held, so only this module could panic there.
    fn queue(&self) -> MutexGuard<'_, Queue<Call>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// A thread that computes, until the queue is closed and empty.
    fn work(&self) {
        let mut queue = self.queue();
        loop {
            queue = match queue.next(self.now()) {
                Next::End => return,
                Next::Wait => self.sleep(queue, None),
                Next::WaitFor(time) => self.sleep(queue, Some(time)),
                Next::Take(count, reason) => {
                    let batch = queue.take(count);
                    let more = queue.wakes_for_rest();
                    drop(queue);
                    if more {
                        self.changed.notify_one();
                    }
                    self.compute(batch, reason);
                    let mut queue = self.queue();
                    queue.done(count);
                    queue
                }
            }
        }
    }

    /// Waits until something changes, or until the time is over.
    fn sleep<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue<Call>>,
        time: Option<Duration>,
    ) -> MutexGuard<'a, Queue<Call>> {
        queue.sleep();
        let mut queue = match time {
            None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Some(time) => self.changed.wait_timeout(queue, time).unwrap_or_else(PoisonError::into_inner).0,
        };
        queue.wake();
        queue
    }

    /// Runs one call on the caller's thread, if nothing else waits or is computed.
    fn run_if_idle<T>(&self, call: impl FnOnce(&Keystore) -> Result<T>) -> Option<Result<T>> {
        let mut queue = self.queue();
        if !queue.is_idle() || queue.is_closed() {
            return None;
        }
        queue.begin(1);
        drop(queue);
        self.count(Reason::Idle, std::iter::once(Duration::ZERO));
        let answer = catch_unwind(AssertUnwindSafe(|| call(&self.keystore)));
        let mut queue = self.queue();
        queue.done(1);
        let more = queue.wakes_for_rest();
        drop(queue);
        if more {
            self.changed.notify_one();
        }
        Some(answer.unwrap_or_else(|_| Err(internal())))
    }

    /// Computes and answers a batch: first the verifications, then the signatures.
    fn compute(&self, batch: Vec<Waiting<Call>>, reason: Reason) {
        let now = self.now();
        self.count(reason, batch.iter().map(|waiting| now.saturating_sub(waiting.since)));
        let (mut verify, mut sign) = (Vec::new(), Vec::new());
        for Waiting { call, .. } in batch {
            match call {
                Call::Verify { actor, key, message, signature, reply } => {
                    verify.push((Verify { actor, key, message, signature }, reply));
                }
                Call::Sign { actor, key, message, reply } => sign.push((Sign { actor, key, message }, reply)),
            }
        }
        self.answer(verify, |calls| self.verify(calls));
        self.answer(sign, |calls| self.sign(calls));
    }

    /// Answers calls with the results of `run` on all of them. If that panics, it runs each call
    /// alone.
    fn answer<C, T>(&self, calls: Vec<(C, Reply<T>)>, run: impl Fn(&[C]) -> Vec<Result<T>>) {
        if calls.is_empty() {
            return;
        }
        let (calls, replies): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let guarded = |calls: &[C]| catch_unwind(AssertUnwindSafe(|| run(calls)));
        let answers = guarded(&calls).unwrap_or_else(|_| {
            let one = |call| guarded(std::slice::from_ref(call)).ok().and_then(|mut answer| answer.pop());
            calls.iter().map(|call| one(call).unwrap_or_else(|| Err(internal()))).collect()
        });
        // All answers are in place before anybody is woken. Otherwise a thread with many calls
        // would wake and sleep again for each of them.
        let wakers = Arc::new(Wakers::default());
        let send = |(reply, answer): (Reply<T>, Result<T>)| reply.send(answer, &wakers);
        wakers.set(replies.into_iter().zip(answers).filter_map(send).collect());
        wakers.wake();
    }

    fn verify(&self, calls: &[Verify]) -> Vec<Result<Verdict>> {
        let items =
            calls.iter().map(|Verify { key, message, signature, .. }| VerifyItem { key, message, signature });
        let items: Vec<_> = items.collect();
        let actor = |place: usize| calls[place].actor.clone().unwrap_or_else(|| self.keystore.actor());
        let verdicts = self.keystore.verify_batch_as(&items, Threads::Own, &actor);
        let reasoned = |(verdict, call): (Verdict, &Verify)| match verdict {
            Verdict::Unusable => self.keystore.check_usable(&call.key).map(|()| verdict),
            verdict => Ok(verdict),
        };
        verdicts.into_iter().zip(calls).map(reasoned).collect()
    }

    fn sign(&self, calls: &[Sign]) -> Vec<Result<Signature>> {
        let items = calls.iter().map(|call| KeyMessage { key: call.key.as_ref(), message: &call.message });
        let actor = |place: usize| calls[place].actor.clone().unwrap_or_else(|| self.keystore.actor());
        self.keystore.sign_batch_as(&items.collect::<Vec<_>>(), &actor)
    }

    fn refuse<T>(&self, operation: AuditOperation, refused: Refused, cell: &Oneshot<T>) {
        let error = match refused {
            Refused::Full => KmsError::new(Code::Busy, "too many calls wait; try again soon"),
            Refused::TenantFull => {
                KmsError::new(Code::Busy, "too many calls of the tenant wait; try again soon")
            }
            Refused::Closed => KmsError::new(Code::ShuttingDown, "the batcher is closed and takes no calls"),
        };
        #[cfg(feature = "with-metrics")]
        if let Some(metrics) = self.keystore.metrics() {
            metrics.refused(operation, error.code);
        }
        #[cfg(not(feature = "with-metrics"))]
        let _ = operation;
        // Nobody waits yet.
        let _ = cell.fill(Err(error), None);
    }

    fn count(&self, reason: Reason, waits: impl Iterator<Item = Duration>) {
        #[cfg(feature = "with-metrics")]
        if let Some(metrics) = self.keystore.metrics() {
            metrics.batch(reason.as_str(), waits);
        }
        #[cfg(not(feature = "with-metrics"))]
        let _ = (reason, waits);
    }
}

struct Verify {
    actor: Option<Actor>,
    key: KeyVersionId,
    message: Vec<u8>,
    signature: Vec<u8>,
}

struct Sign {
    actor: Option<Actor>,
    key: KeySelector,
    message: Vec<u8>,
}

/// The answer to a call that a [`Batcher`] accepted. It is a future, and a thread can wait for it.
/// Dropping it cancels the call.
#[must_use = "an answer that is dropped calls its call off"]
pub struct Answer<T> {
    cell: Arc<Oneshot<T>>,
    /// The call's place in the queue; `None` if the call was refused.
    place: Option<QueuePlace>,
}

struct QueuePlace {
    shared: Arc<Shared>,
    tenant: Name,
    number: u64,
}

impl<T> Answer<T> {
    /// Blocks the thread until the answer is there.
    ///
    /// # Errors
    /// Those of the call.
    pub fn wait(self) -> Result<T> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match self.cell.poll(&waker) {
                // The thread that computed wakes the others: waking takes longer than a signature.
                Poll::Ready((answer, _)) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.cell.poll(context.waker()).map(|(answer, others)| {
            if let Some(others) = others {
                others.wake();
            }
            answer
        })
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(QueuePlace { shared, tenant, number }) = self.place.take()
            && self.cell.abandon()
        {
            let call = shared.queue().remove(&tenant, number);
            drop(call);
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("pending", &self.cell.is_pending()).finish_non_exhaustive()
    }
}
