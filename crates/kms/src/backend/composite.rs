//! ML-DSA-65 and Ed25519 as one algorithm: `id-MLDSA65-Ed25519-SHA512` of
//! draft-ietf-lamps-pq-composite-sigs.
//!
//! Both sign `M' = Prefix || Label || 00 || SHA-512(M)`, the 00 being the length of the empty
//! context; ML-DSA has the label as its own context. Keys and signatures are the two halves one
//! after the other, ML-DSA first. The material is both seeds, 32 bytes each. Breaking one of the
//! two algorithms is not enough to forge a signature.

use std::sync::Arc;

use bulla_ed25519::{Signer as _, SigningKey};
use bulla_pq::mldsa::{ParameterSet, SEED};
use bulla_pq::{SigningKey as PqSigningKey, VerifyingKey};
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

use super::ed25519_key;
use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use super::post_quantum::wrong_length;
use crate::algorithm::Algorithm;
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;
use crate::random;

const PREFIX: &[u8] = b"CompositeAlgorithmSignatures2025";
const LABEL: &[u8] = b"COMPSIG-MLDSA65-Ed25519-SHA512";

const ALGORITHM: Algorithm = Algorithm::MlDsa65Ed25519;
const MLDSA: ParameterSet = ParameterSet::MlDsa65;

#[derive(Debug)]
pub(super) struct CompositeBackend;

/// Both public keys, decoded.
struct PublicPair {
    mldsa: Box<dyn VerifyingKey>,
    ed25519: bulla_ed25519::VerifyingKey,
}

impl Backend for CompositeBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm == ALGORITHM).then_some(Capabilities::default().material_is_key(true))
    }

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seeds = Zeroizing::new(vec![0; SEED + bulla_ed25519::SECRET_KEY_LENGTH]);
        random::fill(&mut seeds)?;
        Ok(seeds)
    }

    fn load(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let error = || KmsError::corrupt(format!("a stored key of {ALGORITHM} does not have 64 bytes"));
        let (first, second) = material.split_first_chunk::<SEED>().ok_or_else(error)?;
        let mldsa = MLDSA.signing_key(first).ok_or_else(error)?;
        let ed25519 = SigningKey::try_from(second).map_err(|_| error())?;
        Ok(Arc::new(CompositePrivateKey { mldsa, ed25519 }))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        let (first, second) = halves(public_key, Algorithm::MlDsa65.public_key_length());
        // A wrong length shows as a wrong length of the second half, which this call reports.
        let ed25519 = ed25519_key::decode(second)?;
        let mldsa = MLDSA.verifying_key(first).ok_or_else(|| wrong_length(algorithm))?;
        Ok(Box::new(PublicPair { mldsa, ed25519 }))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        let Some(key) = request.public_key.prepared::<PublicPair>() else { return Verdict::Invalid };
        let (first, second) = halves(request.signature, Algorithm::MlDsa65.output_length());
        let message = representative(request.message);
        let mldsa = key.mldsa.verify(&message, LABEL, first);
        let ed25519 = ed25519_key::verify_strict(&key.ed25519, &message, second);
        if mldsa && ed25519 == Verdict::Valid { Verdict::Valid } else { Verdict::Invalid }
    }
}

/// The text that both algorithms sign for a message: M'.
fn representative(message: &[u8]) -> Vec<u8> {
    [PREFIX, LABEL, &[0], Sha512::digest(message).as_slice()].concat()
}

fn halves(bytes: &[u8], first: usize) -> (&[u8], &[u8]) {
    bytes.split_at(first.min(bytes.len()))
}

struct CompositePrivateKey {
    mldsa: Box<dyn PqSigningKey>,
    ed25519: SigningKey,
}

impl PrivateKey for CompositePrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok([self.mldsa.public_key(), self.ed25519.verifying_key().to_bytes().to_vec()].concat())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let message = representative(message);
        let mut signature = self.mldsa.sign(&message, LABEL).map_err(random::unavailable)?;
        signature.extend_from_slice(&self.ed25519.sign(&message).to_bytes());
        Ok(signature)
    }
}
