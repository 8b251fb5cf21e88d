//! The folder of a keystore: what is in it, and what opens it.
//!
//! A keystore of bulla is a folder: the encrypted keys (`keystore.redb`), a key file if that opens
//! them (`keystore.key`), the audit log (`audit-log/`) and the list of revoked tokens (`revoked`).
//! Its rollback guard is elsewhere, and the keystore remembers where. This crate opens and creates
//! such a folder in one call, as the command `bulla` and the service do. It prints nothing, asks
//! nobody and ends no process.
//!
//! ```
//! use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets, find_key};
//!
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path().join("keystore");
//! let folder = KeystoreFolder::at(path);
//! folder.create(&NewKeystore::default(), &Secrets::new())?;
//!
//! let keystore = folder.open(&Secrets::new())?.keystore;
//! let key = find_key(&keystore, "default")?;
//! let signature = keystore.sign(key.as_ref(), b"a message")?;
//! assert!(keystore.verify(&signature.key, b"a message", &signature.bytes)?.is_valid());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`KeystoreFolder`] names the folder. [`KeystoreFolder::open`] opens its keystore for as long
//!   as the program runs; [`KeystoreFolder::unlock`] finds the secret once, for a program that
//!   opens the keystore again and again and leaves it to other processes meanwhile.
//! - [`Secrets`] are what the program has: a [`PassphraseSource`], an identity file, a device. The
//!   keystore says which one opens it.
//! - [`GuardLocation`] is where the rollback guard is.
//! - [`Error`] has a code, a message, a hint that fits every program, and its source.
//!
//! | feature | brings |
//! |---|---|
//! | `pkcs11` | keystores whose root key, guard or private keys are on a device |
//! | `tokens` | the list of revoked tokens |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod audit_log;
mod device;
mod error;
mod folder;
mod guard;
mod key_file;
mod keys;
mod permissions;
#[cfg(feature = "tokens")]
mod revoked_tokens;
mod secrets;
mod unlocked;

pub use audit_log::{AUDIT_LOG_LABEL, AuditLogFolder, StartedAuditLog};
pub use error::{Error, ErrorCode, Result};
pub use folder::{KeystoreFolder, NewKeystore, RestoredFolder, find_provider};
pub use guard::GuardLocation;
pub use keys::{
    DEFAULT_LABEL, DEFAULT_PURPOSE, LabelIndex, LabelOrId, TENANT, ensure_default_key, find_key, tenant,
};
pub use permissions::check_secret_file;
#[cfg(feature = "tokens")]
pub use revoked_tokens::RevokedTokens;
pub use secrets::{
    NewSecret, PassphraseCredential, PassphraseDescriptor, PassphraseFile, PassphrasePrompt,
    PassphraseSource, Secrets,
};
pub use unlocked::{OpenFolder, UnlockedFolder};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
