//! The lines of a log. Each line is a JSON object with exactly one text form, and ends with its
//! link in the chain.

use std::fmt;
use std::str::FromStr;

use bulla_blake3::Hash;
use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::checkpoint::LogId;
#[cfg(test)]
use super::event::AuditEvent;
use super::event::CertificateSummary;
use super::tree::{self, Frontier};
use crate::approval::ApprovalSummary;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::KeySelector;
use crate::time::Timestamp;

/// The format that this program writes and reads.
pub(super) const FORMAT: u32 = 1;
/// The most bytes of a line. A checkpoint with the longest possible signature fits.
pub(super) const MAX_LINE: usize = 128 << 10;

/// The text between a line's body and its link.
pub(super) const LINK: &str = ",\"chain\":\"";
/// The hexadecimal digits of a link.
pub(super) const LINK_DIGITS: usize = 64;
/// The end of a line, after its link.
pub(super) const END: &str = "\"}";
/// The bytes of a line after its body.
pub(super) const TAIL: usize = LINK.len() + LINK_DIGITS + END.len();

/// A BLAKE3 digest as lower-case hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(pub(super) Hash);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl FromStr for Digest {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || KmsError::new(Code::InvalidArgument, "not 64 lower-case hexadecimal digits");
        encoding::digest(text).map(Self).ok_or_else(malformed)
    }
}

serde_as_text!(Digest);

/// One entry of a log.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::audit_log::{AuditLog, AuditLogOptions, AuditOperation, Outcome};
/// use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
///
/// let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
/// let keystore = KeystoreOptions::default().audit(log.clone()).in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// keystore.on_behalf_of(&"alice".parse()?).sign(&key, b"a message")?;
///
/// let entry = &log.entries()?[1];
/// assert_eq!(entry.actor.as_str(), "alice");
/// assert_eq!(entry.operation.as_str(), AuditOperation::Sign.as_str());
/// assert_eq!(entry.result.as_str(), Outcome::Done.as_str());
/// assert_eq!(entry.digest(), Some(bulla_blake3::hash(b"a message")));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number, from 0 without gaps.
    #[serde(rename = "n")]
    pub number: u64,
    /// When it was recorded, by the clock of the machine.
    pub time: Timestamp,
    /// The actor on whose behalf it was done.
    #[serde(rename = "who")]
    pub actor: Actor,
    /// The operation: the word of an [`AuditOperation`](super::AuditOperation).
    #[serde(rename = "op")]
    pub operation: EventName,
    /// The key that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeySelector>,
    /// The result: the word of an [`Outcome`](super::Outcome).
    pub result: EventName,
    /// The BLAKE3 digest of the message, as lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    /// The certificate that was signed, if the message was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Box<CertificateSummary>>,
    /// The request for approval that this was a step of, or that the use of the key had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalSummary>>,
}

impl Entry {
    /// What an entry says of an event: [`Group`](super::writer::Group) writes the same, without
    /// making one.
    #[cfg(test)]
    pub(super) fn new(number: u64, event: &AuditEvent<'_>) -> Result<Self> {
        Ok(Self {
            number,
            time: Timestamp::now()?,
            actor: event.actor.clone(),
            operation: EventName(event.operation.as_str().to_owned()),
            key: event.key.map(KeySelector::from),
            result: EventName(event.outcome.as_str().to_owned()),
            digest: event.digest.map(Digest),
            certificate: event.certificate.clone(),
            approval: event.approval.clone(),
        })
    }

    /// The BLAKE3 digest of the message.
    pub fn digest(&self) -> Option<Hash> {
        self.digest.map(|digest| digest.0)
    }
}

/// A word of a log: 1 to 64 of `a-z` and `_`. A newer program may write words that an older one
/// does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName(String);

impl EventName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for EventName {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if plain && (1..=64).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(KmsError::new(Code::InvalidArgument, "not a word of a log: use 1 to 64 of a-z and _"))
        }
    }
}

serde_as_text!(EventName);

