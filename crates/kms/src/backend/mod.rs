//! Where keys are made and used. A backend knows one algorithm on one kind of device; the keystore above it knows
//! names, versions and policy.

mod ed25519;

use zeroize::Zeroizing;

use crate::error::Result;
use crate::id::Algorithm;
use crate::public_key::{PublicKey, Verdict};

/// What a backend needs to find a private key again: for a key in software its seed, for one in a device its handle.
/// The keystore seals it and looks no further into it.
pub(crate) type KeyMaterial = Zeroizing<Vec<u8>>;

/// The length of a signature in bytes.
pub(crate) const SIGNATURE_LENGTH: usize = 64;

pub(crate) trait Backend: Send + Sync {
    /// Makes a private key.
    fn generate(&self) -> Result<KeyMaterial>;

    /// Gets a private key ready, once, for many signatures.
    ///
    /// # Errors
    /// When the material is not what [`Backend::generate`] gives.
    fn load(&self, material: &KeyMaterial) -> Result<Box<dyn Signer>>;

    /// Whether `signature` is one of `message` under `key`, by the algorithm's one predicate.
    fn verify(&self, key: &PublicKey, message: &[u8], signature: &[u8]) -> Verdict;
}

/// A private key that is ready to sign. It is wiped from memory when dropped, and prints nothing of itself.
pub(crate) trait Signer: Send + Sync {
    fn public_key(&self) -> PublicKey;
    fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE_LENGTH]>;
}

/// The backend that serves an algorithm.
pub(crate) fn for_algorithm(algorithm: Algorithm) -> &'static dyn Backend {
    match algorithm {
        Algorithm::Ed25519 => &ed25519::Software,
    }
}
