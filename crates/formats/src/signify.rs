//! The formats of OpenBSD's signify (signify(1), and `signify.c` for the bytes).
//!
//! A signature file has a line with a comment, which nothing covers, and a line of base64: `Ed`,
//! the key's number, and an Ed25519 signature of the file itself. In an *embedded* signature, the
//! message follows, as in the lists of checksums that `signify -C` checks.

use std::fmt;

use bulla_kms::{Algorithm, PublicKey};

use crate::dsse::MESSAGE_PREFIX;
use crate::error::{FormatError, MessageSigner};
use crate::minisign::{ED25519, KeyNumber, NumberedKey, UNTRUSTED, decode, ed25519_bytes, encode};
use crate::{jws, ssh};

/// The most bytes of a comment: signify refuses longer ones.
const MAX_COMMENT_LEN: usize = 1023 - UNTRUSTED.len();

/// What the messages of other formats begin with, which the same keys sign. A file that begins like
/// this is not signed whole: its signature would pass for one in that other format.
const MESSAGES_OF_OTHERS: [&[u8]; 3] = [b"SSHSIG", MESSAGE_PREFIX, TLS];

/// What a server or a client signs to prove its certificate's key in TLS 1.3 (RFC 8446, section
/// 4.4.3) begins like this.
const TLS: &[u8] = b"                                                                TLS 1.3, ";

/// Refuses a file whose own signature would pass for one in another format.
pub(crate) fn check_message(content: &[u8]) -> Result<(), FormatError> {
    let is_of_others = MESSAGES_OF_OTHERS.iter().any(|prefix| content.starts_with(prefix));
    if is_of_others || jws::begins_like_one(content) || ssh::is_login_request(content) {
        let message =
            "it begins like the messages that other formats sign: its signature would pass for one of them";
        return Err(FormatError::new(message));
    }
    Ok(())
}

/// A signature file. `Display` writes the two lines, without an embedded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignifySignature {
    comment: String,
    number: KeyNumber,
    signature: [u8; 64],
    message: Option<Vec<u8>>,
}

/// Writes a public key file, as `signify -G` does.
///
/// ```
/// use bulla_formats::minisign::NumberedKey;
/// use bulla_formats::signify;
///
/// let key = NumberedKey::parse("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")?;
/// let file = signify::public_key(&key);
/// assert!(file.starts_with("untrusted comment: bulla public key\n"));
/// assert_eq!(NumberedKey::parse(&file)?, key);
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
pub fn public_key(key: &NumberedKey) -> String {
    format!("{UNTRUSTED}bulla public key\n{}\n", key.line())
}

/// Signs a file's bytes, and writes the signature file without an embedded message.
///
/// # Errors
/// The signer's key is not one of Ed25519; the comment is too long or has several lines; the file
/// begins like the messages of another format; the errors of the signer.
///
/// ```
/// use bulla_formats::{MessageSigner, signify};
/// # use bulla_kms::{Algorithm, Keystore, KeyVersionId, NewKey, PublicKey};
/// # struct KeystoreSigner<'a>(&'a Keystore, &'a KeyVersionId);
/// # impl MessageSigner for KeystoreSigner<'_> {
/// #     type Error = Box<dyn std::error::Error>;
/// #     fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error> {
/// #         Ok((self.0.public_key(self.1)?, self.0.sign(self.1, message)?.bytes))
/// #     }
/// # }
/// # let keystore = Keystore::in_memory()?;
/// # let key = keystore.create_key(NewKey::new("a".parse()?, "b".parse()?, Algorithm::Ed25519))?;
/// let mut signer = KeystoreSigner(&keystore, &key);
/// let text = signify::sign(&mut signer, b"a file", "signature from bulla")?;
/// let signature = signify::SignifySignature::parse(text.as_bytes())?;
/// assert!(signature.verifies(&keystore.public_key(&key)?, b"a file"));
/// assert_eq!(signature.message(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sign<S: MessageSigner>(signer: &mut S, content: &[u8], comment: &str) -> Result<String, S::Error> {
    if comment.len() > MAX_COMMENT_LEN || comment.contains(['\n', '\r']) {
        let message = format!("a comment of signify is one line of at most {MAX_COMMENT_LEN} bytes");
        return Err(FormatError::new(message).into());
    }
    check_message(content)?;
    let (key, signature) = signer.sign(content)?;
    let signature = ed25519_bytes(&key, &signature)?;
    let file = SignifySignature {
        comment: comment.to_owned(),
        number: KeyNumber::of(&key),
        signature,
        message: None,
    };
    Ok(file.to_string())
}

