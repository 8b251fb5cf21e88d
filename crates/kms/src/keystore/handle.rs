//! The keystore's handle: the type [`Keystore`] and its fields.

use std::fmt;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;

use super::index::Index;
use super::options::Observers;
use super::writer::Writer;
use crate::backend::Backends;
use crate::encryption::StoreCipher;
use crate::lease::StoreLease;
use crate::rollback::RollbackGuard;
use crate::store::FileIdentity;

/// Keys, in memory or in a sealed file.
///
/// Many threads may make all calls at once. Signing and verifying read a snapshot and never wait,
/// neither for another thread nor for the disk. Calls that change something run one after another,
/// and their changes are on the disk when they return.
///
/// The file stays locked for other processes as long as the keystore lives: open it late, drop it
/// early. To look at keys only, take a [`Snapshot`](super::Snapshot) ([`Keystore::snapshot`]): it
/// keeps no lock and writes nothing.
pub struct Keystore {
    /// The first field, so that an audit log is unlocked before the store is.
    pub(super) observers: Observers,
    pub(super) index: Arc<ArcSwap<Index>>,
    pub(super) writer: Arc<Mutex<Writer>>,
    pub(super) cipher: Arc<StoreCipher>,
    pub(super) backends: Backends,
    pub(super) guard: Arc<dyn RollbackGuard>,
    /// The file of the store, which must stay in its place while private keys are used; none for a
    /// store that is not in a file.
    pub(super) file: Option<Arc<FileIdentity>>,
    /// Limits the use of private keys; none for a keystore that no other process changes.
    pub(super) lease: Option<Arc<StoreLease>>,
    /// Who hears of other processes' changes to the root keys of tokens.
    pub(super) roots_changed: Arc<OnceLock<SyncSender<()>>>,
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("keys", &self.index.load().len()).finish_non_exhaustive()
    }
}
