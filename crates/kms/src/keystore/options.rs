//! The options of a keystore.

use std::sync::Arc;

use crate::audit_log::AuditSink;
use crate::backend::Backends;
#[cfg(feature = "with-metrics")]
use crate::metrics::Metrics;
use crate::rollback::{RollbackGuard, StoreGuard};

/// The parts that a keystore uses in addition to its store.
/// [`Keystore::open`](crate::Keystore::open) uses the defaults.
#[derive(Clone, Debug)]
pub struct KeystoreOptions {
    /// The backends that make, keep and use private keys.
    pub backends: Backends,
    /// The rollback guard, which detects that the store was replaced by an older copy. The default,
    /// [`StoreGuard`], detects it only while the store is open. A guard belongs to one store. A
    /// keystore in memory needs none and asks none.
    pub guard: Arc<dyn RollbackGuard>,
    /// The sink that records every operation; none by default.
    pub audit: Option<Arc<dyn AuditSink>>,
    /// The metrics that count operations; none by default.
    #[cfg(feature = "with-metrics")]
    pub metrics: Option<Arc<Metrics>>,
}

impl Default for KeystoreOptions {
    fn default() -> Self {
        Self {
            backends: Backends::software().clone(),
            guard: Arc::new(StoreGuard::default()),
            audit: None,
            #[cfg(feature = "with-metrics")]
            metrics: None,
        }
    }
}

/// The receivers of reports on operations.
#[derive(Default)]
pub(super) struct Observers {
    pub(super) audit: Option<Arc<dyn AuditSink>>,
    #[cfg(feature = "with-metrics")]
    pub(super) metrics: Option<Arc<Metrics>>,
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
