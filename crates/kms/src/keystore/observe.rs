//! Reports each operation to the audit log, to the metrics, and to `tracing`.

#[cfg(not(feature = "with-metrics"))]
use std::marker::PhantomData;
use std::sync::Arc;
#[cfg(feature = "with-metrics")]
use std::time::Instant;

use bulla_blake3::Hash;

use super::{Keystore, Observers};
#[cfg(feature = "with-metrics")]
use crate::algorithm::Algorithm;
use crate::approval::{ApprovalId, ApprovalSummary};
use crate::attestation::{Attestation, SignedAttestation};
use crate::audit_log::{Actor, AuditEvent, AuditOperation, AuditSink, CertificateSummary, Outcome};
use crate::backend::SharedKey;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeyVersionId};
use crate::key_signature::{Signature, Verdict};
#[cfg(feature = "with-metrics")]
use crate::metrics::Metrics;
use crate::secret_bytes::SecretBytes;

/// The subject of an operation, as far as it is known before the operation.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    operation: AuditOperation,
    /// `None` for an operation on the whole store.
    key: Option<KeyRef<'a>>,
    /// The message. Only its digest is recorded.
    message: Option<&'a [u8]>,
    /// The step of a request for approval, with the digest of what it is about.
    approval: Option<(&'a Hash, &'a ApprovalSummary)>,
}

impl<'a> Subject<'a> {
    /// An operation on the whole store.
    pub(crate) fn store(operation: AuditOperation) -> Self {
        Self { operation, key: None, message: None, approval: None }
    }

    /// An operation with a key and without a message.
    pub(crate) fn key(operation: AuditOperation, key: impl Into<KeyRef<'a>>) -> Self {
        Self { key: Some(key.into()), ..Self::store(operation) }
    }

    /// An operation with a key on a message.
    pub(crate) fn message(operation: AuditOperation, key: impl Into<KeyRef<'a>>, message: &'a [u8]) -> Self {
        Self { message: Some(message), ..Self::key(operation, key) }
    }

    /// A step of a request for approval.
    pub(crate) fn approval(
        operation: AuditOperation,
        key: impl Into<KeyRef<'a>>,
        digest: &'a Hash,
        summary: &'a ApprovalSummary,
    ) -> Self {
        Self { approval: Some((digest, summary)), ..Self::key(operation, key) }
    }

    #[cfg(feature = "with-metrics")]
    fn algorithm(&self) -> Option<Algorithm> {
        self.key.map(|key| key.key_id().algorithm())
    }

    /// The event that is recorded. `key` is the key if it is known only afterwards.
    fn event(
        self,
        key: Option<KeyRef<'a>>,
        outcome: Outcome,
        actor: Actor,
        digest: Option<Hash>,
        approved: Option<ApprovalId>,
    ) -> AuditEvent<'a> {
        let operation = self.operation;
        let signed = self.message.filter(|_| operation == AuditOperation::Sign);
        let certificate = signed.and_then(CertificateSummary::of).map(Box::new);
        let step = self.approval.map(|(_, summary)| summary.clone());
        let approval = step.or_else(|| approved.map(ApprovalSummary::of)).map(Box::new);
        let digest = digest.or(self.approval.map(|(digest, _)| *digest));
        AuditEvent { actor, operation, key: key.or(self.key), outcome, digest, certificate, approval }
    }
}

/// The result of an operation.
pub(crate) trait AuditedResult {
    /// The key, if it is known only afterwards.
    fn key(&self) -> Option<KeyRef<'_>> {
        None
    }

    /// How the operation ended.
    fn outcome(&self) -> Outcome {
        Outcome::Done
    }

    /// The message, if it is known only afterwards. Only its digest is recorded.
    fn message(&self) -> Option<&[u8]> {
        None
    }
}

/// The part of a result that is reported.
pub(super) struct Report<'a> {
    pub(super) outcome: Outcome,
    /// The key, if it is known only afterwards.
    pub(super) key: Option<KeyRef<'a>>,
    /// The message, if it is known only afterwards.
    pub(super) message: Option<&'a [u8]>,
}

pub(super) fn report<T: AuditedResult>(result: &Result<T>) -> Report<'_> {
    let made = result.as_ref().ok();
    Report {
        outcome: outcome(result),
        key: made.and_then(AuditedResult::key),
        message: made.and_then(AuditedResult::message),
    }
}

impl AuditedResult for KeyVersionId {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some(self.into())
    }
}

impl AuditedResult for Signature {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.key).into())
    }
}

impl AuditedResult for SignedAttestation {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.signature.key).into())
    }
}

impl AuditedResult for Verdict {
    fn outcome(&self) -> Outcome {
        Outcome::Verdict(*self)
    }
}

