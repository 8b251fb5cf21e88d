//! One node: it follows the store, and knows how current it is.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bulla_kms::audit_log::AuditLog;
use bulla_kms::{BootInstant, Code, Keystore, KmsError, Result, StoreLease};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::timeout;

use super::answers::PendingRow;
use super::checkpoints::CheckpointExchange;
use super::presence::NodePresence;
use super::revocations::{self, Revocation};
use super::table::{EtcdLease, Table, open_table};
use crate::access::ExpiryClock;
use crate::config::EtcdConfig;
use crate::error::{ApiError, ApiErrorCode};

/// How often a node asks for the newest state. In between, the keystore is told of changed keys,
/// and asks nobody.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The shortest time between two questions, so that callers cannot make a node ask all the time.
const MIN_SYNC_INTERVAL: Duration = Duration::from_millis(5);
/// How often expired revocations are removed.
const REVOCATION_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long answers to requests with an idempotency key are kept at the least, and an hour at the
/// most.
const ANSWER_LEASE_TIME: Duration = Duration::from_secs(25 * 60 * 60);

/// The service that a node notifies of changes by other nodes.
pub(crate) trait ClusterListener: Send + Sync {
    /// Other nodes revoked these tokens.
    fn revoked(&self, revocations: Vec<Revocation>);

    /// A root key of tokens changed.
    fn roots_changed(&self);

    /// So many nodes are there, this one included.
    fn nodes_counted(&self, number: u32);
}

/// How current a node is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    /// The newest change that the node knows.
    pub(crate) revision: u64,
    /// How long ago it knew that there was no newer one.
    pub(crate) age: Duration,
    /// Whether that is too long ago to use private keys.
    pub(crate) stale: bool,
    /// How many nodes were there when this node counted them last.
    pub(crate) nodes: u32,
}

/// A node among those that share the keystore.
pub(crate) struct ClusterNode {
    settings: EtcdConfig,
    lease: Arc<StoreLease>,
    listener: OnceLock<Weak<dyn ClusterListener>>,
    /// The change up to which the node knows everything: keys and revocations.
    synced: watch::Sender<u64>,
    nodes: AtomicU32,
    attached: ArcSwapOption<AttachedKeystore>,
    failures: Counter,
}

/// A node's connection to the store while the keystore is open.
pub(super) struct AttachedKeystore {
    /// The node's name among the nodes. It has another one after each start, and after each
    /// unsealing.
    pub(super) name: String,
    pub(super) keystore: Weak<Keystore>,
    /// The node's audit log, if it keeps one.
    log: Option<Weak<AuditLog>>,
    pub(super) table: Table,
    /// Has the node ask for the newest state at once.
    wake: SyncSender<()>,
    /// The time after which etcd forgets answers, and when it was agreed.
    answers: Mutex<Option<(EtcdLease, Instant)>>,
    /// Rows that etcd did not take, and takes later.
    pub(super) pending: Mutex<Vec<PendingRow>>,
}

/// The state of the thread that follows the store.
#[derive(Default)]
struct FollowerState {
    /// The revision of etcd up to which revocations were read, and the change that the node had
    /// when it read them.
    read: (i64, Option<u64>),
    roots: Option<[u8; 32]>,
    presence: NodePresence,
    checkpoints: CheckpointExchange,
    swept: Option<Instant>,
    ends: ExpiryClock,
    trouble: Option<Code>,
}

/// Why a node asks for the newest state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SyncCause {
    /// The interval has passed.
    Timer,
    /// A watch announces something, or a caller wants to see a change.
    Notified,
}

impl ClusterNode {
    /// A node that is not attached to a keystore yet.
    pub(crate) fn new(settings: &EtcdConfig) -> Self {
        Self {
            settings: settings.clone(),
            lease: Arc::new(StoreLease::new(settings.key_use_lease())),
            listener: OnceLock::new(),
            synced: watch::Sender::new(0),
            nodes: AtomicU32::new(1),
            attached: ArcSwapOption::empty(),
            failures: Counter::default(),
        }
    }

