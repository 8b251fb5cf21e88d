//! Starts an audit log. This may be interrupted at any moment: first the log is created, then the
//! key that signs it, which the log records, and then the first checkpoint.

use super::place::{parse_name, tenant};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::file_name::shown;
use bulla_kms::Code;
use bulla_kms::audit_log::{self, AuditLog, AuditLogOptions};
use std::path::Path;

/// The label of the key that signs the audit log.
pub(super) const LOG_LABEL: &str = "audit-log";

pub(super) fn log_options() -> Result<AuditLogOptions> {
    let signer = Some((tenant()?, parse_name(LOG_LABEL)?));
    Ok(AuditLogOptions { signer, ..AuditLogOptions::default() })
}

/// How complete the log in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// The folder has no log.
    No,
    /// The log has no checkpoint: its start was interrupted.
    Half,
    /// The log has a checkpoint.
    Whole,
}

pub(super) fn begun(folder: &Path) -> Result<Begun> {
    match audit_log::for_each_entry(folder, &mut |_, _| Ok(())) {
        Err(error) if error.code == Code::NotFound => Ok(Begun::No),
        Err(error) => Err(error.into()),
        Ok(report) if report.checkpoint.is_none() => Ok(Begun::Half),
        Ok(_) => Ok(Begun::Whole),
    }
}

/// A new log, or the one that an interrupted start left behind.
pub(super) fn create_or_complete(folder: &Path) -> Result<AuditLog> {
    if begun(folder)? == Begun::Half {
        let log = AuditLog::open(folder, log_options()?)?;
        note_recovered(&log);
        return Ok(log);
    }
    Ok(AuditLog::create(folder, log_options()?)?)
}

/// An error if there is a log, for a keystore without a key that signs it: operations would be
/// missing from the log.
pub(super) fn refuse_without_key(folder: &Path) -> Result<()> {
    let (message, hint) = match begun(folder)? {
        Begun::No => return Ok(()),
        Begun::Half => ("its creation was interrupted", "complete it with `bulla audit-log init`"),
        Begun::Whole => (
            "the keystore has no key that signs it",
            "the log belongs to another state of the keystore: restore that state, or move the log elsewhere",
        ),
    };
    let message = format!("bulla cannot add entries to the audit log {}: {message}", shown(folder));
    Err(Error::new("audit_log_unfinished", message).hint(hint))
}

pub(super) fn note_recovered(log: &AuditLog) {
    if let Some(recovered) = log.recovered() {
        note_line(&format!(
            "the audit log ended in an incomplete line ({} bytes), left by a crash; bulla removed it and recorded that in the log",
            recovered.bytes
        ));
    }
}
