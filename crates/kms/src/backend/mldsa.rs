//! ML-DSA (FIPS 204) in software, by `ml-dsa` of RustCrypto. The material is the seed of 32 random bytes (FIPS 204,
//! section 3.6.3).
//!
//! Signatures are pure, hedged (randomized), and have an empty context.

use std::sync::Arc;

use getrandom::SysRng;
use ml_dsa::{
    EncodedVerifyingKey, Keypair as _, MlDsa44, MlDsa65, MlDsa87, MlDsaParams, Signature,
    SignatureEncoding as _, SigningKey, VerifyingKey,
};
use zeroize::Zeroizing;

use super::encoded_key::Prepared;
use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, Request, SOFTWARE};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::verdict::Verdict;

/// The length of the seed in bytes.
pub(super) const SEED: usize = 32;

#[derive(Debug)]
pub(super) struct Software;

/// What there is for one parameter set.
struct Set {
    load: fn(Algorithm, &[u8]) -> Result<Arc<dyn PrivateKey>>,
    prepare: fn(Algorithm, &[u8]) -> Result<Prepared>,
    verify: fn(Request<'_>) -> Verdict,
}

impl Set {
    const fn of<P: MlDsaParams + Send + Sync + 'static>() -> Self {
        Self { load: load::<P>, prepare: prepare::<P>, verify: verify_request::<P> }
    }
}

fn set(algorithm: Algorithm) -> Option<Set> {
    match algorithm {
        Algorithm::MlDsa44 => Some(Set::of::<MlDsa44>()),
        Algorithm::MlDsa65 => Some(Set::of::<MlDsa65>()),
        Algorithm::MlDsa87 => Some(Set::of::<MlDsa87>()),
        _ => None,
    }
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

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seed = Zeroizing::new(vec![0; SEED]);
        crate::random::fill(&mut seed)?;
        Ok(seed)
    }

    fn expanded(&self, algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
        expanded(algorithm, seed)
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

fn load<P: MlDsaParams + Send + Sync + 'static>(
    algorithm: Algorithm,
    seed: &[u8],
) -> Result<Arc<dyn PrivateKey>> {
    Ok(Arc::new(SoftwareKey::<P>::new(algorithm, seed)?))
}

fn prepare<P: MlDsaParams + Send + Sync + 'static>(
    algorithm: Algorithm,
    public_key: &[u8],
) -> Result<Prepared> {
    Ok(Box::new(decode::<P>(algorithm, public_key)?))
}

fn verify_request<P: MlDsaParams + 'static>(request: Request<'_>) -> Verdict {
    match request.public_key.prepared::<VerifyingKey<P>>() {
        Some(key) => verify(key, request.message, b"", request.signature),
        None => Verdict::Invalid,
    }
}

/// The expanded private key (FIPS 204, algorithm 24).
fn expanded(algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
    fn of<P: MlDsaParams>(seed: &[u8]) -> Option<KeyMaterial> {
        let key = SigningKey::<P>::from_seed(seed.try_into().ok()?);
        // Deprecated is to import it; here it is compared with one.
        #[allow(deprecated)]
        let mut bytes = key.expanded_key().to_expanded();
        let expanded = Zeroizing::new(bytes.to_vec());
        zeroize::Zeroize::zeroize(bytes.as_mut_slice());
        Some(expanded)
    }
    match algorithm {
        Algorithm::MlDsa44 => of::<MlDsa44>(seed),
        Algorithm::MlDsa65 => of::<MlDsa65>(seed),
        Algorithm::MlDsa87 => of::<MlDsa87>(seed),
        _ => None,
    }
}

/// Every string of the right length is a public key (FIPS 204, section 7.2).
pub(super) fn decode<P: MlDsaParams>(algorithm: Algorithm, bytes: &[u8]) -> Result<VerifyingKey<P>> {
    let encoded = EncodedVerifyingKey::<P>::try_from(bytes).map_err(|_| {
        let length = algorithm.public_key_length();
        let message = format!("not a public key of {algorithm}: it does not have {length} bytes");
        KmsError::new(Code::InvalidPublicKey, message)
    })?;
    Ok(VerifyingKey::decode(&encoded))
}

pub(super) fn verify<P: MlDsaParams>(
    key: &VerifyingKey<P>,
    message: &[u8],
    context: &[u8],
    signature: &[u8],
) -> Verdict {
    match Signature::<P>::try_from(signature) {
        Ok(signature) if key.verify_with_context(message, context, &signature) => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}

/// A private key, expanded once. The crate wipes it when it is dropped.
pub(super) struct SoftwareKey<P: MlDsaParams>(SigningKey<P>);

impl<P: MlDsaParams> SoftwareKey<P> {
    pub(super) fn new(algorithm: Algorithm, seed: &[u8]) -> Result<Self> {
        let seed = <&ml_dsa::Seed>::try_from(seed).map_err(|_| {
            KmsError::damaged(format!("a sealed key of {algorithm} does not have {SEED} bytes"))
        })?;
        Ok(Self(SigningKey::from_seed(seed)))
    }

    pub(super) fn sign_with_context(&self, message: &[u8], context: &[u8]) -> Result<Vec<u8>> {
        let signature = self.0.expanded_key().sign_randomized(message, context, &mut SysRng);
        let signature = signature.map_err(|_| {
            KmsError::new(Code::RandomUnavailable, "the operating system gave no random bytes")
        })?;
        Ok(signature.to_vec())
    }

    pub(super) fn public_bytes(&self) -> Vec<u8> {
        self.0.verifying_key().encode().to_vec()
    }
}

impl<P: MlDsaParams + Send + Sync + 'static> PrivateKey for SoftwareKey<P> {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.public_bytes())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.sign_with_context(message, b"")
    }
}
