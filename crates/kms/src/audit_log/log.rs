//! A log that is open for writing: it records events, makes checkpoints, and has a thread for
//! those.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::actor::Actor;
use super::checkpoint::{Checkpoint, CheckpointSigner, LogId, UnsignedCheckpoint};
use super::entry::{Entry, Header};
use super::event::{AuditEvent, AuditOperation, AuditSink, Outcome};
use super::files;
use super::files::{Lock, LogFile};
use super::options::{AuditLogOptions, Durability, Verifications};
use super::reading::{for_each_entry, verify};
use super::tree::Frontier;
use super::walk::{FileEnd, FindKey, Report, Walk, WalkedLog};
use super::writer::{Folder, LogState, Medium, OwedEntry, SyncState};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, Name};
use crate::time::Timestamp;

/// When a checkpoint is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckpointCondition {
    Always,
    /// Unless another thread has just made the one that was due.
    IfDue,
}

/// With a [`CheckpointThread`](super::CheckpointThread), the disk gets this many bytes at a time:
/// little is left to wait for when a file is full.
const FLUSH: u64 = 8 << 20;

/// An incomplete line that a crash left behind. It was removed when the log was opened.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The file.
    pub file: PathBuf,
    /// How many bytes were removed. They were never acknowledged as recorded.
    pub bytes: u64,
}

/// An append-only log of a keystore's operations: `spec/audit-log.md`.
///
/// Many threads may call it at once.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::audit_log::{AuditLog, AuditLogOptions, CheckpointThread};
/// use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
///
/// let options = AuditLogOptions::default().signer("local".parse()?, "audit-log".parse()?);
/// let log = Arc::new(AuditLog::in_memory(options)?);
/// assert!(log.is_empty() && log.folder().is_none() && log.recovered().is_none());
/// let keystore = Arc::new(KeystoreOptions::default().audit(log.clone()).in_memory()?);
/// let new = NewKey::new("local".parse()?, "audit".parse()?, Algorithm::Ed25519);
/// keystore.create_key(new.label("audit-log".parse()?))?;
///
/// // In a program that lives long:
/// let thread = CheckpointThread::start(&keystore, &log)?;
/// for entry in log.entries()? {
///     println!("{} of the log {}: {:?}", entry.number, log.id(), entry.operation);
/// }
/// drop(thread);
/// if let Some(error) = log.checkpoint_error() {
///     println!("the key {:?} signs no checkpoints: {error}", log.signer());
/// }
/// println!("{:?}", log.newest_checkpoint().map(|checkpoint| checkpoint.size));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Debug)]
pub struct AuditLog {
    options: AuditLogOptions,
    state: Mutex<LogState>,
    /// A sync has ended.
    synced: Condvar,
    /// Its holder makes a checkpoint: the newest one is made last. It is taken before `state`.
    checkpointing: Mutex<()>,
    recovered: Option<Recovered>,
}