/// The first line of a file. It summarizes all earlier files, so that this file can be read and
/// appended to alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    #[serde(rename = "bulla-audit-log")]
    format: u32,
    pub(super) log: LogId,
    /// The number of the first entry in the file.
    pub(super) first: u64,
    /// The link that the file's first line follows.
    chain: Digest,
    /// The complete subtrees of the tree of all entries before.
    peaks: Vec<Digest>,
}

impl Header {
    pub(super) fn new(log: LogId, chain: &Hash, tree: &Frontier) -> Self {
        let peaks = tree.peaks().iter().copied().map(Digest).collect();
        Self { format: FORMAT, log, first: tree.size(), chain: Digest(*chain), peaks }
    }

    pub(super) fn parse(line: &str) -> Result<Self> {
        let header: Self = serde_json::from_str(line)
            .map_err(|_| KmsError::new(Code::AuditLogCorrupt, "it does not begin like an audit log file"))?;
        match header.format {
            FORMAT if header.to_line() == line => Ok(header),
            newer if newer > FORMAT => Err(KmsError::new(
                Code::AuditLogTooNew,
                format!(
                    "the log has format {newer}, and this program reads format {FORMAT}; use a newer version"
                ),
            )),
            _ => Err(KmsError::new(
                Code::AuditLogCorrupt,
                "its first line does not have the form that this program writes",
            )),
        }
    }

    pub(super) fn to_line(&self) -> String {
        serde_json::to_string(self).expect("plain structures serialize")
    }

    pub(super) fn chain(&self) -> Hash {
        self.chain.0
    }

    /// The tree of all entries before; `None` when the header contradicts itself.
    pub(super) fn tree(&self) -> Option<Frontier> {
        Frontier::from_parts(self.first, self.peaks.iter().map(|peak| peak.0).collect())
    }
}

/// A checkpoint as a line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointLine {
    checkpoint: String,
}

/// A line's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    Entry(Entry),
    /// The text of a signed note.
    Checkpoint(String),
}

/// A line in the right form. Its link has not been checked against the lines before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) content: LineContent,
    pub(super) link: Hash,
    /// The bytes that the link hashes.
    pub(super) body: String,
}

impl Line {
    /// The line for `content` that follows the link `chain`, and the new line's link.
    pub(super) fn write(content: &LineContent, chain: &Hash) -> (String, Hash) {
        let body = body(content);
        let link = tree::link(chain, &tree::body(body.as_bytes()));
        (format!("{body}{LINK}{}{END}", link.to_hex()), link)
    }

    /// Reads a line without its line feed. It accepts only a line that `write` would produce.
    pub(super) fn parse(line: &str) -> Result<Self> {
        let malformed =
            |why: &str| KmsError::new(Code::AuditLogCorrupt, format!("the line is malformed: {why}"));
        let at = line.len().checked_sub(TAIL).filter(|at| line.is_char_boundary(*at));
        let (body, tail) = line.split_at(at.ok_or_else(|| malformed("it is too short"))?);
        let link = tail.strip_prefix(LINK).and_then(|tail| tail.strip_suffix(END));
        let link = link.and_then(encoding::digest).ok_or_else(|| malformed("it has no link at its end"))?;
        let object = format!("{body}}}");
        let content = if body.starts_with("{\"checkpoint\"") {
            serde_json::from_str(&object).map(|line: CheckpointLine| LineContent::Checkpoint(line.checkpoint))
        } else {
            serde_json::from_str(&object).map(LineContent::Entry)
        };
        let content = content.map_err(|_| malformed("it is neither an entry nor a checkpoint"))?;
        if self::body(&content) != body {
            return Err(malformed("it does not have the form that this program writes"));
        }
        Ok(Self { content, link, body: body.to_owned() })
    }
}

/// The JSON of a line's content without the brace at its end.
fn body(content: &LineContent) -> String {
    let json = match content {
        LineContent::Entry(entry) => serde_json::to_string(entry),
        LineContent::Checkpoint(note) => serde_json::to_string(&CheckpointLine { checkpoint: note.clone() }),
    };
    let mut json = json.expect("plain structures serialize");
    json.pop();
    json
}
