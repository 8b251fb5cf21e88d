//! A signature with the key version that made it.

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
