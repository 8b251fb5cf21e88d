//! Reading and verifying a log.

use std::path::Path;

use super::checkpoint::Checkpoint;
use super::entry::Entry;
use super::files::{self, Lock};
use super::walk::{End, FindKey, Problem, ProblemKind, Report, Walk};
use crate::error::{Code, Result};

/// Verifies a whole log: that no entry that a checkpoint seals was altered, removed or moved.
///
/// `keys` gives the public keys whose checkpoints count. `known` are checkpoints that were kept elsewhere: the log must still
/// contain them. The newest checkpoint, which is beside the entries, always counts among them. But anyone who can write to the
/// folder can put both back to an older state together; only a checkpoint that was kept elsewhere shows that.
///
/// Another process may write to the log meanwhile.
///
/// # Errors
/// [`Code::NotFound`], [`Code::LogTooNew`]; errors of reading. Problems of the log itself are in the report, and not an error.
pub fn verify(folder: &Path, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
    walk(folder, Some(keys), known, &mut |_, _| Ok(()))
}

/// Calls `each` for every entry of a log, in order, with its line. It returns the problems of the log, but does not check the signatures of
/// checkpoints.
///
/// # Errors
/// The errors of [`verify`], and of `each`.
pub fn read(folder: &Path, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<Report> {
    walk(folder, None, &[], each)
}

fn walk(
    folder: &Path,
    keys: Option<&FindKey<'_>>,
    known: &[Checkpoint],
    each: &mut dyn FnMut(&Entry, &str) -> Result<()>,
) -> Result<Report> {
    // Read the checkpoint first: the entries that it seals were written before it.
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
            report.problems.push(problem(ProblemKind::Removed, "the newest checkpoint's file is missing"));
        }
        Err(error) if error.code == Code::LogDamaged => {
            report.problems.push(problem(ProblemKind::Altered, "it is not a checkpoint"));
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(report)
}
