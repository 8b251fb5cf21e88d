//! The signature file and its content.

use std::fmt;
use std::io::{BufRead, Read};
use std::str::FromStr;

use bulla_blake3::Hash;

use super::name::SignedName;
use super::statement::{Comment, Statement, StatementKind};
use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::key_signature::Verdict;
use crate::prehash::{Prehash, Prehashed, SignedForm};
use crate::public_key::PublicKey;
use crate::reserved::RESERVED_PREFIX;
use crate::time::Timestamp;

/// A signature file. `Display` is its text, and [`SignatureFile::parse`] is the exact inverse.
///
/// The public key in it says which key checks it, but does not prove who signed: anybody can write
/// their own key there. Compare it with a key that reached you in another way
/// ([`SignatureFile::verify_with`]), or with a keystore's key ([`SignatureFile::verify_in`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureFile {
    /// What kind of content was signed.
    pub kind: StatementKind,
    /// The key version that signed.
    pub key: KeyVersionId,
    /// Its public key, as the file claims.
    pub public_key: PublicKey,
    /// The BLAKE3 digest of the content; for a manifest, of its body.
    pub digest: Hash,
    /// The length of the content in bytes; for a manifest, of its body.
    pub size: u64,
    /// When it was signed, by the signer's clock.
    pub signed_at: Timestamp,
    /// The comment of the signer.
    pub comment: Comment,
    /// The name that the file had, if the signature covers it. A verifier compares it with the name
    /// that the file has now.
    pub name: Option<SignedName>,
    /// How [`SignatureFile::signed_bytes`] were hashed before an Ed25519 key signed them; `None` if
    /// they were signed without hashing.
    pub prehash: Option<Prehash>,
    /// The signature of [`SignatureFile::signed_bytes`], of the length that the key's algorithm
    /// has.
    pub signature: Vec<u8>,
}

impl SignatureFile {
    /// The file before it is signed.
    pub(super) fn unsigned(
        statement: &Statement,
        prehash: Option<Prehash>,
        key: &KeyVersionId,
        public_key: &PublicKey,
        signed_at: Timestamp,
    ) -> Self {
        Self {
            kind: statement.kind,
            key: key.clone(),
            public_key: public_key.clone(),
            digest: statement.digest,
            size: statement.size,
            signed_at,
            comment: statement.comment.clone(),
            name: statement.name.clone(),
            prehash,
            signature: Vec::new(),
        }
    }

    /// What an Ed25519 key signs for this statement; none for Ed25519ph, which signs no message.
    pub(crate) fn message(
        statement: &Statement,
        prehash: Option<Prehash>,
        key: &KeyVersionId,
        public_key: &PublicKey,
        signed_at: Timestamp,
    ) -> Option<Vec<u8>> {
        let bytes = Self::unsigned(statement, prehash, key, public_key, signed_at).signed_bytes();
        let Some(prehash) = prehash else { return Some(bytes) };
        match Prehashed::of_file(prehash, &bytes).form(Algorithm::Ed25519) {
            Ok(SignedForm::Message(framed)) => Some(framed),
            _ => None,
        }
    }

    /// Whether the holder of `public_key` signed this. It is also `Invalid` if the file names
    /// another key.
    ///
    /// It does not check the content: compare [`SignatureFile::digest`] and [`SignatureFile::size`]
    /// with those of the content, and [`SignatureFile::name`], if there is one, with that of the
    /// file.
    pub fn verify_with(&self, public_key: &PublicKey) -> Verdict {
        if self.public_key != *public_key {
            return Verdict::Invalid;
        }
        match self.prehash {
            None => public_key.verify(&self.signed_bytes(), &self.signature),
            Some(prehash) => {
                let digest = Prehashed::of_file(prehash, &self.signed_bytes());
                public_key.verify_prehashed(&digest, &self.signature)
            }
        }
    }

