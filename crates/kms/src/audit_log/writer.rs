//! The state of an open log, and how entries get to the end of its newest file: alone, in groups,
//! and later, if they could not be written at once.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use bulla_blake3::Hash;

use super::actor::Actor;
use super::checkpoint::{Checkpoint, LogId};
use super::entry::{END, Header, LINK, LINK_DIGITS, Line, LineContent, TAIL};
use super::event::{AuditEvent, AuditOperation, Outcome};
use super::files::{Lock, LogFile};
use super::tree::Frontier;
use super::{files, tree};
use crate::approval::ApprovalSummary;
use crate::error::{KmsError, Result};
use crate::id::{KeyRef, KeySelector};
use crate::time::Timestamp;

/// How many bytes more than needed get their place on the disk at once.
const EXTRA_ALLOCATION: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct LogState {
    pub(super) medium: Medium,
    pub(super) id: LogId,
    pub(super) chain: Hash,
    pub(super) tree: Frontier,
    /// How many entries the last checkpoint covers.
    pub(super) checkpointed: u64,
    pub(super) checkpoint: Option<Checkpoint>,
    /// When this process made the last checkpoint or, before that, opened the log. The system's
    /// clock may be set forward and back, so it does not say whether a checkpoint is due.
    pub(super) checkpointed_at: Instant,
    /// How many entries are on the disk.
    pub(super) durable: u64,
    pub(super) sync: SyncState,
    /// How many entries have their place reserved.
    pub(super) reserved: u64,
    /// The changes that were made and could not be recorded, the oldest first. Their entries come
    /// before all others.
    pub(super) owed: Vec<OwedEntry>,
    /// How many bytes were written since the last sync began.
    pub(super) unsynced: u64,
    /// Wakes the thread that makes checkpoints, if there is one.
    pub(super) checkpoint_thread: Option<SyncSender<()>>,
    /// Why the log refuses all writes until it is reopened.
    pub(super) broken: Option<KmsError>,
    /// Why the last due checkpoint could not be made.
    pub(super) checkpoint_error: Option<KmsError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncState {
    Idle,
    Running,
}

#[derive(Debug)]
pub(super) enum Medium {
    /// The text that would otherwise be in one file.
    Memory(Vec<u8>),
    Folder(Folder),
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) part: LogFile,
    pub(super) file: Arc<File>,
    pub(super) length: u64,
    /// Up to here the file has its place on the disk, as far as its file system can promise that.
    pub(super) allocated: u64,
    pub(super) _lock: Lock,
}

impl Folder {
    pub(super) fn new(path: PathBuf, part: LogFile, file: File, length: u64, lock: Lock) -> Self {
        Self { path, part, file: Arc::new(file), length, allocated: length, _lock: lock }
    }

    /// Has the file system keep room for so many more bytes.
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.length.saturating_add(bytes);
        if end > self.allocated {
            // Most calls then find what they need. A disk that is almost full gives only that.
            let ahead = end.saturating_add(EXTRA_ALLOCATION);
            self.allocated = match files::allocate(&self.file, self.length, ahead) {
                Ok(()) => ahead,
                Err(_) => files::allocate(&self.file, self.length, end).map(|()| end)?,
            };
        }
        Ok(())
    }
}

impl LogState {
    pub(super) fn check(&self) -> Result<()> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Refuses all writes from now on: after this error, the content of the disk is unknown.
    pub(super) fn fail(&mut self, what: &str, error: io::Error) -> KmsError {
        let error =
            KmsError::io(format!("{what}; the log accepts no entries until it is opened again"), error);
        self.broken = Some(error.clone());
        error
    }

    /// Reserves the place of one entry.
    pub(super) fn reserve(&mut self) -> Result<()> {
        self.allocate((self.reserved + 1) * MAX_ENTRY)?;
        self.reserved += 1;
        Ok(())
    }

