//! Private keys of curves that live in a session: ECDSA, Ed25519 and Diffie-Hellman, by
//! `aws-lc-rs`, which computes in constant time and wipes keys when it frees them.

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, UnparsedPublicKey};
use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::encoding::AsBigEndian as _;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
};
use bulla_kms::Algorithm;
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail};

/// A private key of a curve.
pub(crate) enum CurvePrivateKey {
    Ecdsa { pair: EcdsaKeyPair, agreement: agreement::PrivateKey, digest: &'static digest::Algorithm },
    Ed25519(Ed25519KeyPair),
    X25519(agreement::PrivateKey),
}

/// A curve of NIST.
struct Curve {
    signing: &'static EcdsaSigningAlgorithm,
    agreement: &'static agreement::Algorithm,
    /// The hash function of the digests that `signing` takes.
    digest: &'static digest::Algorithm,
    /// The length of a scalar in bytes.
    length: usize,
}

static P256: EcdsaSigningAlgorithm = ECDSA_P256_SHA256_FIXED_SIGNING;
static P384: EcdsaSigningAlgorithm = ECDSA_P384_SHA384_FIXED_SIGNING;
static P521: EcdsaSigningAlgorithm = ECDSA_P521_SHA512_FIXED_SIGNING;
static AGREEMENT_P256: agreement::Algorithm = ECDH_P256;
static AGREEMENT_P384: agreement::Algorithm = ECDH_P384;
static AGREEMENT_P521: agreement::Algorithm = ECDH_P521;
static X25519: agreement::Algorithm = agreement::X25519;

impl Curve {
    /// None for a curve that is not one of NIST.
    fn of(algorithm: Algorithm) -> Option<Self> {
        let (signing, agreement, digest, length) = match algorithm {
            Algorithm::EcdsaP256 => (&P256, &AGREEMENT_P256, &digest::SHA256, 32),
            Algorithm::EcdsaP384 => (&P384, &AGREEMENT_P384, &digest::SHA384, 48),
            Algorithm::EcdsaP521 => (&P521, &AGREEMENT_P521, &digest::SHA512, 66),
            _ => return None,
        };
        Some(Self { signing, agreement, digest, length })
    }
}

fn not_made<T>(_: T) -> Failure {
    Failure(CKR_DEVICE_ERROR)
}

fn not_a_key<T>(_: T) -> Failure {
    Failure(CKR_ATTRIBUTE_VALUE_INVALID)
}

/// The value of a key that is new: a scalar, or a seed.
///
/// # Errors
/// `CKR_CURVE_NOT_SUPPORTED`; `CKR_DEVICE_ERROR`.
pub(crate) fn generate(algorithm: Algorithm) -> Result<Zeroizing<Vec<u8>>> {
    if let Some(curve) = Curve::of(algorithm) {
        let pair = EcdsaKeyPair::generate(curve.signing).map_err(not_made)?;
        return Ok(Zeroizing::new(pair.private_key().as_be_bytes().map_err(not_made)?.as_ref().to_vec()));
    }
    match algorithm {
        Algorithm::Ed25519 | Algorithm::X25519 => {
            let mut value = Zeroizing::new(vec![0; 32]);
            getrandom::fill(&mut value).map_err(not_made)?;
            Ok(value)
        }
        _ => fail(CKR_CURVE_NOT_SUPPORTED),
    }
}

/// The value as this module writes it: numbers of a curve of NIST may come with other zeros in
/// front.
pub(crate) fn normalized(algorithm: Algorithm, value: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let Some(Curve { length, .. }) = Curve::of(algorithm) else { return Ok(Zeroizing::new(value.to_vec())) };
    let start = value.len().saturating_sub(length);
    let (zeros, number) = value.split_at(start);
    if zeros.iter().any(|byte| *byte != 0) {
        return fail(CKR_ATTRIBUTE_VALUE_INVALID);
    }
    let mut normalized = Zeroizing::new(vec![0; length]);
    normalized[length - number.len()..].copy_from_slice(number);
    Ok(normalized)
}

/// The value of a key in PKCS #8.
///
/// # Errors
/// `CKR_WRAPPED_KEY_INVALID` if it is not a key of the curve; `CKR_CURVE_NOT_SUPPORTED`.
pub(crate) fn of_pkcs8(algorithm: Algorithm, pkcs8: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let invalid = Failure(CKR_WRAPPED_KEY_INVALID);
    if let Some(curve) = Curve::of(algorithm) {
        let pair = EcdsaKeyPair::from_pkcs8(curve.signing, pkcs8).map_err(|_| invalid)?;
        return Ok(Zeroizing::new(pair.private_key().as_be_bytes().map_err(not_made)?.as_ref().to_vec()));
    }
    match algorithm {
        Algorithm::Ed25519 => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(|_| invalid)?;
            Ok(Zeroizing::new(
                pair.seed().and_then(|seed| seed.as_be_bytes()).map_err(not_made)?.as_ref().to_vec(),
            ))
        }
        _ => fail(CKR_CURVE_NOT_SUPPORTED),
    }
}

