//! Post-quantum algorithms over bytes, by the crates of RustCrypto: ML-DSA, SLH-DSA, ML-KEM, and
//! X-Wing.
//!
//! Those crates are generic, and their code is compiled in the crate that names a parameter set.
//! Only this crate names them, so that the code is compiled once. It exports keys behind small
//! traits: [`SigningKey`] and [`VerifyingKey`], [`DecapsulationKey`] and [`EncapsulationKey`].
//!
//! Each key wipes itself from memory when it is dropped.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "mlkem")]
pub mod kem;
#[cfg(feature = "mldsa")]
pub mod mldsa;
#[cfg(feature = "slhdsa")]
pub mod slhdsa;

use zeroize::Zeroizing;

/// The error if the operating system gives no random bytes.
pub use getrandom::Error as RandomError;

/// Secret bytes, which are wiped from memory on drop.
pub type Secret = Zeroizing<Vec<u8>>;

/// A key that two parties share after an encapsulation: 32 bytes.
pub type SharedKey = Zeroizing<[u8; 32]>;

/// A private key that signs.
pub trait SigningKey: Send + Sync {
    /// The bytes of its public key.
    fn public_key(&self) -> Vec<u8>;

    /// A pure, hedged (randomized) signature. `context` has at most 255 bytes.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    ///
    /// # Panics
    /// The context is longer.
    fn sign(&self, message: &[u8], context: &[u8]) -> Result<Vec<u8>, RandomError>;
}

/// A public key that verifies.
pub trait VerifyingKey: Send + Sync {
    /// Whether `signature` is valid for the message in this context. A signature of a wrong length
    /// is not.
    fn verify(&self, message: &[u8], context: &[u8], signature: &[u8]) -> bool;
}

/// A private key that decapsulates.
pub trait DecapsulationKey: Send + Sync {
    /// The bytes of its public key.
    fn public_key(&self) -> Vec<u8>;

    /// The key that the ciphertext carries; `None` if the ciphertext has a wrong length. For a
    /// ciphertext that was made for another key, the algorithm's specification may return a key
    /// that nobody else has.
    fn decapsulate(&self, ciphertext: &[u8]) -> Option<SharedKey>;
}

/// A public key that encapsulates.
pub trait EncapsulationKey: Send + Sync {
    /// A ciphertext for the holder of the private key, and the key that it carries.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    fn encapsulate(&self) -> Result<(Vec<u8>, SharedKey), RandomError>;
}
