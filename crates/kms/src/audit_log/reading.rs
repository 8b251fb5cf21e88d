//! Reading and verifying a log.

use std::io::{BufRead, Read as _};
use std::path::Path;

use super::checkpoint::Checkpoint;
use super::entry::{Content, Entry, Header, Line, MAX_LINE};
use super::files::{self, Lock};
use super::walk::{End, FindKey, Problem, ProblemKind, Report, Walk};
use crate::error::{Code, KmsError, Result};

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

/// Up to `limit` entries, from the entry with the number `from` on. Only the files from that entry's on are read, and no further than
/// needed. This proves nothing: [`verify`] does.
///
/// # Errors
/// [`Code::NotFound`], [`Code::LogTooNew`]; [`Code::LogDamaged`] for a line that is none, or an entry that is missing; errors of reading.
pub fn page(folder: &Path, from: u64, limit: usize) -> Result<Vec<Entry>> {
    let parts = files::parts(folder)?;
    let begin = parts.iter().rposition(|part| part.first <= from).unwrap_or(0);
    let mut entries = Vec::new();
    for part in &parts[begin..] {
        if entries.len() >= limit {
            break;
        }
        let damaged = |error: KmsError| match error.code {
            Code::LogDamaged => {
                KmsError::new(Code::LogDamaged, format!("the audit log, {}: {}", part.name(), error.message))
            }
            _ => error,
        };
        page_of(part.reader()?, from, limit, &mut entries).map_err(damaged)?;
    }
    Ok(entries)
}

/// Appends the entries of one file.
fn page_of(mut reader: impl BufRead, from: u64, limit: usize, entries: &mut Vec<Entry>) -> Result<()> {
    let mut bytes = Vec::new();
    let mut is_first = true;
    while entries.len() < limit {
        bytes.clear();
        let unreadable = |error| KmsError::io("cannot read the audit log", error);
        (&mut reader).take(MAX_LINE as u64).read_until(b'\n', &mut bytes).map_err(unreadable)?;
        if bytes.pop_if(|byte| *byte == b'\n').is_none() {
            // The end, or a line that is being written.
            return Ok(());
        }
        let not_text = |_| KmsError::new(Code::LogDamaged, "a line is not UTF-8");
        let text = std::str::from_utf8(&bytes).map_err(not_text)?;
        if std::mem::take(&mut is_first) {
            Header::parse(text)?;
            continue;
        }
        if number_of(text).is_some_and(|number| number < from) {
            continue;
        }
        let Content::Entry(entry) = Line::parse(text)?.content else { continue };
        if entries.last().is_some_and(|last| entry.number != last.number + 1) {
            let message = format!("entry {} is in the wrong place", entry.number);
            return Err(KmsError::new(Code::LogDamaged, message));
        }
        entries.push(entry);
    }
    Ok(())
}

/// The number of an entry's line, which begins with it.
fn number_of(line: &str) -> Option<u64> {
    line.strip_prefix("{\"n\":")?.split(',').next()?.parse().ok()
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
