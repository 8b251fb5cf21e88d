//! Walks through a log from its first line, and finds alterations.

use std::io::{BufRead, Read as _};

use bulla_blake3::Hash;
use serde::Serialize;

use super::checkpoint::{Checkpoint, LogId};
use super::entry::{Entry, Header, Line, LineContent, MAX_LINE};
use super::proof::InclusionProof;
use super::tree;
use super::tree::Frontier;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::public_key::PublicKey;

/// The most problems that a report lists.
const MAX_PROBLEMS: usize = 1000;

/// A kind of problem with a log, as one of a fixed set of words.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The content was altered.
    Altered,
    /// Something that was written is missing.
    Removed,
    /// A line is in the wrong place: moved, repeated or inserted.
    OutOfPlace,
    /// A line is not a line of a log.
    Malformed,
    /// The last line is incomplete: the writer crashed, or somebody cut the file.
    Torn,
    /// The log ends before a known checkpoint.
    Truncated,
    /// The key that a checkpoint names did not make its signature.
    BadSignature,
    /// A checkpoint is signed by a key that the caller does not know.
    UnknownKey,
    /// A log that a checkpoint covers is nowhere.
    Lost,
    /// Two checkpoints of one log contradict each other.
    Forked,
}

impl ProblemKind {
    /// The word, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Removed => "removed",
            Self::OutOfPlace => "out of place",
            Self::Malformed => "malformed",
            Self::Torn => "torn",
            Self::Truncated => "truncated",
            Self::BadSignature => "bad signature",
            Self::UnknownKey => "unknown key",
            Self::Lost => "lost",
            Self::Forked => "forked",
        }
    }
}

/// One problem.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its kind.
    pub kind: ProblemKind,
    /// The file, by its name in the log's folder.
    pub file: String,
    /// The line in the file, from 1.
    pub line: u64,
    /// The first entry concerned, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// An explanation for people.
    pub message: String,
}

impl Problem {
    /// A problem in this line of a file. Entries are not concerned, or not known to be.
    pub fn new(kind: ProblemKind, file: String, line: u64, message: String) -> Self {
        Self { kind, file, line, entry: None, message }
    }
}

/// The result of a verification.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many entries were read.
    pub entries: u64,
    /// How many valid checkpoints were read.
    pub checkpoints: u64,
    /// How many entries the last of these checkpoints covers. Later entries are chained but not
    /// signed yet: anyone who can write to the file could have invented them.
    pub signed_entries: u64,
    /// The problems; at most a thousand are listed.
    pub problems: Vec<Problem>,
    /// The newest valid checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

/// Finds the public key of the key version that signed a checkpoint, if the caller trusts that key
/// version.
pub type FindKey<'a> = dyn Fn(&KeyVersionId) -> Option<PublicKey> + 'a;

/// The state of a walk.
pub(super) struct Walk<'a> {
    /// `None`: signatures are not checked.
    keys: Option<&'a FindKey<'a>>,
    /// Checkpoints that the log must contain.
    pins: Vec<(Checkpoint, Met)>,
    log: Option<LogId>,
    /// The number that the next entry must have; `None` after an unreadable line.
    next: Option<u64>,
    /// The links that the next line may follow: the previous line's link as written and, if that
    /// was wrong, as it should be.
    chain: Vec<Hash>,
    /// `None` while it is unknown because of an earlier problem.
    tree: Option<Frontier>,
    file: String,
    line: u64,
    report: Report,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Met {
    Yes,
    No,
}

/// The kind of a file, which tells what its end means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileEnd {
    /// Other files follow.
    Inner,
    /// The newest file of a log that no process is writing to.
    Last,
    /// The newest file of a log that a process is writing to.
    Growing,
}

/// The state of a log after a walk without problems.
pub(super) struct WalkedLog {
    pub(super) log: LogId,
    pub(super) chain: Hash,
    pub(super) tree: Frontier,
    pub(super) report: Report,
}

impl<'a> Walk<'a> {
    pub(super) fn new(keys: Option<&'a FindKey<'a>>, pins: Vec<Checkpoint>) -> Self {
        Self {
            keys,
            pins: pins.into_iter().map(|pin| (pin, Met::No)).collect(),
            log: None,
            next: Some(0),
            chain: Vec::new(),
            tree: Some(Frontier::default()),
            file: String::new(),
            line: 0,
            report: Report::default(),
        }
    }

