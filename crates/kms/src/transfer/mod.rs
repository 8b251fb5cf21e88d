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
mod private_key;
mod public;
mod refusal;
mod wrapped;

pub use private::PrivateFormat;
pub use private_key::PrivateKeyData;
pub use public::{PublicFormat, export_public, import_public};
pub use refusal::MAX_INPUT;
pub use wrapped::{WrappedKey, unwrap_aes_kwp, wrap_aes_kwp};
