//! The sign by which a keystore recognizes a version's private key: its public key or, for a
//! symmetric algorithm, a digest of its secret.

use std::fmt;
use std::str::FromStr;

use crate::algorithm::Algorithm;
use crate::backend::PrivateKey;
use crate::encoding::{self, serde_as_text};
use crate::error::{KmsError, Result};
use crate::public_key::PublicKey;

/// A digest of a symmetric key's secret: see [`PrivateKey::check_value`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckValue([u8; 32]);

impl fmt::Display for CheckValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encoding::hex(&self.0))
    }
}

/// Shows nothing: the value is computed from a secret.
impl fmt::Debug for CheckValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckValue")
    }
}

impl FromStr for CheckValue {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let digest = encoding::digest(text);
        let malformed = || KmsError::corrupt("a check value is not 64 lower-case hexadecimal digits");
        digest.map(|digest| Self(digest.into())).ok_or_else(malformed)
    }
}

serde_as_text!(CheckValue);

impl CheckValue {
    pub(crate) fn of(key: &dyn PrivateKey) -> Result<Self> {
        key.check_value().map(Self)
    }
}

/// The sign by which a keystore recognizes a version's private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyIdentity {
    PublicKey(PublicKey),
    CheckValue(CheckValue),
}

impl KeyIdentity {
    /// The identity of a private key.
    pub(crate) fn of(algorithm: Algorithm, key: &dyn PrivateKey) -> Result<Self> {
        if algorithm.is_symmetric() {
            return CheckValue::of(key).map(Self::CheckValue);
        }
        PublicKey::from_bytes(algorithm, &key.public_key()?).map(Self::PublicKey)
    }

    /// The public key, if there is one.
    #[cfg(feature = "transfer")]
    pub(crate) fn public_key(&self) -> Option<&PublicKey> {
        match self {
            Self::PublicKey(key) => Some(key),
            Self::CheckValue(_) => None,
        }
    }

    /// The public key or the check value.
    pub(crate) fn into_fields(self) -> (Option<PublicKey>, Option<CheckValue>) {
        match self {
            Self::PublicKey(key) => (Some(key), None),
            Self::CheckValue(value) => (None, Some(value)),
        }
    }
}