    /// Reads a file of the log and returns how many of its bytes are whole lines. `each` gets every
    /// entry, parsed and as its line.
    ///
    /// # Errors
    /// Errors of reading; [`Code::AuditLogTooNew`].
    pub(super) fn file(
        &mut self,
        name: &str,
        mut reader: impl BufRead,
        end: FileEnd,
        each: &mut dyn FnMut(&Entry, &str) -> Result<()>,
    ) -> Result<u64> {
        name.clone_into(&mut self.file);
        self.line = 0;
        let mut whole = 0;
        loop {
            let mut bytes = Vec::new();
            let unreadable = |error| KmsError::io(format!("cannot read {name} of the audit log"), error);
            (&mut reader).take(MAX_LINE as u64).read_until(b'\n', &mut bytes).map_err(unreadable)?;
            if bytes.is_empty() {
                break;
            }
            self.line += 1;
            if bytes.pop_if(|byte| *byte == b'\n').is_none() {
                self.torn(end, bytes.len());
                break;
            }
            whole += bytes.len() as u64 + 1;
            match std::str::from_utf8(&bytes) {
                Ok(text) if self.line == 1 => self.header(text)?,
                Ok(text) => self.text(text, each)?,
                Err(_) => self.unreadable("the line is not UTF-8"),
            }
        }
        if self.line == 0 {
            self.problem(ProblemKind::Malformed, None, "the file is empty");
        }
        Ok(whole)
    }

    /// The end of a file without a line feed.
    fn torn(&mut self, end: FileEnd, bytes: usize) {
        match end {
            // The writer is in the middle of a line.
            FileEnd::Growing => {}
            FileEnd::Last if bytes < MAX_LINE => self.problem(
                ProblemKind::Torn,
                self.next,
                "the last line is incomplete: the program crashed while it wrote the line, or somebody cut the file",
            ),
            FileEnd::Last | FileEnd::Inner => self.unreadable("a line is too long or incomplete"),
        }
    }

    fn problem(&mut self, kind: ProblemKind, entry: Option<u64>, message: impl Into<String>) {
        if self.report.problems.len() < MAX_PROBLEMS {
            let (file, line, message) = (self.file.clone(), self.line, message.into());
            self.report.problems.push(Problem { kind, file, line, entry, message });
        }
        // The tree is unknown from here on, until the next file's header states it.
        self.tree = None;
    }

    fn unreadable(&mut self, why: &str) {
        self.problem(ProblemKind::Malformed, self.next, why);
        self.next = None;
        self.chain.clear();
    }

    fn header(&mut self, text: &str) -> Result<()> {
        let header = match Header::parse(text) {
            Ok(header) => header,
            Err(error) if error.code == Code::AuditLogTooNew => return Err(error),
            Err(error) => {
                self.unreadable(&error.message);
                return Ok(());
            }
        };
        let Some(tree) = header.tree() else {
            self.unreadable("the first line contradicts itself");
            return Ok(());
        };
        let (first, chain) = (header.first, header.chain());
        match self.log {
            None if first == 0 && chain != header.log.chain() => {
                self.problem(ProblemKind::Altered, Some(0), "the first line was altered");
            }
            Some(log) if log != header.log => {
                self.problem(ProblemKind::OutOfPlace, Some(first), "the file belongs to another log");
            }
            _ => {}
        }
        match self.next {
            Some(next) if first > next => self.gap(next, first),
            Some(next) if first < next => {
                let message = format!("the file begins with entry {first}, which an earlier file contains");
                self.problem(ProblemKind::OutOfPlace, Some(first), message);
            }
            _ => {}
        }
        if self.log.is_some() && !self.chain.is_empty() && !self.chain.contains(&chain) {
            let message = "the end of the previous file, or the first line of this file, was altered";
            self.problem(ProblemKind::Altered, Some(first), message);
        }
        if self.tree.as_ref().is_some_and(|known| *known != tree) {
            let message = "the first line does not agree with the entries before it";
            self.problem(ProblemKind::Altered, Some(first), message);
        }
        self.log = Some(self.log.unwrap_or(header.log));
        (self.next, self.chain, self.tree) = (Some(first), vec![chain], Some(tree));
        Ok(())
    }

