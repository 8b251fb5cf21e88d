//! Sealing: this module encrypts data and binds it to its place.
//!
//! A [`KeyProvider`] makes, and later makes again, the keys that encrypt one other key: a
//! [`Passphrase`], a key file ([`KeyFileProvider`]), or any other implementation of the trait.
//! Keystores open with them ([`Unlock::Provider`]). With the feature `soft-seal` there are
//! recipients too, and `data` encrypts data of any size to all of them.

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
mod unlock;

pub(crate) use envelope::{Envelope, Place};
#[cfg(test)]
pub(crate) use passphrase::Argon2Cost;
pub(crate) use root::{Protection, RootKey, Sealer};

#[cfg(feature = "soft-seal")]
pub use self::{
    age::{AgeIdentity, AgeRecipient},
    kem::{KeystoreRecipient, XWingIdentity, XWingRecipient},
    recipients::{Identity, IdentityKind, Recipient},
};
#[cfg(feature = "soft-seal")]
pub(crate) use age::fuzz as fuzz_age;
#[cfg(feature = "soft-seal")]
pub(crate) use kem::KEYSTORE;
pub use key_file::{KeyFile, KeyFileProvider};
pub use passphrase::Passphrase;
pub use provider::{Capsule, KeyEncryptionKey, KeyProvider};
pub use unlock::{Unlock, UnlockMethod};
