//! How a log is written: when entries are on the disk, which operations are recorded, and when
//! checkpoints are made.

use std::time::Duration;

use super::actor::Actor;
use super::checkpoint::Checkpoint;
use crate::id::Name;

/// When an entry is on the disk.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before its operation returns. Operations that end at the same time share one `fdatasync`.
    Grouped,
    /// With the next checkpoint: an operation does not wait for a disk. If the machine stops
    /// without warning, entries since the last checkpoint may be lost. If only the process stops,
    /// none is lost.
    AtCheckpoints,
}

/// Whether verifications are recorded. Anyone can request them, and there are many.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verifications {
    /// They are.
    Recorded,
    /// They are not.
    LeftOut,
}

/// How a log is written.
///
/// ```
/// use std::time::Duration;
///
/// use bulla_kms::audit_log::{AuditLogOptions, Durability, Verifications};
///
/// let options = AuditLogOptions::default()
///     .durability(Durability::AtCheckpoints)
///     .verifications(Verifications::Recorded)
///     .signer("local".parse()?, "audit-log".parse()?)
///     .checkpoint_entries(10_000)
///     .checkpoint_interval(Duration::from_secs(60))
///     .max_file_bytes(64 << 20)
///     .known(Vec::new())
///     .actor(Some("backup job".parse()?));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct AuditLogOptions {
    /// When an entry is on the disk.
    pub durability: Durability,
    /// Whether verifications are recorded.
    pub verifications: Verifications,
    /// The tenant and the label of the key that signs checkpoints; with none, only
    /// [`AuditLog::checkpoint`](super::AuditLog::checkpoint) makes them.
    pub signer: Option<(Name, Name)>,
    /// A checkpoint is made after this many entries.
    pub checkpoint_entries: u64,
    /// A checkpoint is also made with the first entry that comes at least this long after the last
    /// checkpoint.
    pub checkpoint_interval: Duration,
    /// When a file has reached this many bytes, the log continues in a new one.
    pub max_file_bytes: u64,
    /// Checkpoints that were kept elsewhere. [`AuditLog::open`](super::AuditLog::open) refuses a
    /// log with the number of one of them that lacks what it covers. Those of other logs, and those
    /// in files before the newest one's, are not looked at. The signatures are the caller's to
    /// check.
    pub known: Vec<Checkpoint>,
    /// The actor of the log's own entry, which says that a crash left an incomplete line behind.
    pub actor: Option<Actor>,
}

impl Default for AuditLogOptions {
    /// Entries are on the disk before an operation returns; verifications are not recorded; a
    /// checkpoint comes after 1024 entries or a minute; files have 64 MiB; no key signs.
    fn default() -> Self {
        Self {
            durability: Durability::Grouped,
            verifications: Verifications::LeftOut,
            signer: None,
            checkpoint_entries: 1024,
            checkpoint_interval: Duration::from_secs(60),
            max_file_bytes: 64 << 20,
            known: Vec::new(),
            actor: None,
        }
    }
}

impl AuditLogOptions {
    /// Sets when an entry is on the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether verifications are recorded.
    #[must_use]
    pub fn verifications(mut self, verifications: Verifications) -> Self {
        self.verifications = verifications;
        self
    }

    /// Sets the tenant and the label of the key that signs checkpoints.
    #[must_use]
    pub fn signer(mut self, tenant: Name, label: Name) -> Self {
        self.signer = Some((tenant, label));
        self
    }

    /// Sets after how many entries a checkpoint is made.
    #[must_use]
    pub fn checkpoint_entries(mut self, checkpoint_entries: u64) -> Self {
        self.checkpoint_entries = checkpoint_entries;
        self
    }

    /// Sets the time after which a checkpoint is made with the next entry.
    #[must_use]
    pub fn checkpoint_interval(mut self, checkpoint_interval: Duration) -> Self {
        self.checkpoint_interval = checkpoint_interval;
        self
    }

    /// Sets after how many bytes the log continues in a new file.
    #[must_use]
    pub fn max_file_bytes(mut self, max_file_bytes: u64) -> Self {
        self.max_file_bytes = max_file_bytes;
        self
    }

    /// Sets the checkpoints that were kept elsewhere.
    #[must_use]
    pub fn known(mut self, known: Vec<Checkpoint>) -> Self {
        self.known = known;
        self
    }

    /// Sets the actor of the log's own entry.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<Option<Actor>>) -> Self {
        self.actor = actor.into();
        self
    }
}
