//! bulla's keystore. It creates, rotates and attests keys, encrypts them at rest, and makes
//! signature files.
//!
//! - [`Keystore`] keeps the private keys. [`Keystore::in_memory`] writes nothing to a disk.
//!   [`Keystore::create`] and [`Keystore::open`] keep it in one file, encrypted under a passphrase
//!   or a key file ([`Unlock`]).
//! - [`KeyVersionId`] names one version of one key: `TENANT/PURPOSE/ALGORITHM/UUID/vN`. [`KeyId`]
//!   is the same name without the version. Only the latest version signs. Every version
//!   verifies for ever, unless it is revoked or too old.
//! - [`signature`][]: signature files, text that a person can read, over a file, a folder or a
//!   message.
//! - [`succession`][]: statements by which an older version vouches for the public key of a newer
//!   one.
//! - [`encryption`][]: the secrets that open keystores. [`rollback`][]: guards that detect an older
//!   copy of a keystore.
//! - [`PublicKey`] verifies without a keystore.
//!
//! ```
//! use bulla_kms::{Algorithm, KeyRef, Keystore, NewKey, Verdict};
//!
//! let keystore = Keystore::in_memory();
//! let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519).label("default".parse()?);
//! let key = keystore.create_key(new)?;
//! let old = keystore.sign(key.key_id(), b"a message")?;
//! keystore.rotate(key.key_id())?;
//! let new = keystore.sign(key.key_id(), b"a message")?;
//! assert_eq!((old.key.version(), new.key.version()), (1, 2));
//! assert_eq!(keystore.verify(&old.key, b"a message", &old.bytes)?, Verdict::Valid);
//! assert_eq!(keystore.verify(&new.key, b"a message", &old.bytes)?, Verdict::Invalid);
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```
//!
//! `spec/keystore.md` describes the file, how its parts are bound together, and what an attacker
//! can and cannot do. `spec/signature.md` describes the signature file.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod algorithm;
mod attestation;
pub mod audit_log;
pub mod backend;
pub mod batcher;
mod encoding;
#[cfg(feature = "soft-seal")]
pub mod encrypted_file;
pub mod encryption;
mod error;
mod files;
mod id;
mod key_signature;
mod keystore;
mod lease;
#[cfg(feature = "with-metrics")]
pub mod metrics;
#[cfg(feature = "pkcs11")]
pub mod pkcs11;
mod policy;
pub mod prehash;
mod public_key;
mod random;
mod record;
mod reserved;
pub mod rollback;
mod secret_file;
pub mod signature;
mod store;
pub mod succession;
mod time;
#[cfg(feature = "tokens")]
pub mod token;
#[cfg(feature = "transfer")]
pub mod transfer;
mod verdict;

pub use algorithm::{Algorithm, KeyUsage};
pub use attestation::{Attestation, SignedAttestation, VersionAttestation};
#[cfg(feature = "etcd")]
pub use bulla_etcd::{EtcdClientCertificate, EtcdOptions, EtcdTls, EtcdUser};
pub use encryption::{KeyFile, Unlock, UnlockMethod};
pub use error::{Code, KmsError, Result};
pub use id::{KeyId, KeyRef, KeySelector, KeyVersionId, Name};
pub use key_signature::Signature;
#[cfg(feature = "soft-seal")]
pub use keystore::{Backup, BackupSummary, KeystoreProvider};
pub use keystore::{
    DataCipher, Keystore, KeystoreOptions, NewKey, SignItem, Snapshot, StoreChange, VerifyItem,
};
pub use lease::{BootInstant, StoreLease};
pub use policy::{KeyChange, KeyState, Origin, RotationPolicy, VersionState};
pub use public_key::{NamedPublicKey, PublicKey};
pub use secrecy::{ExposeSecret, SecretString};
pub use signature::{Kind, SignatureFile, Statement};
pub use succession::Succession;
pub use time::Timestamp;
pub use verdict::Verdict;

/// Entry points for the fuzzers in `fuzz/`; not part of the interface.
#[doc(hidden)]
pub mod fuzzing {
    /// Decrypts a file with a public test key. A header that parses must have exactly one
    /// encoding.
    #[cfg(feature = "soft-seal")]
    pub fn encrypted_file(bytes: &[u8]) {
        use crate::encrypted_file;
        use crate::encryption::{KeyEncryptionKey, KeyProvider, WrappingParams};

        /// A provider whose key is public.
        #[derive(Debug)]
        struct PublicKeyProvider;

        impl KeyProvider for PublicKeyProvider {
            fn method(&self) -> &str {
                "open"
            }

            fn key_name(&self) -> String {
                String::new()
            }

            fn new_kek(&self) -> crate::Result<(KeyEncryptionKey, Vec<u8>)> {
                Ok((KeyEncryptionKey::default(), Vec::new()))
            }

            fn recover_kek(&self, _params: &WrappingParams) -> crate::Result<KeyEncryptionKey> {
                Ok(KeyEncryptionKey::default())
            }
        }

        let mut rest = bytes;
        if let Ok(header) = encrypted_file::Header::read(&mut rest) {
            assert_eq!(header.to_bytes(), bytes[..bytes.len() - rest.len()], "a header has one form");
        }
        let _ = encrypted_file::decrypt(bytes, &[&PublicKeyProvider], b"");
        // The round trip: decrypting returns what was encrypted.
        let encrypted = encrypted_file::encrypt(bytes, &[&PublicKeyProvider], b"").expect("it is encrypted");
        assert_eq!(
            **encrypted_file::decrypt(&encrypted, &[&PublicKeyProvider], b"").expect("it opens"),
            *bytes
        );
    }

    /// Reads bytes as the wrapping parameters of an age recipient, as a recipient and as an
    /// identity; what reads must be its only text.
    #[cfg(feature = "soft-seal")]
    pub fn age(bytes: &[u8]) {
        crate::encryption::fuzz_age(bytes);
    }

    /// Parses a sealed envelope; when that succeeds, its bytes must come back unchanged.
    pub fn envelope(bytes: &[u8]) {
        if let Ok(envelope) = crate::encryption::Envelope::parse(bytes) {
            assert_eq!(envelope.to_bytes(), bytes, "an envelope that parses must be the only text of itself");
        }
    }

    /// Reads bytes as a file of an audit log, as a checkpoint and as a proof. Text that parses must
    /// have exactly one form.
    pub fn audit_log(bytes: &[u8]) {
        crate::audit_log::fuzz(bytes);
    }
}
