//! How keys of ECDSA and RSA sign: the hash function and, for RSA, the padding. How messages are
//! hashed for keys of Ed25519.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::error::{Code, KmsError, Result};

/// How a message is hashed before it is signed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prehash {
    /// BLAKE3, in a frame that any Ed25519 implementation can sign and verify.
    Blake3,
    /// SHA-512, as Ed25519ph (RFC 8032, section 5.1).
    Ed25519ph,
}

impl Prehash {
    /// The name in a signature file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Ed25519ph => "ed25519ph",
        }
    }
}

impl FromStr for Prehash {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Blake3, Self::Ed25519ph]
            .into_iter()
            .find(|prehash| prehash.as_str() == text)
            .ok_or_else(|| KmsError::new(Code::InvalidArgument, "a prehash is blake3 or ed25519ph"))
    }
}

impl fmt::Display for Prehash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A hash function whose digests keys of ECDSA and RSA sign.
///
/// ```
/// use bulla_kms::prehash::HashFunction;
///
/// assert_eq!(HashFunction::Sha384.as_str(), "sha384");
/// assert_eq!("sha384".parse().ok(), Some(HashFunction::Sha384));
/// assert_eq!(HashFunction::Sha384.digest_length(), 48);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashFunction {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashFunction {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Sha256, Self::Sha384, Self::Sha512];

    /// The name, as in `sha256`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// The length of a digest in bytes.
    pub const fn digest_length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The digest of a message.
    pub(crate) fn hash(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

impl FromStr for HashFunction {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|hash| hash.as_str() == text);
        found.ok_or_else(|| {
            KmsError::new(Code::InvalidArgument, "a hash function is sha256, sha384 or sha512")
        })
    }
}

impl fmt::Display for HashFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How an RSA key pads a digest before it signs it (RFC 8017, section 8). The default is PSS with a
/// salt as long as the digest.
///
/// ```
/// use bulla_kms::prehash::{PssSaltLength, RsaPadding};
///
/// assert_eq!(RsaPadding::default(), RsaPadding::Pss(PssSaltLength::Hash));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RsaPadding {
    /// RSASSA-PSS, with MGF1 of the same hash function.
    Pss(PssSaltLength),
    /// RSASSA-PKCS1-v1_5.
    Pkcs1v15,
}

impl Default for RsaPadding {
    fn default() -> Self {
        Self::Pss(PssSaltLength::Hash)
    }
}

/// The length of the salt of RSASSA-PSS.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PssSaltLength {
    /// The length of a digest, which is the usual one.
    #[default]
    Hash,
    /// The longest salt for which the key has room.
    Max,
    /// Signatures have the longest salt. To verify, the salt may be the longest one, as long as a
    /// digest of any of our hash functions, 20 bytes, or empty.
    Auto,
    /// This many bytes. Keys sign only if that is the length of a digest or the longest one.
    Bytes(u16),
}
