//! The audit log in a keystore's folder, and the key that signs it.
//!
//! ```
//! use bulla_keystore::audit_log::{
//!     self, checkpoint_key, checkpoint_problem, ensure_log_key, find_log_key, find_untrusted,
//! };
//! use bulla_keystore::{AuditLogFolder, ErrorCode, KeystoreFolder, NewKeystore, Secrets};
//! use bulla_kms::audit_log::ProblemKind;
//!
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path().join("keystore");
//! let folder = KeystoreFolder::at(path);
//! let unlocked = folder.create(&NewKeystore::default(), &Secrets::new())?;
//! let started = unlocked.begin_audit_log()?;
//! assert!(started.folder.is_complete()?);
//! let checkpoint = started.log.newest_checkpoint().unwrap();
//! drop(started.log);
//!
//! let keystore = unlocked.open()?.keystore;
//! assert_eq!(find_log_key(&keystore)?, Some(started.key));
//! assert_eq!(find_log_key(&keystore)?, Some(ensure_log_key(&keystore)?));
//! drop(keystore);
//!
//! // A reader trusts the versions of the log's key that are not revoked.
//! let key = unlocked.audit_log_key()?;
//! assert_eq!(find_untrusted(&checkpoint, &|id| checkpoint_key(&key, id)), None);
//! let problem = find_untrusted(&checkpoint, &|_| None).unwrap();
//! assert_eq!(problem.kind, ProblemKind::UnknownKey);
//! let other = checkpoint_problem(ProblemKind::Lost, "the witness has no log".to_owned());
//! assert_eq!(other.file, problem.file);
//!
//! // A start that was interrupted before its first checkpoint, beside a keystore without a log's key.
//! # let path = temporary.path().join("audit-log");
//! let folder = AuditLogFolder::at(path);
//! folder.refuse_without_key()?;
//! drop(folder.create_or_complete(audit_log::options())?);
//! let error = folder.refuse_without_key().unwrap_err();
//! assert_eq!(error.code, ErrorCode::AuditLogUnfinished);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::{Error, ErrorCode, Result};
use crate::keys::{create_own_key, parse_constant, tenant};
use bulla_files::escape_path;
use bulla_kms::audit_log::{self, AuditLog, AuditLogOptions, Checkpoint, FindKey, Problem, ProblemKind};
use bulla_kms::{Attestation, Code, KeyId, KeyVersionId, Keystore, PublicKey, VersionState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The label of the key that signs the audit log.
pub const AUDIT_LOG_LABEL: &str = "audit-log";
/// The purpose of the key that signs the audit log.
const AUDIT_LOG_PURPOSE: &str = "audit";

/// Returns the options of a keystore's audit log: the key with the label [`AUDIT_LOG_LABEL`]
/// signs it.
pub fn options() -> AuditLogOptions {
    AuditLogOptions::default().signer(tenant(), parse_constant(AUDIT_LOG_LABEL))
}

/// Finds the key that signs the audit log.
///
/// # Errors
/// Those of [`Keystore::find`].
pub fn find_log_key(keystore: &Keystore) -> Result<Option<KeyId>> {
    Ok(keystore.find(&tenant(), &parse_constant(AUDIT_LOG_LABEL))?)
}

/// Finds the key that signs the audit log, or creates it.
///
/// # Errors
/// Those of [`Keystore::create_key`].
pub fn ensure_log_key(keystore: &Keystore) -> Result<KeyId> {
    if let Some(key) = find_log_key(keystore)? {
        return Ok(key);
    }
    let (label, purpose) = (parse_constant(AUDIT_LOG_LABEL), parse_constant(AUDIT_LOG_PURPOSE));
    Ok(create_own_key(keystore, label, purpose)?.key_id().clone())
}

/// Returns the public key of a version of the log's key, unless the version was revoked: then its
/// checkpoints no longer count.
pub fn checkpoint_key(key: &Attestation, id: &KeyVersionId) -> Option<PublicKey> {
    let version = key.versions.iter().find(|version| version.id == *id)?;
    version.public_key.clone().filter(|_| version.state != VersionState::Revoked)
}

/// Returns the problem with a checkpoint that no trusted key signed.
pub fn find_untrusted(checkpoint: &Checkpoint, keys: &FindKey<'_>) -> Option<Problem> {
    let (kind, message) = match keys(&checkpoint.key) {
        None => (
            ProblemKind::UnknownKey,
            format!("the checkpoint is signed by {}, which is not trusted", checkpoint.key),
        ),
        Some(key) if checkpoint.verify_with(&key).is_valid() => return None,
        Some(_) => (ProblemKind::BadSignature, format!("{} did not sign the checkpoint", checkpoint.key)),
    };
    Some(checkpoint_problem(kind, message))
}

/// Returns a problem with a checkpoint outside of its log.
pub fn checkpoint_problem(kind: ProblemKind, message: String) -> Problem {
    Problem::new(kind, "checkpoint".to_owned(), 1, message)
}

/// An audit log that was just started.
#[non_exhaustive]
#[derive(Debug)]
pub struct StartedAuditLog {
    /// Its folder.
    pub folder: AuditLogFolder,
    /// The log.
    pub log: Arc<AuditLog>,
    /// The key that signs it.
    pub key: KeyId,
}

/// The folder of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLogFolder(PathBuf);

/// How far the start of an audit log came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartProgress {
    /// The folder has no log.
    Absent,
    /// The log has no checkpoint: its start was interrupted.
    Unfinished,
    /// The log has a checkpoint.
    Complete,
}

