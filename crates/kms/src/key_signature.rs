//! A signature or a MAC with the key version that made it, and the verdict on one.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding;
use crate::id::KeyVersionId;

/// A signature and the key version that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The key version.
    pub key: KeyVersionId,
    /// The signature, as the algorithm's specification writes it; for Ed25519 R and S (RFC 8032,
    /// section 5.1.6).
    pub bytes: Vec<u8>,
}

/// serde as the text form of the key and base64.
impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SignatureText { key: self.key.clone(), signature: encoding::base64(&self.bytes) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SignatureText { key, signature } = SignatureText::deserialize(deserializer)?;
        match encoding::from_base64(&signature) {
            Some(bytes) => Ok(Self { key, bytes }),
            None => Err(serde::de::Error::custom("a signature is base64")),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SignatureText {
    key: KeyVersionId,
    signature: String,
}

/// A message authentication code (MAC) and the key version that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mac {
    /// The key version.
    pub key: KeyVersionId,
    /// The MAC, of the algorithm's whole length.
    pub bytes: Vec<u8>,
}

/// The result of verifying a signature or a MAC.
///
/// `Invalid` has no reason, on purpose: the equation does not distinguish a changed message from a
/// changed signature or another key.
#[must_use = "ignoring the verdict skips verification"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature or MAC is valid for this message under this key.
    Valid,
    /// The signature or MAC is not valid.
    Invalid,
    /// Nothing was verified: the keystore has no such key or version, or may not use it.
    /// [`Keystore::verify`](crate::Keystore::verify) for this item alone reports why. Only calls
    /// with many items return this.
    Unusable,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}
