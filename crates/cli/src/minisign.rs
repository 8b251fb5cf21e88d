//! The formats of minisign (<https://jedisct1.github.io/minisign/>, "Signature format" and "Public
//! key format").
//!
//! A signature signs the BLAKE2b-512 digest of the file (`ED`) or, in an older form, the file
//! itself (`Ed`). A second, global signature signs the first signature and the trusted comment.

use crate::error::Error;
use crate::files::read::{ReadError, Source};
use crate::progress::Progress;
use base64ct::{Base64, Encoding};
use blake2::{Blake2b512, Digest as _};
use bulla_kms::PublicKey;
use std::fmt;

/// The beginning of a file's first line.
pub(crate) const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";
const KEY_ALGORITHM: [u8; 2] = *b"Ed";

/// The largest file whose legacy signature is verified, because the whole file must be in memory.
/// minisign has the same limit.
pub(crate) const LEGACY_LIMIT: u64 = 1 << 30;

/// The number by which minisign distinguishes keys. It proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyVersionId([u8; 8]);

impl KeyVersionId {
    /// The id of one of our keys. It is derived from the public key, so it never changes.
    pub(crate) fn of(key: &PublicKey) -> Self {
        Self(bulla_kms::transfer::minisign::key_id(key))
    }
}

impl fmt::Display for KeyVersionId {
    /// Prints it like minisign: the number, little-endian, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}

/// The BLAKE2b-512 digest of a file.
pub(crate) type Digest = [u8; 64];

/// The digest that a signature of the file signs.
pub(crate) fn prehash(source: &Source, progress: &Progress) -> Result<Digest, ReadError> {
    let mut hasher = Blake2b512::new();
    source.for_each(progress, |bytes| hasher.update(bytes))?;
    Ok(hasher.finalize().into())
}

/// A public key with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedKey {
    pub(crate) id: KeyVersionId,
    pub(crate) key: PublicKey,
}

impl NamedKey {
    /// The minisign form of one of our keys.
    pub(crate) fn of(key: PublicKey) -> Self {
        Self { id: KeyVersionId::of(&key), key }
    }

    /// Reads a public key file, or only its line of base64.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let line = if first.starts_with(UNTRUSTED) { lines.next().unwrap_or_default() } else { first };
        let bytes: [u8; 42] = decode(line)
            .ok_or("a minisign public key is a line of 56 base64 characters, and there is no such line")?;
        let (algorithm, id, key) = (&bytes[..2], &bytes[2..10], &bytes[10..]);
        if algorithm != KEY_ALGORITHM {
            return Err("the public key has an algorithm that minisign does not have".to_owned());
        }
        let id = KeyVersionId(id.try_into().map_err(|_| "the key id is short")?);
        let key = PublicKey::from_bytes(bulla_kms::Algorithm::Ed25519, key);
        Ok(Self { id, key: key.map_err(|error| error.to_string())? })
    }

    /// The line of base64.
    pub(crate) fn line(&self) -> String {
        encode(&[&KEY_ALGORITHM, &self.id.0, self.key.as_bytes()])
    }
}

impl fmt::Display for NamedKey {
    /// A public key file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{UNTRUSTED}minisign public key {}\n{}\n", self.id, self.line())
    }
}

/// Refuses algorithms that minisign does not have: all except Ed25519.
pub(crate) fn check_algorithm(algorithm: bulla_kms::Algorithm) -> Result<(), Error> {
    if algorithm == bulla_kms::Algorithm::Ed25519 { Ok(()) } else { Err(unsupported(algorithm)) }
}

fn unsupported(algorithm: bulla_kms::Algorithm) -> Error {
    let message = format!("is a {algorithm} key, but minisign has only Ed25519 signatures");
    Error::new("unsupported_algorithm", message)
        .hint("name an Ed25519 key with --key, or leave out --format minisign")
}

/// The content that a signature signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// The file itself.
    Legacy,
    /// Its BLAKE2b-512 digest.
    Prehashed,
}

/// A signature file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) algorithm: Algorithm,
    pub(crate) key: KeyVersionId,
    pub(crate) signature: [u8; 64],
    pub(crate) trusted_comment: String,
    /// The signature of the signature and the trusted comment.
    pub(crate) global: [u8; 64],
}