impl SignifySignature {
    /// Reads a signature file, with or without an embedded message.
    ///
    /// # Errors
    /// The file is malformed. The error names the line.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let missing = |number: u32| FormatError::new(format!("line {number} is missing, or cut"));
        let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
        let comment = lines.next().unwrap_or_default();
        let comment = comment
            .strip_prefix(UNTRUSTED.as_bytes())
            .ok_or_else(|| FormatError::new(format!("line 1 does not start with `{UNTRUSTED}`")))?;
        if comment.len() > MAX_COMMENT_LEN {
            return Err(FormatError::new(format!("line 1 is longer than {MAX_COMMENT_LEN} bytes")));
        }
        let comment = std::str::from_utf8(comment).map_err(|_| FormatError::new("line 1 is not UTF-8"))?;
        let line = std::str::from_utf8(lines.next().ok_or_else(|| missing(2))?).unwrap_or_default();
        let bytes: [u8; 74] =
            decode(line).ok_or_else(|| FormatError::new("line 2 is not the base64 of a signature"))?;
        if bytes[..2] != ED25519 {
            return Err(FormatError::new("line 2 has an algorithm that signify does not have"));
        }
        let message = lines.next().ok_or_else(|| missing(2))?;
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[2..10]);
        let mut signature = [0; 64];
        signature.copy_from_slice(&bytes[10..]);
        Ok(Self {
            comment: comment.to_owned(),
            number: KeyNumber(number),
            signature,
            message: (!message.is_empty()).then(|| message.to_vec()),
        })
    }

    /// The number of the key that signed, as the file claims.
    pub fn number(&self) -> KeyNumber {
        self.number
    }

    /// The comment, which nothing covers.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// The embedded message, if there is one.
    pub fn message(&self) -> Option<&[u8]> {
        self.message.as_deref()
    }

    /// Whether the signature of a file's bytes verifies with `key`.
    pub fn verifies(&self, key: &PublicKey, content: &[u8]) -> bool {
        key.algorithm() == Algorithm::Ed25519 && key.verify(content, &self.signature).is_valid()
    }
}

impl fmt::Display for SignifySignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = encode(&[&ED25519, &self.number.0, &self.signature]);
        write!(f, "{UNTRUSTED}{}\n{line}\n", self.comment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_other_formats_are_not_signed_whole() {
        let field = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let login = |method: &[u8], last: &[u8]| {
            let session = [&field(&[7; 32])[..], &[50], &field(b"root"), &field(b"ssh-connection")].concat();
            [&session[..], &field(method), &[1], &field(b"ssh-ed25519"), &field(b"key"), last].concat()
        };
        let server = [&[b' '; 64][..], b"TLS 1.3, server CertificateVerify\0", &[7; 32]].concat();
        for message in [
            login(b"publickey", b""),
            login(b"publickey-hostbound-v00@openssh.com", &field(b"host key")),
            server.clone(),
            b"SSHSIG".to_vec(),
            b"DSSEv1 1 a 1 b".to_vec(),
            b"eyJhbGciOiJFZERTQSJ9.YQ".to_vec(),
        ] {
            assert!(check_message(&message).is_err(), "{}", message.escape_ascii());
        }
        for file in [&b"a file"[..], b"", &server[1..], &login(b"publickey", b"more"), &login(b"none", b"")] {
            assert!(check_message(file).is_ok(), "{}", file.escape_ascii());
        }
    }

    #[test]
    fn a_signature_file_is_read_as_it_was_written() {
        let signature = SignifySignature {
            comment: "verify with k.pub".to_owned(),
            number: KeyNumber([7; 8]),
            signature: [1; 64],
            message: None,
        };
        let text = signature.to_string();
        assert_eq!(SignifySignature::parse(text.as_bytes()).unwrap(), signature);
        let embedded = format!("{text}SHA256 (a) = 00\n");
        let parsed = SignifySignature::parse(embedded.as_bytes()).unwrap();
        assert_eq!(parsed.message(), Some(&b"SHA256 (a) = 00\n"[..]));
        for len in 0..text.len() {
            assert!(SignifySignature::parse(&text.as_bytes()[..len]).is_err(), "{len}");
        }
        let other = text.replace("\nRW", "\nRU");
        assert!(SignifySignature::parse(other.as_bytes()).is_err());
    }
}
