//! What is told of each operation: to the audit log, to the metrics, and to `tracing`.

use std::sync::Arc;

use super::{Keystore, KeystoreOptions, Signature};
use crate::attestation::{Attestation, SignedAttestation};
use crate::audit_log::{Actor, AuditEvent, AuditSink, Operation, Outcome};
use crate::backend::SharedKey;
use crate::error::Result;
use crate::id::{KeyId, KeyRef};
#[cfg(feature = "with-metrics")]
use crate::metrics::Metrics;
use crate::public_key::Verdict;

/// Who is told.
#[derive(Default)]
pub(super) struct Observers {
    audit: Option<Arc<dyn AuditSink>>,
    #[cfg(feature = "with-metrics")]
    metrics: Option<Arc<Metrics>>,
}

impl From<&KeystoreOptions> for Observers {
    fn from(options: &KeystoreOptions) -> Self {
        Self {
            audit: options.audit.clone(),
            #[cfg(feature = "with-metrics")]
            metrics: options.metrics.clone(),
        }
    }
}

/// What an operation is about, as far as that is known before it.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) operation: Operation,
    pub(crate) key: KeyRef<'a>,
    /// The message, of which only a digest is recorded.
    pub(crate) message: Option<&'a [u8]>,
}

impl<'a> Subject<'a> {
    /// An operation with a key and without a message.
    pub(crate) fn key(operation: Operation, key: impl Into<KeyRef<'a>>) -> Self {
        Self { operation, key: key.into(), message: None }
    }

    /// An operation with a key on a message.
    pub(crate) fn message(operation: Operation, key: impl Into<KeyRef<'a>>, message: &'a [u8]) -> Self {
        Self { message: Some(message), ..Self::key(operation, key) }
    }
}

/// What an operation gives.
pub(crate) trait Made {
    /// The key, when it is only known afterwards.
    fn key(&self) -> Option<KeyRef<'_>> {
        None
    }

    /// How the operation ended.
    fn outcome(&self) -> Outcome {
        Outcome::Done
    }
}

impl Made for KeyId {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some(self.into())
    }
}

impl Made for Signature {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.key).into())
    }
}

impl Made for SignedAttestation {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.signature.key).into())
    }
}

impl Made for Verdict {
    fn outcome(&self) -> Outcome {
        Outcome::Verdict(*self)
    }
}

impl Made for Attestation {}
impl Made for SharedKey {}
impl Made for () {}
#[cfg(all(feature = "tokens", feature = "transfer"))]
impl Made for crate::transfer::WrappedKey {}
#[cfg(feature = "tokens")]
impl Made for crate::token::Token {}

fn outcome<T: Made>(result: &Result<T>) -> Outcome {
    match result {
        Ok(made) => made.outcome(),
        Err(error) => Outcome::Failed(error.code),
    }
}

impl Keystore {
    /// The same keystore, every operation of which is recorded from now on, as by
    /// [`KeystoreOptions::audit`](crate::KeystoreOptions::audit).
    #[must_use]
    pub fn audited(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.observers.audit = Some(sink);
        self
    }

    /// Runs an operation and tells of it.
    ///
    /// # Errors
    /// Those of `run`; those of recording, which withhold what `run` gave.
    pub(crate) fn observed<T: Made>(
        &self,
        subject: Subject<'_>,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        #[cfg(feature = "with-metrics")]
        let started = self.observers.metrics.as_ref().map(|_| std::time::Instant::now());
        #[cfg(feature = "with-metrics")]
        let _span = crate::metrics::span(subject.operation, subject.key.family().algorithm()).entered();
        let result = run();
        #[cfg(feature = "with-metrics")]
        if let (Some(metrics), Some(started)) = (&self.observers.metrics, started) {
            metrics.operation(subject.operation, subject.key.family().algorithm(), outcome(&result));
            metrics.latency(subject.operation, started.elapsed());
        }
        if !self.records(subject.operation) {
            return result;
        }
        let key = result.as_ref().ok().and_then(Made::key).unwrap_or(subject.key);
        let recorded = self.record(&[event(subject, key, outcome(&result), Actor::current())]);
        result.and_then(|made| recorded.map(|()| made))
    }