    /// Writes the entries of events at the end, by one write, until the file has `max_bytes`.
    /// Returns how many those are: at least one.
    pub(super) fn append_entries(&mut self, events: &[AuditEvent<'_>], max_bytes: u64) -> Result<usize> {
        let room = match &self.medium {
            Medium::Memory(_) => u64::MAX,
            Medium::Folder(folder) => max_bytes.saturating_sub(folder.length),
        };
        let mut group = Group::at(Timestamp::now()?, events.len());
        for event in events {
            group.push(self.tree.size() + group.len(), event);
            if group.bytes.len() as u64 >= room {
                break;
            }
        }
        let changes = events.iter().filter(|event| event.operation.changes_keystore()).count();
        self.append_group(group, changes as u64)
    }

    /// Writes the entries of changes that could not be recorded when they were made.
    pub(super) fn append_owed(&mut self) -> Result<()> {
        while let Some(oldest) = self.owed.first() {
            let mut group = Group::at(oldest.time, 1);
            group.push(self.tree.size(), &oldest.event());
            self.append_group(group, 0)?;
            self.owed.remove(0);
        }
        Ok(())
    }

    /// Writes lines at the end, of which so many have a reserved place. Returns how many there are.
    fn append_group(&mut self, group: Group, reserved: u64) -> Result<usize> {
        let Linked { bytes, chain, leaves } = group.link(self.chain);
        self.write(&bytes, reserved)?;
        let written = leaves.len();
        self.chain = chain;
        self.tree.extend(leaves);
        Ok(written)
    }

    /// Writes the line of a checkpoint at the end.
    pub(super) fn append_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let (line, link) = Line::write(&LineContent::Checkpoint(checkpoint.to_string()), &self.chain);
        self.write((line + "\n").as_bytes(), 0)?;
        self.chain = link;
        Ok(())
    }

    /// Writes lines at the end, of which so many have a reserved place; the others leave the
    /// reserved places free. What cannot be written as a whole is taken off again.
    fn write(&mut self, lines: &[u8], reserved: u64) -> Result<()> {
        let others = self.reserved.saturating_sub(reserved) * MAX_ENTRY;
        self.allocate(lines.len() as u64 + others)?;
        match &mut self.medium {
            Medium::Memory(text) => text.extend_from_slice(lines),
            Medium::Folder(folder) => {
                if let Err(error) = (&*folder.file).write_all(lines) {
                    if let Err(worse) = folder.file.set_len(folder.length) {
                        return Err(self.fail("cannot remove an incomplete line from the audit log", worse));
                    }
                    // The file system did not keep what it promised, or can promise nothing.
                    folder.allocated = folder.length;
                    return Err(cannot_write(error));
                }
                folder.length += lines.len() as u64;
            }
        }
        self.unsynced += lines.len() as u64;
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Result<()> {
        match &mut self.medium {
            Medium::Memory(_) => Ok(()),
            Medium::Folder(folder) => folder.allocate(bytes).map_err(cannot_write),
        }
    }

    /// Begins a new file if this one is long enough. The earlier files are on the disk by then.
    pub(super) fn rotate(&mut self, max_bytes: u64) -> Result<()> {
        let Medium::Folder(folder) = &self.medium else { return Ok(()) };
        // If the file has no entry yet, the next file would get the same name.
        if folder.length < max_bytes || folder.part.first == self.tree.size() {
            return Ok(());
        }
        let (old, path) = (Arc::clone(&folder.file), folder.path.clone());
        // Gives back what was allocated and not used. If it stays, it is a few bytes.
        let _ = old.set_len(folder.length);
        if let Err(error) = old.sync_data() {
            return Err(self.fail("cannot sync the audit log", error));
        }
        (self.durable, self.unsynced) = (self.tree.size(), 0);
        let part = LogFile::new(&path, self.tree.size());
        let (file, length) = files::create_part(&part, &Header::new(self.id, &self.chain, &self.tree))?;
        let Medium::Folder(folder) = &mut self.medium else { return Ok(()) };
        (folder.part, folder.file) = (part, Arc::new(file));
        (folder.length, folder.allocated) = (length, length);
        Ok(())
    }
}

fn cannot_write(error: io::Error) -> KmsError {
    KmsError::io("cannot write to the audit log", error)
}

/// The lines of entries that are recorded at the same time.
pub(super) struct Group {
    /// The lines, each with its line feed. Their links are zeros yet.
    pub(super) bytes: Vec<u8>,
    /// Where each line is in `bytes`, without its line feed.
    lines: Vec<Range<usize>>,
    time: String,
    /// Neighbors often differ in their number and their digest alone: the text between these is
    /// made once.
    said: Option<(Said, String)>,
}

/// The part of a line between its time and its digest.
struct Said {
    actor: Actor,
    operation: AuditOperation,
    key: Option<KeySelector>,
    outcome: Outcome,
}

/// More bytes than most lines have.
const LINE: usize = 400;

/// No entry of a change has a longer line, with its line feed.
pub(super) const MAX_ENTRY: u64 = 1024;

/// Lines that follow on a chain.
pub(super) struct Linked {
    /// The lines, each with its line feed.
    pub(super) bytes: Vec<u8>,
    /// The link of the last line.
    pub(super) chain: Hash,
    /// The leaves of the entries, for the tree.
    pub(super) leaves: Vec<Hash>,
}

impl Group {
    /// No lines, and room for so many. All entries get this time.
    pub(super) fn at(time: Timestamp, lines: usize) -> Self {
        let (bytes, lines) = (Vec::with_capacity(lines * LINE), Vec::with_capacity(lines));
        Self { bytes, lines, time: time.to_string(), said: None }
    }