impl Signature {
    /// Reads a signature file. The error names the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let mut line = |number: u32| lines.next().ok_or_else(|| format!("line {number} is missing"));
        if !line(1)?.starts_with(UNTRUSTED) {
            return Err(format!("line 1 does not start with `{UNTRUSTED}`"));
        }
        let bytes: [u8; 74] = decode(line(2)?).ok_or("line 2 is not the base64 of a signature")?;
        let algorithm = match &bytes[..2] {
            b"Ed" => Algorithm::Legacy,
            b"ED" => Algorithm::Prehashed,
            _ => return Err("line 2 has an algorithm that minisign does not have".to_owned()),
        };
        let trusted_comment = line(3)?
            .strip_prefix(TRUSTED)
            .ok_or_else(|| format!("line 3 does not start with `{TRUSTED}`"))?
            .to_owned();
        let global = decode(line(4)?).ok_or("line 4 is not the base64 of a signature")?;
        if lines.next().is_some() {
            return Err("there is text after line 4".to_owned());
        }
        let mut key = [0; 8];
        key.copy_from_slice(&bytes[2..10]);
        let mut signature = [0; 64];
        signature.copy_from_slice(&bytes[10..]);
        Ok(Self { algorithm, key: KeyVersionId(key), signature, trusted_comment, global })
    }

    /// The bytes of a signature in minisign's format, which is only for Ed25519. Signatures of
    /// other algorithms may have the same length.
    pub(crate) fn bytes(algorithm: bulla_kms::Algorithm, signature: Vec<u8>) -> Result<[u8; 64], Error> {
        check_algorithm(algorithm)?;
        signature.try_into().map_err(|_| unsupported(algorithm))
    }

    /// The content that the global signature signs.
    pub(crate) fn global_message(signature: &[u8; 64], trusted_comment: &str) -> Vec<u8> {
        [signature, trusted_comment.as_bytes()].concat()
    }

    /// Whether the global signature verifies with `key`. Then the file is as its signer made it.
    pub(crate) fn comment_verifies(&self, key: &PublicKey) -> bool {
        let global = Self::global_message(&self.signature, &self.trusted_comment);
        key.verify(&global, &self.global).is_valid()
    }

    /// Whether the signature of `message` verifies with `key`. This does not check the trusted
    /// comment.
    ///
    /// `message` is the file or its digest, depending on [`Signature::algorithm`].
    pub(crate) fn verifies(&self, key: &PublicKey, message: &[u8]) -> bool {
        key.verify(message, &self.signature).is_valid()
    }

    /// The text of the file, with `comment` as the untrusted comment.
    pub(crate) fn file(&self, comment: &str) -> String {
        let algorithm = match self.algorithm {
            Algorithm::Legacy => b"Ed",
            Algorithm::Prehashed => b"ED",
        };
        let signature = encode(&[algorithm, &self.key.0, &self.signature]);
        let global = encode(&[&self.global]);
        format!("{UNTRUSTED}{comment}\n{signature}\n{TRUSTED}{}\n{global}\n", self.trusted_comment)
    }
}

fn encode(parts: &[&[u8]]) -> String {
    Base64::encode_string(&parts.concat())
}

fn decode<const N: usize>(line: &str) -> Option<[u8; N]> {
    Base64::decode_vec(line.trim_end()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example public key of minisign's manual page.
    const EXAMPLE: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    #[test]
    fn a_public_key_is_read_as_a_line_and_as_a_file_and_written_the_same() {
        let key = NamedKey::parse(EXAMPLE).unwrap();
        assert_eq!(key.id.to_string(), "E7620F1842B4E81F");
        assert_eq!(key.line(), EXAMPLE);
        assert_eq!(NamedKey::parse(&key.to_string()).unwrap(), key);
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        for text in ["", "RWQ", "untrusted comment: x", &EXAMPLE.replace("RWQ", "RUQ"), &EXAMPLE[..52]] {
            assert!(NamedKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_signature_file_is_read_as_it_was_written() {
        for algorithm in [Algorithm::Legacy, Algorithm::Prehashed] {
            let signature = Signature {
                algorithm,
                key: NamedKey::parse(EXAMPLE).unwrap().id,
                signature: [1; 64],
                trusted_comment: "timestamp:1\tfile:a".to_owned(),
                global: [2; 64],
            };
            let file = signature.file("anything");
            assert_eq!(Signature::parse(&file).unwrap(), signature);
            assert_eq!(Signature::parse(&file.replace('\n', "\r\n")).unwrap(), signature);
            assert_eq!(Signature::parse(&format!("{file}more\n")).unwrap_err(), "there is text after line 4");
            for (number, line) in file.lines().enumerate() {
                let without = file.replacen(&format!("{line}\n"), "\n", 1);
                let error = Signature::parse(&without).unwrap_err();
                assert!(error.contains(&format!("line {}", number + 1)), "{error}");
            }
        }
    }
}
