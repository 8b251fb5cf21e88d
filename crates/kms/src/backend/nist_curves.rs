//! ECDSA on P-384 and P-521 (FIPS 186-5, section 6) in software, by `aws-lc-rs`. The material is
//! the private scalar, big-endian, from 1 to n - 1: 48 or 66 bytes. Public keys are uncompressed
//! points, because the crate does not decompress them.
//!
//! Nonces are random. As on P-256, the lower one of two values of s is made, and no other verifies.

use std::sync::Arc;

use aws_lc_rs::agreement::{self, ECDH_P384, ECDH_P521};
use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::signature::{
    ECDSA_P384_SHA384_FIXED, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm,
    ParsedPublicKey,
};
use zeroize::Zeroizing;

use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};
use crate::signature_scheme::HashFunction;

#[derive(Debug)]
pub(super) struct CurveBackend;

/// What differs between the curves.
struct Curve {
    algorithm: Algorithm,
    agreement: &'static agreement::Algorithm,
    signing: &'static EcdsaSigningAlgorithm,
    verification: &'static EcdsaVerificationAlgorithm,
    hash: HashFunction,
    digest: &'static digest::Algorithm,
    /// The order n of the group, big-endian.
    order: &'static [u8],
}

static P384_VERIFICATION: EcdsaVerificationAlgorithm = ECDSA_P384_SHA384_FIXED;
static P384_SIGNING: EcdsaSigningAlgorithm = ECDSA_P384_SHA384_FIXED_SIGNING;
static P521_VERIFICATION: EcdsaVerificationAlgorithm = ECDSA_P521_SHA512_FIXED;
static P521_SIGNING: EcdsaSigningAlgorithm = ECDSA_P521_SHA512_FIXED_SIGNING;

static P384: Curve = Curve {
    algorithm: Algorithm::EcdsaP384,
    agreement: &ECDH_P384,
    signing: &P384_SIGNING,
    verification: &P384_VERIFICATION,
    hash: HashFunction::Sha384,
    digest: &digest::SHA384,
    order: &P384_ORDER,
};
static P521: Curve = Curve {
    algorithm: Algorithm::EcdsaP521,
    agreement: &ECDH_P521,
    signing: &P521_SIGNING,
    verification: &P521_VERIFICATION,
    hash: HashFunction::Sha512,
    digest: &digest::SHA512,
    order: &P521_ORDER,
};

/// NIST SP 800-186, section 3.2.1.4.
static P384_ORDER: [u8; 48] = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
    \xff\xff\xff\xff\xff\xff\xff\xff\xc7\x63\x4d\x81\xf4\x37\x2d\xdf\
    \x58\x1a\x0d\xb2\x48\xb0\xa7\x7a\xec\xec\x19\x6a\xcc\xc5\x29\x73";
/// NIST SP 800-186, section 3.2.1.5.
static P521_ORDER: [u8; 66] = *b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
    \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfa\
    \x51\x86\x87\x83\xbf\x2f\x96\x6b\x7f\xcc\x01\x48\xf7\x09\xa5\xd0\
    \x3b\xb5\xc9\xb8\x89\x9c\x47\xae\xbb\x6f\xb7\x1e\x91\x38\x64\x09";

impl Curve {
    fn of(algorithm: Algorithm) -> Option<&'static Self> {
        [&P384, &P521].into_iter().find(|curve| curve.algorithm == algorithm)
    }

    fn scalar_length(&self) -> usize {
        self.order.len()
    }

    /// The digest as the one that the crate wants. ECDSA takes the leftmost bits of a longer one,
    /// and a shorter one as a number, before which zeros change nothing (FIPS 186-5, section
    /// 6.4.1). P-521 has more bits than any digest.
    fn imported(&self, digest: &[u8]) -> Option<Digest> {
        let length = self.digest.output_len();
        let mut bytes = vec![0; length.saturating_sub(digest.len())];
        bytes.extend_from_slice(&digest[..digest.len().min(length)]);
        Digest::import_less_safe(&bytes, self.digest).ok()
    }

    /// The signature with the lower s; `None` if the bytes are not an r and an s from 1 to n - 1.
    fn normalize(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let (r, s) = signature.split_at_checked(self.scalar_length())?;
        let is_below = |number: &[u8]| number < self.order && number.iter().any(|byte| *byte != 0);
        if s.len() != r.len() || !is_below(r) || !is_below(s) {
            return None;
        }
        let other = difference(self.order, s);
        Some([r, s.min(&other)].concat())
    }

    fn private_key(&'static self, material: &[u8]) -> Option<CurvePrivateKey> {
        if material.len() != self.scalar_length() {
            return None;
        }
        let public_key = agreement::PrivateKey::from_private_key(self.agreement, material)
            .ok()?
            .compute_public_key()
            .ok()?
            .as_ref()
            .to_vec();
        let pair = EcdsaKeyPair::from_private_key_and_public_key(self.signing, material, &public_key).ok()?;
        Some(CurvePrivateKey { curve: self, pair, public_key })
    }

    fn verify(&self, key: &ParsedPublicKey, digest: &[u8], signature: &[u8]) -> bool {
        let is_low = self.normalize(signature).is_some_and(|low| low == signature);
        let digest = self.imported(digest).filter(|_| is_low);
        digest.is_some_and(|digest| key.verify_digest_sig(&digest, signature).is_ok())
    }
}

