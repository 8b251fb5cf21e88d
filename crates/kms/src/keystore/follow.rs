//! Reads other processes' changes of a shared store.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::Keystore;
use super::changes::Writer;
use super::index::Index;
use super::shared_snapshot;
use crate::encryption::StoreCipher;
use crate::error::{KmsError, Result};
use crate::rollback::RollbackGuard;
use crate::store::Changed;

/// The pause between a failed read of the store and the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Keystore {
    /// Reads the changes that other processes made to a shared store, for example in etcd. This
    /// also happens automatically, within moments of each change. After this call, the keystore
    /// sees every change that was acknowledged before it. It does nothing if nobody else can change
    /// the store.
    ///
    /// # Errors
    /// [`Code::Unavailable`](crate::Code::Unavailable) if the store cannot be reached: the keystore
    /// then keeps its last view of the keys; [`Code::RolledBack`](crate::Code::RolledBack);
    /// [`Code::KeystoreCorrupt`](crate::Code::KeystoreCorrupt); errors of the rollback guard.
    pub fn catch_up(&self) -> Result<()> {
        shared_snapshot::refresh(&*self.index, &*self.writer, |writer, index| {
            if writer.store.is_shared() {
                writer.catch_up(&self.cipher, &*self.guard, index)
            } else {
                Ok(None)
            }
        })
    }

    /// Calls `listener` after each change that another process made to a shared store and that
    /// readers of this keystore now see. It is called on the thread that follows the store: it must
    /// not wait. A keystore has one listener. A later one is ignored.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use bulla_kms::Keystore;
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let newest = Arc::new(AtomicU64::new(keystore.revision()));
    /// let seen = newest.clone();
    /// keystore.set_change_listener(move |change| seen.store(change.revision, Ordering::Relaxed));
    ///
    /// // Before an answer that must not be older than this moment.
    /// keystore.catch_up()?;
    /// assert_eq!(newest.load(Ordering::Relaxed), keystore.revision());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn set_change_listener(&self, listener: impl Fn(StoreChange) + Send + Sync + 'static) {
        let _ = self.change_listener.set(Box::new(listener));
    }
}

/// A change, or several, that other processes made to a shared store.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreChange {
    /// The newest change that readers see: see [`Keystore::revision`].
    pub revision: u64,
    /// Whether a root key of tokens changed: see [`Keystore::token_roots`].
    pub token_roots_changed: bool,
}

/// Is called after changes of other processes.
pub(super) type ChangeListener = Box<dyn Fn(StoreChange) + Send + Sync>;

/// The following thread's view of its keystore. It must not keep the keystore alive.
struct Follower {
    index: Weak<ArcSwap<Index>>,
    writer: Weak<Mutex<Writer>>,
    cipher: Arc<StoreCipher>,
    guard: Arc<dyn RollbackGuard>,
    /// The root keys of tokens, as last seen.
    roots: [u8; 32],
    change_listener: Arc<OnceLock<ChangeListener>>,
}

/// How a writer learns of changes.
type ReadChanges = fn(&mut Writer, &StoreCipher, &dyn RollbackGuard, &Index) -> Result<Option<Index>>;

/// Reads each change that `changed` announces, until the store is dropped.
///
/// # Errors
/// An error if the system cannot start a thread.
pub(super) fn follow(keystore: &Keystore, changed: Receiver<Changed>) -> Result<()> {
    let mut follower = Follower {
        index: Arc::downgrade(&keystore.index),
        writer: Arc::downgrade(&keystore.writer),
        cipher: Arc::clone(&keystore.cipher),
        guard: Arc::clone(&keystore.guard),
        roots: keystore.token_roots(),
        change_listener: Arc::clone(&keystore.change_listener),
    };
    let run = move || {
        while let Ok(Changed) = changed.recv() {
            let mut learn: ReadChanges = Writer::take_announced;
            while follower.learn(learn).is_some_and(|result| result.is_err_and(|error| error.retryable)) {
                std::thread::sleep(RETRY_PAUSE);
                // What was announced was taken.
                learn = Writer::catch_up;
            }
        }
    };
    match std::thread::Builder::new().name("bulla-kms-follow".to_owned()).spawn(run) {
        Ok(_) => Ok(()),
        Err(error) => Err(KmsError::io("cannot follow the keystore", error)),
    }
}

impl Follower {
    /// Catches up once; `None` if the keystore is gone. Problems of the store are not reported
    /// here: the next write reports them.
    fn learn(&mut self, learn: ReadChanges) -> Option<Result<()>> {
        let (index, writer) = (self.index.upgrade()?, self.writer.upgrade()?);
        let learned = shared_snapshot::refresh(&*index, &*writer, |writer, index| {
            learn(writer, &self.cipher, &*self.guard, index)
        });
        // Another thread may have read the change, but the notice came to this one.
        let seen = index.load();
        let token_roots_changed =
            std::mem::replace(&mut self.roots, seen.token_roots()) != seen.token_roots();
        if let Some(listener) = self.change_listener.get() {
            listener(StoreChange { revision: seen.generation(), token_roots_changed });
        }
        Some(learned)
    }
}
