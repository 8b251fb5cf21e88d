//! Elliptic-curve Diffie-Hellman in software, by `aws-lc-rs`: on P-256, P-384 and P-521 (NIST SP
//! 800-56A, section 5.7.1.2), and X25519 (RFC 7748).
//!
//! The material is the private scalar: for the curves of NIST big-endian, from 1 to n - 1, with 32,
//! 48 or 66 bytes; for X25519 any 32 bytes. Public keys are uncompressed points, and the 32 bytes
//! of RFC 7748. A peer's key is checked before it is used: it is a point of the curve, or no u of
//! low order. `aws-lc` computes in constant time.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, ParsedPublicKey, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};
use crate::secret_bytes::SecretBytes;

#[derive(Debug)]
pub(super) struct EcdhBackend;

fn scheme(algorithm: Algorithm) -> Option<&'static agreement::Algorithm> {
    static P256: agreement::Algorithm = ECDH_P256;
    static P384: agreement::Algorithm = ECDH_P384;
    static P521: agreement::Algorithm = ECDH_P521;
    static X25519: agreement::Algorithm = agreement::X25519;
    match algorithm {
        Algorithm::EcdhP256 => Some(&P256),
        Algorithm::EcdhP384 => Some(&P384),
        Algorithm::EcdhP521 => Some(&P521),
        Algorithm::X25519 => Some(&X25519),
        _ => None,
    }
}

fn private_key(algorithm: Algorithm, material: &[u8]) -> Option<EcdhPrivateKey> {
    let key = agreement::PrivateKey::from_private_key(scheme(algorithm)?, material).ok()?;
    let public_key = key.compute_public_key().ok()?.as_ref().to_vec();
    Some(EcdhPrivateKey { algorithm, key, public_key })
}

fn shared_secret(key: &agreement::PrivateKey, peer: &ParsedPublicKey) -> Option<SecretBytes> {
    agreement::agree(key, peer.clone(), (), |secret| Ok(SecretBytes::from(secret.to_vec()))).ok()
}

/// Whether the u of X25519 is of low order: with every private key, the shared secret is zero, and
/// `aws-lc` refuses it.
fn has_low_order(peer: &ParsedPublicKey) -> bool {
    static ANY: LazyLock<Option<EcdhPrivateKey>> =
        LazyLock::new(|| private_key(Algorithm::X25519, &[0x40; 32]));
    ANY.as_ref().is_none_or(|any| shared_secret(&any.key, peer).is_none())
}

fn invalid_public_key(algorithm: Algorithm, why: &str) -> KmsError {
    KmsError::new(Code::InvalidPublicKey, format!("not a public key of {algorithm}: {why}"))
}

impl Backend for EcdhBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        scheme(algorithm).map(|_| Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        // As long as the secret: a coordinate of the curve.
        let mut scalar = Zeroizing::new(vec![0; algorithm.output_length()]);
        loop {
            crate::random::fill(&mut scalar)?;
            if algorithm == Algorithm::EcdhP521 {
                // The order has 521 bits of 528.
                scalar[0] &= 1;
            }
            if private_key(algorithm, &scalar).is_some() {
                return Ok(scalar);
            }
        }
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let invalid =
            || KmsError::corrupt(format!("a stored key of {algorithm} is not a scalar of its length"));
        Ok(Arc::new(private_key(algorithm, material).ok_or_else(invalid)?))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        let invalid = |why: &str| invalid_public_key(algorithm, why);
        let is_point = algorithm != Algorithm::X25519;
        let (length, scheme) = (algorithm.public_key_length(), scheme(algorithm));
        if public_key.len() != length || (is_point && public_key[0] != 4) {
            return Err(invalid(if is_point {
                "it is not an uncompressed point: 04, x and y"
            } else {
                "it does not have 32 bytes"
            }));
        }
        let parsed = scheme
            .and_then(|scheme| ParsedPublicKey::try_from(UnparsedPublicKey::new(scheme, public_key)).ok())
            .ok_or_else(|| invalid("the bytes are not a point on the curve"))?;
        if !is_point && has_low_order(&parsed) {
            return Err(invalid("it has low order, so anybody would know the shared secret"));
        }
        Ok(Box::new(parsed))
    }

    /// A key that does not sign verifies nothing.
    fn verify(&self, _request: VerifyRequest<'_>) -> Verdict {
        Verdict::Invalid
    }
}

/// `aws-lc` wipes the key when it frees it.
struct EcdhPrivateKey {
    algorithm: Algorithm,
    key: agreement::PrivateKey,
    public_key: Vec<u8>,
}

impl PrivateKey for EcdhPrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.public_key.clone())
    }

    fn derive_shared_secret(&self, peer: &EncodedKey) -> Result<SecretBytes> {
        let parsed = peer.prepared::<ParsedPublicKey>().filter(|_| peer.algorithm() == self.algorithm);
        parsed
            .and_then(|peer| shared_secret(&self.key, peer))
            .ok_or_else(|| invalid_public_key(self.algorithm, "no shared secret comes from it"))
    }
}
