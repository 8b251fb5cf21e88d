//! What a backend is: one small trait, which anybody may implement.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::encoded_key::{EncodedKey, Prepared};
use crate::algorithm::{Algorithm, Use};
use crate::error::{Code, KmsError, Result};
use crate::verdict::Verdict;

/// What a backend needs to find a private key again: for a key in software the key itself, for one in a device its
/// handle. The keystore seals it and looks no further into it.
pub type KeyMaterial = Zeroizing<Vec<u8>>;

/// The name of the backend that keeps private keys in this process's memory.
pub const SOFTWARE: &str = "software";

/// What a backend does with an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many signatures are best verified together: calls of [`Backend::verify_many`] with a multiple of it are the
    /// cheapest for each. 1 where nothing is gained.
    pub verify_lanes: usize,
    /// The same for [`Backend::sign_many`].
    pub sign_lanes: usize,
    /// Whether the material is the private key itself, so that it can be exported and imported.
    pub material_is_key: bool,
}

/// One signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The public key; of an algorithm that the backend serves.
    pub public_key: &'a EncodedKey,
    /// The message.
    pub message: &'a [u8],
    /// The signature, of whatever length.
    pub signature: &'a [u8],
}

/// One message to sign.
#[derive(Clone, Copy)]
pub struct SignRequest<'a> {
    /// The private key, as the backend loaded it.
    pub key: &'a (dyn PrivateKey + 'static),
    /// The message.
    pub message: &'a [u8],
}

/// A key that two parties share after an encapsulation.
pub type SharedKey = Zeroizing<[u8; 32]>;

/// A key and the ciphertext that carries it: see [`Backend::encapsulate`].
pub struct Encapsulated {
    /// For the holder of the private key.
    pub ciphertext: Vec<u8>,
    /// For who made it.
    pub shared_key: SharedKey,
}

/// The error of an algorithm that is asked for what it does not do.
pub(crate) fn wrong_use(algorithm: Algorithm) -> KmsError {
    let does = match algorithm.usage() {
        Use::Signature => "signs and does not encapsulate keys",
        Use::KeyEncapsulation => "encapsulates keys, and does not sign",
    };
    KmsError::new(Code::WrongUse, format!("a key of {algorithm} {does}"))
}

/// Makes and loads private keys, and verifies.
///
/// The verdict on a signature must not depend on the backend: each implementation of an algorithm has the one
/// predicate that [`PublicKey::verify`](crate::PublicKey::verify) states.
pub trait Backend: fmt::Debug + Send + Sync {
    /// A short name, which stands in the records of keys: lower case, a word.
    fn name(&self) -> &str;

    /// What this backend does with `algorithm`; `None` when it does not serve it. The other methods are called with
    /// algorithms that it serves.
    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities>;

    /// Makes a private key.
    ///
    /// # Errors
    /// Those of the device.
    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial>;

    /// Whether the parts of a private key fit each other: an imported one whose parts do not could give its secrets away by its
    /// signatures. Where the material is a seed alone they do.
    fn is_consistent(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> bool {
        true
    }

    /// The expanded form of a private key that other programs write beside its seed, as in ML-DSA (FIPS 204, algorithm 24) and
    /// ML-KEM (FIPS 203, algorithm 16); `None` where there is none, and for a seed of a wrong length.
    fn expanded(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Option<KeyMaterial> {
        None
    }

    /// Gets a private key ready, once, for many signatures.
    ///
    /// # Errors
    /// When the material is not what [`Backend::generate`] gives; those of the device.
    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>>;

    /// Deletes a private key from the device that holds it. One that is already gone is no error. Where the material is the key
    /// itself there is nothing to do.
    ///
    /// # Errors
    /// Those of the device.
    fn destroy(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Result<()> {
        Ok(())
    }

    /// Checks the bytes of a public key and decodes them for [`Backend::verify`].
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`].
    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared>;

    /// Whether the signature is one of the message under the public key.
    fn verify(&self, request: Request<'_>) -> Verdict;

    /// Makes a key of 32 bytes and the ciphertext from which the holder of the private key gets it.
    ///
    /// # Errors
    /// [`Code::WrongUse`] when the algorithm signs.
    fn encapsulate(&self, public_key: &EncodedKey) -> Result<Encapsulated> {
        Err(wrong_use(public_key.algorithm()))
    }

    /// The verdict of [`Backend::verify`] on each request, in their order. All are of one algorithm.
    fn verify_many(&self, requests: &[Request<'_>]) -> Vec<Verdict> {
        requests.iter().map(|request| self.verify(*request)).collect()
    }

    /// What [`PrivateKey::sign`] gives for each request, in their order. All keys are of this algorithm, and ones that this backend loaded.
    fn sign_many(&self, _algorithm: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        requests.iter().map(|SignRequest { key, message }| key.sign(message)).collect()
    }
}

/// A private key that is ready for use. Implementations wipe it from memory when it is dropped, and print nothing of it.
pub trait PrivateKey: Any + Send + Sync {
    /// The bytes of its public key.
    ///
    /// # Errors
    /// Those of the device.
    fn public_key(&self) -> Result<Vec<u8>>;

    /// Signs a message.
    ///
    /// # Errors
    /// [`Code::WrongUse`] when the algorithm does not sign, as it is by default; those of the device.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let _ = message;
        Err(KmsError::new(Code::WrongUse, "the key's algorithm encapsulates keys, and does not sign"))
    }

    /// The key of 32 bytes that the ciphertext carries. A ciphertext of the right length that was made for another key
    /// may give a key that nobody else has, as the algorithm's specification says.
    ///
    /// # Errors
    /// [`Code::WrongUse`] when the algorithm does not encapsulate, as it is by default;
    /// [`Code::InvalidCiphertext`]; those of the device.
    fn decapsulate(&self, ciphertext: &[u8]) -> Result<SharedKey> {
        let _ = ciphertext;
        Err(KmsError::new(Code::WrongUse, "the key's algorithm signs and does not encapsulate keys"))
    }

    /// Signs a digest of SHA-512 as Ed25519ph (RFC 8032, section 5.1); `context` has at most 255 bytes.
    ///
    /// # Errors
    /// [`Code::WrongUse`] when the algorithm is another one, or the device has no such signatures; those of the device.
    fn sign_ed25519ph(&self, digest: &[u8; 64], context: &[u8]) -> Result<Vec<u8>> {
        let _ = (digest, context);
        Err(KmsError::new(Code::WrongUse, "the key's backend does not make signatures of Ed25519ph"))
    }
}
