//! The recorded events: who did what with which key, and with which result.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bulla_blake3::Hash;

use super::signer::CheckpointSigner;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyRef;
use crate::policy::KeyChange;
use crate::verdict::Verdict;

/// An actor: 1 to 128 bytes of UTF-8 without control characters, line separators and marks that reorder text.
/// It is a name, never a secret: the log contains it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

thread_local! {
    /// On whose behalf this thread acts.
    static ACTING: RefCell<Option<Actor>> = const { RefCell::new(None) };
}

impl Actor {
    /// The most bytes of an actor's name.
    pub const MAX: usize = 128;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// On whose behalf this thread acts; `-` when nobody said so.
    pub fn current() -> Self {
        Self::or_nobody(Self::said())
    }

    /// On whose behalf this thread acts, if somebody said so.
    pub(crate) fn said() -> Option<Self> {
        ACTING.with_borrow(Clone::clone)
    }

    /// The actor, or `-`.
    pub(crate) fn or_nobody(actor: Option<Self>) -> Self {
        actor.unwrap_or_else(|| Self("-".into()))
    }

    /// Runs `run` on this actor's behalf: entries that a keystore records meanwhile on this thread name the actor.
    pub fn acting<T>(&self, run: impl FnOnce() -> T) -> T {
        /// Puts the former actor back, after a panic too.
        struct Former(Option<Actor>);
        impl Drop for Former {
            fn drop(&mut self) {
                ACTING.set(self.0.take());
            }
        }
        let _former = Former(ACTING.replace(Some(self.clone())));
        run()
    }
}

impl FromStr for Actor {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > Self::MAX || text.chars().any(encoding::is_deceptive) {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "an actor's name has 1 to 128 bytes, without control characters and without marks that reorder text",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

serde_as_text!(Actor);

/// What was done, as a word that never changes once released.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A key was made.
    Create,
    /// A key came from elsewhere.
    Import,
    /// A private key was exported, wrapped.
    Export,
    /// A key got its next version.
    Rotate,
    /// Something was signed.
    Sign,
    /// A signature was verified.
    Verify,
    /// A shared key was decapsulated from its ciphertext.
    Decapsulate,
    /// What is known of a key was signed.
    Attest,
    /// A key got another label, or none.
    Label,
    /// A key was disabled.
    Disable,
    /// A key was enabled.
    Enable,
    /// The least version that may be used was set.
    MinimumVersion,
    /// The rotation policy was set.
    RotationPolicy,
    /// Whether the key may be destroyed without a waiting time was set.
    DeletionAllowed,
    /// A version was revoked.
    Revoke,
    /// A version was destroyed.
    DestroyVersion,
    /// The destruction of a key was scheduled.
    ScheduleDestruction,
    /// A destruction was called off.
    Restore,
    /// A key was destroyed.
    Destroy,
    /// The store was copied.
    Backup,
    /// The store got another secret that opens it.
    Reseal,
    /// The store got another rollback guard, or none.
    Guard,
    /// The log itself was opened after a crash, and an incomplete line was removed.
    Recover,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Create,
        Self::Import,
        Self::Export,
        Self::Rotate,
        Self::Sign,
        Self::Verify,
        Self::Decapsulate,
        Self::Attest,
        Self::Label,
        Self::Disable,
        Self::Enable,
        Self::MinimumVersion,
        Self::RotationPolicy,
        Self::DeletionAllowed,
        Self::Revoke,
        Self::DestroyVersion,
        Self::ScheduleDestruction,
        Self::Restore,
        Self::Destroy,
        Self::Backup,
        Self::Reseal,
        Self::Guard,
        Self::Recover,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Import => "import",
            Self::Export => "export",
            Self::Rotate => "rotate",
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Decapsulate => "decapsulate",
            Self::Attest => "attest",
            Self::Label => "label",
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::MinimumVersion => "minimum_version",
            Self::RotationPolicy => "rotation_policy",
            Self::DeletionAllowed => "deletion_allowed",
            Self::Revoke => "revoke",
            Self::DestroyVersion => "destroy_version",
            Self::ScheduleDestruction => "schedule_destruction",
            Self::Restore => "restore",
            Self::Destroy => "destroy",
            Self::Backup => "backup",
            Self::Reseal => "reseal",
            Self::Guard => "guard",
            Self::Recover => "recover",
        }
    }
}

impl From<&KeyChange> for Operation {
    fn from(change: &KeyChange) -> Self {
        match change {
            KeyChange::Label(_) => Self::Label,
            KeyChange::Disable => Self::Disable,
            KeyChange::Enable => Self::Enable,
            KeyChange::MinimumVersion(_) => Self::MinimumVersion,
            KeyChange::Rotation(_) => Self::RotationPolicy,
            KeyChange::DeletionAllowed(_) => Self::DeletionAllowed,
            KeyChange::Revoke(_) => Self::Revoke,
            KeyChange::DestroyVersion(_) => Self::DestroyVersion,
            KeyChange::ScheduleDestruction(_) => Self::ScheduleDestruction,
            KeyChange::Restore => Self::Restore,
            KeyChange::Destroy => Self::Destroy,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was done.
    Done,
    /// A verification: its verdict.
    Verdict(Verdict),
    /// It was refused, or failed.
    Failed(Code),
}

impl Outcome {
    /// As a word: `ok`, the verdict, or the error's code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Verdict(Verdict::Valid) => "valid",
            Self::Verdict(Verdict::Invalid) => "invalid",
            Self::Verdict(Verdict::Unusable) => "unusable",
            Self::Failed(code) => code.as_str(),
        }
    }
}

/// One thing that was done with a keystore.
#[derive(Clone, Debug)]
pub struct AuditEvent<'a> {
    /// On whose behalf.
    pub who: Actor,
    /// What.
    pub operation: Operation,
    /// With which key, or version of a key.
    pub key: Option<KeyRef<'a>>,
    /// How it ended.
    pub outcome: Outcome,
    /// The BLAKE3 digest of the message that was signed or verified.
    pub digest: Option<Hash>,
}

/// The receiver of a keystore's reports on its operations: [`KeystoreOptions::audit`](crate::KeystoreOptions::audit).
pub trait AuditSink: fmt::Debug + Send + Sync {
    /// Whether events of this operation are wanted at all. It is asked before each operation, so that what nobody
    /// wants costs nothing.
    fn wants(&self, operation: Operation) -> bool;

    /// Takes events. When this returns an error, so do the operations, and what they had made (signatures, say) is
    /// withheld: nothing is done unrecorded. A change to a key that was already written stands.
    ///
    /// # Errors
    /// Those of writing.
    fn record(&self, events: &[AuditEvent<'_>]) -> Result<()>;

    /// Called after events were taken, with the keystore as what can sign for the sink. No lock is held.
    fn recorded(&self, signer: &dyn CheckpointSigner) {
        let _ = signer;
    }
}
