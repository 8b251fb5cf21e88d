//! Encryption of keys: the secrets that open keystores and encrypted files, and envelopes, which
//! encrypt each row of a keystore for its place.
//!
//! A [`KeyProvider`] makes, and later recovers, the keys that encrypt one other key: a
//! [`Passphrase`], a key file ([`KeyFileProvider`]), or any other implementation of the trait.
//! Keystores open with them ([`Unlock::Provider`]). With the feature `soft-seal` there are
//! recipients too, and [`encrypted_file`](crate::encrypted_file) encrypts data of any size to all
//! of them.

#[cfg(feature = "soft-seal")]
mod age;
mod envelope;
mod key_file;
mod passphrase;
mod provider;
#[cfg(feature = "soft-seal")]
mod recipients;
mod root_key;

#[cfg(feature = "soft-seal")]
pub(crate) use self::age::fuzz as fuzz_age;
#[cfg(feature = "soft-seal")]
pub use self::age::{AgeIdentity, AgeRecipient};
pub(crate) use self::envelope::{Envelope, EnvelopeKind};
pub use self::key_file::{KeyFile, KeyFileProvider};
#[cfg(test)]
pub(crate) use self::passphrase::Argon2Cost;
pub use self::passphrase::Passphrase;
#[cfg(feature = "soft-seal")]
pub(crate) use self::provider::WrappedKey;
pub use self::provider::{KeyEncryptionKey, KeyProvider, Unlock, UnlockMethod, WrappingParams};
#[cfg(feature = "soft-seal")]
pub(crate) use self::recipients::KEYSTORE_METHOD;
#[cfg(feature = "soft-seal")]
pub use self::recipients::{
    Identity, IdentityKind, KeystoreRecipient, Recipient, XWingIdentity, XWingRecipient,
};
pub(crate) use self::root_key::{RootKey, StoreCipher, WrappedRootKey};
