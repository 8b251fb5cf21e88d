//! A key management library. It creates, imports, rotates, attests and destroys keys, keeps them
//! encrypted at rest, signs, encrypts, makes MACs and decapsulates with them, and makes signature
//! files.
//!
//! A *key* has one or more *versions*, each with its own key pair, or with its own secret if the
//! algorithm is symmetric. The latest version signs, encrypts or makes MACs. Every version verifies
//! and decrypts, unless it is revoked or below the key's minimum version. A private key leaves
//! a keystore only if its key was created as exportable, and then only wrapped for a recipient.
//!
//! # The main types
//!
//! - [`Keystore`]: the private keys. [`Keystore::in_memory`] writes nothing to a disk.
//!   [`Keystore::create`] and [`Keystore::open`] keep them in one file. [`KeystoreOptions`] adds an
//!   audit log, backends, metrics and a rollback guard. [`Snapshot`] is for readers.
//! - [`KeyId`], [`KeyVersionId`]: the name of a key, `TENANT/PURPOSE/ALGORITHM/UUID`, and of one of
//!   its versions, `.../vN`. [`KeySelector`] is what a user types to name either.
//! - [`NewKey`], [`KeyChange`], [`Attestation`]: how a key is created and changed, and the
//!   keystore's statement about it.
//! - [`Unlock`]: the secret that opens a keystore: a passphrase, a key file, or another
//!   [`encryption::KeyProvider`].
//! - [`PublicKey`], [`Verdict`]: verification without a keystore.
//! - [`Keystore::encrypt`], [`Keystore::mac`], [`Keystore::generate_data_key`]: the work of
//!   symmetric keys, which are in every build. [`EncryptionOptions`], [`Ciphertext`], [`Mac`],
//!   [`DataKey`].
//! - [`signature`][]: signature files over a file, a folder or a message, which a person can read.
//! - [`succession`][]: statements by which an older version vouches for a newer one's public key.
//! - [`audit_log`][]: a tamper-evident log of every operation. [`rollback`][]: guards that detect
//!   an older copy of a keystore. [`batcher`][]: concurrent calls, combined into batches.
//! - [`KmsError`]: a stable [`Code`], a message, and whether the same call may succeed later.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | brings |
//! |---|---|
//! | `p256` | ECDSA on P-256 |
//! | `nist` | RSA, ECDSA on P-384 and P-521, and Diffie-Hellman, by `aws-lc-rs`, which needs a C compiler; with `p256`, P-256 signs by it too, and keys that encrypt use it |
//! | `mldsa` | ML-DSA, alone and together with Ed25519 |
//! | `slhdsa` | SLH-DSA |
//! | `mlkem` | ML-KEM and X-Wing: keys that encapsulate |
//! | `transfer` | `transfer`: keys in the formats of other programs, in and out; implies `p256` |
//! | `tokens` | `token`: capability tokens; with `transfer`, the export of private keys |
//! | `soft-seal` | `encrypted_file`: encryption to passphrases, key files and recipients; backups; implies `mlkem` |
//! | `pkcs11` | `pkcs11`: private keys, key-encryption keys and rollback guards on a device; implies `p256` |
//! | `etcd` | a keystore that several machines share; needs `protoc` for its build |
//! | `fast` | Ed25519 and P-256 sign by `aws-lc-rs`, which needs a C compiler, and keys that encrypt use it |
//! | `parallel-batch` | batches are verified on all threads of a rayon pool |
//! | `with-metrics` | counters and histograms for Prometheus, and spans of `tracing` |
//!
//! # Example
//!
//! ```
//! use bulla_kms::{Algorithm, Keystore, NewKey, Verdict};
//!
//! let keystore = Keystore::in_memory()?;
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
//! [`spec/keystore.md`] describes the file, how its parts are bound together, and what an attacker
//! can and cannot do. [`spec/signature.md`] describes the signature file.
//!
//! [`spec/keystore.md`]: https://github.com/bulla-dev/bulla/blob/main/spec/keystore.md
//! [`spec/signature.md`]: https://github.com/bulla-dev/bulla/blob/main/spec/signature.md
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod algorithm;
pub mod approval;
mod attestation;
pub mod audit_log;
pub mod backend;
pub mod batcher;
mod ciphertext;
mod encoding;
#[cfg(feature = "soft-seal")]
pub mod encrypted_file;
pub mod encryption;
mod error;
mod files;
mod id;
mod key_identity;
mod key_shares;
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
mod secret_bytes;
pub mod signature;
mod signature_scheme;
mod ssh_authority;
mod store;
pub mod succession;
mod time;
#[cfg(feature = "tokens")]
pub mod token;
#[cfg(feature = "transfer")]
pub mod transfer;
mod x509;

pub use algorithm::{Algorithm, KeyUsage};
pub use attestation::{Attestation, SignedAttestation, VersionAttestation};
pub use backend::HmacHash;
#[cfg(feature = "etcd")]
pub use bulla_etcd::{EtcdClientCertificate, EtcdOptions, EtcdTls, EtcdUser};
pub use ciphertext::{
    Ciphertext, CiphertextParts, DataKey, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions,
    MAX_PLAINTEXT_LEN, Plaintext,
};
pub use encryption::{KeyFile, Unlock, UnlockMethod};
pub use error::{Code, KmsError, Result};
pub use id::{JWT_PURPOSE, KeyId, KeyRef, KeySelector, KeyVersionId, Name, TOKEN_ROOT_PURPOSE};
pub use key_shares::KeyShares;
pub use key_signature::{Mac, Signature, Verdict};
#[cfg(feature = "soft-seal")]
pub use keystore::{Backup, BackupSummary, KeystoreProvider};
pub use keystore::{
    DataCipher, KeyMessage, Keystore, KeystoreOptions, NewKey, PermittedContribution, Snapshot, StoreChange,
    VerifyItem, VerifyMacItem,
};
pub use lease::{BootInstant, StoreLease};
pub use policy::{KeyChange, KeyDerivation, KeyState, Origin, RotationPolicy, VersionState};
pub use public_key::{NamedPublicKey, PublicKey};
pub use random::generate_random;
pub use secrecy::{ExposeSecret, SecretString};
pub use secret_bytes::SecretBytes;
pub use signature::{SignatureFile, Statement, StatementKind};
pub use ssh_authority::{SshAuthority, SshCertificateKind, SshCertificateSummary};
pub use succession::Succession;
pub use time::Timestamp;
pub use x509::{X509Authority, X509CertificateKind, X509CertificateSummary, X509Usage};

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

    /// Takes bytes apart as a ciphertext of each algorithm. What parses must be the only form of
    /// its parts.
    pub fn ciphertext(bytes: &[u8]) {
        for &algorithm in crate::Algorithm::ALL {
            if let Ok(parts) = crate::CiphertextParts::parse(algorithm, bytes) {
                assert_eq!(parts.to_bytes(), bytes, "a ciphertext has one form");
                assert_eq!([parts.nonce(), parts.ciphertext()].concat(), parts.nonce_and_ciphertext());
            }
        }
    }

    /// Parses an envelope; when that succeeds, its bytes must come back unchanged.
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

    /// Reads bytes as a certificate of OpenSSH that a key is asked to sign, and asks policies about
    /// it.
    pub fn ssh_certificate(bytes: &[u8]) {
        crate::ssh_authority::fuzz(bytes);
    }

    /// Reads bytes as an X.509 certificate that a key is asked to sign, and asks policies about it.
    pub fn x509_certificate(bytes: &[u8]) {
        crate::x509::fuzz(bytes);
    }
}

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