    /// The bytes that are signed: [`RESERVED_PREFIX`], `v1`, `v2` or `v3`, a zero byte, the kind, a
    /// zero byte, and the text up to the line of the signature.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let lines = self.signed_lines();
        [
            RESERVED_PREFIX,
            b"v",
            self.format().as_bytes(),
            b"\0",
            self.kind.as_str().as_bytes(),
            b"\0",
            lines.as_bytes(),
        ]
        .concat()
    }

    /// The number of the format: with a name 3, else with a prehash 2, else 1.
    fn format(&self) -> &'static str {
        match (&self.name, self.prehash) {
            (Some(_), _) => "3",
            (None, Some(_)) => "2",
            (None, None) => "1",
        }
    }

    fn signed_lines(&self) -> String {
        let Self { kind, key, public_key, digest, size, signed_at, comment, name, prehash, signature: _ } =
            self;
        let prehash = match (name, prehash) {
            (_, Some(prehash)) => format!("prehash: {prehash}\n"),
            (Some(_), None) => "prehash:\n".to_owned(),
            (None, None) => String::new(),
        };
        let name = name.as_ref().map_or_else(String::new, |name| format!("name: {name}\n"));
        let space = if comment.as_str().is_empty() { "" } else { " " };
        format!(
            "bulla signature v{}\n\
             kind: {kind}\n\
             key: {key}\n\
             public-key: {public_key}\n\
             digest-algorithm: blake3\n\
             digest: {digest}\n\
             size: {size}\n\
             time: {signed_at}\n\
             comment:{space}{comment}\n\
             {name}{prehash}",
            self.format(),
            digest = digest.to_hex(),
        )
    }
}

impl fmt::Display for SignatureFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}signature: {}", self.signed_lines(), encoding::base64(&self.signature))?;
        match self.kind {
            // The empty line before the body.
            StatementKind::Manifest => f.write_str("\n"),
            StatementKind::File | StatementKind::Message => Ok(()),
        }
    }
}

/// The most bytes of a line with its line feed, except for the line of a long signature.
const MAX_LINE: usize = 4096;

const FORMAT: &str = "bulla signature v";

impl SignatureFile {
    /// Parses the text of a signature file, for a manifest without its body.
    ///
    /// # Errors
    /// [`Code::MalformedSignature`], naming the line and the field; [`Code::SignatureTooNew`].
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut rest = text;
        let file = Self::read_from(&mut rest)?;
        if rest.is_empty() { Ok(file) } else { Err(trailing(file.kind)) }
    }

    /// Reads a signature file and stops where it ends: for a manifest at the start of its body; for
    /// all other kinds nothing may follow.
    ///
    /// Reads at most 100 KiB.
    ///
    /// # Errors
    /// The errors of [`SignatureFile::parse`]; errors of reading.
    pub fn read_from(reader: &mut impl BufRead) -> Result<Self> {
        read(reader)
    }
}

fn malformed(message: impl Into<String>) -> KmsError {
    KmsError::new(Code::MalformedSignature, format!("not a signature file: {}", message.into()))
}

fn trailing(kind: StatementKind) -> KmsError {
    match kind {
        StatementKind::Manifest => {
            malformed("after the empty line: a manifest's body follows where none is expected")
        }
        StatementKind::File | StatementKind::Message => {
            malformed("after the line of the signature: nothing may follow")
        }
    }
}

fn read(reader: &mut impl BufRead) -> Result<SignatureFile> {
    let mut lines = Lines { reader, number: 0, longest: MAX_LINE };
    let format = format_line(&lines.next("format")?)?;
    let kind = lines.field("kind", "file, manifest or message", StatementKind::parse)?;
    let key: KeyVersionId = lines.parsed("key")?;
    let public_key: PublicKey = lines.parsed("public-key")?;
    let algorithm = key.key_id().algorithm();
    if public_key.algorithm() != algorithm {
        return Err(
            lines.error("public-key", format_args!("it must be one of the key's algorithm, {algorithm}"))
        );
    }
    let file = SignatureFile {
        kind,
        key,
        public_key,
        digest: {
            lines.field("digest-algorithm", "blake3", |text| (text == "blake3").then_some(()))?;
            lines.field("digest", "64 lower-case hexadecimal digits", encoding::digest)?
        },
        size: lines.field("size", "a decimal number below 2^64 without leading zeros", size)?,
        signed_at: lines.parsed("time")?,
        comment: lines.parsed::<Comment>("comment")?,
        name: match format {
            Format::V1 | Format::V2 => None,
            Format::V3 if kind == StatementKind::File => Some(lines.parsed("name")?),
            Format::V3 => return Err(lines.error("name", "only signatures of files have one")),
        },
        prehash: prehash(&mut lines, format, algorithm)?,
        signature: {
            let length = algorithm.output_length();
            lines.longest = MAX_LINE.max("signature: ".len() + length.div_ceil(3) * 4 + 1);
            let of_length = |text: &str| encoding::from_base64(text).filter(|bytes| bytes.len() == length);
            lines.field("signature", &format!("the base64 of {length} bytes"), of_length)?
        },
    };
    match file.kind {
        StatementKind::Manifest => {
            let line = lines.next("the empty line before the body")?;
            if line.is_empty() {
                Ok(file)
            } else {
                Err(malformed(format!("line {}: it must be empty", lines.number)))
            }
        }
        kind @ (StatementKind::File | StatementKind::Message) => {
            let more = !lines.reader.fill_buf().map_err(unreadable)?.is_empty();
            if more { Err(trailing(kind)) } else { Ok(file) }
        }
    }
}

