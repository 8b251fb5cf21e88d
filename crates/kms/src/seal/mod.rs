//! Sealing: what is written leaves this module encrypted and bound to its place.

mod envelope;
mod root;

pub(crate) use envelope::{Envelope, Place};
pub(crate) use root::{Argon2Cost, Protection, RootKey, Sealer};

use crate::error::{Code, KmsError, Result};

/// Fills `bytes` with random bytes from the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes").with_source(error)
    })
}
