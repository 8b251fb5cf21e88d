//! What has the keys of a slot: a service, or a keystore on this machine.

pub(crate) mod connection;
pub(crate) mod generate;
pub(crate) mod local;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::SystemTime;

use bulla_kms::prehash::HashFunction;
use bulla_kms::{Algorithm, Origin, PublicKey, VersionState};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::object::public::Digest;
use crate::operation::mechanism::Padding;

/// Where the keys of a slot are, before anybody has logged in.
pub(crate) trait Source: Send + Sync {
    /// The keys of a slot that needs no login.
    ///
    /// # Errors
    /// `CKR_HOST_MEMORY` if the operating system has no resources for it; `CKR_GENERAL_ERROR` if
    /// the settings do not open a keystore, and then the reason is on standard error.
    fn open(&self) -> Result<Arc<dyn Backend>>;

    /// The keys of the caller who has this PIN.
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT`; `CKR_DEVICE_ERROR`; `CKR_HOST_MEMORY`.
    fn log_in(&self, pin: &[u8]) -> Result<Arc<dyn Backend>>;
}

/// What has the keys of a slot. Key ids and key version ids are those that it gives.
pub(crate) trait Backend: Send + Sync {
    /// All keys that the caller may read and programs have a use for.
    fn keys(&self) -> Result<Vec<KeyEntry>>;

    /// Reads a key.
    fn key(&self, key: &str) -> Result<KeyEntry>;

    /// Makes a key.
    fn create(&self, new: &NewKey) -> Result<KeyEntry>;

    /// Gives a key another label, or none.
    fn set_label(&self, key: &str, label: Option<&str>) -> Result<KeyEntry>;

    /// Schedules the destruction of a key.
    fn schedule_destruction(&self, key: &str, after: SystemTime) -> Result<()>;

    /// Signs a message with a key version, in the way that its algorithm has.
    fn sign(&self, version: &Arc<str>, message: Vec<u8>) -> Result<Vec<u8>>;

    /// Signs a message with a scheme that is not the algorithm's own.
    fn sign_hashed(&self, version: &str, message: &[u8], how: (HashFunction, Padding)) -> Result<Vec<u8>>;

    /// Signs a digest.
    fn sign_digest(&self, version: &str, digest: &Digest) -> Result<Vec<u8>>;

    /// Encrypts with a key version.
    fn encrypt(&self, version: &str, plaintext: &[u8], associated_data: &[u8]) -> Result<Vec<u8>>;

    /// Decrypts with a key. The ciphertext names the version.
    fn decrypt(&self, key: &str, ciphertext: &[u8], associated_data: &[u8]) -> Result<Zeroizing<Vec<u8>>>;

    /// Makes a message authentication code.
    fn mac(&self, version: &str, message: &[u8]) -> Result<Vec<u8>>;

    /// Whether a message authentication code is valid.
    fn verify_mac(&self, version: &str, message: &[u8], mac: &[u8]) -> Result<bool>;

    /// Derives the secret that a key version shares with the holder of a peer's private key.
    fn derive_shared_secret(&self, version: &str, peer: &PublicKey) -> Result<Zeroizing<Vec<u8>>>;
}

/// A key that a program asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewKey {
    pub(crate) algorithm: Algorithm,
    pub(crate) purpose: String,
    pub(crate) label: Option<String>,
    /// Whether it signs digests that the program makes.
    pub(crate) signs_digests: bool,
}

/// A key, without its private keys.
pub(crate) struct KeyEntry {
    /// The key id.
    pub(crate) id: Arc<str>,
    pub(crate) algorithm: Algorithm,
    pub(crate) label: Option<String>,
    /// The number of its last change.
    pub(crate) revision: u64,
    pub(crate) state: EntryState,
    pub(crate) exportable: bool,
    /// Whether it signs digests that programs make.
    pub(crate) signs_digests: bool,
    /// Older versions have no use.
    pub(crate) minimum_version: u32,
    /// The version that signs and encrypts.
    pub(crate) latest_version: u32,
    /// All versions, version 1 first.
    pub(crate) versions: Vec<VersionEntry>,
}

/// Whether a key may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    Enabled,
    /// It only verifies.
    Disabled,
    /// Its destruction is scheduled, or was done.
    Gone,
}

/// A version of a key.
pub(crate) struct VersionEntry {
    /// The key version id.
    pub(crate) id: Arc<str>,
    pub(crate) version: NonZeroU32,
    /// The bytes of the public key; none of a symmetric key.
    pub(crate) public_key: Vec<u8>,
    pub(crate) state: VersionState,
    pub(crate) origin: Origin,
}
