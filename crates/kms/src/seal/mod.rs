//! Sealing: what is written leaves this module encrypted and bound to its place.
//!
//! A [`KeyProvider`] makes and finds again the keys under which one other key lies: a [`Passphrase`], a key file
//! ([`KeyFileProvider`]), or whatever implements the trait. Keystores open with them
//! ([`Unlock::Provider`](crate::Unlock::Provider)).

mod envelope;
mod key_file;
mod passphrase;
mod provider;
mod root;

pub(crate) use envelope::{Envelope, Place};
#[cfg(test)]
pub(crate) use passphrase::Argon2Cost;
pub(crate) use root::{Protection, RootKey, Sealer};

pub use key_file::KeyFileProvider;
pub use passphrase::Passphrase;
pub use provider::{Capsule, KeyEncryptionKey, KeyProvider};

use crate::error::{Code, KmsError, Result};

/// Fills `bytes` with random bytes from the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes").with_source(error)
    })
}