impl AuditLogFolder {
    /// Names a folder. Nothing is read.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether there is a log with a checkpoint. A log without one was left behind by an
    /// interrupted start.
    ///
    /// # Errors
    /// Those of reading the log.
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.progress()? == StartProgress::Complete)
    }

    fn progress(&self) -> Result<StartProgress> {
        match audit_log::for_each_entry(&self.0, &mut |_, _| Ok(())) {
            Err(error) if error.code == Code::NotFound => Ok(StartProgress::Absent),
            Err(error) => Err(error.into()),
            Ok(report) if report.checkpoint.is_none() => Ok(StartProgress::Unfinished),
            Ok(_) => Ok(StartProgress::Complete),
        }
    }

    /// Opens the log.
    ///
    /// # Errors
    /// [`ErrorCode::AuditLogMissing`]; those of [`AuditLog::open`].
    pub fn open(&self, options: AuditLogOptions) -> Result<AuditLog> {
        AuditLog::open(&self.0, options).map_err(|error| match error.code {
            Code::NotFound => {
                let message = format!("the audit log {} is missing", escape_path(&self.0));
                Error::new(ErrorCode::AuditLogMissing, message)
            }
            _ => error.into(),
        })
    }

    /// Creates a log without a checkpoint, or opens the one that an interrupted start left behind.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if there is a complete log; those of writing.
    pub fn create_or_complete(&self, options: AuditLogOptions) -> Result<AuditLog> {
        match self.progress()? {
            StartProgress::Unfinished => Ok(AuditLog::open(&self.0, options)?),
            _ => Ok(AuditLog::create(&self.0, options)?),
        }
    }

    /// Refuses a log beside a keystore that has no key which signs it: operations would be missing
    /// from the log.
    ///
    /// # Errors
    /// [`ErrorCode::AuditLogUnfinished`], [`ErrorCode::AuditLogWithoutKey`]; those of reading the
    /// log.
    pub fn refuse_without_key(&self) -> Result<()> {
        let (code, reason) = match self.progress()? {
            StartProgress::Absent => return Ok(()),
            StartProgress::Unfinished => (ErrorCode::AuditLogUnfinished, "its creation was interrupted"),
            StartProgress::Complete => {
                (ErrorCode::AuditLogWithoutKey, "the keystore has no key that signs it")
            }
        };
        let folder = escape_path(&self.0);
        let message = format!("bulla cannot add entries to the audit log {folder}: {reason}");
        let error = Error::new(code, message);
        Err(match code {
            ErrorCode::AuditLogWithoutKey => error.hint(
                "the log belongs to another state of the keystore: restore that state, or move the log elsewhere",
            ),
            _ => error,
        })
    }
}
