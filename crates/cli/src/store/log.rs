//! The audit log of a keystore.

use super::access::Access;
use super::keys::create_key;
use super::place::{LOG_FOLDER, parse_name, tenant};
use super::recording::{self, Begun, LOG_LABEL, begun};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::file_name::shown;
use bulla_kms::audit_log::{AuditLog, Checkpoint, FindKey, Problem, ProblemKind, WitnessReport, Witnesses};
use bulla_kms::{Attestation, KeyId, KeyVersionId, Keystore, PublicKey, VersionState};
use std::path::PathBuf;
use std::sync::Arc;

/// The purpose of the key that signs the audit log.
const LOG_PURPOSE: &str = "audit";

impl Access {
    /// Starts an audit log, or completes one whose start was interrupted. Returns its folder and
    /// the key that signs it.
    pub(crate) fn begin_log(&self) -> Result<(PathBuf, KeyId)> {
        let keystore = self.open_unrecorded()?;
        let folder = self.folder.join(LOG_FOLDER);
        let log = Arc::new(recording::create_or_complete(&folder)?);
        let keystore = keystore.audited(log.clone());
        let label = parse_name(LOG_LABEL)?;
        let key = match keystore.find(&tenant()?, &label)? {
            Some(key) => key,
            None => create_key(&keystore, label, parse_name(LOG_PURPOSE)?)?.key_id().clone(),
        };
        log.checkpoint(&keystore, &key)?;
        Ok((folder, key))
    }

    /// Seals the audit log by a checkpoint.
    pub(crate) fn seal_log(&self) -> Result<Checkpoint> {
        self.with_log(|log, keystore, key| log.checkpoint(keystore, key))
    }

    /// Has witnesses cosign the audit log.
    pub(crate) fn witness_log(&self, witnesses: &mut Witnesses) -> Result<WitnessReport> {
        self.with_log(|log, keystore, key| witnesses.witness(log, keystore, key))
    }

    fn with_log<T>(
        &self,
        run: impl FnOnce(&AuditLog, &Keystore, &KeyId) -> bulla_kms::Result<T>,
    ) -> Result<T> {
        let keystore = self.open_unrecorded()?;
        let log = self.log(&keystore)?.ok_or_else(no_log)?;
        let keystore = keystore.audited(log.clone());
        let key = keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.ok_or_else(no_log)?;
        Ok(run(&log, &keystore, &key)?)
    }

    /// The key that signs the audit log.
    pub(crate) fn log_key(&self) -> Result<Attestation> {
        let keys = self.snapshot()?;
        let key = keys.find(&tenant()?, &parse_name(LOG_LABEL)?).ok_or_else(no_log)?;
        Ok(keys.attest(&key)?)
    }

    /// Starts a log for a keystore that was restored from a backup, if the original had a log: a
    /// backup contains the log's key, but not the log.
    pub(super) fn begin_log_after_restoring(&self, keystore: Keystore) -> Result<()> {
        let has_key = keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.is_some();
        // The keystore is locked as long as it is open.
        drop(keystore);
        // A log in this folder belongs to the lost keystore, and continues.
        if has_key && begun(&self.folder.join(LOG_FOLDER))? != Begun::Whole {
            let (folder, _) = self.begin_log()?;
            note_line(&format!(
                "a backup contains no audit log: bulla started a new one in {}; keep the old log as a proof of its entries",
                shown(&folder)
            ));
        }
        Ok(())
    }
}

pub(super) fn no_log() -> Error {
    Error::new("not_found", "the keystore has no audit log").hint("start one with `bulla audit-log init`")
}

/// The public key of a version of the log's key, if its checkpoints count.
pub(crate) fn log_key_version(key: &Attestation, id: &KeyVersionId) -> Option<PublicKey> {
    let version = key.versions.iter().find(|version| version.id == *id)?;
    (version.state != VersionState::Revoked).then(|| version.public_key.clone())
}

/// The problem with a checkpoint that no trusted key signed.
pub(crate) fn distrusted(checkpoint: &Checkpoint, keys: &FindKey<'_>) -> Option<Problem> {
    let (kind, message) = match keys(&checkpoint.key) {
        None => (
            ProblemKind::UnknownKey,
            format!("the checkpoint is signed by {}, which is not trusted", checkpoint.key),
        ),
        Some(key) if checkpoint.verify_with(&key).is_valid() => return None,
        Some(_) => (ProblemKind::BadSignature, format!("{} did not sign the checkpoint", checkpoint.key)),
    };
    Some(found(kind, message))
}

/// A problem with a checkpoint outside of its log.
pub(crate) fn found(kind: ProblemKind, message: String) -> Problem {
    Problem { kind, file: "checkpoint".to_owned(), line: 1, entry: None, message }
}