impl AuditLog {
    /// An empty log in memory.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn in_memory(options: AuditLogOptions) -> Result<Self> {
        let id = LogId::random()?;
        let header = Header::new(id, &id.chain(), &Frontier::default());
        let stand =
            WalkedLog { log: id, chain: id.chain(), tree: Frontier::default(), report: Report::default() };
        let text = (header.to_line() + "\n").into_bytes();
        Self::new(options, Medium::Memory(text), stand, None)
    }

    /// Creates an empty log in a folder. A missing folder is created with mode 0700.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if the folder has a log; [`Code::Locked`]; errors of writing.
    pub fn create(folder: &Path, options: AuditLogOptions) -> Result<Self> {
        let part = LogFile::new(folder, 0);
        match files::parts(folder) {
            Err(error) if error.code == Code::NotFound => {}
            Ok(_) => return Err(crate::files::already_exists(folder)),
            Err(error) => return Err(error),
        }
        let id = LogId::random()?;
        let tree = Frontier::default();
        // `create_part` makes the folder if it is missing.
        let (file, length) = files::create_part(&part, &Header::new(id, &id.chain(), &tree))?;
        let stand = WalkedLog { log: id, chain: id.chain(), tree, report: Report::default() };
        let lock = Lock::take(folder)?;
        let medium = Folder::new(folder.to_owned(), part, file, length, lock);
        Self::new(options, Medium::Folder(medium), stand, None)
    }

    /// Opens a log to continue writing. It reads the log from the checkpoint in `head` on, or from
    /// the newest one of [`AuditLogOptions::known`] if that is older. The log must be undamaged and
    /// contain both. An incomplete last line, which a crash leaves behind, is removed, and this is
    /// recorded: [`AuditLog::recovered`].
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::AuditLogTooNew`]; [`Code::AuditLogCorrupt`],
    /// also if the log ends before what a checkpoint covers. Then nothing is changed. Errors of
    /// reading and writing.
    pub fn open(folder: &Path, options: AuditLogOptions) -> Result<Self> {
        files::parts(folder)?;
        let lock = Lock::take(folder)?;
        let head = files::head(folder)?;
        let id = files::read_log_id(folder)?;
        let known = options.known.iter().filter(|known| known.log == id).cloned().collect();
        let (stand, part, whole) = read_from(folder, head.clone(), known)?;
        let file = files::append_to(&part)?;
        let cannot = |error| KmsError::io(format!("cannot repair {}", part.path.display()), error);
        let length = file.metadata().map_err(cannot)?.len();
        let recovered =
            (length > whole).then(|| Recovered { file: part.path.clone(), bytes: length - whole });
        if recovered.is_some() {
            file.set_len(whole).and_then(|()| file.sync_all()).map_err(cannot)?;
        }
        // After a crash, a checkpoint's line may exist without its copy beside the entries.
        if let Some(newest) = &stand.report.checkpoint
            && head.as_ref() != Some(newest)
        {
            files::set_head(folder, newest)?;
        }
        let medium = Folder::new(folder.to_owned(), part, file, whole, lock);
        let log = Self::new(options, Medium::Folder(medium), stand, recovered)?;
        if log.recovered.is_some() {
            let actor = Actor::or_unnamed(log.options.actor.clone());
            let (operation, outcome) = (AuditOperation::Recover, Outcome::Done);
            log.record(&[AuditEvent::without_key(actor, operation, outcome)])?;
        }
        Ok(log)
    }

    fn new(
        options: AuditLogOptions,
        medium: Medium,
        stand: WalkedLog,
        recovered: Option<Recovered>,
    ) -> Result<Self> {
        let WalkedLog { log, chain, tree, report } = stand;
        let state = LogState {
            medium,
            id: log,
            chain,
            durable: tree.size(),
            tree,
            checkpointed: report.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size),
            checkpointed_at: Instant::now(),
            checkpoint: report.checkpoint,
            sync: SyncState::Idle,
            reserved: 0,
            owed: Vec::new(),
            unsynced: 0,
            checkpoint_thread: None,
            broken: None,
            checkpoint_error: None,
        };
        Ok(Self {
            options,
            state: Mutex::new(state),
            synced: Condvar::new(),
            checkpointing: Mutex::new(()),
            recovered,
        })
    }

    /// The log's number.
    pub fn id(&self) -> LogId {
        self.state().id
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.state().tree.size()
    }

    /// The log's folder; none for a log in memory.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.state().medium {
            Medium::Memory(_) => None,
            Medium::Folder(folder) => Some(folder.path.clone()),
        }
    }

    /// The newest checkpoint; none before the first one.
    pub fn newest_checkpoint(&self) -> Option<Checkpoint> {
        self.state().checkpoint.clone()
    }

    /// The tenant and the label of the key that signs checkpoints, if the log makes them by itself.
    pub fn signer(&self) -> Option<&(Name, Name)> {
        self.options.signer.as_ref()
    }

    /// Whether there is no entry yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The incomplete last line that was removed when the log was opened, if there was one.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Why the last due checkpoint could not be made; `None` if all is well. Each new entry tries
    /// again.
    pub fn checkpoint_error(&self) -> Option<KmsError> {
        self.state().checkpoint_error.clone()
    }

    /// Makes a checkpoint of all entries so far with a signature by the key's head. If no entry
    /// came after the last checkpoint, it returns that checkpoint. The checkpoint and everything
    /// that it covers are on the disk when this returns. Operations go on meanwhile.
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`](crate::Keystore::sign); errors of writing.
    pub fn checkpoint<'a>(
        &self,
        signer: &dyn CheckpointSigner,
        key: impl Into<KeyRef<'a>>,
    ) -> Result<Checkpoint> {
        self.checkpoint_if(CheckpointCondition::Always, signer, key.into())
    }

    /// Verifies the whole log as it is at the moment: see [`verify`](super::verify).
    ///
    /// # Errors
    /// Errors of reading.
    pub fn verify(&self, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
        let state = self.state();
        match &state.medium {
            Medium::Folder(folder) => {
                let path = folder.path.clone();
                drop(state);
                verify(&path, keys, known)
            }
            Medium::Memory(text) => {
                let mut walk = Walk::new(Some(keys), known.to_vec());
                walk.file("memory", &text[..], FileEnd::Last, &mut |_, _| Ok(()))?;
                Ok(walk.finish())
            }
        }
    }

    /// All entries so far, in their order.
    ///
    /// # Errors
    /// [`Code::AuditLogCorrupt`]; errors of reading.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut each = |entry: &Entry, _: &str| {
            entries.push(entry.clone());
            Ok(())
        };
        let state = self.state();
        let report = match &state.medium {
            Medium::Folder(folder) => {
                let path = folder.path.clone();
                drop(state);
                for_each_entry(&path, &mut each)?
            }
            Medium::Memory(text) => {
                let mut walk = Walk::new(None, Vec::new());
                walk.file("memory", &text[..], FileEnd::Last, &mut each)?;
                walk.finish()
            }
        };
        match report.problems.first() {
            Some(problem) => Err(KmsError::new(Code::AuditLogCorrupt, problem.message.clone())),
            None => Ok(entries),
        }
    }

    /// A panic while the lock is held can leave only the end of the file half-written, and the
    /// known length shows that.
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the first `entries` entries are on the disk. One waiting thread syncs for all of
    /// them.
    fn wait_for_disk<'a>(&'a self, mut state: MutexGuard<'a, LogState>, entries: u64) -> Result<()> {
        while state.durable < entries {
            state.check()?;
            if state.sync == SyncState::Running {
                state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Medium::Folder(folder) = &state.medium else { return Ok(()) };
            let (file, written) = (Arc::clone(&folder.file), state.tree.size());
            state.sync = SyncState::Running;
            state.unsynced = 0;
            drop(state);
            let synced = self.sync(&file);
            state = self.state();
            state.sync = SyncState::Idle;
            if synced.is_ok() {
                state.durable = state.durable.max(written);
            }
            self.synced.notify_all();
        }
        Ok(())
    }

    /// Has the disk write what was written to the file. The system tells an error once, so one that
    /// another thread's sync got counts here, too.
    fn sync(&self, file: &File) -> Result<()> {
        match file.sync_data() {
            Ok(()) => self.state().check(),
            Err(error) => Err(self.state().fail("cannot sync the audit log", error)),
        }
    }

    /// Whether a checkpoint is due.
    fn is_due(&self, state: &LogState) -> bool {
        let (open, since_last) = (state.tree.size() - state.checkpointed, state.checkpointed_at.elapsed());
        let (entries, interval) = (self.options.checkpoint_entries, self.options.checkpoint_interval);
        self.options.signer.is_some() && (open >= entries || (open > 0 && since_last >= interval))
    }
}

