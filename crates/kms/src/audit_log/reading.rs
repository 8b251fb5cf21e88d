//! Reading and verifying a log.

use std::io::{BufRead, Read as _};
use std::path::Path;

use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::entry::{Entry, Header, Line, LineContent, MAX_LINE};
use super::files::{self, Lock};
use super::tree::{Frontier, Sha256, TreeHash as _};
use super::walk::{FileEnd, FindKey, Problem, ProblemKind, Report, Walk};
use super::witness::WitnessKey;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::time::Timestamp;

/// Verifies a whole log: that no entry that a checkpoint covers was altered, removed or moved.
///
/// `keys` gives the public keys whose checkpoints count. `known` are checkpoints that were kept
/// elsewhere: the log must still contain them. The newest checkpoint, which is beside the entries,
/// always counts among them. But anyone who can write to the folder can put both back to an older
/// state together; only a checkpoint that was kept elsewhere shows that.
///
/// Another process may write to the log meanwhile.
///
/// # Errors
/// [`Code::NotFound`], [`Code::AuditLogTooNew`]; errors of reading. Problems of the log itself are
/// in the report, and not an error.
pub fn verify(folder: &Path, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
    walk(folder, Some(keys), known, &mut |_, _| Ok(()))
}

/// Calls `each` for every entry of a log, in order, with its line. It returns the problems of the
/// log, but does not check the signatures of checkpoints.
///
/// # Errors
/// The errors of [`verify`], and of `each`.
pub fn for_each_entry(folder: &Path, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<Report> {
    walk(folder, None, &[], each)
}

/// Up to `limit` entries with their lines, from the entry with the number `from` on. Only the files
/// from that entry's on are read, and no further than needed. This proves nothing: [`verify`] does.
///
/// # Errors
/// [`Code::NotFound`], [`Code::AuditLogTooNew`]; [`Code::AuditLogCorrupt`] for a line that cannot
/// be read, or an entry that is missing; errors of reading.
pub fn read_entry_page(folder: &Path, from: u64, limit: usize) -> Result<Vec<(Entry, String)>> {
    let parts = files::parts(folder)?;
    let begin = parts.iter().rposition(|part| part.first <= from).unwrap_or(0);
    let mut entries = Vec::new();
    for part in &parts[begin..] {
        if entries.len() >= limit {
            break;
        }
        let damaged = |error: KmsError| match error.code {
            Code::AuditLogCorrupt => KmsError::new(
                Code::AuditLogCorrupt,
                format!("the audit log, {}: {}", part.name(), error.message),
            ),
            _ => error,
        };
        // An older file may have been moved elsewhere, but nothing within what is read.
        page_of(part.reader()?, from.max(parts[begin].first), limit, &mut entries).map_err(damaged)?;
    }
    Ok(entries)
}

/// Appends the entries of one file.
fn page_of(
    mut reader: impl BufRead,
    from: u64,
    limit: usize,
    entries: &mut Vec<(Entry, String)>,
) -> Result<()> {
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
        let not_text = |_| KmsError::new(Code::AuditLogCorrupt, "a line is not UTF-8");
        let text = std::str::from_utf8(&bytes).map_err(not_text)?;
        if std::mem::take(&mut is_first) {
            Header::parse(text)?;
            continue;
        }
        if number_of(text).is_some_and(|number| number < from) {
            continue;
        }
        let LineContent::Entry(entry) = Line::parse(text)?.content else { continue };
        if entry.number != entries.last().map_or(from, |(last, _)| last.number + 1) {
            let message = format!("entry {} is in the wrong place", entry.number);
            return Err(KmsError::new(Code::AuditLogCorrupt, message));
        }
        entries.push((entry, text.to_owned()));
    }
    Ok(())
}

/// Calls `each` for the lines of the entries from `from` to `to`, without that one. Nothing but
/// their numbers is checked.
///
/// # Errors
/// [`Code::AuditLogCorrupt`] if one of them is missing; errors of reading.
pub(super) fn leaf_lines(folder: &Path, from: u64, to: u64, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let parts = files::parts(folder)?;
    let begin = parts.iter().rposition(|part| part.first <= from).unwrap_or(0);
    let mut next = from;
    for part in &parts[begin..] {
        let mut reader = part.reader()?;
        let mut line = Vec::new();
        while next < to {
            line.clear();
            let unreadable = |error| KmsError::io("cannot read the audit log", error);
            (&mut reader).take(MAX_LINE as u64).read_until(b'\n', &mut line).map_err(unreadable)?;
            if line.pop_if(|byte| *byte == b'\n').is_none() {
                break;
            }
            if std::str::from_utf8(&line).ok().and_then(number_of) == Some(next) {
                each(&line);
                next += 1;
            }
        }
    }
    if next >= to {
        return Ok(());
    }
    Err(KmsError::new(
        Code::AuditLogCorrupt,
        format!("the audit log in {} has no entry {next}", folder.display()),
    ))
}

/// The tree of the first `size` entries as witnesses know it.
///
/// # Errors
/// Those of [`leaf_lines`].
pub(super) fn sha256_tree(folder: &Path, size: u64) -> Result<Frontier<Sha256>> {
    let mut tree: Frontier<Sha256> = Frontier::default();
    leaf_lines(folder, 0, size, &mut |line| tree.push(Sha256::leaf(line)))?;
    Ok(tree)
}

