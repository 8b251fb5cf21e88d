//! The audit log: who did what with which key, when, and how it ended; append-only, chained, and sealed by checkpoints.
//!
//! Every line carries a hash of all lines before it, every entry is a leaf of a Merkle tree in the shape of RFC 9162, and
//! from time to time a key of the keystore signs the tree's root. So [`verify`] finds any entry that was altered, removed or
//! moved, and an [`InclusionProof`] shows one entry to who does not have the log. Secrets and messages never stand in it:
//! of a message its digest does. The format and what it does not protect stand in `spec/audit-log.md`.
//!
//! ```
//! use std::sync::Arc;
//! use bulla_kms::audit_log::{Actor, AuditLog, AuditLogOptions};
//! use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
//!
//! let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
//! let keystore = KeystoreOptions { audit: Some(log.clone()), ..KeystoreOptions::default() }.in_memory();
//! let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
//! "alice".parse::<Actor>()?.acting(|| keystore.sign(&key, b"a message"))?;
//! log.checkpoint(&keystore, &key)?;
//! let report = log.verify(&|id| keystore.public_key(id).ok(), &[])?;
//! assert_eq!((report.entries, report.sealed, report.problems), (2, 2, vec![]));
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

mod checkpoint;
mod entry;
mod event;
mod files;
mod log;
mod proof;
mod tree;
mod walk;

use std::path::Path;

pub use self::checkpoint::Checkpoint;
pub(crate) use self::checkpoint::SIGNED_PREFIX;
pub use self::entry::{Entry, LogId, Word};
pub use self::event::{Actor, AuditEvent, AuditSink, Operation, Outcome};
pub use self::log::{AuditLog, AuditLogOptions, Durability, Recovered, Verifications};
pub use self::proof::{ConsistencyProof, InclusionProof, prove_consistency, prove_inclusion};
pub use self::walk::{FindKey, Problem, ProblemKind, Report};

use self::files::Lock;
use self::walk::{End, Walk};
use crate::error::{Code, Result};

/// Proves all of a log: that nothing in it was altered, removed or moved since it was written, as far as checkpoints seal it.
///
/// `keys` gives the public keys whose checkpoints count. `known` are checkpoints that were kept elsewhere: the log must
/// still have them. The newest one, which lies beside the entries, is always among those; who can write to the folder can
/// put both back to an older state together, and only a checkpoint that was kept elsewhere shows that.
///
/// The log may be written to meanwhile.
///
/// # Errors
/// [`Code::NotFound`], [`Code::LogTooNew`]; those of reading. What is wrong with the log is no error but in the report.
pub fn verify(folder: &Path, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
    walk(folder, Some(keys), known, &mut |_, _| Ok(()))
}

/// Hands every entry of a log to `each`, in their order, with its line; gives what is wrong with the log but for the signatures of
/// checkpoints, which are not looked at.
///
/// # Errors
/// Those of [`verify`], and of `each`.
pub fn read(folder: &Path, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<Report> {
    walk(folder, None, &[], each)
}

fn walk(
    folder: &Path,
    keys: Option<&FindKey<'_>>,
    known: &[Checkpoint],
    each: &mut dyn FnMut(&Entry, &str) -> Result<()>,
) -> Result<Report> {
    // The checkpoint first, since the entries that it seals are written before it is.
    let head = files::head(folder);
    let is_growing = Lock::is_taken(folder);
    let parts = files::parts(folder)?;
    let mut pins = known.to_vec();
    pins.extend(head.as_ref().ok().cloned().flatten());
    let mut walk = Walk::new(keys, pins);
    for (index, part) in parts.iter().enumerate() {
        let end = match index + 1 == parts.len() {
            true if is_growing => End::Growing,
            true => End::Last,
            false => End::Inner,
        };
        walk.file(&part.name(), part.reader()?, end, each)?;
    }
    let mut report = walk.finish();
    let problem = |kind, message: &str| Problem {
        kind,
        file: "head".to_owned(),
        line: 1,
        entry: None,
        message: message.to_owned(),
    };
    match head {
        Ok(None) if report.checkpoint.is_some() => {
            report
                .problems
                .push(problem(ProblemKind::Removed, "the newest checkpoint is not beside the entries"));
        }
        Err(error) if error.code == Code::LogDamaged => {
            report.problems.push(problem(ProblemKind::Altered, "it is no checkpoint"));
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(report)
}

/// Reads bytes as a file of a log; for the fuzzers.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut walk = Walk::new(None, Vec::new());
    let mut whole = true;
    let read = walk.file("fuzz", bytes, End::Last, &mut |_, line| {
        whole &= bytes.windows(line.len()).any(|window| window == line.as_bytes());
        Ok(())
    });
    assert!(whole, "an entry is a line of the file");
    if read.is_ok() {
        let _ = walk.finish();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(checkpoint) = text.parse::<Checkpoint>() {
            assert_eq!(checkpoint.to_string(), text);
        }
        if let Ok(proof) = serde_json::from_str::<InclusionProof>(text) {
            let _ = proof.entry();
        }
    }
}