    /// Sets the service that is notified of changes.
    pub(crate) fn set_listener(&self, listener: Weak<dyn ClusterListener>) {
        // A node has one service.
        let _ = self.listener.set(listener);
    }

    /// The lease that limits the use of private keys.
    pub(crate) fn lease(&self) -> Arc<StoreLease> {
        Arc::clone(&self.lease)
    }

    /// Reads what the other nodes keep, and follows the store from now on, until
    /// [`ClusterNode::detach`] or until the keystore is closed.
    ///
    /// # Errors
    /// Those of etcd; those of reading certificates and the password; [`Code::RandomUnavailable`];
    /// a thread cannot be started.
    pub(crate) fn attach(
        self: &Arc<Self>,
        keystore: &Arc<Keystore>,
        log: Option<&Arc<AuditLog>>,
    ) -> Result<()> {
        let (attached, woken) = self.connect(keystore, log)?;
        let mut known = FollowerState::default();
        self.synced.send_replace(0);
        self.sync(&attached, keystore, &mut known, SyncCause::Notified)?;
        // The thread keeps neither of them alive.
        let (cluster, follow) = (Arc::downgrade(self), Arc::downgrade(&attached));
        let follow_store = move || follow_store(&cluster, &follow, &woken, known);
        std::thread::Builder::new()
            .name("bulla-cluster".to_owned())
            .spawn(follow_store)
            .map_err(|error| KmsError::new(Code::Io, format!("cannot start a thread: {error}")))?;
        self.attached.store(Some(attached));
        Ok(())
    }

    /// Connects to the store. Returns also the channel that wakes the thread that follows it.
    ///
    /// # Errors
    /// Those of [`ClusterNode::attach`], except that etcd is not asked for anything yet.
    fn connect(
        &self,
        keystore: &Arc<Keystore>,
        log: Option<&Arc<AuditLog>>,
    ) -> Result<(Arc<AttachedKeystore>, Receiver<()>)> {
        let table = open_table(&self.settings)?;
        // A capacity of one is enough: one notice covers any number of changes.
        let (wake, woken) = sync_channel(1);
        // The keystore itself learns of changed keys. These two need more.
        table.notify(revocations::REVOCATION_FOLDER, wake.clone());
        let roots_changed = wake.clone();
        keystore.set_change_listener(move |change| {
            if change.token_roots_changed {
                // If the channel is full, a notice is waiting there.
                let _ = roots_changed.try_send(());
            }
        });
        let (answers, pending) = (Mutex::default(), Mutex::default());
        let mut name = [0; 8];
        getrandom::fill(&mut name)
            .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
        let (name, unsealed, log) = (hex::encode(name), Arc::downgrade(keystore), log.map(Arc::downgrade));
        let attached =
            Arc::new(AttachedKeystore { name, keystore: unsealed, log, table, wake, answers, pending });
        Ok((attached, woken))
    }

    /// Stops following the store.
    pub(crate) fn detach(&self) {
        if let Some(attached) = self.attached.swap(None) {
            // The channel may be full: then the thread wakes anyway.
            let _ = attached.wake.try_send(());
        }
    }

