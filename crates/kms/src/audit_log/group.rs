//! The lines of entries that are recorded together: written into one buffer, and hashed side by
//! side.

use std::io::Write as _;
use std::ops::Range;

use bulla_blake3::Hash;

use super::entry::{END, LINK, LINK_DIGITS, TAIL};
use super::event::{Actor, AuditEvent, AuditOperation, Outcome};
use super::tree;
use crate::id::{KeyRef, KeySelector};
use crate::time::Timestamp;

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

/// What a line says between its time and its digest.
struct Said {
    who: Actor,
    operation: AuditOperation,
    key: Option<KeySelector>,
    outcome: Outcome,
}

/// More bytes than most lines have.
const LINE: usize = 400;

/// No entry's line is longer, with its line feed.
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
        let who = serde_json::to_string(&event.who).expect("a text serializes");
        let key = event.key.map(KeySelector::from);
        let named = key.as_ref().map(|key| format!(r#","key":"{key}""#)).unwrap_or_default();
        let (time, word, result) = (&self.time, operation.as_str(), outcome.as_str());
        let text = format!(r#","time":"{time}","who":{who},"op":"{word}"{named},"result":"{result}""#);
        self.said = Some((Said { who: event.who.clone(), operation, key, outcome }, text));
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
            && self.who == event.who
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

#[cfg(test)]
mod tests {
    use super::super::entry::{Content, Entry, Line};
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
                        let who = actor.parse().unwrap();
                        let event = AuditEvent { who, operation: AuditOperation::Sign, key, outcome, digest };
                        group.push(number, &event);
                        let mut entry = Entry::new(number, &event).unwrap();
                        entry.time = group.time.parse().unwrap();
                        let (line, link) = Line::write(&Content::Entry(entry), &chain);
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
        let who: Actor = "\"".repeat(Actor::MAX).parse().unwrap();
        let operation = *AuditOperation::ALL.iter().max_by_key(|word| word.as_str().len()).unwrap();
        let code = *Code::ALL.iter().max_by_key(|code| code.as_str().len()).unwrap();
        let (key, outcome) = (Some(KeyRef::Version(&id)), Outcome::Failed(code));
        let digest = Some(bulla_blake3::hash(b"a message"));
        let mut group = Group::at(Timestamp::from_unix_millis(0).unwrap(), 1);
        group.push(u64::MAX, &AuditEvent { who, operation, key, outcome, digest });
        assert!(group.bytes.len() as u64 <= MAX_ENTRY, "{}", group.bytes.len());
    }
}
