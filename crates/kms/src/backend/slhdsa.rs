//! SLH-DSA (FIPS 205) in software, by `slh-dsa` of RustCrypto. The material is the private key of 4n bytes (FIPS 205,
//! figure 15).
//!
//! Signatures are pure, hedged (randomized), and have an empty context.

use std::sync::Arc;

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use slh_dsa::signature::Keypair as _;
use slh_dsa::{
    ParameterSet, Sha2_128f, Sha2_128s, Sha2_192f, Sha2_192s, Sha2_256f, Sha2_256s, Shake128f, Shake128s,
    Shake192f, Shake192s, Shake256f, Shake256s, Signature, SigningKey, VerifyingKey,
};
use zeroize::Zeroizing;

use super::encoded_key::Prepared;
use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, Request, SOFTWARE};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::verdict::Verdict;

#[derive(Debug)]
pub(super) struct Software;

/// What there is for one parameter set.
struct Set {
    generate: fn() -> KeyMaterial,
    load: fn(Algorithm, &[u8]) -> Result<Arc<dyn PrivateKey>>,
    prepare: fn(Algorithm, &[u8]) -> Result<Prepared>,
    verify: fn(Request<'_>) -> Verdict,
}

impl Set {
    const fn of<P: ParameterSet + Send + Sync + 'static>() -> Self {
        Self { generate: generate::<P>, load: load::<P>, prepare: prepare::<P>, verify: verify::<P> }
    }
}

fn set(algorithm: Algorithm) -> Option<Set> {
    Some(match algorithm {
        Algorithm::SlhDsaSha2_128s => Set::of::<Sha2_128s>(),
        Algorithm::SlhDsaSha2_128f => Set::of::<Sha2_128f>(),
        Algorithm::SlhDsaSha2_192s => Set::of::<Sha2_192s>(),
        Algorithm::SlhDsaSha2_192f => Set::of::<Sha2_192f>(),
        Algorithm::SlhDsaSha2_256s => Set::of::<Sha2_256s>(),
        Algorithm::SlhDsaSha2_256f => Set::of::<Sha2_256f>(),
        Algorithm::SlhDsaShake128s => Set::of::<Shake128s>(),
        Algorithm::SlhDsaShake128f => Set::of::<Shake128f>(),
        Algorithm::SlhDsaShake192s => Set::of::<Shake192s>(),
        Algorithm::SlhDsaShake192f => Set::of::<Shake192f>(),
        Algorithm::SlhDsaShake256s => Set::of::<Shake256s>(),
        Algorithm::SlhDsaShake256f => Set::of::<Shake256f>(),
        _ => return None,
    })
}

/// The set of an algorithm that the backend said to serve.
fn served(algorithm: Algorithm) -> Set {
    set(algorithm).expect("only algorithms that are served are asked for")
}

impl Backend for Software {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        set(algorithm).map(|_| Capabilities { verify_lanes: 1, sign_lanes: 1, material_is_key: true })
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        // Whether there are random bytes is asked here, where it can be answered by an error.
        crate::random::fill(&mut [0])?;
        Ok((served(algorithm).generate)())
    }

    fn is_consistent(&self, algorithm: Algorithm, material: &KeyMaterial) -> bool {
        is_consistent(algorithm, material)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        (served(algorithm).load)(algorithm, material)
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        (served(algorithm).prepare)(algorithm, public_key)
    }

    fn verify(&self, request: Request<'_>) -> Verdict {
        (served(request.public_key.algorithm()).verify)(request)
    }
}

fn generate<P: ParameterSet>() -> KeyMaterial {
    Zeroizing::new(SigningKey::<P>::new(&mut UnwrapErr(SysRng)).to_vec())
}

fn load<P: ParameterSet + Send + Sync + 'static>(
    algorithm: Algorithm,
    material: &[u8],
) -> Result<Arc<dyn PrivateKey>> {
    let key = SigningKey::<P>::try_from(material)
        .map_err(|_| KmsError::damaged(format!("a sealed key of {algorithm} has a wrong length")))?;
    Ok(Arc::new(SoftwareKey { algorithm, key }))
}

/// Every string of the right length is a public key.
fn prepare<P: ParameterSet + Send + Sync + 'static>(
    algorithm: Algorithm,
    public_key: &[u8],
) -> Result<Prepared> {
    match VerifyingKey::<P>::try_from(public_key) {
        Ok(key) => Ok(Box::new(key)),
        Err(_) => {
            let length = algorithm.public_key_length();
            let message = format!("not a public key of {algorithm}: it does not have {length} bytes");
            Err(KmsError::new(Code::InvalidPublicKey, message))
        }
    }
}

/// Whether the root of a private key is the one of its seeds: with another one it would make signatures that give its secrets away.
fn is_consistent(algorithm: Algorithm, material: &[u8]) -> bool {
    fn of<P: ParameterSet>(material: &[u8]) -> bool {
        let n = material.len() / 4;
        if material.len() != 4 * n || SigningKey::<P>::try_from(material).is_err() {
            return false;
        }
        let (seeds, _) = material.split_at(3 * n);
        let key = SigningKey::<P>::slh_keygen_internal(&seeds[..n], &seeds[n..2 * n], &seeds[2 * n..]);
        *Zeroizing::new(key.to_vec()) == *material
    }
    match algorithm {
        Algorithm::SlhDsaSha2_128s => of::<Sha2_128s>(material),
        Algorithm::SlhDsaSha2_128f => of::<Sha2_128f>(material),
        Algorithm::SlhDsaSha2_192s => of::<Sha2_192s>(material),
        Algorithm::SlhDsaSha2_192f => of::<Sha2_192f>(material),
        Algorithm::SlhDsaSha2_256s => of::<Sha2_256s>(material),
        Algorithm::SlhDsaSha2_256f => of::<Sha2_256f>(material),
        Algorithm::SlhDsaShake128s => of::<Shake128s>(material),
        Algorithm::SlhDsaShake128f => of::<Shake128f>(material),
        Algorithm::SlhDsaShake192s => of::<Shake192s>(material),
        Algorithm::SlhDsaShake192f => of::<Shake192f>(material),
        Algorithm::SlhDsaShake256s => of::<Shake256s>(material),
        Algorithm::SlhDsaShake256f => of::<Shake256f>(material),
        _ => true,
    }
}

fn verify<P: ParameterSet + Send + Sync + 'static>(request: Request<'_>) -> Verdict {
    let Some(key) = request.public_key.prepared::<VerifyingKey<P>>() else { return Verdict::Invalid };
    match Signature::<P>::try_from(request.signature) {
        Ok(signature) if key.try_verify_with_context(request.message, b"", &signature).is_ok() => {
            Verdict::Valid
        }
        _ => Verdict::Invalid,
    }
}

/// A private key. The crate wipes it when it is dropped.
struct SoftwareKey<P: ParameterSet> {
    algorithm: Algorithm,
    key: SigningKey<P>,
}

impl<P: ParameterSet + Send + Sync + 'static> PrivateKey for SoftwareKey<P> {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.key.verifying_key().to_vec())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        // As many random bytes as the public key's seed has, which is half of it (FIPS 205, section 9.2).
        let mut random = Zeroizing::new(vec![0; self.algorithm.public_key_length() / 2]);
        crate::random::fill(&mut random)?;
        let signature = self.key.try_sign_with_context(message, b"", Some(&random));
        Ok(signature.expect("an empty context is not too long").to_vec())
    }
}