impl AuditSink for AuditLog {
    fn wants(&self, operation: AuditOperation) -> bool {
        operation != AuditOperation::Verify || self.options.verifications == Verifications::Recorded
    }

    fn reserve(&self) -> Result<()> {
        let mut state = self.state();
        state.check()?;
        state.append_owed()?;
        state.rotate(self.options.max_file_bytes)?;
        state.reserve()
    }

    fn release(&self) {
        let mut state = self.state();
        state.reserved = state.reserved.saturating_sub(1);
    }

    fn record(&self, events: &[AuditEvent<'_>]) -> Result<()> {
        let mut state = self.state();
        state.check()?;
        if let Err(error) = state.append_owed().and_then(|()| self.append(&mut state, events)) {
            let changes = events.iter().filter(|event| event.operation.changes_keystore());
            let owed = changes.map(OwedEntry::now).collect::<Result<Vec<_>>>()?;
            state.owed.extend(owed);
            return Err(error);
        }
        let entries = state.tree.size();
        match self.options.durability {
            Durability::Grouped => self.wait_for_disk(state, entries),
            Durability::AtCheckpoints => Ok(()),
        }
    }

    fn recorded(&self, signer: &dyn CheckpointSigner) {
        let state = self.state();
        let due = self.is_due(&state);
        if let Some(thread) = &state.checkpoint_thread {
            let wake = due || state.unsynced >= FLUSH;
            // If a word waits already, the thread has not looked yet.
            if !wake || thread.try_send(()) != Err(TrySendError::Disconnected(())) {
                return;
            }
        }
        drop(state);
        if due {
            self.make_due_checkpoint(CheckpointCondition::IfDue, signer);
        }
    }

    fn closing(&self, signer: &dyn CheckpointSigner) {
        let mut state = self.state();
        // The last chance; the callers know that these entries are missing.
        let _ = state.append_owed();
        let is_open = state.tree.size() > state.checkpointed;
        drop(state);
        if is_open {
            self.make_due_checkpoint(CheckpointCondition::Always, signer);
        }
    }
}

/// The functions that a [`CheckpointThread`] calls.
impl AuditLog {
    /// From now on, operations only wake the thread that makes checkpoints.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if there is one.
    pub(super) fn set_checkpoint_thread(&self, wake: SyncSender<()>) -> Result<()> {
        let mut state = self.state();
        if state.checkpoint_thread.is_some() {
            let message = "another thread makes the checkpoints of the audit log";
            return Err(KmsError::new(Code::AlreadyExists, message));
        }
        state.checkpoint_thread = Some(wake);
        Ok(())
    }

