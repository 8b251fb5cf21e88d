//! Public keys, for those who verify without a keystore.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backend;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::{Algorithm, KeyId, serde_as_text};

/// What a verification says of a signature.
///
/// There is no reason beside `Invalid` on purpose: the equation does not tell a changed message from a changed
/// signature or another key.
#[must_use = "a verdict that is not looked at verifies nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature is one of this message under this key.
    Valid,
    /// It is not.
    Invalid,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}

/// An Ed25519 public key (RFC 8032, section 5.1.5): 32 bytes that decode to a point that is not of small order.
///
/// The text form is the base64 of the bytes, 44 characters with the padding.
#[derive(Clone, Copy)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl PublicKey {
    /// From the 32 bytes.
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`] for another length, for bytes that are no point of the curve, and for a point of
    /// small order, under which one signature fits almost every message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let invalid =
            |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not an Ed25519 public key: {why}"));
        let bytes = bytes.try_into().map_err(|_| invalid("it does not have 32 bytes"))?;
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes)
            .map_err(|_| invalid("the bytes are no point of the curve"))?;
        if key.is_weak() { Err(invalid("the point is of small order")) } else { Ok(Self(key)) }
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Whether `signature` is one of `message` under this key.
    ///
    /// The predicate is the strict one, `verify_strict` of `ed25519-dalek` 3: the equation without the cofactor,
    /// R compared as bytes, S below the order of the group, A and R not of small order. A signature of a length
    /// other than 64 bytes is invalid.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Verdict {
        backend::for_algorithm(Algorithm::Ed25519).verify(self, message, signature)
    }

    pub(crate) fn from_dalek(key: ed25519_dalek::VerifyingKey) -> Self {
        Self(key)
    }

    pub(crate) fn as_dalek(&self) -> &ed25519_dalek::VerifyingKey {
        &self.0
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for PublicKey {}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&encoding::base64(self.as_bytes()))
    }
}

impl FromStr for PublicKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = encoding::from_base64::<32>(text).ok_or_else(|| {
            KmsError::new(Code::InvalidPublicKey, "not a public key: it is not the base64 of 32 bytes")
        })?;
        Self::from_bytes(&bytes)
    }
}

serde_as_text!(PublicKey);

/// A public key with the id of the key version it belongs to, as it is handed to those who verify.
///
/// The text form is two lines, each with its line feed:
///
/// ```text
/// bulla public key v1: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3
/// 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPublicKey {
    /// The key version.
    pub key: KeyId,
    /// Its public key.
    pub public_key: PublicKey,
}

const HEADER: &str = "bulla public key v1: ";

impl fmt::Display for NamedPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEADER}{}\n{}\n", self.key, self.public_key)
    }
}

impl FromStr for NamedPublicKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not a public key file: {why}"));
        let (first, rest) =
            text.split_once('\n').ok_or_else(|| invalid("line 1 does not end with a line feed"))?;
        let key = first
            .strip_prefix(HEADER)
            .ok_or_else(|| invalid("line 1 does not start with \"bulla public key v1: \""))?;
        let line = rest.strip_suffix('\n').ok_or_else(|| invalid("line 2 does not end with a line feed"))?;
        Ok(Self {
            key: key.parse().map_err(|error| invalid(&format!("line 1: {error}")))?,
            public_key: line.parse().map_err(|error| invalid(&format!("line 2: {error}")))?,
        })
    }
}
