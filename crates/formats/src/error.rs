//! How a key signs for a format, and why a text does not have a format.

use std::fmt;

use bulla_kms::PublicKey;

/// Why a text is not a signature or a key of a format: one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(String);

impl FormatError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}

/// A key that signs messages.
pub trait MessageSigner {
    /// Why it does not sign.
    type Error: From<FormatError>;

    /// Signs a message. All calls of one signer sign by one version of a key.
    ///
    /// # Errors
    /// Those of the key.
    fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error>;
}
