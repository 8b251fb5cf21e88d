//! Where private keys are made and used: one small trait, which anybody may implement.
//!
//! A backend knows algorithms on one kind of device. The keystore above it knows names, versions and policy, and
//! keeps what the backend needs to find a private key again sealed with the key's record.

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
pub(crate) use self::interface::wrong_use;
pub use self::interface::{
    Backend, Capabilities, Encapsulated, KeyMaterial, PrivateKey, Request, SOFTWARE, SharedKey, SignRequest,
};
