//! The formats of minisign (<https://jedisct1.github.io/minisign/>, "Signature format" and "Public
//! key format").
//!
//! A signature signs the BLAKE2b-512 digest of the file (`ED`) or, in an older form, the file
//! itself (`Ed`). A second, global signature signs the first signature and the trusted comment.

use std::fmt;

use base64ct::{Base64, Encoding};
use bulla_kms::{Algorithm, PublicKey, transfer};

use crate::content::Coverage;
use crate::error::{FormatError, MessageSigner};

/// The beginning of a file's first line.
pub const UNTRUSTED: &str = "untrusted comment: ";
pub(crate) const TRUSTED: &str = "trusted comment: ";
/// How keys and signatures of the file itself begin, also those of signify.
pub(crate) const ED25519: [u8; 2] = *b"Ed";

/// The number by which minisign and signify distinguish keys. It proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyNumber(pub(crate) [u8; 8]);

impl KeyNumber {
    /// The number of one of our keys. It is derived from the public key, so it never changes.
    pub fn of(key: &PublicKey) -> Self {
        Self(transfer::minisign::key_id(key))
    }
}

impl fmt::Display for KeyNumber {
    /// Prints it like minisign: the number, little-endian, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}

/// A public key with its number.
///
/// ```
/// use bulla_formats::minisign::{KeyNumber, NumberedKey};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// // The example of minisign's manual page.
/// let line = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
/// let key = NumberedKey::parse(line)?;
/// assert_eq!(key.number.to_string(), "E7620F1842B4E81F");
/// assert_eq!(key.line(), line);
/// assert_eq!(NumberedKey::of(key.key.clone()).number, KeyNumber::of(&key.key));
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedKey {
    /// The number.
    pub number: KeyNumber,
    /// The key, which is one of Ed25519.
    pub key: PublicKey,
}

impl NumberedKey {
    /// The form of one of our keys.
    pub fn of(key: PublicKey) -> Self {
        Self { number: KeyNumber::of(&key), key }
    }

    /// Reads a public key file of minisign or signify, or only its line of base64.
    ///
    /// # Errors
    /// The text is not a public key of these formats.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let line = if first.starts_with(UNTRUSTED) { lines.next().unwrap_or_default() } else { first };
        let bytes: [u8; 42] = decode(line).ok_or_else(|| {
            FormatError::new(
                "a public key of minisign is a line of 56 base64 characters, and there is no such line",
            )
        })?;
        if bytes[..2] != ED25519 {
            return Err(FormatError::new("the public key has an algorithm that minisign does not have"));
        }
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[2..10]);
        let key = PublicKey::from_bytes(Algorithm::Ed25519, &bytes[10..]);
        Ok(Self { number: KeyNumber(number), key: key.map_err(|error| FormatError::new(error.message))? })
    }

    /// The line of base64.
    pub fn line(&self) -> String {
        encode(&[&ED25519, &self.number.0, self.key.as_bytes()])
    }
}

/// What a signature signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signed {
    /// The file itself.
    Whole,
    /// Its BLAKE2b-512 digest.
    Digest,
}

/// A signature file. `Display` writes it, with the untrusted comment that it was read with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinisignSignature {
    signed: Signed,
    number: KeyNumber,
    signature: [u8; 64],
    untrusted_comment: String,
    trusted_comment: String,
    /// The signature of the signature and the trusted comment.
    global: [u8; 64],
}

/// Signs the BLAKE2b-512 digest of a file, and writes the signature file.
///
/// # Errors
/// The signer's key is not one of Ed25519; the errors of the signer.
pub fn sign<S: MessageSigner>(
    signer: &mut S,
    digest: &[u8],
    trusted_comment: &str,
    untrusted_comment: &str,
) -> Result<String, S::Error> {
    let (key, signature) = signer.sign(digest)?;
    let signature = ed25519_bytes(&key, &signature)?;
    let (_, global) = signer.sign(&[&signature, trusted_comment.as_bytes()].concat())?;
    let global = ed25519_bytes(&key, &global)?;
    let file = MinisignSignature {
        signed: Signed::Digest,
        number: KeyNumber::of(&key),
        signature,
        untrusted_comment: untrusted_comment.to_owned(),
        trusted_comment: trusted_comment.to_owned(),
        global,
    };
    Ok(file.to_string())
}

/// The bytes of a signature of Ed25519. Signatures of other algorithms may have the same length.
pub(crate) fn ed25519_bytes(key: &PublicKey, signature: &[u8]) -> Result<[u8; 64], FormatError> {
    let bytes = match key.algorithm() {
        Algorithm::Ed25519 => signature.try_into().ok(),
        _ => None,
    };
    bytes.ok_or_else(|| FormatError::new("minisign and signify have only Ed25519 signatures"))
}

