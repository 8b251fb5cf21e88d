//! Sealing: what is written leaves this module encrypted and bound to its place.
//!
//! A [`KeyProvider`] makes and finds again the keys under which one other key lies: a [`Passphrase`], a key file
//! ([`KeyFileProvider`]), or whatever implements the trait. Keystores open with them
//! ([`Unlock::Provider`](crate::Unlock::Provider)). With the feature `soft-seal` there are recipients too, and `data` seals
//! data of any size to all of them.

#[cfg(feature = "soft-seal")]
mod age;
#[cfg(feature = "soft-seal")]
pub mod data;
mod envelope;
#[cfg(feature = "soft-seal")]
mod kem;
mod key_file;
mod passphrase;
mod provider;
#[cfg(feature = "soft-seal")]
mod recipients;
mod root;

pub(crate) use envelope::{Envelope, Place};
#[cfg(test)]
pub(crate) use passphrase::Argon2Cost;
pub(crate) use root::{Protection, RootKey, Sealer};

#[cfg(feature = "soft-seal")]
pub use self::{
    age::{AgeIdentity, AgeRecipient},
    kem::{KeystoreIdentity, KeystoreRecipient, XWingIdentity, XWingRecipient},
    recipients::{Identity, IdentityKind, Recipient},
};
pub use key_file::KeyFileProvider;
pub use passphrase::Passphrase;
pub use provider::{Capsule, KeyEncryptionKey, KeyProvider};

use crate::error::{Code, KmsError, Result};

/// The error of a recipient that is asked to open.
#[cfg(feature = "soft-seal")]
fn only_seals(recipient: &dyn KeyProvider) -> KmsError {
    let message = format!("{} is a public key and opens nothing; give its identity", recipient.key_name());
    KmsError::new(Code::WrongUse, message)
}

/// The error of a text that is no identity; it shows nothing of it.
#[cfg(feature = "soft-seal")]
fn malformed_identity() -> KmsError {
    KmsError::new(
        Code::MalformedKeyFile,
        "not an identity: one line AGE-SECRET-KEY-1... or x-wing-secret:...",
    )
}

/// Fills `bytes` with random bytes from the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes").with_source(error)
    })
}
