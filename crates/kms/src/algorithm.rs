//! The algorithms that keys may have.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Code, KmsError, Result};
use crate::id::serde_as_text;

/// An algorithm, by the name that stands in a key id.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032), verified strictly: see [`PublicKey::verify`](crate::PublicKey::verify).
    Ed25519,
}

/// What is known of an algorithm without a key.
struct Facts {
    name: &'static str,
    public_key: usize,
    signature: usize,
}

impl Algorithm {
    /// All of them, in the order of their names' first use.
    pub const ALL: [Self; 1] = [Self::Ed25519];

    const fn facts(self) -> Facts {
        match self {
            Self::Ed25519 => Facts { name: "ed25519", public_key: 32, signature: 64 },
        }
    }

    /// The name in a key id.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The length of a public key in bytes.
    pub const fn public_key_length(self) -> usize {
        self.facts().public_key
    }

    /// The length of a signature in bytes.
    pub const fn signature_length(self) -> usize {
        self.facts().signature
    }
}

impl FromStr for Algorithm {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            KmsError::new(Code::InvalidId, format!("the algorithm {text:?} is unknown; known are: {names}"))
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

serde_as_text!(Algorithm);
