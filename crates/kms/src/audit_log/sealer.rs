//! A thread that makes a log's checkpoints, so that no operation waits for the disk because of one.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::log::AuditLog;
use super::signer::CheckpointSigner;
use crate::error::{Code, KmsError, Result};

/// Makes the due checkpoints of a log on a thread of its own, until it is dropped. Without one, the
/// operation after which a checkpoint is due makes it, and waits for the disk.
///
/// It also seals the last entries before a pause, and has the disk write a long file before the
/// file is full.
#[derive(Debug)]
pub struct CheckpointThread {
    log: Arc<AuditLog>,
    thread: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    /// Starts the thread. A log has one at a time.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if the log has one; [`Code::Io`] if no thread can be started.
    pub fn start<S>(signer: &Arc<S>, log: &Arc<AuditLog>) -> Result<Self>
    where
        S: CheckpointSigner + Send + Sync + 'static,
    {
        // One word is enough: the thread looks at the log itself.
        let (wake, woken) = sync_channel(1);
        log.seal_aside(wake)?;
        let (signer, watched) = (Arc::downgrade(signer), Arc::downgrade(log));
        let interval = log.checkpoint_interval();
        let run = move || run(&signer, &watched, interval, &woken);
        // If there is no thread, dropping this value lets operations make checkpoints again.
        let mut sealer = Self { log: Arc::clone(log), thread: None };
        let started = Builder::new().name("bulla-seal".to_owned()).spawn(run);
        let cannot = |error| KmsError::new(Code::Io, format!("cannot start a thread: {error}"));
        sealer.thread = Some(started.map_err(cannot)?);
        Ok(sealer)
    }
}

impl Drop for CheckpointThread {
    /// Makes the checkpoint that is due, and waits for it: whoever opens the log next finds it
    /// unlocked.
    fn drop(&mut self) {
        self.log.seal_with_operations();
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is one checkpoint less.
            let _ = thread.join();
        }
    }
}

fn run<S: CheckpointSigner>(
    signer: &Weak<S>,
    log: &Weak<AuditLog>,
    interval: Duration,
    woken: &Receiver<()>,
) {
    loop {
        // Nobody speaks of entries that become due by the time that passes.
        let ended = woken.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected);
        let Some((signer, log)) = signer.upgrade().zip(log.upgrade()) else { return };
        log.settle(&*signer);
        if ended {
            return;
        }
    }
}
