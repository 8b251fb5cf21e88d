use std::path::Path;
use std::sync::Arc;

use super::{Keystore, Snapshot, load};
use crate::audit_log::AuditSink;
use crate::backend::Backends;
use crate::error::Result;
use crate::rollback::{RollbackGuard, StoreGuard};
#[cfg(feature = "etcd")]
use crate::store::etcd::EtcdOptions;
use crate::unlock::Unlock;
#[cfg(feature = "etcd")]
use crate::unlock::UnlockMethod;

/// What a keystore works with beside its store; the default is what [`Keystore::open`] takes.
#[derive(Clone, Debug)]
pub struct KeystoreOptions {
    /// The backends that make, hold and use private keys.
    pub backends: Backends,
    /// What notices that an older copy was put in the place of the store; [`StoreGuard`] by default, which notices that
    /// only while the store is open. A guard belongs to one store. A keystore in memory needs none and asks none.
    pub guard: Arc<dyn RollbackGuard>,
    /// Where every operation is recorded; nowhere by default.
    pub audit: Option<Arc<dyn AuditSink>>,
    /// Where operations are counted; nowhere by default.
    #[cfg(feature = "with-metrics")]
    pub metrics: Option<Arc<crate::metrics::Metrics>>,
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

impl KeystoreOptions {
    /// As [`Keystore::in_memory`].
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn in_memory(&self) -> Keystore {
        load::in_memory(self).expect("the operating system gives random bytes")
    }

    /// As [`Keystore::create`].
    ///
    /// # Errors
    /// Those of [`Keystore::create`].
    pub fn create(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::create(path, unlock, self)
    }

    /// As [`Keystore::open`].
    ///
    /// # Errors
    /// Those of [`Keystore::open`].
    pub fn open(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        load::open(path, unlock, self)
    }

    /// As [`Keystore::snapshot`]. The guard is asked and told nothing; nothing is recorded.
    ///
    /// # Errors
    /// Those of [`Keystore::snapshot`].
    pub fn snapshot(&self, path: &Path, unlock: &Unlock) -> Result<Snapshot> {
        load::snapshot(path, unlock, self).map(Snapshot::new)
    }

    /// As [`Keystore::create_etcd`].
    ///
    /// # Errors
    /// Those of [`Keystore::create_etcd`].
    #[cfg(feature = "etcd")]
    pub fn create_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        load::etcd::create(etcd, unlock, self)
    }

    /// As [`Keystore::open_etcd`].
    ///
    /// # Errors
    /// Those of [`Keystore::open_etcd`].
    #[cfg(feature = "etcd")]
    pub fn open_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        load::etcd::open(etcd, unlock, self)
    }
}

#[cfg(feature = "etcd")]
impl Keystore {
    /// Makes an empty keystore in an etcd cluster that `unlock` opens.
    ///
    /// etcd sees sealed rows only. Its nodes, and who may write to it, can destroy the keystore, and put all of it back to
    /// an older state while nobody has it open: see `spec/keystore.md`.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`](crate::Code::AlreadyExists) when there is anything under the prefix;
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) for options that make no sense;
    /// [`Code::Unavailable`](crate::Code::Unavailable), [`Code::OutcomeUnknown`](crate::Code::OutcomeUnknown),
    /// [`Code::PermissionDenied`](crate::Code::PermissionDenied), [`Code::StorageFull`](crate::Code::StorageFull); those
    /// of reading a key file.
    pub fn create_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().create_etcd(etcd, unlock)
    }

    /// Opens a keystore in an etcd cluster and proves that all of it is as it was last written. Any number of processes
    /// may have it open at a time: each change is made to what its maker saw, or not at all, and is seen by the others
    /// within moments ([`Keystore::catch_up`]).
    ///
    /// Signing and verifying ask nobody: they go on with the keys as they were last seen when the cluster is out of reach,
    /// except that a key that counts its uses stops when those that this process reserved are used up. Changes then fail
    /// with [`Code::Unavailable`](crate::Code::Unavailable) within a few times the timeout of the options. A change to
    /// which the answer did not come, and of which it cannot be found out whether it was made, fails with
    /// [`Code::OutcomeUnknown`](crate::Code::OutcomeUnknown). A key whose record would not fit into a request, or which
    /// has too many versions to destroy at once, fails with [`Code::TooLarge`](crate::Code::TooLarge).
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound), [`Code::Unavailable`](crate::Code::Unavailable),
    /// [`Code::PermissionDenied`](crate::Code::PermissionDenied), [`Code::InvalidArgument`](crate::Code::InvalidArgument);
    /// those of [`Keystore::open`] but `Locked`.
    pub fn open_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().open_etcd(etcd, unlock)
    }

    /// Which kind of secret opens a keystore in an etcd cluster.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound), [`Code::Unavailable`](crate::Code::Unavailable),
    /// [`Code::StoreTooNew`](crate::Code::StoreTooNew), [`Code::StoreDamaged`](crate::Code::StoreDamaged).
    pub fn unlock_method_etcd(etcd: &EtcdOptions) -> Result<UnlockMethod> {
        load::etcd::unlock_method(etcd)
    }
}
