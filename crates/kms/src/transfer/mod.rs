//! Keys in foreign formats: import and export of public keys, import of private keys, and export of
//! private keys to a recipient.
//!
//! Every reader here is strict: it accepts only what its writer writes, so that no key has two
//! texts that two programs might interpret differently. Ed25519 points have one encoding here, with
//! y below 2^255 - 19; the verification predicate in `bulla-ed25519` also accepts others, as
//! `verify_strict` does. [`PublicFormat`] and [`PrivateFormat`] say what strictness means for each
//! format.

mod der;
mod jwk;
pub mod minisign;
mod openssh;
mod private;
mod private_key;
mod public;
mod refusal;
mod vault;
mod wrapped;

pub use private::PrivateFormat;
pub use private_key::PrivateKeyData;
pub use public::{PublicFormat, export_public, import_public};
pub use refusal::MAX_INPUT;
pub use wrapped::{WrappedPrivateKey, unwrap_aes_kwp, wrap_aes_kwp};