    /// Adds the line of an entry: the bytes that serde writes of an [`Entry`](super::Entry), and
    /// room for the link.
    pub(super) fn push(&mut self, number: u64, event: &AuditEvent<'_>) {
        let begin = self.bytes.len();
        self.know(event);
        let Self { bytes, said, .. } = self;
        // A vector takes all that is written to it.
        let _ = write!(bytes, "{{\"n\":{number}");
        bytes.extend_from_slice(said.as_ref().map_or("", |(_, text)| text).as_bytes());
        if let Some(digest) = &event.digest {
            bytes.extend_from_slice(b",\"digest\":\"");
            bytes.extend_from_slice(digest.to_hex().as_bytes());
            bytes.push(b'"');
        }
        if let Some(certificate) = &event.certificate {
            let text = serde_json::to_string(certificate).expect("plain structures serialize");
            let _ = write!(bytes, ",\"certificate\":{text}");
        }
        if let Some(approval) = &event.approval {
            let text = serde_json::to_string(approval).expect("plain structures serialize");
            let _ = write!(bytes, ",\"approval\":{text}");
        }
        bytes.extend_from_slice(LINK.as_bytes());
        bytes.extend_from_slice(&[b'0'; LINK_DIGITS]);
        bytes.extend_from_slice(END.as_bytes());
        self.lines.push(begin..bytes.len());
        bytes.push(b'\n');
    }