impl CurvePrivateKey {
    /// The key of a value that [`normalized`] gave.
    ///
    /// # Errors
    /// `CKR_CURVE_NOT_SUPPORTED`; `CKR_ATTRIBUTE_VALUE_INVALID` if it is not a private key.
    pub(crate) fn new(algorithm: Algorithm, value: &[u8]) -> Result<Self> {
        if let Some(Curve { signing, agreement, digest, .. }) = Curve::of(algorithm) {
            let agreement = agreement::PrivateKey::from_private_key(agreement, value).map_err(not_a_key)?;
            let public = agreement.compute_public_key().map_err(not_a_key)?;
            let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, value, public.as_ref());
            return Ok(Self::Ecdsa { pair: pair.map_err(not_a_key)?, agreement, digest });
        }
        match algorithm {
            Algorithm::Ed25519 => {
                Ok(Self::Ed25519(Ed25519KeyPair::from_seed_unchecked(value).map_err(not_a_key)?))
            }
            Algorithm::X25519 => {
                let key = agreement::PrivateKey::from_private_key(&X25519, value);
                Ok(Self::X25519(key.map_err(not_a_key)?))
            }
            _ => fail(CKR_CURVE_NOT_SUPPORTED),
        }
    }

    /// The public key: a point that is not compressed, or 32 bytes.
    pub(crate) fn public_key(&self) -> Result<Vec<u8>> {
        match self {
            Self::Ecdsa { pair, .. } => Ok(pair.public_key().as_ref().to_vec()),
            Self::Ed25519(pair) => Ok(pair.public_key().as_ref().to_vec()),
            Self::X25519(key) => Ok(key.compute_public_key().map_err(not_made)?.as_ref().to_vec()),
        }
    }

    /// Signs a digest, by ECDSA.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` for a key that does not sign digests; `CKR_DEVICE_ERROR`.
    pub(crate) fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let Self::Ecdsa { pair, digest: wanted, .. } = self else { return fail(CKR_KEY_TYPE_INCONSISTENT) };
        // ECDSA takes the leftmost bits of a longer digest, and a shorter one as a number, before
        // which zeros change nothing (FIPS 186-5, section 6.4.1).
        let length = wanted.output_len();
        let mut bytes = vec![0; length.saturating_sub(digest.len())];
        bytes.extend_from_slice(&digest[..digest.len().min(length)]);
        let digest = Digest::import_less_safe(&bytes, wanted).map_err(not_made)?;
        Ok(pair.sign_digest(&digest).map_err(not_made)?.as_ref().to_vec())
    }

    /// Signs a message, by Ed25519.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` for a key that does not sign messages; `CKR_DEVICE_ERROR`.
    pub(crate) fn sign_message(&self, message: &[u8]) -> Result<Vec<u8>> {
        let Self::Ed25519(pair) = self else { return fail(CKR_KEY_TYPE_INCONSISTENT) };
        Ok(pair.try_sign(message).map_err(not_made)?.as_ref().to_vec())
    }

    /// The secret that the key shares with the holder of a peer's private key.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT`; `CKR_MECHANISM_PARAM_INVALID` for a peer that is not a point of
    /// the curve, or of low order.
    pub(crate) fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (Self::Ecdsa { agreement: key, .. } | Self::X25519(key)) = self else {
            return fail(CKR_KEY_TYPE_INCONSISTENT);
        };
        let peer = UnparsedPublicKey::new(key.algorithm(), peer);
        agreement::agree(key, peer, Failure(CKR_MECHANISM_PARAM_INVALID), |secret| {
            Ok(Zeroizing::new(secret.to_vec()))
        })
    }

    /// The key as PKCS #8.
    ///
    /// # Errors
    /// `CKR_KEY_NOT_WRAPPABLE` for X25519, which `aws-lc-rs` does not write.
    pub(crate) fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>> {
        let made = match self {
            Self::Ecdsa { pair, .. } => pair.to_pkcs8v1(),
            Self::Ed25519(pair) => pair.to_pkcs8v1(),
            Self::X25519(_) => return fail(CKR_KEY_NOT_WRAPPABLE),
        };
        Ok(Zeroizing::new(made.map_err(not_made)?.as_ref().to_vec()))
    }
}
