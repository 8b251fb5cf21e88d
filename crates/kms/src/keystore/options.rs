//! What a keystore works with.

use std::sync::Arc;

use crate::audit_log::AuditSink;
use crate::backend::Backends;
#[cfg(feature = "with-metrics")]
use crate::metrics::Metrics;
use crate::rollback::{RollbackGuard, StoreGuard};

/// What a keystore works with beside its store; the default is what [`Keystore::open`](crate::Keystore::open) takes.
#[derive(Clone, Debug)]
pub struct KeystoreOptions {
    /// The backends that make, keep and use private keys.
    pub backends: Backends,
    /// What notices that an older copy was put in the place of the store; [`StoreGuard`] by default, which notices that
    /// only while the store is open. A guard belongs to one store. A keystore in memory needs none and asks none.
    pub guard: Arc<dyn RollbackGuard>,
    /// Where every operation is recorded; nowhere by default.
    pub audit: Option<Arc<dyn AuditSink>>,
    /// Where operations are counted; nowhere by default.
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

/// Who is told.
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
