//! Random bytes from the operating system.

use crate::error::{Code, KmsError, Result};

/// Fills `bytes` with random bytes from the operating system.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(unavailable)
}

/// Fills `bytes` with random bytes from the operating system, for what a caller needs beside keys:
/// nonces and serial numbers.
///
/// ```
/// let mut nonce = [0; 16];
/// bulla_kms::generate_random(&mut nonce)?;
/// assert_ne!(nonce, [0; 16]);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// # Errors
/// [`Code::RandomUnavailable`].
pub fn generate_random(bytes: &mut [u8]) -> Result<()> {
    fill(bytes)
}

/// The error if the operating system gives no random bytes.
pub(crate) fn unavailable(error: getrandom::Error) -> KmsError {
    KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes").with_source(error)
}