    fn text(&mut self, text: &str, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<()> {
        let line = match Line::parse(text) {
            Ok(line) => line,
            Err(error) => {
                self.unreadable(&error.message);
                return Ok(());
            }
        };
        let body = tree::body(line.body.as_bytes());
        let links: Vec<_> = self.chain.iter().map(|chain| tree::link(chain, &body)).collect();
        let follows = links.is_empty() || links.contains(&line.link);
        match &line.content {
            LineContent::Entry(entry) => {
                if self.entry(entry, follows) == EntryPosition::Elsewhere {
                    // The lines before and after it still follow each other.
                    return Ok(());
                }
                self.report.entries += 1;
                if let Some(tree) = &mut self.tree {
                    tree.push(tree::leaf(text.as_bytes()));
                }
                each(entry, text)?;
            }
            LineContent::Checkpoint(note) => self.checkpoint(note, follows),
        }
        self.chain = vec![line.link];
        if !follows {
            self.chain.extend(links);
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, follows: bool) -> EntryPosition {
        let number = entry.number;
        match self.next {
            Some(next) if number > next => self.gap(next, number),
            Some(next) if number < next => {
                let message = format!("entry {number} is in the place of entry {next}");
                self.problem(ProblemKind::OutOfPlace, Some(number), message);
                return EntryPosition::Elsewhere;
            }
            _ if !follows => {
                let message = format!("entry {number} was altered, or a checkpoint before it was removed");
                self.problem(ProblemKind::Altered, Some(number), message);
            }
            _ => {}
        }
        self.next = number.checked_add(1);
        EntryPosition::Here
    }

    fn gap(&mut self, next: u64, number: u64) {
        let message = match number - next {
            1 => format!("entry {next} is missing"),
            _ => format!("entries {next} to {} are missing", number - 1),
        };
        self.problem(ProblemKind::Removed, Some(next), message);
    }

    fn checkpoint(&mut self, note: &str, follows: bool) {
        if !follows {
            let message = "the checkpoint was altered, or a line before it is missing";
            return self.problem(ProblemKind::Altered, self.next, message);
        }
        let Ok(checkpoint) = note.parse::<Checkpoint>() else {
            return self.problem(ProblemKind::Malformed, self.next, "the checkpoint is malformed");
        };
        if let Some(keys) = self.keys {
            match keys(&checkpoint.key) {
                None => {
                    let message =
                        format!("the checkpoint is signed by {}, which is an unknown key", checkpoint.key);
                    return self.problem(ProblemKind::UnknownKey, self.next, message);
                }
                Some(key) if !checkpoint.verify_with(&key).is_valid() => {
                    let message = format!("the checkpoint is not signed by {}", checkpoint.key);
                    return self.problem(ProblemKind::BadSignature, self.next, message);
                }
                Some(_) => {}
            }
        }
        if self.log.is_some_and(|log| log != checkpoint.log) {
            return self.problem(ProblemKind::OutOfPlace, self.next, "the checkpoint belongs to another log");
        }
        let Some(tree) = &self.tree else { return };
        if (tree.size(), tree.root()) != (checkpoint.size, checkpoint.root) {
            let since = self.report.signed_entries;
            let message = format!(
                "entries from {since} on are not those that the checkpoint signs: some were altered, and the chain after \
                 them was made anew"
            );
            return self.problem(ProblemKind::Altered, Some(since), message);
        }
        self.accept(checkpoint);
    }

    /// Takes a valid checkpoint.
    fn accept(&mut self, checkpoint: Checkpoint) {
        for (pin, met) in &mut self.pins {
            if *pin == checkpoint {
                *met = Met::Yes;
            }
        }
        self.report.checkpoints += 1;
        self.report.signed_entries = checkpoint.size;
        self.report.checkpoint = Some(checkpoint);
    }

    /// The report, after the last file.
    pub(super) fn finish(mut self) -> Report {
        self.look_for_missed_pins();
        self.report
    }

    fn look_for_missed_pins(&mut self) {
        let entries = self.next.unwrap_or(self.report.entries);
        let missed = self.pins.iter().filter(|(_, met)| *met == Met::No);
        let missed: Vec<_> = missed.map(|(pin, _)| pin.size).collect();
        for size in missed {
            if size > entries {
                let message = match size - entries {
                    1 => format!("the log ends before entry {entries}, which a checkpoint signs"),
                    _ => format!(
                        "the log ends before entries {entries} to {}, which a checkpoint signs",
                        size - 1
                    ),
                };
                self.problem(ProblemKind::Truncated, Some(entries), message);
            } else if self.report.problems.is_empty() {
                let message = format!("the log does not contain the known checkpoint of {size} entries");
                self.problem(ProblemKind::Removed, None, message);
            }
        }
    }

    /// The state of the log for a writer that continues it, or the report if there are problems.
    pub(super) fn stand(mut self) -> std::result::Result<WalkedLog, Box<Report>> {
        self.look_for_missed_pins();
        match (self.log, self.chain.first().copied(), self.tree) {
            (Some(log), Some(chain), Some(tree)) if self.report.problems.is_empty() => {
                Ok(WalkedLog { log, chain, tree, report: self.report })
            }
            _ => Err(Box::new(self.report)),
        }
    }

    /// Begins at a file in the middle of a log. The file's first line gives the state before it.
    pub(super) fn begin_at(&mut self, first: u64) {
        (self.next, self.tree) = (Some(first), None);
    }
}

/// The position of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryPosition {
    Here,
    Elsewhere,
}

/// Reads bytes as a file of a log; for the fuzzers.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut walk = Walk::new(None, Vec::new());
    let mut whole = true;
    let read = walk.file("fuzz", bytes, FileEnd::Last, &mut |_, line| {
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