    /// From now on, operations make checkpoints. The thread that made them ends.
    pub(super) fn remove_checkpoint_thread(&self) {
        self.state().checkpoint_thread = None;
    }

    pub(super) fn checkpoint_interval(&self) -> Duration {
        self.options.checkpoint_interval
    }

    /// Makes a checkpoint if one is due, and has the disk write if there is much to write.
    pub(super) fn settle(&self, signer: &dyn CheckpointSigner) {
        let state = self.state();
        if self.is_due(&state) {
            drop(state);
            self.make_due_checkpoint(CheckpointCondition::IfDue, signer);
        } else if state.unsynced >= FLUSH {
            let written = state.tree.size();
            // After an error the log refuses all entries, and says why.
            let _ = self.wait_for_disk(state, written);
        }
    }

    /// Makes a checkpoint. The right to sign it is taken first: that may rotate the key, which the
    /// log records.
    fn checkpoint_if(
        &self,
        wanted: CheckpointCondition,
        signer: &dyn CheckpointSigner,
        key: KeyRef<'_>,
    ) -> Result<Checkpoint> {
        let signing = signer.checkpoint_signing_key(key)?;
        let _checkpointing = self.checkpointing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        state.check()?;
        if let Some(checkpoint) = &state.checkpoint
            && (checkpoint.size == state.tree.size()
                || (wanted == CheckpointCondition::IfDue && !self.is_due(&state)))
        {
            return Ok(checkpoint.clone());
        }
        let (log, size, root) = (state.id, state.tree.size(), state.tree.root());
        let unsigned = UnsignedCheckpoint { log, size, root, time: Timestamp::now()? };
        let signature = signing.sign_checkpoint(&unsigned)?;
        let checkpoint = unsigned.signed(signature.key, signing.public_key(), signature.bytes);
        state.append_checkpoint(&checkpoint)?;
        let place = match &state.medium {
            Medium::Memory(_) => None,
            Medium::Folder(folder) => Some((Arc::clone(&folder.file), folder.path.clone())),
        };
        state.unsynced = 0;
        drop(state);
        let mut head = Ok(());
        if let Some((file, folder)) = place {
            self.sync(&file)?;
            head = files::set_head(&folder, &checkpoint);
        }
        let mut state = self.state();
        state.durable = state.durable.max(size);
        if head.is_ok() {
            (state.checkpointed, state.checkpointed_at) = (size, Instant::now());
            state.checkpoint = Some(checkpoint.clone());
        }
        drop(state);
        self.synced.notify_all();
        head.map(|()| checkpoint)
    }

