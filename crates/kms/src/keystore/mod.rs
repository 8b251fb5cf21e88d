//! The keystore: its keys, which of them sign, and how changes are stored safely.

#[cfg(feature = "soft-seal")]
mod backup;
#[cfg(feature = "soft-seal")]
mod backup_summary;
mod batch;
mod devices;
mod edit;
mod follow;
mod guard_name;
mod handle;
#[cfg(feature = "soft-seal")]
mod identity;
mod index;
mod keys;
mod lifecycle;
mod load;
mod observe;
mod open;
#[cfg(feature = "etcd")]
mod open_etcd;
mod options;
mod reseal;
mod set_guard;
mod shared;
mod shared_snapshot;
mod signing;
mod snapshot;
mod succession;
#[cfg(test)]
mod tests;
#[cfg(feature = "tokens")]
mod tokens;
#[cfg(feature = "transfer")]
mod transfer;
mod writer;

#[cfg(feature = "soft-seal")]
pub use self::backup::Backup;
#[cfg(feature = "soft-seal")]
pub use self::backup_summary::BackupSummary;
pub(crate) use self::batch::Threads;
pub use self::batch::{SignItem, VerifyItem};
pub use self::handle::Keystore;
#[cfg(feature = "soft-seal")]
pub use self::identity::KeystoreProvider;
pub use self::keys::NewKey;
pub use self::options::KeystoreOptions;
pub(crate) use self::signing::Content;
pub use self::snapshot::Snapshot;
