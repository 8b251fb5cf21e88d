//! SLH-DSA (FIPS 205) in software. The material is the private key of 4n bytes (FIPS 205, figure
//! 15).
//!
//! Signatures are pure, hedged (randomized), and have an empty context.

use std::sync::Arc;

use bulla_pq::slhdsa::ParameterSet;

use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use super::post_quantum::{SigningKey, verify, wrong_length};
use crate::algorithm::Algorithm;
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;
use crate::random;

#[derive(Debug)]
pub(super) struct SlhDsaBackend;

fn set(algorithm: Algorithm) -> Option<ParameterSet> {
    Some(match algorithm {
        Algorithm::SlhDsaSha2_128s => ParameterSet::Sha2_128s,
        Algorithm::SlhDsaSha2_128f => ParameterSet::Sha2_128f,
        Algorithm::SlhDsaSha2_192s => ParameterSet::Sha2_192s,
        Algorithm::SlhDsaSha2_192f => ParameterSet::Sha2_192f,
        Algorithm::SlhDsaSha2_256s => ParameterSet::Sha2_256s,
        Algorithm::SlhDsaSha2_256f => ParameterSet::Sha2_256f,
        Algorithm::SlhDsaShake128s => ParameterSet::Shake128s,
        Algorithm::SlhDsaShake128f => ParameterSet::Shake128f,
        Algorithm::SlhDsaShake192s => ParameterSet::Shake192s,
        Algorithm::SlhDsaShake192f => ParameterSet::Shake192f,
        Algorithm::SlhDsaShake256s => ParameterSet::Shake256s,
        Algorithm::SlhDsaShake256f => ParameterSet::Shake256f,
        _ => return None,
    })
}

/// The parameter set of an algorithm that the backend supports.
fn served(algorithm: Algorithm) -> ParameterSet {
    set(algorithm).expect("only algorithms that are served are asked for")
}

impl Backend for SlhDsaBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        set(algorithm).map(|_| Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        served(algorithm).generate().map_err(random::unavailable)
    }

    fn is_consistent(&self, algorithm: Algorithm, material: &KeyMaterial) -> bool {
        served(algorithm).is_consistent(material)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let key = served(algorithm)
            .signing_key(material)
            .ok_or_else(|| KmsError::corrupt(format!("a stored key of {algorithm} has a wrong length")))?;
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