    /// Writes the entries of events.
    fn append(&self, state: &mut LogState, mut events: &[AuditEvent<'_>]) -> Result<()> {
        // A change has its place in the present file.
        let is_reserved = events.iter().any(|event| event.operation.changes_keystore());
        while !events.is_empty() {
            if !is_reserved {
                state.rotate(self.options.max_file_bytes)?;
            }
            let written = state.append_entries(events, self.options.max_file_bytes)?;
            events = &events[written..];
        }
        Ok(())
    }

    /// Makes a checkpoint with the key of the options.
    fn make_due_checkpoint(&self, wanted: CheckpointCondition, signer: &dyn CheckpointSigner) {
        let Some((tenant, label)) = &self.options.signer else { return };
        let missing = || {
            let message = format!("there is no key with the label {label}, which must sign checkpoints");
            KmsError::new(Code::KeyNotFound, message)
        };
        let made = signer
            .find_key(tenant, label)
            .and_then(|key| key.ok_or_else(missing))
            .and_then(|key| self.checkpoint_if(wanted, signer, (&key).into()));
        self.state().checkpoint_error = made.err();
    }
}

/// Walks through the log from the file that holds `head` or the newest of the known checkpoints,
/// whichever file is the older one. Returns where the log stands, its newest file, and how many
/// bytes of that are whole lines.
fn read_from(
    folder: &Path,
    head: Option<Checkpoint>,
    known: Vec<Checkpoint>,
) -> Result<(WalkedLog, LogFile, u64)> {
    let mut parts = files::parts(folder)?;
    // A checkpoint follows the last entry that it covers: it is in that entry's file or, if that
    // file was full, at the beginning of the next.
    let part_of = |covered: u64| parts.iter().rposition(|part| part.first < covered).unwrap_or(0);
    let sizes = [head.as_ref().map(|head| head.size), known.iter().map(|known| known.size).max()];
    let begin = sizes.into_iter().flatten().map(part_of).min().unwrap_or(parts.len() - 1);
    let newest = parts.pop().ok_or_else(|| files::no_log(folder))?;
    let first = parts.get(begin).unwrap_or(&newest).first;
    let known = known.into_iter().filter(|known| begin == 0 || known.size > first);
    let mut walk = Walk::new(None, head.into_iter().chain(known).collect());
    walk.begin_at(first);
    let mut each = |_: &Entry, _: &str| Ok(());
    for part in parts.iter().skip(begin) {
        walk.file(&part.name(), part.reader()?, FileEnd::Inner, &mut each)?;
    }
    let whole = walk.file(&newest.name(), newest.reader()?, FileEnd::Growing, &mut each)?;
    let stand = walk.stand().map_err(|report| damaged(folder, &newest, &report))?;
    Ok((stand, newest, whole))
}

fn damaged(folder: &Path, newest: &LogFile, report: &Report) -> KmsError {
    let (file, line, message) = match report.problems.first() {
        Some(problem) => (problem.file.clone(), problem.line, problem.message.as_str()),
        None => (newest.name(), 1, "it has no first line"),
    };
    KmsError::new(
        Code::AuditLogCorrupt,
        format!(
            "the audit log was damaged or edited: {}, line {line}: {message}; nothing is written to it: put back what is missing from a copy, or \
             keep the folder as evidence and begin another log",
            folder.join(file).display()
        ),
    )
}

/// Makes the due checkpoints of a log on a thread of its own, until it is dropped. Without one, the
/// operation after which a checkpoint is due makes it, and waits for the disk.
///
/// It also covers the last entries before a pause, and has the disk write a long file before the
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
        log.set_checkpoint_thread(wake)?;
        let (signer, watched) = (Arc::downgrade(signer), Arc::downgrade(log));
        let interval = log.checkpoint_interval();
        let run = move || run(&signer, &watched, interval, &woken);
        // If there is no thread, dropping this value lets operations make checkpoints again.
        let mut thread = Self { log: Arc::clone(log), thread: None };
        let started = Builder::new().name("bulla-checkpoint".to_owned()).spawn(run);
        let cannot = |error: std::io::Error| {
            KmsError::new(Code::Io, format!("cannot start a thread: {error}")).with_source(error)
        };
        thread.thread = Some(started.map_err(cannot)?);
        Ok(thread)
    }
}

