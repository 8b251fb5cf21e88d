//! The errors for bytes that are not a key in a format.

use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError};

/// The maximum length of input in bytes: no key in any format is longer.
pub const MAX_INPUT: usize = 64 << 10;

/// The error for bytes that are not a public key in a format.
pub(super) fn invalid_public(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::InvalidPublicKey, format!("not a public key: {why}"))
}

/// The error for bytes that are not a private key in a format. It quotes nothing of the bytes.
pub(super) fn malformed(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::MalformedKey, format!("not a private key that can be imported: {why}"))
}

pub(super) fn unsupported(format: &str, algorithm: Algorithm) -> KmsError {
    KmsError::new(Code::UnsupportedFormat, format!("{format} has no form for keys of {algorithm}"))
}
