//! Prometheus metrics of a keystore and a [`Batcher`](crate::batcher::Batcher).
//!
//! | name | labels | what |
//! |---|---|---|
//! | `kms_ops_total` | `op`, `alg` | operations, including failed ones; `alg` is `none` for operations on the whole store |
//! | `kms_failures_total` | `op`, `kind` | operations that failed, by the error's code; `invalid` and `unusable` for verdicts |
//! | `kms_op_latency_seconds` | `op` | how long operations took; one value for a batch |
//! | `kms_batch_len` | | how many calls a batcher's batches had |
//! | `kms_batch_wait_seconds` | | how long calls waited for their batch to begin |
//! | `kms_batch_flushes_total` | `reason` | why batches began |
//!
//! The labels' values are fixed sets: operations, algorithms, codes and reasons. A tenant, a user
//! or a key is never a label.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::algorithm::Algorithm;
use crate::audit_log::{AuditOperation, Outcome};
use crate::error::Code;
use crate::key_signature::Verdict;

/// The upper bounds of latencies, in seconds: from a microsecond to a second.
const LATENCIES: [f64; 19] = [
    1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
    0.1, 0.2, 0.5, 1.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Done {
    op: &'static str,
    alg: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    op: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Took {
    op: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Flushed {
    reason: &'static str,
}

type Histograms = Family<Took, Histogram, fn() -> Histogram>;

/// The label of operations on a whole store.
const NO_ALGORITHM: &str = "none";

/// Counters and histograms. A keystore with
/// [`KeystoreOptions::metrics`](crate::KeystoreOptions::metrics) updates them.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::metrics::Metrics;
/// use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
/// use prometheus_client::registry::Registry;
///
/// let metrics = Arc::new(Metrics::default());
/// let keystore = KeystoreOptions::default().metrics(metrics.clone()).in_memory()?;
/// keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// assert!(metrics.text().contains(r#"kms_ops_total{op="create",alg="ed25519"} 1"#));
///
/// // Beside the program's own metrics.
/// let mut registry = Registry::default();
/// metrics.register(&mut registry);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub struct Metrics {
    ops: Family<Done, Counter>,
    failures: Family<Failed, Counter>,
    latency: Histograms,
    batch_len: Histogram,
    batch_wait: Histogram,
    flushes: Family<Flushed, Counter>,
    /// The members of `ops` by operation and algorithm: looking one up by its labels costs more
    /// than counting.
    known_ops: Vec<OnceLock<Counter>>,
    known_latencies: Vec<OnceLock<Histogram>>,
}

impl Default for Metrics {
    fn default() -> Self {
        fn latencies() -> Histogram {
            Histogram::new(LATENCIES)
        }
        Self {
            ops: Family::default(),
            failures: Family::default(),
            latency: Family::new_with_constructor(latencies),
            batch_len: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            batch_wait: latencies(),
            flushes: Family::default(),
            known_ops: (0..AuditOperation::ALL.len() * Algorithm::ALL.len())
                .map(|_| OnceLock::new())
                .collect(),
            known_latencies: AuditOperation::ALL.iter().map(|_| OnceLock::new()).collect(),
        }
    }
}

impl Metrics {
    /// Registers all metrics, under the names above.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("kms_ops", "Operations, also those that failed", self.ops.clone());
        registry.register("kms_failures", "Operations that failed, by kind", self.failures.clone());
        registry.register("kms_op_latency_seconds", "How long operations took", self.latency.clone());
        registry.register("kms_batch_len", "Calls in a batch", self.batch_len.clone());
        registry.register(
            "kms_batch_wait_seconds",
            "How long calls waited for their batch",
            self.batch_wait.clone(),
        );
        registry.register("kms_batch_flushes", "Why batches began", self.flushes.clone());
    }

    /// All metrics in the text form of OpenMetrics, which Prometheus reads.
    pub fn text(&self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.register(&mut registry);
        encode(&mut text, &registry).expect("a string takes all that is written to it");
        text
    }

    /// Counts an operation with a key of this algorithm, or on the whole store.
    pub(crate) fn operation(
        &self,
        operation: AuditOperation,
        algorithm: Option<Algorithm>,
        outcome: Outcome,
    ) {
        let (op, alg) = (operation.as_str(), label(algorithm));
        let counter = || self.ops.get_or_create(&Done { op, alg }).clone();
        match algorithm {
            Some(algorithm) => {
                let place = operation as usize * Algorithm::ALL.len() + algorithm as usize;
                self.known_ops[place].get_or_init(counter).inc();
            }
            None => {
                counter().inc();
            }
        }
        match outcome {
            Outcome::Done | Outcome::Verdict(Verdict::Valid) => {}
            failed => self.failure(operation, failed.as_str()),
        }
    }

    /// Counts a call that failed before it became an operation.
    pub(crate) fn refused(&self, operation: AuditOperation, code: Code) {
        self.failure(operation, code.as_str());
    }

    fn failure(&self, operation: AuditOperation, kind: &'static str) {
        tracing::debug!(op = operation.as_str(), kind, "kms operation failed");
        self.failures.get_or_create(&Failed { op: operation.as_str(), kind }).inc();
    }

    pub(crate) fn latency(&self, operation: AuditOperation, took: Duration) {
        let op = operation.as_str();
        let histogram = self.known_latencies[operation as usize]
            .get_or_init(|| self.latency.get_or_create(&Took { op }).clone());
        histogram.observe(took.as_secs_f64());
    }

    pub(crate) fn batch(&self, reason: &'static str, waits: impl Iterator<Item = Duration>) {
        let mut len = 0_u32;
        for wait in waits {
            len += 1;
            self.batch_wait.observe(wait.as_secs_f64());
        }
        self.batch_len.observe(f64::from(len));
        self.flushes.get_or_create(&Flushed { reason }).inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// The span of an operation. It names no key, no message and no actor.
pub(crate) fn span(operation: AuditOperation, algorithm: Option<Algorithm>) -> tracing::Span {
    tracing::debug_span!("kms", op = operation.as_str(), alg = label(algorithm))
}

fn label(algorithm: Option<Algorithm>) -> &'static str {
    algorithm.map_or(NO_ALGORITHM, Algorithm::as_str)
}
