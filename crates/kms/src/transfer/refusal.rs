//! Why bytes are no key of a format.

use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError};

/// The longest input that is looked at, in bytes: no key in any format is as long.
pub const MAX_INPUT: usize = 64 << 10;

/// The error of bytes that are no public key of a format.
pub(super) fn invalid_public(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::InvalidPublicKey, format!("not a public key: {why}"))
}

/// The error of bytes that are no private key of a format. It says nothing of the bytes.
pub(super) fn malformed(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::MalformedKey, format!("not a private key that can be imported: {why}"))
}

pub(super) fn unsupported(format: &str, algorithm: Algorithm) -> KmsError {
    KmsError::new(Code::UnsupportedFormat, format!("{format} has no form for keys of {algorithm}"))
}
