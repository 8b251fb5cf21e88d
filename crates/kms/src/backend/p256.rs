//! ECDSA on P-256 with SHA-256 (FIPS 186-5, section 6) in software, by `p256` of RustCrypto. The
//! material is the private scalar: 32 bytes, big-endian, from 1 to n - 1.
//!
//! Nonces are deterministic (RFC 6979). If (r, s) is a signature of a message, (r, n - s) satisfies
//! the equation too. This module makes the signature with the lower s and refuses the other, so
//! that nobody can turn a signature into another one without the private key.

use std::sync::Arc;

use p256::ecdsa::signature::hazmat::{PrehashSigner as _, PrehashVerifier as _};
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use super::interface::{Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};

const ALGORITHM: Algorithm = Algorithm::EcdsaP256;

/// The length of the private scalar in bytes.
const SCALAR: usize = 32;

#[derive(Debug)]
pub(super) struct P256Backend;

impl Backend for P256Backend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm == ALGORITHM).then_some(Capabilities::default().material_is_key(true))
    }

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut scalar = Zeroizing::new(vec![0; SCALAR]);
        loop {
            crate::random::fill(&mut scalar)?;
            // Refused are zero and numbers not below the order: one in 2^32.
            if SigningKey::from_slice(&scalar).is_ok() {
                return Ok(scalar);
            }
        }
    }

    fn load(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        Ok(Arc::new(P256PrivateKey(signing_key(material)?)))
    }

    fn prepare(&self, _algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        Ok(Box::new(decode(public_key)?))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        match request.public_key.prepared() {
            Some(key) => verify(key, request.message, request.signature),
            None => Verdict::Invalid,
        }
    }

    fn verify_digest(&self, public_key: &EncodedKey, digest: &[u8], signature: &[u8]) -> Verdict {
        let key = public_key.prepared::<VerifyingKey>();
        let signature = Signature::from_slice(signature).ok().filter(is_low);
        let verified =
            key.zip(signature).is_some_and(|(key, made)| key.verify_prehash(digest, &made).is_ok());
        if verified { Verdict::Valid } else { Verdict::Invalid }
    }
}

fn signing_key(material: &[u8]) -> Result<SigningKey> {
    let invalid = || KmsError::corrupt("a stored key of ecdsa-p256 is not a scalar of 32 bytes");
    // `from_slice` would also accept shorter slices, as if preceded by zeros.
    if material.len() != SCALAR {
        return Err(invalid());
    }
    SigningKey::from_slice(material).map_err(|_| invalid())
}

/// A point of the curve in its compressed form (SEC 1, section 2.3.3): 02 or 03, and x.
fn decode(bytes: &[u8]) -> Result<VerifyingKey> {
    let invalid =
        |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not a public key of ecdsa-p256: {why}"));
    if bytes.len() != ALGORITHM.public_key_length() {
        return Err(invalid("it does not have 33 bytes"));
    }
    if !matches!(bytes[0], 2 | 3) {
        return Err(invalid("it is not a compressed point: the first byte is neither 02 nor 03"));
    }
    VerifyingKey::from_sec1_bytes(bytes).map_err(|_| invalid("the bytes are not a point on the curve"))
}

