//! Backends make and use private keys. A backend is one small trait, which anyone may implement.
//!
//! A backend implements algorithms on one kind of device. The keystore above it handles names,
//! versions and policy. With the key's record, it keeps the encrypted data that the backend needs
//! to find a private key again.

mod backends;
#[cfg(feature = "mldsa")]
mod composite;
mod ed25519;
mod ed25519_strict;
mod ed25519_tables;
mod encoded_key;
#[cfg(feature = "fast")]
mod fast;
mod interface;
#[cfg(feature = "mldsa")]
mod mldsa;
#[cfg(feature = "mlkem")]
mod mlkem;
#[cfg(feature = "p256")]
pub(crate) mod p256;
#[cfg(any(feature = "mldsa", feature = "slhdsa"))]
mod post_quantum;
#[cfg(feature = "slhdsa")]
mod slhdsa;
#[cfg(test)]
pub(crate) mod test_backend;

pub use self::backends::Backends;
pub(crate) use self::ed25519_tables::DecodedKey;
pub use self::encoded_key::{EncodedKey, Prepared};
pub(crate) use self::interface::key_usage_mismatch;
pub use self::interface::{
    Backend, Capabilities, Encapsulated, KeyMaterial, PrivateKey, SOFTWARE, SharedKey, SignRequest,
    VerifyRequest,
};