impl AuditedResult for Attestation {}
impl AuditedResult for SharedKey {}
impl AuditedResult for SecretBytes {}
impl AuditedResult for () {}
/// The backup of a key.
impl AuditedResult for Vec<u8> {}
#[cfg(feature = "soft-seal")]
impl AuditedResult for super::backup::BackupSummary {}
#[cfg(all(feature = "tokens", feature = "transfer"))]
impl AuditedResult for crate::transfer::WrappedPrivateKey {}
#[cfg(all(feature = "tokens", feature = "transfer"))]
impl AuditedResult for crate::transfer::WrappedForRsa {}
#[cfg(all(feature = "tokens", feature = "transfer"))]
impl AuditedResult for crate::transfer::PrivateKeyData {}
#[cfg(feature = "tokens")]
impl AuditedResult for crate::token::Token {}

fn outcome<T: AuditedResult>(result: &Result<T>) -> Outcome {
    match result {
        Ok(made) => made.outcome(),
        Err(error) => Outcome::Failed(error.code),
    }
}

/// Measures the time of an operation, if anything records it.
struct Watch<'a> {
    #[cfg(feature = "with-metrics")]
    metrics: Option<(&'a Metrics, Instant)>,
    #[cfg(not(feature = "with-metrics"))]
    metrics: PhantomData<&'a ()>,
}

impl Watch<'_> {
    /// Counts the operations, and how long all of them took.
    #[cfg(feature = "with-metrics")]
    fn stop<'a>(self, operation: AuditOperation, done: impl Iterator<Item = (Subject<'a>, Outcome)>) {
        let Some((metrics, started)) = self.metrics else { return };
        done.for_each(|(subject, outcome)| metrics.operation(operation, subject.algorithm(), outcome));
        metrics.latency(operation, started.elapsed());
    }

    #[cfg(not(feature = "with-metrics"))]
    fn stop<'a>(self, _operation: AuditOperation, _done: impl Iterator<Item = (Subject<'a>, Outcome)>) {
        let PhantomData = self.metrics;
    }
}

/// The reserved place of a change's entry in the audit log.
pub(super) struct Reserved<'a>(&'a dyn AuditSink);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// The error of a change that is in the store and not in the audit log. It must not say that the
/// same call may succeed later: that would make the change twice.
fn unrecorded(error: KmsError) -> KmsError {
    let message = format!(
        "the change was made, but the audit log could not record it yet: {error}; read the key before you try again"
    );
    KmsError::new(Code::OutcomeUnknown, message).with_source(error)
}

impl Drop for Keystore {
    /// The last handle lets the audit log make a checkpoint of its last entries.
    fn drop(&mut self) {
        if self.handles.take().and_then(Arc::into_inner).is_none() || std::thread::panicking() {
            return;
        }
        if let Some(sink) = self.observers.audit.clone() {
            sink.closing(self);
        }
    }
}

