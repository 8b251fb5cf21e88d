//! Reads other processes' changes of a shared store.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::handle::Keystore;
use super::index::Index;
use super::shared_snapshot;
use super::writer::Writer;
use crate::error::{KmsError, Result};
use crate::rollback::RollbackGuard;
use crate::seal::Sealer;
use crate::store::Changed;

/// The pause between a failed read of the store and the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

impl Keystore {
    /// Reads the changes that other processes made to a shared store, for example in etcd. This also happens automatically, within moments
    /// of each change. After this call, the keystore sees every change that was acknowledged before it. It does nothing if nobody else can
    /// change the store.
    ///
    /// # Errors
    /// [`Code::Unavailable`](crate::Code::Unavailable) if the store cannot be reached: the keystore then keeps its last view of the keys;
    /// [`Code::RolledBack`](crate::Code::RolledBack); [`Code::StoreDamaged`](crate::Code::StoreDamaged); errors of the rollback guard.
    pub fn catch_up(&self) -> Result<()> {
        catch_up(&self.index, &self.writer, &self.sealer, &*self.guard)
    }
}

fn catch_up(
    index: &ArcSwap<Index>,
    writer: &Mutex<Writer>,
    sealer: &Sealer,
    guard: &dyn RollbackGuard,
) -> Result<()> {
    shared_snapshot::refresh(index, writer, |writer, index| {
        if writer.store.is_shared() { writer.catch_up(sealer, guard, index) } else { Ok(None) }
    })
}

/// The following thread's view of its keystore. It must not keep the keystore alive.
struct Follower {
    index: Weak<ArcSwap<Index>>,
    writer: Weak<Mutex<Writer>>,
    sealer: Arc<Sealer>,
    guard: Arc<dyn RollbackGuard>,
}

/// Reads each change that `changed` announces, until the store is dropped.
///
/// # Errors
/// An error if the system cannot start a thread.
pub(super) fn follow(keystore: &Keystore, changed: Receiver<Changed>) -> Result<()> {
    let follower = Follower {
        index: Arc::downgrade(&keystore.index),
        writer: Arc::downgrade(&keystore.writer),
        sealer: Arc::clone(&keystore.sealer),
        guard: Arc::clone(&keystore.guard),
    };
    let run = move || {
        while let Ok(Changed) = changed.recv() {
            while follower.catch_up().is_some_and(|result| result.is_err_and(|error| error.retryable)) {
                std::thread::sleep(PAUSE);
            }
        }
    };
    match std::thread::Builder::new().name("bulla-kms-follow".to_owned()).spawn(run) {
        Ok(_) => Ok(()),
        Err(error) => Err(KmsError::io("cannot follow the keystore", error)),
    }
}

impl Follower {
    /// Catches up once; `None` if the keystore is gone. Problems of the store are not reported here: the next write
    /// reports them.
    fn catch_up(&self) -> Option<Result<()>> {
        let (index, writer) = (self.index.upgrade()?, self.writer.upgrade()?);
        Some(catch_up(&index, &writer, &self.sealer, &*self.guard))
    }
}
