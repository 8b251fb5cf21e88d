//! The strict parser of signature files: the fields in order, one form for each, only line feeds.

use std::fmt;
use std::io::{BufRead, Read};

use super::file::{Comment, Kind, SignatureFile};
use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::public_key::PublicKey;

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

fn trailing(kind: Kind) -> KmsError {
    match kind {
        Kind::Manifest => malformed("after the empty line: a manifest's body follows where none is expected"),
        Kind::File | Kind::Message => malformed("after the line of the signature: nothing may follow"),
    }
}

fn read(reader: &mut impl BufRead) -> Result<SignatureFile> {
    let mut lines = Lines { reader, number: 0, longest: MAX_LINE };
    let format = format_line(&lines.next("format")?)?;
    let kind = lines.field("kind", "file, manifest or message", Kind::parse)?;
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
        prehash: match format {
            Format::V1 => None,
            Format::V2 if algorithm == Algorithm::Ed25519 => Some(lines.parsed("prehash")?),
            Format::V2 => {
                return Err(lines.error("prehash", "digests are signed by keys of ed25519 alone"));
            }
        },
        signature: {
            let length = algorithm.output_length();
            lines.longest = MAX_LINE.max("signature: ".len() + length.div_ceil(3) * 4 + 1);
            let of_length = |text: &str| encoding::from_base64(text).filter(|bytes| bytes.len() == length);
            lines.field("signature", &format!("the base64 of {length} bytes"), of_length)?
        },
    };
    match file.kind {
        Kind::Manifest => {
            let line = lines.next("the empty line before the body")?;
            if line.is_empty() {
                Ok(file)
            } else {
                Err(malformed(format!("line {}: it must be empty", lines.number)))
            }
        }
        kind @ (Kind::File | Kind::Message) => {
            let more = !lines.reader.fill_buf().map_err(unreadable)?.is_empty();
            if more { Err(trailing(kind)) } else { Ok(file) }
        }
    }
}

/// The formats. The second has a line that names the hash function applied before signing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    V1,
    V2,
}

fn format_line(line: &str) -> Result<Format> {
    match line.strip_prefix(FORMAT) {
        Some("1") => Ok(Format::V1),
        Some("2") => Ok(Format::V2),
        Some(version) if version.parse::<u32>().is_ok_and(|version| version > 2) => Err(KmsError::new(
            Code::SignatureTooNew,
            format!(
                "the signature file is of format v{version} and this program reads up to v2; use a newer version"
            ),
        )),
        _ => Err(malformed("line 1: it must be \"bulla signature v1\" or \"bulla signature v2\"")),
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

    fn parsed<T: std::str::FromStr<Err = KmsError>>(&mut self, name: &str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|error: KmsError| self.error(name, &error.message).with_source(error))
    }

    fn error(&self, name: &str, why: impl fmt::Display) -> KmsError {
        malformed(format!("line {}, {name}: {why}", self.number))
    }
}
