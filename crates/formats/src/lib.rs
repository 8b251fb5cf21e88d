//! Signatures in the formats that people verify already: those of minisign, OpenSSH and signify,
//! statements of in-toto in envelopes of DSSE, bundles of Sigstore, signatures of models, and JSON
//! Web Signatures.
//!
//! Each format is one module, which reads and writes it. What they share is here: how a file is
//! read for a signature ([`Coverage`]), how a key signs ([`MessageSigner`]), and which formats
//! there are ([`ForeignSignature`]). Whose key it is, and whether somebody trusts it, is the
//! caller's question.
//!
//! Ed25519 and P-256 are verified by `bulla-kms`, with its strict predicate.
//!
//! ```
//! use bulla_formats::{ContentHasher, Coverage, ForeignSignature, MessageSigner, minisign};
//! use bulla_kms::{Algorithm, KeyVersionId, Keystore, KmsError, NewKey, PublicKey};
//!
//! struct KeystoreSigner<'a>(&'a Keystore, &'a KeyVersionId);
//!
//! impl MessageSigner for KeystoreSigner<'_> {
//!     type Error = Box<dyn std::error::Error>;
//!
//!     fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error> {
//!         Ok((self.0.public_key(self.1)?, self.0.sign(self.1, message)?.bytes))
//!     }
//! }
//!
//! let keystore = Keystore::in_memory()?;
//! let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
//! let key = keystore.create_key(new)?;
//!
//! let mut hasher = ContentHasher::new(Coverage::Blake2b512);
//! hasher.update(b"the content of a file");
//! let content = hasher.finish()?;
//! let mut signer = KeystoreSigner(&keystore, &key);
//! let text = minisign::sign(&mut signer, &content, "file:a\thashed", "a signature")?;
//!
//! let parsed = ForeignSignature::parse(text.as_bytes())?;
//! let Some(ForeignSignature::Minisign(signature)) = parsed else {
//!     panic!("it is a signature of minisign");
//! };
//! let public_key = keystore.public_key(&key)?;
//! assert_eq!(signature.coverage(), Coverage::Blake2b512);
//! assert!(signature.comment_verifies(&public_key) && signature.verifies(&public_key, &content));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod content;
mod digests;
pub mod dsse;
mod error;
mod evidence;
mod foreign;
pub mod in_toto;
mod json;
pub mod jws;
mod message_key;
pub mod minisign;
pub mod oms;
pub mod signify;
pub mod sigstore;
pub mod ssh;
#[cfg(feature = "trusted-root")]
pub mod trusted_root;
mod verifying_key;
#[cfg(feature = "x509")]
pub mod x509;

pub use self::content::{ContentHasher, Coverage, MAX_WHOLE_LEN};
pub use self::digests::{DigestAlgorithm, MultiHasher};
pub use self::error::{FormatError, MessageSigner};
pub use self::evidence::{CertificateSigner, Evidence, EvidenceError};
pub use self::foreign::{ForeignFormat, ForeignSignature, MAX_SIGNATURE_LEN};
pub use self::message_key::MessageKey;
