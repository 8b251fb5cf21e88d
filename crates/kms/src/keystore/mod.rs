//! The keystore: its keys, which of them sign, and how changes are stored safely.
//!
//! [`open`] makes the values of [`Keystore`]. [`load`] reads a store's rows and checks that none
//! was changed, removed or added. [`changes`] writes rows, and then shows the change to readers,
//! who see one [`index`] of all keys at a time. The other modules have the methods that users call.
//! [`observe`] wraps every operation, and reports it to the audit log and the metrics.

mod agreement;
mod approvals;
mod authentication;
#[cfg(feature = "soft-seal")]
mod backup;
mod batch;
mod changes;
mod contributions;
mod decapsulation;
mod encryption;
mod follow;
mod index;
mod key_backup;
mod keys;
mod lifecycle;
mod load;
mod maintenance;
mod observe;
mod open;
#[cfg(feature = "etcd")]
mod open_etcd;
mod quick;
mod shared;
mod shared_snapshot;
mod shares;
mod signing;
#[cfg(test)]
mod tests;
#[cfg(feature = "tokens")]
mod tokens;
#[cfg(feature = "transfer")]
mod transfer;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;

pub use self::authentication::VerifyMacItem;
#[cfg(feature = "soft-seal")]
pub use self::backup::{Backup, BackupSummary};
pub(crate) use self::batch::Threads;
pub use self::batch::{KeyMessage, VerifyItem};
use self::changes::Writer;
pub use self::contributions::PermittedContribution;
#[cfg(feature = "soft-seal")]
pub use self::decapsulation::KeystoreProvider;
use self::follow::ChangeListener;
pub use self::follow::StoreChange;
use self::index::Index;
pub use self::index::Snapshot;
pub use self::keys::NewKey;
pub use self::shared::DataCipher;
pub(crate) use self::signing::SignedContent;
use crate::approval::ApprovedUse;
use crate::audit_log::{Actor, AuditSink};
use crate::backend::Backends;
use crate::encryption::StoreCipher;
use crate::lease::StoreLease;
#[cfg(feature = "with-metrics")]
use crate::metrics::Metrics;
use crate::rollback::{RollbackGuard, StoreGuard};
use crate::store::FileIdentity;

/// Keys, in memory, in an encrypted file or in etcd.
///
/// Many threads may make all calls at once. Signing and verifying read a snapshot and never wait,
/// neither for another thread nor for the disk. Calls that change something run one after another,
/// and their changes are on the disk when they return.
///
/// The file stays locked for other processes as long as the keystore lives: open it late, drop it
/// early. To look at keys only, take a [`Snapshot`] ([`Keystore::snapshot`]): it
/// keeps no lock and writes nothing.
///
/// A value is a handle. [`Keystore::on_behalf_of`] makes another one of the same keystore, which
/// lives until its last handle is dropped.
pub struct Keystore {
    /// The first field, so that an audit log is unlocked before the store is.
    observers: Arc<Observers>,
    /// The actor in the entries of the audit log.
    actor: Option<Actor>,
    /// The use of a key that this handle may make; none makes none that needs approvals.
    approved: Option<Arc<ApprovedUse>>,
    /// Shared by all handles, so that the last one is known; none while this one is dropped.
    handles: Option<Arc<()>>,
    index: Arc<ArcSwap<Index>>,
    writer: Arc<Mutex<Writer>>,
    cipher: Arc<StoreCipher>,
    backends: Arc<Backends>,
    guard: Arc<dyn RollbackGuard>,
    /// The file of the store, which must stay in its place while private keys are used; none for a
    /// store that is not in a file.
    file: Option<Arc<FileIdentity>>,
    /// Limits the use of private keys; none for a keystore that no other process changes.
    lease: Option<Arc<StoreLease>>,
    /// Is called when another process changes the store.
    change_listener: Arc<OnceLock<ChangeListener>>,
    /// Held while a version is made that takes long, so that of many threads that find a key due
    /// for rotation only one makes its next version.
    long_rotation: Arc<Mutex<()>>,
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("keys", &self.index.load().len()).finish_non_exhaustive()
    }
}

/// The parts that a keystore uses in addition to its store.
/// [`Keystore::open`](crate::Keystore::open) uses the defaults.
#[non_exhaustive]
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
    /// The actor on whose behalf operations are recorded, unless [`Keystore::on_behalf_of`] names
    /// another; none by default, and recorded as `-`.
    pub actor: Option<Actor>,
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
            actor: None,
            #[cfg(feature = "with-metrics")]
            metrics: None,
        }
    }
}

impl KeystoreOptions {
    /// Sets the backends.
    #[must_use]
    pub fn backends(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// Sets the rollback guard.
    #[must_use]
    pub fn guard(mut self, guard: Arc<dyn RollbackGuard>) -> Self {
        self.guard = guard;
        self
    }

    /// Sets the sink that records every operation.
    #[must_use]
    pub fn audit(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.audit = Some(sink);
        self
    }

    /// Sets the actor on whose behalf operations are recorded.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<Option<Actor>>) -> Self {
        self.actor = actor.into();
        self
    }

    /// Sets the metrics that count operations.
    #[cfg(feature = "with-metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: impl Into<Option<Arc<Metrics>>>) -> Self {
        self.metrics = metrics.into();
        self
    }
}

/// The audit log and the metrics, which every operation is reported to.
#[derive(Default)]
struct Observers {
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
