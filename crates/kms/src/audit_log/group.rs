//! The lines of entries that are recorded together: written into one buffer, and hashed side by side.

use std::io::Write as _;
use std::ops::Range;

use bulla_blake3::Hash;

use super::entry::LINK;
use super::event::{Actor, AuditEvent};
use super::tree;
use crate::error::Result;
use crate::id::{KeyName, KeyRef};
use crate::time::Timestamp;

/// Lines that follow on a chain.
pub(super) struct Group {
    /// The lines, each with its line feed.
    pub(super) bytes: Vec<u8>,
    /// Where each line is in `bytes`, without its line feed.
    lines: Vec<Range<usize>>,
    /// The link of the last line.
    pub(super) chain: Hash,
    time: String,
    /// Neighbours often have the same actor and the same key: their texts are made once.
    who: Option<(Actor, String)>,
    key: Option<(KeyName, String)>,
    /// What a link is a hash of.
    linked: Vec<u8>,
}

impl Group {
    /// No lines, after a line with the link `chain`. All entries get the present time.
    ///
    /// # Errors
    /// [`Code::ClockOutOfRange`](crate::Code::ClockOutOfRange).
    pub(super) fn after(chain: Hash) -> Result<Self> {
        let time = Timestamp::now()?.to_string();
        let (bytes, lines, linked) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { bytes, lines, chain, time, who: None, key: None, linked })
    }

    /// Adds the line of an entry: the bytes that serde writes of an [`Entry`](super::Entry), and the link.
    pub(super) fn push(&mut self, number: u64, event: &AuditEvent<'_>) {
        let begin = self.bytes.len();
        self.know(event);
        let Self { bytes, time, who, key, .. } = self;
        let who = who.as_ref().map_or("", |(_, text)| text);
        let operation = event.operation.as_str();
        // A vector takes all that is written to it. Of all texts here, only an actor's name can need escapes.
        let _ = write!(bytes, r#"{{"n":{number},"time":"{time}","who":{who},"op":"{operation}""#);
        if let (Some(_), Some((_, key))) = (&event.key, key) {
            bytes.extend_from_slice(b",\"key\":\"");
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(b'"');
        }
        bytes.extend_from_slice(b",\"result\":\"");
        bytes.extend_from_slice(event.outcome.as_str().as_bytes());
        bytes.push(b'"');
        if let Some(digest) = &event.digest {
            bytes.extend_from_slice(b",\"digest\":\"");
            bytes.extend_from_slice(digest.to_hex().as_bytes());
            bytes.push(b'"');
        }
        self.linked.clear();
        self.linked.extend_from_slice(self.chain.as_bytes());
        self.linked.extend_from_slice(&bytes[begin..]);
        self.chain = tree::link_of(&self.linked);
        bytes.extend_from_slice(LINK.as_bytes());
        bytes.extend_from_slice(self.chain.to_hex().as_bytes());
        bytes.extend_from_slice(b"\"}");
        self.lines.push(begin..bytes.len());
        bytes.push(b'\n');
    }

    /// Has the texts of the event's actor and key ready.
    fn know(&mut self, event: &AuditEvent<'_>) {
        if self.who.as_ref().is_none_or(|(who, _)| *who != event.who) {
            let text = serde_json::to_string(&event.who).expect("a text serialises");
            self.who = Some((event.who.clone(), text));
        }
        if let Some(key) = event.key
            && self.key.as_ref().is_none_or(|(known, _)| !is_same(known.as_ref(), key))
        {
            let name = KeyName::from(key);
            let text = name.to_string();
            self.key = Some((name, text));
        }
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> u64 {
        self.lines.len() as u64
    }

    /// The leaves of the entries, for the tree.
    pub(super) fn leaves(&self) -> Vec<Hash> {
        let lines: Vec<_> = self.lines.iter().map(|line| &self.bytes[line.clone()]).collect();
        tree::leaves(&lines)
    }
}

fn is_same(a: KeyRef<'_>, b: KeyRef<'_>) -> bool {
    match (a, b) {
        (KeyRef::Family(a), KeyRef::Family(b)) => a == b,
        (KeyRef::Exact(a), KeyRef::Exact(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Content, Entry, Line};
    use super::super::event::{Operation, Outcome};
    use super::*;
    use crate::error::Code;
    use crate::id::{KeyFamily, KeyId};

    #[test]
    fn lines_are_those_that_serde_writes_of_each_entry() {
        let family: KeyFamily = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11".parse().unwrap();
        let ids: Vec<KeyId> =
            (1..3).map(|version: u32| family.version(version.try_into().unwrap())).collect();
        let actors = ["-", "uid:0", "\"Ann\" \\ Bob", "J\u{f6}rg \u{1f511}"];
        let keys =
            [None, Some(KeyRef::Family(&family)), Some(KeyRef::Exact(&ids[0])), Some(KeyRef::Exact(&ids[1]))];
        let outcomes = [Outcome::Done, Outcome::Failed(Code::KeyNotFound)];
        let digests = [None, Some(bulla_blake3::hash(b"a message"))];
        let start = bulla_blake3::hash(b"the chain so far");
        let mut group = Group::after(start).unwrap();
        let (mut chain, mut expected, mut number) = (start, String::new(), 0);
        let mut leaves = Vec::new();
        for actor in actors {
            for key in keys {
                for outcome in outcomes {
                    for digest in digests {
                        let who = actor.parse().unwrap();
                        let event = AuditEvent { who, operation: Operation::Sign, key, outcome, digest };
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
        assert_eq!(String::from_utf8(group.bytes.clone()).unwrap(), expected);
        assert_eq!((group.chain, group.len()), (chain, number));
        assert_eq!(group.leaves(), leaves);
    }
}
