//! Statements of succession: a key version signs the public key of a later version, so that people
//! who trust the old public key can move to the new one.
//!
//! `spec/succession.md` has the format. A keystore makes a key's statements on request
//! ([`Keystore::successions`](crate::Keystore::successions)); nothing from the day of the rotation
//! has to be kept.

use std::fmt;
use std::str::FromStr;

use crate::algorithm::KeyUsage;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::key_signature::Verdict;
use crate::public_key::{NamedPublicKey, PublicKey};
use crate::reserved;
use crate::time::Timestamp;

const FORMAT: &str = "bulla succession v";
/// The lines of one statement.
const LINES: usize = 7;

/// A statement in which a key version names the public key of a later version of the same key, and
/// signs it.
///
/// `Display` is its text, and parsing is the exact inverse. A file may contain several statements,
/// one after another: [`Succession::parse_all`].
///
/// Anyone with the older version's private key can make a statement about any public key. Follow
/// statements only as long as you trust the older version: after a leak of its private key, the new
/// public key must reach you in another way.
///
/// ```
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// keystore.rotate(key.key_id())?;
/// let statement = &keystore.successions(key.key_id())?[0];
/// assert!(statement.verify().is_valid());
/// // Programs without this library check the same bytes.
/// let signed = statement.signed_bytes();
/// assert!(statement.public_key.verify(&signed, &statement.signature).is_valid());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The key version that signs.
    pub key: KeyVersionId,
    /// Its public key, as the statement claims.
    pub public_key: PublicKey,
    /// The later version of the same key that takes its place.
    pub successor: KeyVersionId,
    /// The public key of that version.
    pub successor_public_key: PublicKey,
    /// When the later version was made, by the signer's clock.
    pub time: Timestamp,
    /// The signature of [`Succession::signed_bytes`], of the length that the key's algorithm has.
    pub signature: Vec<u8>,
}

impl Succession {
    /// The bytes that are signed: `bulla succession`, a zero byte, `v1`, a zero byte, and the lines
    /// before the signature.
    pub fn signed_bytes(&self) -> Vec<u8> {
        [reserved::SUCCESSION, b"v1\0", self.signed_lines().as_bytes()].concat()
    }

    fn signed_lines(&self) -> String {
        let Self { key, public_key, successor, successor_public_key, time, signature: _ } = self;
        format!(
            "{FORMAT}1\n\
             key: {key}\n\
             public-key: {public_key}\n\
             successor: {successor}\n\
             successor-public-key: {successor_public_key}\n\
             time: {time}\n"
        )
    }

    /// Whether the private key of [`Succession::public_key`] signed this. It does not prove who has
    /// that key: see [`follow`].
    pub fn verify(&self) -> Verdict {
        self.public_key.verify(&self.signed_bytes(), &self.signature)
    }

    /// Reads statements that follow each other, one or more.
    ///
    /// # Errors
    /// [`Code::MalformedSignature`], naming the line; [`Code::SignatureTooNew`].
    pub fn parse_all(text: &[u8]) -> Result<Vec<Self>> {
        let text = std::str::from_utf8(text).map_err(|_| malformed(1, "the text is not UTF-8"))?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        if lines.is_empty() {
            return Err(malformed(1, "it is missing: the file is empty"));
        }
        let first_lines = (1..).step_by(LINES);
        lines.chunks(LINES).zip(first_lines).map(|(lines, first)| parse(lines, first)).collect()
    }
}

impl fmt::Display for Succession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}signature: {}", self.signed_lines(), encoding::base64(&self.signature))
    }
}

impl FromStr for Succession {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let mut all = Self::parse_all(text.as_bytes())?;
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(malformed(LINES + 1, "nothing may follow the one statement")),
        }
    }
}

serde_as_text!(Succession);