    /// Reads the newest state from the store, and records it.
    fn sync(
        &self,
        attached: &AttachedKeystore,
        keystore: &Keystore,
        known: &mut FollowerState,
        cause: SyncCause,
    ) -> Result<()> {
        let now = BootInstant::now();
        keystore.catch_up()?;
        let revision = keystore.revision();
        let new = match cause {
            // Each revocation is followed by a change. So there is none that counts without one,
            // and etcd is spared the question.
            SyncCause::Timer if known.read.1 == Some(revision) => Vec::new(),
            _ => Self::read_new_revocations(attached, keystore, known, revision)?,
        };
        let listener = self.listener.get().and_then(Weak::upgrade);
        if let Some(listener) = &listener {
            if !new.is_empty() {
                listener.revoked(new);
            }
            let roots = keystore.token_roots();
            if known.roots.replace(roots).is_some_and(|before| before != roots) {
                listener.roots_changed();
            }
        }
        self.lease.renew(now);
        self.synced.send_if_modified(|synced| std::mem::replace(synced, revision.max(*synced)) < revision);
        if let Some(number) = known.presence.announce(&attached.table, &attached.name)? {
            self.nodes.store(number, Ordering::Relaxed);
            if let Some(listener) = &listener {
                listener.nodes_counted(number);
            }
        }
        if let Some(log) = attached.log.as_ref().and_then(Weak::upgrade) {
            known.checkpoints.exchange(&attached.table, &attached.name, keystore, &log)?;
        }
        attached.write_pending()?;
        let passed = known.ends.passed();
        if known.swept.is_none_or(|swept| swept.elapsed() >= REVOCATION_SWEEP_INTERVAL) {
            revocations::remove_expired(keystore, &attached.table, passed)?;
            known.swept = Some(Instant::now());
        }
        Ok(())
    }

    /// The revocations since the last time. They are written before the change that announces them,
    /// so the node must have that change, `revision`, before it reads them.
    fn read_new_revocations(
        attached: &AttachedKeystore,
        keystore: &Keystore,
        known: &mut FollowerState,
        revision: u64,
    ) -> Result<Vec<Revocation>> {
        let (rows, read) = attached.table.read(revocations::REVOCATION_FOLDER, known.read.0)?;
        let new = rows.iter().map(|row| Revocation::read(keystore, row)).collect::<Result<_>>()?;
        known.read = (read, Some(revision));
        Ok(new)
    }

    /// Records how reading the newest state ended, and logs when that changes. Returns the pause
    /// until the next time.
    fn record_outcome(&self, outcome: Result<()>, known: &mut FollowerState) -> Duration {
        let trouble = outcome.as_ref().err().map(|error| error.code);
        if let Err(error) = outcome {
            self.failures.inc();
            // Changes may have been missed.
            known.read.1 = None;
            if known.trouble != trouble {
                let code = error.code.as_str();
                tracing::warn!(code, "the node cannot follow the store: {}", error.message);
            }
        } else if known.trouble.is_some() {
            tracing::info!("the node follows the store again");
        }
        known.trouble = trouble;
        if trouble.is_some() { RETRY_INTERVAL } else { SYNC_INTERVAL.min(self.settings.key_use_lease() / 4) }
    }

    /// How current the node is; `None` while the service is sealed.
    pub(crate) fn freshness(&self) -> Option<Freshness> {
        let keystore = self.attached()?.keystore.upgrade()?;
        let age = self.lease.age()?;
        let (revision, stale) = (keystore.revision(), !self.lease.lasts());
        Some(Freshness { revision, age, stale, nodes: self.nodes.load(Ordering::Relaxed) })
    }

    pub(super) fn attached(&self) -> Option<Arc<AttachedKeystore>> {
        self.attached.load_full()
    }

    /// Waits until the node knows everything up to a change.
    ///
    /// # Errors
    /// It takes too long.
    pub(super) async fn wait_for_revision(&self, revision: u64) -> crate::error::Result<()> {
        let mut synced = self.synced.subscribe();
        let behind = |known: u64| {
            let message = format!("the request wants revision {revision}, and this node is at {known}");
            ApiError::new(ApiErrorCode::RevisionUnavailable, message)
        };
        let enough = |synced: &u64| *synced >= revision;
        if enough(&synced.borrow()) {
            return Ok(());
        }
        let Some(attached) = self.attached() else {
            // The service is sealed, and the answer will say so.
            return Ok(());
        };
        let asking = async {
            loop {
                // If the channel is full, the node asks soon anyway.
                let _ = attached.wake.try_send(());
                if let Ok(Ok(_)) = timeout(4 * MIN_SYNC_INTERVAL, synced.wait_for(enough)).await {
                    return;
                }
            }
        };
        timeout(self.settings.revision_wait(), asking).await.map_err(|_| behind(*self.synced.borrow()))
    }