    /// Has the text ready that the event's line has between its number and its digest.
    fn know(&mut self, event: &AuditEvent<'_>) {
        if self.said.as_ref().is_some_and(|(said, _)| said.is_of(event)) {
            return;
        }
        let AuditEvent { operation, outcome, .. } = *event;
        // Of all texts here, only an actor's name can need escapes.
        let actor = serde_json::to_string(&event.actor).expect("a text serializes");
        let key = event.key.map(KeySelector::from);
        let named = key.as_ref().map(|key| format!(r#","key":"{key}""#)).unwrap_or_default();
        let (time, word, result) = (&self.time, operation.as_str(), outcome.as_str());
        let text = format!(r#","time":"{time}","who":{actor},"op":"{word}"{named},"result":"{result}""#);
        self.said = Some((Said { actor: event.actor.clone(), operation, key, outcome }, text));
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Links the lines to each other, after a line with the link `chain`.
    pub(super) fn link(mut self, mut chain: Hash) -> Linked {
        let body = |line: &Range<usize>| &self.bytes[line.start..line.end - TAIL];
        let bodies = tree::bodies(&self.lines.iter().map(body).collect::<Vec<_>>());
        for (line, body) in self.lines.iter().zip(&bodies) {
            chain = tree::link(&chain, body);
            let end = line.end - END.len();
            self.bytes[end - LINK_DIGITS..end].copy_from_slice(chain.to_hex().as_bytes());
        }
        let lines: Vec<_> = self.lines.iter().map(|line| &self.bytes[line.clone()]).collect();
        let leaves = tree::leaves(&lines);
        Linked { bytes: self.bytes, chain, leaves }
    }
}

impl Said {
    fn is_of(&self, event: &AuditEvent<'_>) -> bool {
        let same_key = match (&self.key, event.key) {
            (Some(known), Some(key)) => is_same(known.as_ref(), key),
            (known, key) => known.is_none() && key.is_none(),
        };
        same_key
            && self.actor == event.actor
            && self.operation == event.operation
            && self.outcome == event.outcome
    }
}

fn is_same(a: KeyRef<'_>, b: KeyRef<'_>) -> bool {
    match (a, b) {
        (KeyRef::Key(a), KeyRef::Key(b)) => a == b,
        (KeyRef::Version(a), KeyRef::Version(b)) => a == b,
        _ => false,
    }
}

/// The entry that the log owes for a change.
#[derive(Debug)]
pub(super) struct OwedEntry {
    /// When the change was made.
    pub(super) time: Timestamp,
    actor: Actor,
    operation: AuditOperation,
    key: Option<KeySelector>,
    outcome: Outcome,
    digest: Option<Hash>,
    approval: Option<Box<ApprovalSummary>>,
}

impl OwedEntry {
    /// # Errors
    /// [`Code::ClockOutOfRange`](crate::Code::ClockOutOfRange).
    pub(super) fn now(event: &AuditEvent<'_>) -> Result<Self> {
        // No change signs a certificate.
        let AuditEvent { actor, operation, key, outcome, digest, certificate: _, approval } = event.clone();
        let (time, key) = (Timestamp::now()?, key.map(KeySelector::from));
        Ok(Self { time, actor, operation, key, outcome, digest, approval })
    }

    pub(super) fn event(&self) -> AuditEvent<'_> {
        let (actor, key) = (self.actor.clone(), self.key.as_ref().map(KeySelector::as_ref));
        let Self { operation, outcome, digest, .. } = *self;
        let approval = self.approval.clone();
        AuditEvent { actor, operation, key, outcome, digest, certificate: None, approval }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, Line, LineContent};
    use super::*;
    use crate::error::Code;
    use crate::id::{KeyId, KeyVersionId};

    #[test]
    fn lines_are_those_that_serde_writes_of_each_entry() {
        let key_id: KeyId = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11".parse().unwrap();
        let ids: Vec<KeyVersionId> =
            (1..3).map(|version: u32| key_id.version(version.try_into().unwrap())).collect();
        let actors = ["-", "uid:0", "\"Ann\" \\ Bob", "J\u{f6}rg \u{1f511}"];
        let keys = [
            None,
            Some(KeyRef::Key(&key_id)),
            Some(KeyRef::Version(&ids[0])),
            Some(KeyRef::Version(&ids[1])),
        ];
        let outcomes = [Outcome::Done, Outcome::Failed(Code::KeyNotFound)];
        let digests = [None, Some(bulla_blake3::hash(b"a message"))];
        let start = bulla_blake3::hash(b"the chain so far");
        let mut group = Group::at(Timestamp::now().unwrap(), 2);
        let (mut chain, mut expected, mut number) = (start, String::new(), 0);
        let mut leaves = Vec::new();
        for actor in actors {
            for key in keys {
                for outcome in outcomes {
                    for digest in digests {
                        let actor = actor.parse().unwrap();
                        let operation = AuditOperation::Sign;
                        // Some lines have a certificate, with a text that needs an escape.
                        let text = match key {
                            None => r#"{"kind":"host","serial":"7","key_id":"\"a\"","principals":["b","c"]}"#,
                            Some(_) => {
                                r#"{"kind":"leaf","serial":"7f","subject":["CN=\"a\""],"names":["DNS:b"],"not_after":"2030-01-31T09:30:00.000Z"}"#
                            }
                        };
                        let certificate = digest.map(|_| serde_json::from_str(text).unwrap());
                        let text = r#"{"id":"0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11","reason":"\"a\""}"#;
                        let approval = key.map(|_| serde_json::from_str(text).unwrap());
                        let event =
                            AuditEvent { actor, operation, key, outcome, digest, certificate, approval };
                        group.push(number, &event);
                        let mut entry = Entry::new(number, &event).unwrap();
                        entry.time = group.time.parse().unwrap();
                        let (line, link) = Line::write(&LineContent::Entry(entry), &chain);
                        assert!(Line::parse(&line).is_ok());
                        leaves.push(tree::leaf(line.as_bytes()));
                        expected += &(line + "\n");
                        (chain, number) = (link, number + 1);
                    }
                }
            }
        }
        assert_eq!(group.len(), number);
        let linked = group.link(start);
        assert_eq!(String::from_utf8(linked.bytes).unwrap(), expected);
        assert_eq!((linked.chain, linked.leaves), (chain, leaves));
    }

    #[test]
    fn no_line_of_an_entry_is_longer_than_its_reserved_place() {
        let name = "n".repeat(64);
        let uuid = "0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11";
        let algorithms = crate::Algorithm::ALL.iter().map(|algorithm| algorithm.as_str());
        let algorithm = algorithms.max_by_key(|name| name.len()).unwrap();
        let key_id: KeyId = format!("{name}/{name}/{algorithm}/{uuid}").parse().unwrap();
        let id = key_id.version(u32::MAX.try_into().unwrap());
        // A quotation mark takes two bytes.
        let actor: Actor = "\"".repeat(Actor::MAX_LEN).parse().unwrap();
        let operation = *AuditOperation::ALL.iter().max_by_key(|word| word.as_str().len()).unwrap();
        let code = *Code::ALL.iter().max_by_key(|code| code.as_str().len()).unwrap();
        let (key, outcome) = (Some(KeyRef::Version(&id)), Outcome::Failed(code));
        let digest = Some(bulla_blake3::hash(b"a message"));
        let mut group = Group::at(Timestamp::from_unix_millis(0).unwrap(), 1);
        // A change is made by a request, whose id is in the entry.
        let text = r#"{"id":"0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11"}"#;
        let approval = serde_json::from_str(text).unwrap();
        let event = AuditEvent { actor, operation, key, outcome, digest, certificate: None, approval };
        group.push(u64::MAX, &event);
        assert!(group.bytes.len() as u64 <= MAX_ENTRY, "{}", group.bytes.len());
    }
}