/// The public keys to which a trusted key leads, by valid statements: the trusted key, or a key
/// that was found before, signed each of them. The statements may be in any order. Invalid
/// statements, and valid statements of other keys, change nothing.
///
/// `id` is the trusted key's key version, if it is known: then the first statement must name it.
///
/// ```
/// use bulla_kms::succession::{Succession, follow};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let old = keystore.public_key(&key)?;
/// let latest = keystore.rotate(key.key_id())?;
/// let text: String = keystore.successions(key.key_id())?.iter().map(|s| s.to_string()).collect();
///
/// // For a person who has only the old public key:
/// let statements = Succession::parse_all(text.as_bytes())?;
/// let found = follow(&old, Some(&key), &statements);
/// assert_eq!(found[0].key, latest);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn follow(
    trusted: &PublicKey,
    id: Option<&KeyVersionId>,
    statements: &[Succession],
) -> Vec<NamedPublicKey> {
    let mut left: Vec<&Succession> = statements.iter().filter(|one| one.verify().is_valid()).collect();
    let mut found: Vec<NamedPublicKey> = Vec::new();
    loop {
        let leads = |one: &Succession| {
            let from_trusted = one.public_key == *trusted && id.is_none_or(|id| *id == one.key);
            from_trusted
                || found.iter().any(|known| known.public_key == one.public_key && known.key == one.key)
        };
        let (next, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|one| leads(one));
        if next.is_empty() {
            return found;
        }
        found.extend(next.into_iter().map(|one| NamedPublicKey {
            key: one.successor.clone(),
            public_key: one.successor_public_key.clone(),
        }));
        left = rest;
    }
}

fn malformed(line: usize, why: impl fmt::Display) -> KmsError {
    KmsError::new(Code::MalformedSignature, format!("not a statement of succession: line {line}: {why}"))
}

/// Parses the lines of one statement. Its first line has the number `first` in the file.
fn parse(lines: &[&str], first: usize) -> Result<Succession> {
    let mut fields = Fields { lines, first, next: 0 };
    let format = fields.line()?;
    match format.strip_prefix(FORMAT) {
        Some("1") => {}
        Some(version) if version.parse::<u32>().is_ok_and(|version| version > 1) => {
            let message = format!(
                "the statement is of format v{version} and this program reads v1; use a newer version"
            );
            return Err(KmsError::new(Code::SignatureTooNew, message));
        }
        _ => return Err(malformed(first, format_args!("it must be \"{FORMAT}1\""))),
    }
    let key: KeyVersionId = fields.parsed("key")?;
    let algorithm = key.key_id().algorithm();
    if algorithm.usage() != KeyUsage::Signature {
        return Err(fields.error(format_args!("keys of {algorithm} do not sign")));
    }
    let public_key = fields.public_key("public-key", &key)?;
    let successor: KeyVersionId = fields.parsed("successor")?;
    if successor.key_id() != key.key_id() || successor.version() <= key.version() {
        return Err(fields.error("it must be a later version of the same key"));
    }
    let successor_public_key = fields.public_key("successor-public-key", &successor)?;
    let time = fields.parsed("time")?;
    let length = algorithm.output_length();
    let signature = encoding::from_base64(fields.value("signature")?)
        .filter(|bytes| bytes.len() == length)
        .ok_or_else(|| fields.error(format_args!("it must be the base64 of {length} bytes")))?;
    Ok(Succession { key, public_key, successor, successor_public_key, time, signature })
}

/// The lines of one statement, read one after the other.
struct Fields<'a> {
    lines: &'a [&'a str],
    /// The number of the first line in the file.
    first: usize,
    next: usize,
}

impl<'a> Fields<'a> {
    /// An error about the line that was read last.
    fn error(&self, why: impl fmt::Display) -> KmsError {
        malformed((self.first + self.next).saturating_sub(1), why)
    }

    /// The next line without its line feed.
    fn line(&mut self) -> Result<&'a str> {
        let line = self.lines.get(self.next);
        self.next += 1;
        let line = line.ok_or_else(|| self.error("it is missing: the file ends here"))?;
        let line = line.strip_suffix('\n').ok_or_else(|| self.error("there is no line feed at its end"))?;
        if line.ends_with('\r') {
            return Err(self.error("it ends with a carriage return; lines end with a line feed alone"));
        }
        Ok(line)
    }

    /// The value of the next line, which must be `name: value`.
    fn value(&mut self, name: &str) -> Result<&'a str> {
        let line = self.line()?;
        let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        value.ok_or_else(|| self.error(format_args!("it must begin with \"{name}: \"")))
    }

    fn parsed<T: FromStr<Err = KmsError>>(&mut self, name: &str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|error: KmsError| {
            self.error(format_args!("{name}: {}", error.message)).with_source(error)
        })
    }

    fn public_key(&mut self, name: &str, id: &KeyVersionId) -> Result<PublicKey> {
        let key: PublicKey = self.parsed(name)?;
        let algorithm = id.key_id().algorithm();
        if key.algorithm() == algorithm {
            Ok(key)
        } else {
            Err(self.error(format_args!("{name}: it must be one of the key's algorithm, {algorithm}")))
        }
    }
}
