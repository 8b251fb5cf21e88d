//! Random bytes from the operating system.

use crate::error::{Code, KmsError, Result};

/// Fills `bytes` with random bytes from the operating system.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(unavailable)
}

/// The error if the operating system gives no random bytes.
pub(crate) fn unavailable(error: getrandom::Error) -> KmsError {
    KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes").with_source(error)
}
