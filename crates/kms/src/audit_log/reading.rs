//! Reading a log, and proving that it is whole.

use std::path::Path;

use super::checkpoint::Checkpoint;
use super::entry::Entry;
use super::files::{self, Lock};
use super::walk::{End, FindKey, Problem, ProblemKind, Report, Walk};
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