impl Keystore {
    /// Records every operation from now on, as with
    /// [`KeystoreOptions::audit`](crate::KeystoreOptions::audit). Other handles of the keystore
    /// stay as they are.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use bulla_kms::Keystore;
    /// use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
    ///
    /// let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
    /// let keystore = Keystore::in_memory()?.audited(log);
    /// let for_alice = keystore.on_behalf_of(&"alice".parse()?);
    /// assert_eq!(for_alice.actor().to_string(), "alice");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn audited(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.observers = Arc::new(Observers {
            audit: Some(sink),
            #[cfg(feature = "with-metrics")]
            metrics: self.observers.metrics.clone(),
        });
        self
    }

    /// A handle of the same keystore whose operations are done on behalf of `actor`: the audit log
    /// names the actor in their entries.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
    /// use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
    ///
    /// let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
    /// let keystore = KeystoreOptions::default().audit(log.clone()).in_memory()?;
    /// let alice = keystore.on_behalf_of(&"alice".parse()?);
    /// alice.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// assert_eq!(log.entries()?[0].actor.as_str(), "alice");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn on_behalf_of(&self, actor: &Actor) -> Self {
        Self {
            observers: Arc::clone(&self.observers),
            actor: Some(actor.clone()),
            approved: self.approved.clone(),
            handles: self.handles.clone(),
            index: Arc::clone(&self.index),
            writer: Arc::clone(&self.writer),
            cipher: Arc::clone(&self.cipher),
            backends: Arc::clone(&self.backends),
            guard: Arc::clone(&self.guard),
            file: self.file.clone(),
            lease: self.lease.clone(),
            change_listener: Arc::clone(&self.change_listener),
            long_rotation: Arc::clone(&self.long_rotation),
        }
    }

    /// The actor that the audit log names in the entries of this handle's operations: `-` if there
    /// is none.
    pub fn actor(&self) -> Actor {
        Actor::or_unnamed(self.actor.clone())
    }

    /// Runs an operation and reports it. A change has its place in the audit log first.
    ///
    /// # Errors
    /// The errors of `run`; errors of recording, which withhold the result of `run`.
    pub(crate) fn observed<T: AuditedResult>(
        &self,
        subject: Subject<'_>,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match self.reserve_entry(subject.operation) {
            Ok(_reserved) => self.reported(subject, run),
            Err(error) => {
                let outcome = Outcome::Failed(error.code);
                self.watch().stop(subject.operation, std::iter::once((subject, outcome)));
                Err(error)
            }
        }
    }

    /// Reserves the place of an operation's entry in the audit log, if it is a change.
    ///
    /// # Errors
    /// Those of [`AuditSink::reserve`]: the change must not be made.
    pub(super) fn reserve_entry(&self, operation: AuditOperation) -> Result<Option<Reserved<'_>>> {
        let sink = self.observers.audit.as_deref();
        let sink = sink.filter(|sink| operation.changes_keystore() && sink.wants(operation));
        sink.map(|sink| sink.reserve().map(|()| Reserved(sink))).transpose()
    }

    /// Runs an operation and reports it; the place of a change is reserved.
    fn reported<T: AuditedResult>(&self, subject: Subject<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let watch = self.watch();
        #[cfg(feature = "with-metrics")]
        let _span = crate::metrics::span(subject.operation, subject.algorithm()).entered();
        let result = run();
        let Report { outcome, key, message } = report(&result);
        watch.stop(subject.operation, std::iter::once((subject, outcome)));
        if !self.records(subject.operation) {
            return result;
        }
        let digest = subject.message.or(message).map(bulla_blake3::hash);
        let recorded = self.record(&[subject.event(key, outcome, self.actor(), digest, self.approved_id())]);
        let made = result?;
        match recorded {
            Ok(()) => Ok(made),
            Err(error) if subject.operation.changes_keystore() => Err(unrecorded(error)),
            Err(error) => Err(error),
        }
    }

    /// Runs operations of one kind together and reports each. `actor` gives the actor of each. The
    /// results of operations that cannot be recorded are replaced by what `withheld` makes of the
    /// error.
    pub(super) fn observed_together<'a, T>(
        &self,
        operation: AuditOperation,
        subject: impl Fn(usize) -> Subject<'a>,
        actor: &dyn Fn(usize) -> Actor,
        run: impl FnOnce() -> Vec<T>,
        told: impl Fn(&T) -> Report<'_>,
        withheld: impl Fn(&KmsError) -> T,
    ) -> Vec<T> {
        let watch = self.watch();
        let mut results = run();
        let done = results.iter().enumerate();
        watch.stop(operation, done.map(|(place, result)| (subject(place), told(result).outcome)));
        if self.records(operation) {
            let message =
                |(place, result)| -> Option<&[u8]> { subject(place).message.or(told(result).message) };
            let messages: Vec<_> = results.iter().enumerate().map(message).collect();
            let hashed: Vec<_> = messages.iter().map(|message| message.unwrap_or_default()).collect();
            let mut digests = vec![Hash::from_bytes([0; 32]); messages.len()];
            bulla_blake3::hash_many(&hashed, &mut digests);
            let events = results.iter().enumerate().map(|(place, result)| {
                let Report { outcome, key, .. } = told(result);
                let digest = messages[place].map(|_| digests[place]);
                subject(place).event(key, outcome, actor(place), digest, self.approved_id())
            });
            if let Err(error) = self.record(&events.collect::<Vec<_>>()) {
                results.iter_mut().for_each(|result| *result = withheld(&error));
            }
        }
        results
    }

    /// Runs operations of one kind together, on behalf of this handle's actor, and reports each.
    pub(super) fn observed_each<'a, T: AuditedResult>(
        &self,
        operation: AuditOperation,
        subject: impl Fn(usize) -> Subject<'a>,
        run: impl FnOnce() -> Vec<Result<T>>,
    ) -> Vec<Result<T>> {
        let withheld = |error: &KmsError| Err(error.clone());
        self.observed_together(operation, subject, &|_| self.actor(), run, report, withheld)
    }

    /// Reports a change that was made in addition to an operation, in its reserved place.
    pub(super) fn note(&self, subject: Subject<'_>) -> Result<()> {
        self.reported(subject, || Ok(()))
    }

    /// The request for approval by which this handle uses a key, if there is one.
    fn approved_id(&self) -> Option<ApprovalId> {
        self.approved.as_ref().map(|approved| approved.id())
    }

    fn watch(&self) -> Watch<'_> {
        Watch {
            #[cfg(feature = "with-metrics")]
            metrics: self.observers.metrics.as_deref().map(|metrics| (metrics, Instant::now())),
            #[cfg(not(feature = "with-metrics"))]
            metrics: PhantomData,
        }
    }

    fn records(&self, operation: AuditOperation) -> bool {
        self.observers.audit.as_ref().is_some_and(|sink| sink.wants(operation))
    }

    fn record(&self, events: &[AuditEvent<'_>]) -> Result<()> {
        let Some(sink) = &self.observers.audit else { return Ok(()) };
        sink.record(events)?;
        sink.recorded(self);
        Ok(())
    }

    /// The counters of operations, if there are any.
    #[cfg(feature = "with-metrics")]
    pub(crate) fn metrics(&self) -> Option<&Arc<Metrics>> {
        self.observers.metrics.as_ref()
    }
}