impl MinisignSignature {
    /// Reads a signature file.
    ///
    /// # Errors
    /// The file is malformed. The error names the line.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut lines = text.lines();
        let mut line =
            |number: u32| lines.next().ok_or_else(|| FormatError::new(format!("line {number} is missing")));
        let untrusted_comment = line(1)?
            .strip_prefix(UNTRUSTED)
            .ok_or_else(|| FormatError::new(format!("line 1 does not start with `{UNTRUSTED}`")))?;
        let no_base64 = |number| FormatError::new(format!("line {number} is not the base64 of a signature"));
        let bytes: [u8; 74] = decode(line(2)?).ok_or_else(|| no_base64(2))?;
        let signed = match &bytes[..2] {
            b"Ed" => Signed::Whole,
            b"ED" => Signed::Digest,
            _ => return Err(FormatError::new("line 2 has an algorithm that minisign does not have")),
        };
        let trusted_comment = line(3)?
            .strip_prefix(TRUSTED)
            .ok_or_else(|| FormatError::new(format!("line 3 does not start with `{TRUSTED}`")))?;
        let global = decode(line(4)?).ok_or_else(|| no_base64(4))?;
        if lines.next().is_some() {
            return Err(FormatError::new("there is text after line 4"));
        }
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[2..10]);
        let mut signature = [0; 64];
        signature.copy_from_slice(&bytes[10..]);
        Ok(Self {
            signed,
            number: KeyNumber(number),
            signature,
            untrusted_comment: untrusted_comment.to_owned(),
            trusted_comment: trusted_comment.to_owned(),
            global,
        })
    }

    /// The number of the key that signed, as the file claims.
    pub fn number(&self) -> KeyNumber {
        self.number
    }

    /// What the signature covers of the file.
    pub fn coverage(&self) -> Coverage {
        match self.signed {
            Signed::Whole => Coverage::Whole,
            Signed::Digest => Coverage::Blake2b512,
        }
    }

    /// The comment that the global signature covers.
    pub fn trusted_comment(&self) -> &str {
        &self.trusted_comment
    }

    /// Whether the global signature verifies with `key`. Then the signature file is as its signer
    /// made it.
    pub fn comment_verifies(&self, key: &PublicKey) -> bool {
        let global = [&self.signature, self.trusted_comment.as_bytes()].concat();
        key.algorithm() == Algorithm::Ed25519 && key.verify(&global, &self.global).is_valid()
    }

    /// Whether the signature of `content` verifies with `key`. This does not check the trusted
    /// comment.
    ///
    /// `content` is what [`MinisignSignature::coverage`] says: the file or its digest.
    pub fn verifies(&self, key: &PublicKey, content: &[u8]) -> bool {
        key.algorithm() == Algorithm::Ed25519 && key.verify(content, &self.signature).is_valid()
    }
}

impl fmt::Display for MinisignSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = match self.signed {
            Signed::Whole => b"Ed",
            Signed::Digest => b"ED",
        };
        let signature = encode(&[algorithm, &self.number.0, &self.signature]);
        let global = encode(&[&self.global]);
        let Self { untrusted_comment, trusted_comment, .. } = self;
        write!(f, "{UNTRUSTED}{untrusted_comment}\n{signature}\n{TRUSTED}{trusted_comment}\n{global}\n")
    }
}

pub(crate) fn encode(parts: &[&[u8]]) -> String {
    Base64::encode_string(&parts.concat())
}

pub(crate) fn decode<const N: usize>(line: &str) -> Option<[u8; N]> {
    Base64::decode_vec(line.trim_end()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example public key of minisign's manual page.
    const EXAMPLE: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    #[test]
    fn what_is_no_public_key_is_refused() {
        for text in ["", "RWQ", "untrusted comment: x", &EXAMPLE.replace("RWQ", "RUQ"), &EXAMPLE[..52]] {
            assert!(NumberedKey::parse(text).is_err(), "{text}");
        }
        let file = format!("{UNTRUSTED}a comment\n{EXAMPLE}\n");
        assert_eq!(NumberedKey::parse(&file), NumberedKey::parse(EXAMPLE));
    }

    #[test]
    fn a_signature_file_is_read_as_it_was_written() {
        for signed in [Signed::Whole, Signed::Digest] {
            let signature = MinisignSignature {
                signed,
                number: NumberedKey::parse(EXAMPLE).unwrap().number,
                signature: [1; 64],
                untrusted_comment: "anything".to_owned(),
                trusted_comment: "timestamp:1\tfile:a".to_owned(),
                global: [2; 64],
            };
            let parse = |text: &str| MinisignSignature::parse(text);
            let file = signature.to_string();
            assert_eq!(parse(&file).unwrap(), signature);
            assert_eq!(parse(&file.replace('\n', "\r\n")).unwrap(), signature);
            let error = parse(&format!("{file}more\n")).unwrap_err().to_string();
            assert_eq!(error, "there is text after line 4");
            for (number, line) in file.lines().enumerate() {
                let without = file.replacen(&format!("{line}\n"), "\n", 1);
                let error = parse(&without).unwrap_err().to_string();
                assert!(error.contains(&format!("line {}", number + 1)), "{error}");
            }
        }
    }
}