fn verify(key: &VerifyingKey, message: &[u8], signature: &[u8]) -> Verdict {
    match Signature::from_slice(signature) {
        Ok(signature) if is_low(&signature) && key.verify(message, &signature).is_ok() => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}

/// Whether s is the lower one of the two values that verify.
fn is_low(signature: &Signature) -> bool {
    signature.normalize_s() == *signature
}

/// The public key in the form of [`Algorithm::EcdsaP256`], from any form of SEC 1.
#[cfg(any(feature = "pkcs11", feature = "transfer"))]
pub(crate) fn compress(point: &[u8]) -> Option<Vec<u8>> {
    Some(encode(&VerifyingKey::from_sec1_bytes(point).ok()?))
}

/// The uncompressed form of a valid public key.
#[cfg(any(feature = "fast", feature = "nist", feature = "transfer"))]
pub(crate) fn uncompressed(public_key: &[u8]) -> Option<Vec<u8>> {
    decode(public_key).map(|key| key.to_sec1_point(false).as_bytes().to_vec()).ok()
}

/// Whether an uncompressed point is the public key of a scalar.
#[cfg(feature = "transfer")]
pub(crate) fn is_pair(scalar: &[u8], point: &[u8]) -> bool {
    signing_key(scalar).is_ok_and(|key| key.verifying_key().to_sec1_point(false).as_bytes() == point)
}

/// The signature with the lower s; `None` if the bytes are not an r and an s.
#[cfg(any(feature = "fast", feature = "nist", feature = "pkcs11", feature = "transfer"))]
pub(crate) fn normalize(signature: &[u8]) -> Option<Vec<u8>> {
    Some(Signature::from_slice(signature).ok()?.normalize_s().to_vec())
}

fn encode(key: &VerifyingKey) -> Vec<u8> {
    key.to_sec1_point(true).as_bytes().to_vec()
}

/// The crate wipes the key on drop.
struct P256PrivateKey(SigningKey);

impl PrivateKey for P256PrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(encode(self.0.verifying_key()))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let signature: Signature = self.0.sign(message);
        Ok(signature.normalize_s().to_vec())
    }

    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let signature: Signature = self
            .0
            .sign_prehash(digest)
            .map_err(|_| KmsError::new(Code::InvalidArgument, "the digest is too short for ecdsa-p256"))?;
        Ok(signature.normalize_s().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    const SECRET: &str = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
    const PUBLIC: &str = "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6";

    /// RFC 6979, section A.2.5, with SHA-256: message, r, and s as printed there.
    const RFC_6979: [[&str; 3]; 2] = [
        [
            "sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
            "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
        ],
        [
            "test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
            "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
        ],
    ];

    /// The order minus a number below it.
    fn negated(scalar: &[u8]) -> Vec<u8> {
        let mut borrow = 0;
        let digits = bytes(ORDER).into_iter().zip(scalar).rev().map(|(order, digit)| {
            let difference = i16::from(order) - i16::from(*digit) - borrow;
            borrow = i16::from(difference < 0);
            difference.rem_euclid(256) as u8
        });
        let mut negated: Vec<u8> = digits.collect();
        negated.reverse();
        negated
    }

    #[test]
    fn the_vectors_of_rfc_6979_with_the_lower_s() {
        let key = P256Backend.load(ALGORITHM, &Zeroizing::new(bytes(SECRET))).unwrap();
        // The y of the vector is odd.
        let compressed = [vec![3], bytes(PUBLIC)].concat();
        assert_eq!(key.public_key().unwrap(), compressed);
        let public_key = PublicKey::from_bytes(ALGORITHM, &compressed).unwrap();
        let mut both = 0;
        for [message, r, s] in RFC_6979 {
            let (r, s) = (bytes(r), bytes(s));
            let other = negated(&s);
            let (low, high) = (s.clone().min(other.clone()), s.clone().max(other));
            both |= if s == low { 1 } else { 2 };
            let made = key.sign(message.as_bytes()).unwrap();
            assert_eq!(made, [&r[..], &low].concat(), "{message}");
            let verdict = |s: &[u8]| public_key.verify(message.as_bytes(), &[&r[..], s].concat());
            assert_eq!((verdict(&low), verdict(&high)), (Verdict::Valid, Verdict::Invalid), "{message}");
        }
        assert_eq!(both, 3, "one vector has the lower s and one the higher");
    }

    #[test]
    fn what_is_no_scalar_is_no_private_key() {
        let zero = vec![0; 32];
        let short = bytes(SECRET)[1..].to_vec();
        for material in [zero, bytes(ORDER), short, vec![], [bytes(SECRET), vec![0]].concat()] {
            assert!(P256Backend.load(ALGORITHM, &Zeroizing::new(material)).is_err());
        }
    }

    #[test]
    fn a_public_key_is_a_compressed_point_and_nothing_else() {
        let compressed = [vec![3], bytes(PUBLIC)].concat();
        let with_first = |first: u8| [vec![first], bytes(PUBLIC)].concat();
        // Hybrid and compact points have forms of 33 bytes or more as well.
        let mut refused: Vec<_> = [0, 1, 4, 5, 6, 7].map(with_first).to_vec();
        refused.push([vec![4], bytes(PUBLIC), bytes(PUBLIC)].concat());
        // Not below the field's prime.
        refused.push([vec![2], vec![0xff; 32]].concat());
        // About half of all numbers are the x of no point.
        let small = |x: u8| [vec![2], vec![0; 31], vec![x]].concat();
        assert!((0..32).map(small).any(|key| PublicKey::from_bytes(ALGORITHM, &key).is_err()));
        for key in refused {
            assert_eq!(PublicKey::from_bytes(ALGORITHM, &key).unwrap_err().code, Code::InvalidPublicKey);
        }
        assert!(PublicKey::from_bytes(ALGORITHM, &compressed).is_ok());
        assert!(PublicKey::from_bytes(ALGORITHM, &with_first(2)).is_ok(), "the point with the other y");
    }
}