impl Drop for CheckpointThread {
    /// Makes the checkpoint that is due, and waits for it: whoever opens the log next finds it
    /// unlocked.
    fn drop(&mut self) {
        self.log.remove_checkpoint_thread();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit_log::Actor;
    use crate::audit_log::CheckpointSigningKey;
    use crate::id::KeyId;

    /// Signs nothing.
    struct Nobody;

    impl CheckpointSigner for Nobody {
        fn find_key(&self, _tenant: &Name, _label: &Name) -> Result<Option<KeyId>> {
            Ok(None)
        }

        fn checkpoint_signing_key(&self, _key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>> {
            Err(KmsError::new(Code::KeyNotFound, "no key"))
        }
    }

    #[test]
    fn the_disk_gets_a_long_file_before_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditLogOptions::default().durability(Durability::AtCheckpoints);
        let log = AuditLog::create(folder.path(), options).unwrap();
        let actor: Actor = "a".repeat(Actor::MAX_LEN).parse().unwrap();
        let (operation, outcome) = (AuditOperation::Sign, Outcome::Done);
        let events = vec![AuditEvent::without_key(actor, operation, outcome); 1000];
        let mut on_the_disk = Vec::new();
        while on_the_disk.last().is_none_or(|durable| *durable == 0) {
            log.record(&events).unwrap();
            log.settle(&Nobody);
            on_the_disk.push(log.state().durable);
        }
        assert!(on_the_disk.len() > 1 && log.state().unsynced == 0);
        assert_eq!(on_the_disk.last(), Some(&log.len()));
    }

    /// A clock that went forward and back leaves a last checkpoint that lies ahead of it.
    #[test]
    fn a_checkpoint_is_due_by_the_time_that_passed_whatever_the_clock_says() {
        let (interval, id) = (Duration::from_nanos(1), LogId::random().unwrap());
        let tomorrow = Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + 86_400_000);
        let key = "local/audit/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1".parse().unwrap();
        let public_key = crate::PublicKey::from_bytes(
            crate::Algorithm::Ed25519,
            &[
                0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07,
                0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07,
                0x51, 0x1a,
            ],
        );
        let unsigned = UnsignedCheckpoint {
            log: id,
            size: 0,
            root: Frontier::<super::super::tree::Blake3>::default().root(),
            time: tomorrow.unwrap(),
        };
        let checkpoint = Some(unsigned.signed(key, &public_key.unwrap(), vec![0; 64]));
        let report = Report { checkpoint, ..Report::default() };
        let stand = WalkedLog { log: id, chain: id.chain(), tree: Frontier::default(), report };
        let options = AuditLogOptions::default()
            .signer("local".parse().unwrap(), "audit".parse().unwrap())
            .checkpoint_interval(interval);
        let log = AuditLog::new(options, Medium::Memory(Vec::new()), stand, None).unwrap();
        let (actor, operation, outcome) = (Actor::or_unnamed(None), AuditOperation::Sign, Outcome::Done);
        log.record(&[AuditEvent::without_key(actor, operation, outcome)]).unwrap();
        while log.state().checkpointed_at.elapsed() < interval {}
        assert!(log.is_due(&log.state()));
    }

    #[test]
    fn an_error_that_another_threads_sync_got_is_the_error_of_this_sync() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::create(folder.path(), AuditLogOptions::default()).unwrap();
        let file = File::open(folder.path().join("00000000000000000000.jsonl")).unwrap();
        log.sync(&file).unwrap();
        log.state().fail("cannot sync the audit log", std::io::Error::other("the disk failed"));
        assert_eq!(log.sync(&file).unwrap_err().code, Code::Io);
    }
}