/// The difference of two numbers of the same length, of which the first one is not smaller.
fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut borrow = false;
    let digits = larger.iter().zip(smaller).rev().map(|(&larger, &smaller)| {
        let (digit, first) = larger.overflowing_sub(smaller);
        let (digit, second) = digit.overflowing_sub(u8::from(borrow));
        borrow = first || second;
        digit
    });
    let mut digits: Vec<u8> = digits.collect();
    digits.reverse();
    digits
}

/// The signature with the lower s; `None` if the bytes are not an r and an s of the algorithm.
#[cfg(feature = "transfer")]
pub(crate) fn normalize(algorithm: Algorithm, signature: &[u8]) -> Option<Vec<u8>> {
    Curve::of(algorithm)?.normalize(signature)
}

fn curve(algorithm: Algorithm) -> Result<&'static Curve> {
    Curve::of(algorithm).ok_or_else(|| {
        KmsError::new(Code::UnsupportedAlgorithm, "the backend has P-384 and P-521, and no other algorithm")
    })
}

impl Backend for CurveBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        Curve::of(algorithm).map(|_| Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let curve = curve(algorithm)?;
        let mut scalar = Zeroizing::new(vec![0; curve.scalar_length()]);
        loop {
            crate::random::fill(&mut scalar)?;
            // The order of P-521 has 521 bits of 528.
            scalar[0] &= curve.order[0];
            if curve.private_key(&scalar).is_some() {
                return Ok(scalar);
            }
        }
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let invalid =
            || KmsError::corrupt(format!("a stored key of {algorithm} is not a scalar of its length"));
        Ok(Arc::new(curve(algorithm)?.private_key(material).ok_or_else(invalid)?))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        let invalid = |why: &str| {
            KmsError::new(Code::InvalidPublicKey, format!("not a public key of {algorithm}: {why}"))
        };
        if public_key.len() != algorithm.public_key_length() || public_key[0] != 4 {
            return Err(invalid("it is not an uncompressed point: 04, x and y"));
        }
        let key = ParsedPublicKey::new(curve(algorithm)?.verification, public_key);
        Ok(Box::new(key.map_err(|_| invalid("the bytes are not a point on the curve"))?))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        let hash = Curve::of(request.public_key.algorithm()).map(|curve| curve.hash);
        let digest = hash.map(|hash| hash.hash(request.message)).unwrap_or_default();
        self.verify_digest(request.public_key, &digest, request.signature)
    }

    fn verify_digest(&self, public_key: &EncodedKey, digest: &[u8], signature: &[u8]) -> Verdict {
        let curve = Curve::of(public_key.algorithm());
        let verified = curve
            .zip(public_key.prepared::<ParsedPublicKey>())
            .is_some_and(|(curve, key)| curve.verify(key, digest, signature));
        if verified { Verdict::Valid } else { Verdict::Invalid }
    }
}

/// `aws-lc` wipes the key when it frees it.
struct CurvePrivateKey {
    curve: &'static Curve,
    pair: EcdsaKeyPair,
    public_key: Vec<u8>,
}

impl PrivateKey for CurvePrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.public_key.clone())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.sign_digest(&self.curve.hash.hash(message))
    }

    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let made = self.curve.imported(digest).and_then(|digest| self.pair.sign_digest(&digest).ok());
        made.and_then(|made| self.curve.normalize(made.as_ref()))
            .ok_or_else(|| KmsError::new(Code::RandomUnavailable, "aws-lc did not sign by ECDSA"))
    }
}
