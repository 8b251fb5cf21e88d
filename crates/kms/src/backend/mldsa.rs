//! ML-DSA (FIPS 204) in software. The material is the seed of 32 random bytes (FIPS 204, section
//! 3.6.3).
//!
//! Signatures are pure, hedged (randomized), and have an empty context.

use std::sync::Arc;

use bulla_pq::mldsa::{ParameterSet, SEED};
use zeroize::Zeroizing;

use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use super::post_quantum::{SigningKey, verify, wrong_length};
use crate::algorithm::Algorithm;
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;

#[derive(Debug)]
pub(super) struct MlDsaBackend;

fn set(algorithm: Algorithm) -> Option<ParameterSet> {
    match algorithm {
        Algorithm::MlDsa44 => Some(ParameterSet::MlDsa44),
        Algorithm::MlDsa65 => Some(ParameterSet::MlDsa65),
        Algorithm::MlDsa87 => Some(ParameterSet::MlDsa87),
        _ => None,
    }
}

/// The parameter set of an algorithm that the backend supports.
fn served(algorithm: Algorithm) -> ParameterSet {
    set(algorithm).expect("only algorithms that are served are asked for")
}

impl Backend for MlDsaBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        set(algorithm).map(|_| Capabilities::default().material_is_key(true))
    }

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seed = Zeroizing::new(vec![0; SEED]);
        crate::random::fill(&mut seed)?;
        Ok(seed)
    }

    fn expanded(&self, algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
        set(algorithm)?.expanded(seed)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let key = served(algorithm).signing_key(material).ok_or_else(|| {
            KmsError::corrupt(format!("a stored key of {algorithm} does not have {SEED} bytes"))
        })?;
        Ok(Arc::new(SigningKey(key)))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        match served(algorithm).verifying_key(public_key) {
            Some(key) => Ok(Box::new(key)),
            None => Err(wrong_length(algorithm)),
        }
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        verify(request)
    }
}