/// The line that names the hash function applied before signing, if the format has it.
fn prehash<R: BufRead>(
    lines: &mut Lines<'_, R>,
    format: Format,
    algorithm: Algorithm,
) -> Result<Option<Prehash>> {
    let value = match format {
        Format::V1 => return Ok(None),
        Format::V2 | Format::V3 => lines.value("prehash")?,
    };
    if format == Format::V3 && value.is_empty() {
        return Ok(None);
    }
    if algorithm != Algorithm::Ed25519 {
        return Err(lines.error("prehash", "digests are signed by keys of ed25519 alone"));
    }
    let known =
        value.parse().map_err(|error: KmsError| lines.error("prehash", &error.message).with_source(error));
    known.map(Some)
}

/// The formats. The second has a line that names the hash function applied before signing, which is
/// empty in the third if there was none. The third also has the file's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    V1,
    V2,
    V3,
}

fn format_line(line: &str) -> Result<Format> {
    match line.strip_prefix(FORMAT) {
        Some("1") => Ok(Format::V1),
        Some("2") => Ok(Format::V2),
        Some("3") => Ok(Format::V3),
        Some(version) if version.parse::<u32>().is_ok_and(|version| version > 3) => Err(KmsError::new(
            Code::SignatureTooNew,
            format!(
                "the signature file is of format v{version} and this program reads up to v3; use a newer version"
            ),
        )),
        _ => Err(malformed("line 1: it must be \"bulla signature v1\", v2 or v3")),
    }
}

fn size(text: &str) -> Option<u64> {
    let size: u64 = text.parse().ok()?;
    (size.to_string() == text).then_some(size)
}

fn unreadable(error: std::io::Error) -> KmsError {
    KmsError::io("cannot read the signature file", error)
}

struct Lines<'a, R> {
    reader: &'a mut R,
    number: u32,
    /// The most bytes of the next line with its line feed.
    longest: usize,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line without its line feed. `name` is for the error.
    fn next(&mut self, name: &str) -> Result<String> {
        self.number += 1;
        let mut line = Vec::new();
        (&mut *self.reader).take(self.longest as u64).read_until(b'\n', &mut line).map_err(unreadable)?;
        match line.pop() {
            None => Err(self.error(name, "it is missing: the file ends here")),
            Some(b'\n') if line.last() == Some(&b'\r') => {
                Err(self.error(name, "it ends with a carriage return; lines end with a line feed alone"))
            }
            Some(b'\n') => String::from_utf8(line).map_err(|_| self.error(name, "it is not UTF-8")),
            Some(_) if line.len() + 1 == self.longest => {
                Err(self.error(name, format_args!("it is longer than {} bytes", self.longest - 1)))
            }
            Some(_) => Err(self.error(name, "it is cut: there is no line feed at its end")),
        }
    }

    /// The value of the next line, which must be `name: value`; an empty value is `name:`.
    fn value(&mut self, name: &str) -> Result<String> {
        let line = self.next(name)?;
        let value = match line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix(' ').filter(|value| !value.is_empty()),
            None => None,
        };
        value.map(str::to_owned).ok_or_else(|| {
            self.error(name, format_args!("it must begin with \"{name}: \", or be \"{name}:\" when empty"))
        })
    }

    fn field<T>(&mut self, name: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        let value = self.value(name)?;
        parse(&value).ok_or_else(|| self.error(name, format_args!("it must be {expected}")))
    }

    fn parsed<T: FromStr<Err = KmsError>>(&mut self, name: &str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|error: KmsError| self.error(name, &error.message).with_source(error))
    }

    fn error(&self, name: &str, why: impl fmt::Display) -> KmsError {
        malformed(format!("line {}, {name}: {why}", self.number))
    }
}
