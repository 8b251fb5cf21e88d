//! Keys in foreign formats: import and export of public keys, import of private keys, and export of
//! private keys to a recipient.
//!
//! Every reader here is strict: it accepts only what its writer writes, so that no key has two
//! texts that two programs might interpret differently. Ed25519 points have one encoding here, with
//! y below 2^255 - 19; the verification predicate in `bulla-ed25519` also accepts others, as
//! `verify_strict` does. [`PublicFormat`] and [`PrivateFormat`] say what strictness means for each
//! format.

mod der;
mod ecdsa;
mod jwk;
pub mod minisign;
mod openssh;
mod private_key;
mod public_key;
mod vault;
mod wrapped_for_rsa;
mod wrapped_private_key;

pub use self::ecdsa::{ecdsa_from_der, ecdsa_to_der, with_lower_s};
pub use self::private_key::{PrivateFormat, PrivateKeyData};
pub use self::public_key::{MAX_INPUT_LEN, PublicFormat, export_public, import_public};
pub use self::wrapped_for_rsa::WrappedForRsa;
pub(crate) use self::wrapped_for_rsa::does_not_unwrap;
pub use self::wrapped_private_key::{WrappedPrivateKey, unwrap_aes_kwp, wrap_aes_kwp};
