//! Keys in the formats of others: public keys in and out, private keys in, and private keys out to a recipient.
//!
//! Every reader here is strict: it takes what its writer gives and nothing else, so that no key has two texts of which two
//! programs might think differently. Points of Ed25519 have one encoding here, y below 2^255 - 19; the predicate of verification, in
//! `bulla-ed25519`, takes the others too, as `verify_strict` does. What strictness means for each format stands with [`PublicFormat`] and [`PrivateFormat`].

mod der;
mod jwk;
pub mod minisign;
mod openssh;
mod private;
mod public;
mod wrapped;

pub use private::{PrivateFormat, PrivateKeyData};
pub use public::{PublicFormat, export_public, import_public};
pub use wrapped::{WrappedKey, unwrap_aes_kwp, wrap_aes_kwp};

use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError};

/// The longest input that is looked at, in bytes: no key in any format is as long.
pub const MAX_INPUT: usize = 64 << 10;

/// The error of bytes that are no public key of a format.
fn invalid_public(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::InvalidPublicKey, format!("not a public key: {why}"))
}

/// The error of bytes that are no private key of a format. It says nothing of the bytes.
fn malformed(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::MalformedKey, format!("not a private key that can be imported: {why}"))
}

fn unsupported(format: &str, algorithm: Algorithm) -> KmsError {
    KmsError::new(Code::UnsupportedFormat, format!("{format} has no form for keys of {algorithm}"))
}
