//! ECDSA on P-256 signs by `aws-lc-rs`, which is written in assembly for the usual processors, in
//! every build that has that crate: with the feature `fast` or `nist`. With `fast`, so does
//! Ed25519. The plain backend does everything else. It also verifies: strictly, and in lanes.
//!
//! The name and the material are those of the plain backend, so that a keystore opens with and
//! without the features.

#[cfg(feature = "fast")]
use std::any::Any;
use std::sync::Arc;

#[cfg(feature = "fast")]
use aws_lc_rs::signature::Ed25519KeyPair;
#[cfg(feature = "p256")]
use aws_lc_rs::{
    digest::{self, Digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};

use super::interface::{
    Backend, Capabilities, Encapsulated, KeyMaterial, PrivateKey, SignRequest, VerifyRequest,
};
#[cfg(feature = "p256")]
use super::p256;
use crate::algorithm::Algorithm;
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};

/// Makes a key that signs quickly from its material, and falls back to the plain key.
type Load = fn(&KeyMaterial, Arc<dyn PrivateKey>) -> Result<Arc<dyn PrivateKey>>;

/// The plain backend of an algorithm with a quicker signer.
#[derive(Debug)]
pub(super) struct FastBackend {
    plain: Arc<dyn Backend>,
    load: Load,
}

impl FastBackend {
    #[cfg(feature = "fast")]
    pub(super) fn ed25519(plain: impl Backend + 'static) -> Self {
        Self { plain: Arc::new(plain), load: load_ed25519 }
    }

    #[cfg(feature = "p256")]
    pub(super) fn p256(plain: impl Backend + 'static) -> Self {
        Self { plain: Arc::new(plain), load: load_p256 }
    }
}

impl Backend for FastBackend {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        self.plain.capabilities(algorithm)
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        self.plain.generate(algorithm)
    }

    fn is_consistent(&self, algorithm: Algorithm, material: &KeyMaterial) -> bool {
        self.plain.is_consistent(algorithm, material)
    }

    fn expanded(&self, algorithm: Algorithm, material: &KeyMaterial) -> Option<KeyMaterial> {
        self.plain.expanded(algorithm, material)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        (self.load)(material, self.plain.load(algorithm, material)?)
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        self.plain.prepare(algorithm, public_key)
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        self.plain.verify(request)
    }

    fn verify_digest(&self, public_key: &EncodedKey, digest: &[u8], signature: &[u8]) -> Verdict {
        self.plain.verify_digest(public_key, digest, signature)
    }

    fn encapsulate(&self, public_key: &EncodedKey) -> Result<Encapsulated> {
        self.plain.encapsulate(public_key)
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        self.plain.verify_many(requests)
    }

    fn sign_many(&self, algorithm: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        let lanes = self.plain.capabilities(algorithm).map_or(1, |capabilities| capabilities.sign_lanes);
        let plain: Option<Vec<_>> = requests.iter().map(plain).collect();
        match plain {
            // One step of the lanes takes as long as two signatures one after the other.
            Some(plain) if lanes > 1 && plain.len() > 2 => self.plain.sign_many(algorithm, &plain),
            _ => requests.iter().map(SignRequest::sign).collect(),
        }
    }
}

/// The request with the plain backend's key; `None` for algorithms other than Ed25519, for which
/// the plain backend signs one by one.
#[cfg(not(feature = "fast"))]
fn plain<'a>(_: &SignRequest<'a>) -> Option<SignRequest<'a>> {
    None
}

/// The request with the plain backend's key; `None` for algorithms other than Ed25519, for which
/// the plain backend signs one by one.
#[cfg(feature = "fast")]
fn plain<'a>(request: &SignRequest<'a>) -> Option<SignRequest<'a>> {
    let key: &dyn Any = request.key;
    Some(SignRequest { key: &*key.downcast_ref::<Ed25519>()?.plain, ..*request })
}

/// The error for a material that the plain backend reads and `aws-lc-rs` does not.
fn unreadable(_: aws_lc_rs::error::KeyRejected) -> KmsError {
    KmsError::corrupt("a stored private key cannot be read")
}

#[cfg(feature = "fast")]
fn load_ed25519(material: &KeyMaterial, plain: Arc<dyn PrivateKey>) -> Result<Arc<dyn PrivateKey>> {
    // The plain backend derives the public key as well, and the keystore compares it with the
    // record's.
    let pair = Ed25519KeyPair::from_seed_unchecked(material).map_err(unreadable)?;
    Ok(Arc::new(Ed25519 { pair, plain }))
}

/// The key, expanded once. `aws-lc-rs` wipes it from its memory when it frees it.
#[cfg(feature = "fast")]
struct Ed25519 {
    pair: Ed25519KeyPair,
    plain: Arc<dyn PrivateKey>,
}

#[cfg(feature = "fast")]
impl PrivateKey for Ed25519 {
    fn public_key(&self) -> Result<Vec<u8>> {
        self.plain.public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.pair.sign(message).as_ref().to_vec())
    }

    fn sign_ed25519ph(&self, digest: &[u8; 64], context: &[u8]) -> Result<Vec<u8>> {
        self.plain.sign_ed25519ph(digest, context)
    }
}

#[cfg(feature = "p256")]
fn load_p256(material: &KeyMaterial, plain: Arc<dyn PrivateKey>) -> Result<Arc<dyn PrivateKey>> {
    let public_key = p256::uncompressed(&plain.public_key()?)
        .ok_or_else(|| KmsError::corrupt("a stored private key cannot be read"))?;
    let scheme = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair =
        EcdsaKeyPair::from_private_key_and_public_key(scheme, material, &public_key).map_err(unreadable)?;
    Ok(Arc::new(P256 { pair, plain }))
}

/// The key, its point computed once. Nonces are random here.
#[cfg(feature = "p256")]
struct P256 {
    pair: EcdsaKeyPair,
    plain: Arc<dyn PrivateKey>,
}

#[cfg(feature = "p256")]
impl PrivateKey for P256 {
    fn public_key(&self) -> Result<Vec<u8>> {
        self.plain.public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        let signature = signature.ok().and_then(|signature| p256::normalize(signature.as_ref()));
        // It fails if it gets no random bytes; the plain backend needs none.
        signature.map_or_else(|| self.plain.sign(message), Ok)
    }

    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        // The leftmost bits of a longer digest are signed (FIPS 186-5, section 6.4.1).
        let leftmost = digest.get(..digest::SHA256_OUTPUT_LEN);
        let imported = leftmost.and_then(|bytes| Digest::import_less_safe(bytes, &digest::SHA256).ok());
        let made = imported.and_then(|digest| self.pair.sign_digest(&digest).ok());
        let signature = made.and_then(|signature| p256::normalize(signature.as_ref()));
        signature.map_or_else(|| self.plain.sign_digest(digest), Ok)
    }
}