    /// Runs an operation on the store as a whole, which is about no key, and tells of it.
    ///
    /// # Errors
    /// Those of `run`; those of recording, which withhold what `run` gave.
    pub(super) fn observed_store<T>(
        &self,
        operation: Operation,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        #[cfg(feature = "with-metrics")]
        let started = self.observers.metrics.as_ref().map(|_| std::time::Instant::now());
        #[cfg(feature = "with-metrics")]
        let _span = crate::metrics::store_span(operation).entered();
        let result = run();
        let outcome = result.as_ref().map_or_else(|error| Outcome::Failed(error.code), |_| Outcome::Done);
        #[cfg(feature = "with-metrics")]
        if let (Some(metrics), Some(started)) = (&self.observers.metrics, started) {
            metrics.on_store(operation, outcome);
            metrics.latency(operation, started.elapsed());
        }
        if !self.records(operation) {
            return result;
        }
        let who = Actor::current();
        let recorded = self.record(&[AuditEvent { who, operation, key: None, outcome, digest: None }]);
        result.and_then(|made| recorded.map(|()| made))
    }

    /// Runs operations of one kind together and tells of each. `who` says on whose behalf each is; what cannot be recorded
    /// is replaced by what `withheld` makes of the error.
    pub(super) fn observed_together<'a, T>(
        &self,
        operation: Operation,
        subject: impl Fn(usize) -> Subject<'a>,
        who: &dyn Fn(usize) -> Actor,
        run: impl FnOnce() -> Vec<T>,
        told: impl Fn(&T) -> (Outcome, Option<KeyRef<'_>>),
        withheld: impl Fn(&crate::KmsError) -> T,
    ) -> Vec<T> {
        #[cfg(feature = "with-metrics")]
        let started = self.observers.metrics.as_ref().map(|_| std::time::Instant::now());
        let mut results = run();
        #[cfg(feature = "with-metrics")]
        if let (Some(metrics), Some(started)) = (&self.observers.metrics, started) {
            for (place, result) in results.iter().enumerate() {
                metrics.operation(operation, subject(place).key.family().algorithm(), told(result).0);
            }
            metrics.latency(operation, started.elapsed());
        }
        if self.records(operation) {
            let events = results.iter().enumerate().map(|(place, result)| {
                let (subject, (outcome, key)) = (subject(place), told(result));
                event(subject, key.unwrap_or(subject.key), outcome, who(place))
            });
            if let Err(error) = self.record(&events.collect::<Vec<_>>()) {
                results.iter_mut().for_each(|result| *result = withheld(&error));
            }
        }
        results
    }

    /// Tells of something that was done beside an operation.
    pub(super) fn note(&self, subject: Subject<'_>) -> Result<()> {
        self.observed(subject, || Ok(()))
    }

    fn records(&self, operation: Operation) -> bool {
        self.observers.audit.as_ref().is_some_and(|sink| sink.wants(operation))
    }

    fn record(&self, events: &[AuditEvent<'_>]) -> Result<()> {
        let Some(sink) = &self.observers.audit else { return Ok(()) };
        sink.record(events)?;
        sink.recorded(self);
        Ok(())
    }

    /// Where operations are counted.
    #[cfg(feature = "with-metrics")]
    pub(crate) fn metrics(&self) -> Option<&Arc<Metrics>> {
        self.observers.metrics.as_ref()
    }
}

fn event<'a>(subject: Subject<'a>, key: KeyRef<'a>, outcome: Outcome, who: Actor) -> AuditEvent<'a> {
    let digest = subject.message.map(bulla_blake3::hash);
    AuditEvent { who, operation: subject.operation, key: Some(key), outcome, digest }
}
