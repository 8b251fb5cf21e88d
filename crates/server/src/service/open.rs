//! An open keystore, and what opens it.

use std::path::PathBuf;
use std::sync::Arc;

use bulla_kms::audit_log::{AuditLog, CheckpointThread, Durability};
use bulla_kms::batcher::{Batcher, BatcherOptions};
use bulla_kms::metrics::Metrics;
use bulla_kms::{Keystore, Result, SecretString};

use crate::config::Config;
use crate::witness::Witnessing;

/// A keystore and its audit log, as a [`KeystoreSource`] opens them.
#[derive(Debug)]
pub struct OpenKeystore {
    /// The keystore. It records in the log, if there is one.
    pub keystore: Keystore,
    /// The audit log, and when its entries are on the disk.
    pub audit: Option<(Arc<AuditLog>, Durability)>,
}

/// Opens the keystore, at the start and at each unsealing.
pub trait KeystoreSource: Send + Sync {
    /// Whether [`KeystoreSource::open`] needs a passphrase that the service was not given.
    fn needs_passphrase(&self) -> bool;

    /// Opens the keystore, by `passphrase` or by what the service was given. Operations are counted
    /// in `metrics`.
    ///
    /// # Errors
    /// Those of [`Keystore::open`](bulla_kms::Keystore::open), and of opening the audit log.
    fn open(&self, passphrase: Option<SecretString>, metrics: &Arc<Metrics>) -> Result<OpenKeystore>;

    /// The file with the revocation ids of tokens that are refused, which the service reads at its
    /// start and writes. With none, revocations are forgotten when the service ends.
    fn revocations(&self) -> Option<PathBuf> {
        None
    }
}

/// An open keystore, with a batcher for each thread that serves.
#[derive(Debug)]
pub(crate) struct UnsealedService {
    /// It makes the last checkpoint that is due when it is dropped: before the keystore, which
    /// signs it.
    _sealer: Option<CheckpointThread>,
    pub(crate) keystore: Arc<Keystore>,
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// Whether computing a batch waits for the disk.
    pub(crate) waits_for_disk: bool,
    batchers: Vec<Batcher>,
    _witnessing: Option<Witnessing>,
}

impl UnsealedService {
    pub(crate) fn new(open: OpenKeystore, threads: usize, config: &Config) -> Result<Self> {
        let keystore = Arc::new(open.keystore);
        let options = BatcherOptions::default();
        let batchers = (0..threads).map(|_| Batcher::without_threads(Arc::clone(&keystore), &options));
        let batchers = batchers.collect::<Result<_>>()?;
        let waits_for_disk = matches!(open.audit, Some((_, Durability::Grouped)));
        let audit = open.audit.map(|(log, _)| log);
        let witnessing = match &audit {
            Some(log) => Witnessing::start(config, &keystore, log)?,
            None => None,
        };
        // A batch that is computed must not wait for the disk because a checkpoint is due.
        let sealer = audit.as_ref().map(|log| CheckpointThread::start(&keystore, log)).transpose()?;
        Ok(Self { _sealer: sealer, keystore, audit, waits_for_disk, batchers, _witnessing: witnessing })
    }

    /// The batcher of one thread.
    pub(super) fn batcher(&self, thread: usize) -> &Batcher {
        &self.batchers[thread]
    }
}