/// Verifies the newest checkpoint that witnesses cosigned: that the log has the entries that it
/// covers, that a trusted key signed it, and that `required` of the witnesses did. `None` if there
/// is none, and none is required.
///
/// The log itself is what [`verify`] verifies.
///
/// # Errors
/// Errors of reading. Problems are in the report, and not an error.
pub fn verify_cosigned(
    folder: &Path,
    keys: &FindKey<'_>,
    witnesses: &[WitnessKey],
    required: usize,
) -> Result<Option<CosignedReport>> {
    let problem =
        |kind, message: String| Problem { kind, file: "cosigned".to_owned(), line: 1, entry: None, message };
    let found = match files::read_cosigned_checkpoint(folder) {
        Err(error) if error.code == Code::AuditLogCorrupt => {
            let problems =
                vec![problem(ProblemKind::Malformed, "it is not a checkpoint for witnesses".to_owned())];
            return Ok(Some(CosignedReport { problems, ..CosignedReport::default() }));
        }
        found => found?,
    };
    let Some(checkpoint) = found else {
        let message = || "there is no checkpoint that witnesses cosigned".to_owned();
        let problems = || vec![problem(ProblemKind::Removed, message())];
        return Ok(
            (required > 0).then(|| CosignedReport { problems: problems(), ..CosignedReport::default() })
        );
    };
    let mut cosigned = CosignedReport { size: checkpoint.size(), ..CosignedReport::default() };
    let problems = &mut cosigned.problems;
    match sha256_tree(folder, checkpoint.size()) {
        Ok(tree)
            if checkpoint.log() == files::read_log_id(folder)? && tree.root() == checkpoint.head.root => {}
        Ok(_) => problems.push(problem(
            ProblemKind::Altered,
            "the log does not have the entries that witnesses saw".to_owned(),
        )),
        Err(error) if error.code == Code::AuditLogCorrupt => {
            problems.push(problem(
                ProblemKind::Truncated,
                format!("witnesses saw more entries: {}", error.message),
            ));
        }
        Err(error) => return Err(error),
    }
    match checkpoint_key(folder, checkpoint.size())? {
        Some(id) if keys(&id).is_some_and(|key| checkpoint.is_signed_by(&key)) => {}
        _ => problems.push(problem(
            ProblemKind::BadSignature,
            "it is not signed by the key of the log's own checkpoint of as many entries".to_owned(),
        )),
    }
    let cosignatures =
        witnesses.iter().filter_map(|key| Some((key.name().to_owned(), checkpoint.cosigned_by(key)?)));
    cosigned.witnesses = cosignatures.collect();
    if cosigned.witnesses.len() < required {
        let message = format!(
            "{} of {required} required witnesses cosigned the checkpoint of {} entries",
            cosigned.witnesses.len(),
            checkpoint.size()
        );
        cosigned.problems.push(problem(ProblemKind::BadSignature, message));
    }
    Ok(Some(cosigned))
}

/// The result of verifying a checkpoint that witnesses cosigned.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CosignedReport {
    /// How many entries it covers.
    pub size: u64,
    /// The witnesses whose cosignatures are valid, by their names, and when they cosigned by their
    /// own clocks.
    pub witnesses: Vec<(String, Timestamp)>,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// The key version that signed the log's own checkpoint of the first `size` entries.
fn checkpoint_key(folder: &Path, size: u64) -> Result<Option<KeyVersionId>> {
    let mut found = None;
    let parts = files::parts(folder)?;
    let begin = parts.iter().rposition(|part| part.first < size).unwrap_or(0);
    // A checkpoint is in the file of the last entry that it covers or, if that file was full, at
    // the beginning of the next.
    for part in parts[begin..].iter().take(2) {
        for line in part.reader()?.lines() {
            let line = match line {
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => continue,
                line => line.map_err(|error| KmsError::io("cannot read the audit log", error))?,
            };
            if !line.starts_with("{\"checkpoint\"") {
                continue;
            }
            let Ok(Line { content: LineContent::Checkpoint(note), .. }) = Line::parse(&line) else {
                continue;
            };
            let checkpoint = note.parse::<Checkpoint>().ok().filter(|checkpoint| checkpoint.size == size);
            found = checkpoint.map(|checkpoint| checkpoint.key).or(found);
        }
    }
    Ok(found)
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
    // Read the checkpoint first: the entries that it covers were written before it.
    let head = files::head(folder);
    let is_growing = Lock::is_taken(folder);
    let parts = files::parts(folder)?;
    let mut pins = known.to_vec();
    pins.extend(head.as_ref().ok().cloned().flatten());
    let mut walk = Walk::new(keys, pins);
    for (index, part) in parts.iter().enumerate() {
        let end = match index + 1 == parts.len() {
            true if is_growing => FileEnd::Growing,
            true => FileEnd::Last,
            false => FileEnd::Inner,
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
        Err(error) if error.code == Code::AuditLogCorrupt => {
            report.problems.push(problem(ProblemKind::Altered, "it is not a checkpoint"));
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(report)
}