    /// Refuses a token on all nodes. It waits for etcd.
    ///
    /// # Errors
    /// Those of etcd. Then this node alone may refuse it.
    pub(crate) fn revoke(&self, revocation: &Revocation) -> Result<()> {
        let sealed = || KmsError::new(Code::ShuttingDown, "the service is sealed");
        let attached = self.attached().ok_or_else(sealed)?;
        let keystore = attached.keystore.upgrade().ok_or_else(sealed)?;
        revocation.publish(&keystore, &attached.table)
    }

    /// Puts the node's numbers as they are now into a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let failures = self.failures.clone();
        registry.register(
            "bulla_store_sync_failures",
            "How often the node could not follow the store",
            failures,
        );
        let Some(Freshness { revision, age, stale, nodes }) = self.freshness() else { return };
        let number = Gauge::<i64>::default();
        number.set(i64::try_from(revision).unwrap_or(i64::MAX));
        registry.register("bulla_store_revision", "The newest change that the node knows", number);
        let seconds = Gauge::<f64, AtomicU64>::default();
        seconds.set(age.as_secs_f64());
        let help = "How long ago the node knew the store's newest state";
        registry.register("bulla_store_view_age_seconds", help, seconds);
        let is_stale = Gauge::<i64>::default();
        is_stale.set(i64::from(stale));
        registry.register("bulla_key_use_lease_expired", "1 while the node uses no private keys", is_stale);
        let number = Gauge::<i64>::default();
        number.set(i64::from(nodes));
        registry.register("bulla_cluster_nodes", "How many nodes share the store", number);
    }
}

impl AttachedKeystore {
    /// The lease after which etcd forgets answers. Answers of an hour share one.
    ///
    /// # Errors
    /// Those of etcd.
    pub(super) fn answers_lease(&self) -> Result<EtcdLease> {
        let mut lease = locked(&self.answers);
        if let Some((lease, agreed)) = *lease
            && agreed.elapsed() < Duration::from_secs(60 * 60)
        {
            return Ok(lease);
        }
        let agreed = Instant::now();
        Ok(lease.insert((self.table.lease(ANSWER_LEASE_TIME)?, agreed)).0)
    }

    /// Forgets the lease: etcd may have ended it.
    pub(super) fn forget_lease(&self) {
        *locked(&self.answers) = None;
    }

    /// Writes what etcd did not take before.
    ///
    /// # Errors
    /// Those of etcd.
    fn write_pending(&self) -> Result<()> {
        loop {
            let Some(next) = locked(&self.pending).last().cloned() else { return Ok(()) };
            next.write(&self.table)?;
            locked(&self.pending).retain(|other| *other != next);
        }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the store until the keystore is closed.
fn follow_store(
    cluster: &Weak<ClusterNode>,
    attached: &Weak<AttachedKeystore>,
    woken: &Receiver<()>,
    mut known: FollowerState,
) {
    let mut wait = SYNC_INTERVAL;
    loop {
        let cause = match woken.recv_timeout(wait) {
            Ok(()) => SyncCause::Notified,
            Err(RecvTimeoutError::Timeout) => SyncCause::Timer,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some((cluster, attached)) = cluster.upgrade().zip(attached.upgrade()) else { return };
        let Some(keystore) = attached.keystore.upgrade() else { return };
        let outcome = cluster.sync(&attached, &keystore, &mut known, cause);
        drop(keystore);
        let failed = outcome.is_err();
        wait = cluster.record_outcome(outcome, &mut known);
        // A pause follows a failure, even if a watch or a caller wakes the node.
        std::thread::sleep(if failed { wait } else { MIN_SYNC_INTERVAL });
    }
}

impl fmt::Debug for ClusterNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNode").field("endpoints", &self.settings.endpoints).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "etcd"))]
mod tests;
