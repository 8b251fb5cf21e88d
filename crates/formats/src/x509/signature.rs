//! The algorithms of signatures in requests and certificates, and what they verify.

use bulla_kms::prehash::HashFunction;
use bulla_kms::{Algorithm, PublicKey, transfer};
use p384::ecdsa::signature::hazmat::PrehashVerifier as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{Any, BitString, ObjectIdentifier};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::error::FormatError;
use crate::verifying_key::{Padding, RsaKey};

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

// Keys: RFC 8410, RFC 5480, RFC 3279.
const ED25519: ObjectIdentifier = oid("1.3.101.112");
const EC_KEY: ObjectIdentifier = oid("1.2.840.10045.2.1");
const P256: ObjectIdentifier = oid("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = oid("1.3.132.0.34");
const P521: ObjectIdentifier = oid("1.3.132.0.35");
const RSA: ObjectIdentifier = oid("1.2.840.113549.1.1.1");
// Signatures: RFC 5758, RFC 8017.
const ECDSA: [(ObjectIdentifier, HashFunction); 3] = [
    (oid("1.2.840.10045.4.3.2"), HashFunction::Sha256),
    (oid("1.2.840.10045.4.3.3"), HashFunction::Sha384),
    (oid("1.2.840.10045.4.3.4"), HashFunction::Sha512),
];
const PKCS1V15: [(ObjectIdentifier, Padding); 3] = [
    (oid("1.2.840.113549.1.1.11"), Padding::Pkcs1v15Sha256),
    (oid("1.2.840.113549.1.1.12"), Padding::Pkcs1v15Sha384),
    (oid("1.2.840.113549.1.1.13"), Padding::Pkcs1v15Sha512),
];

/// The algorithm by which a key signs requests and certificates, and its hash function if the
/// algorithm leaves it open: that of the curve's size, and SHA-256 for RSA.
pub(super) fn algorithm_of(
    key: Algorithm,
) -> Result<(AlgorithmIdentifierOwned, Option<HashFunction>), FormatError> {
    let ecdsa = |place: usize| (ECDSA[place].0, Some(ECDSA[place].1));
    let (oid, hash) = match key {
        Algorithm::Ed25519 => (ED25519, None),
        Algorithm::EcdsaP256 => ecdsa(0),
        Algorithm::EcdsaP384 => ecdsa(1),
        Algorithm::EcdsaP521 => ecdsa(2),
        rsa if rsa.is_rsa() => (PKCS1V15[0].0, Some(HashFunction::Sha256)),
        other => {
            let message = format!("X.509 has keys of Ed25519, ECDSA and RSA here, and not of {other}");
            return Err(FormatError::new(message));
        }
    };
    Ok((AlgorithmIdentifierOwned { oid, parameters: key.is_rsa().then(Any::null) }, hash))
}

/// A signature as X.509 has it: one of ECDSA in DER.
pub(super) fn to_bits(key: Algorithm, signature: Vec<u8>) -> Result<BitString, FormatError> {
    let bytes = transfer::ecdsa_to_der(key, &signature).unwrap_or(signature);
    BitString::from_bytes(&bytes).map_err(super::unwritable)
}

/// Whether somebody with this key signed a message. RSA signs by PKCS #1 version 1.5, and no
/// algorithm by SHA-1.
///
/// # Errors
/// The key or the algorithm of the signature is another one.
pub(super) fn verifies(
    key: &SubjectPublicKeyInfoOwned,
    algorithm: &AlgorithmIdentifierOwned,
    message: &[u8],
    signature: &BitString,
) -> Result<bool, FormatError> {
    let other = || {
        let message = "its key or its signature is of another algorithm than Ed25519, ECDSA on P-256, P-384 \
            or P-521, or RSA of 2048 bits or more, with SHA-2";
        FormatError::new(message)
    };
    let bytes = |bits: &BitString| bits.as_bytes().map(<[u8]>::to_vec).ok_or_else(other);
    let (bits, signature) = (bytes(&key.subject_public_key)?, bytes(signature)?);
    if key.algorithm.oid == ED25519 && algorithm.oid == ED25519 {
        let key = PublicKey::from_bytes(Algorithm::Ed25519, &bits).map_err(|_| other())?;
        return Ok(key.verify(message, &signature).is_valid());
    }
    if key.algorithm.oid == RSA {
        let padding = PKCS1V15.iter().find(|(oid, _)| *oid == algorithm.oid).ok_or_else(other)?.1;
        return Ok(RsaKey::from_der(&bits).ok_or_else(other)?.verifies(padding, message, &signature));
    }
    let hash = ECDSA.iter().find(|(oid, _)| *oid == algorithm.oid).ok_or_else(other)?.1;
    let digest = match hash {
        HashFunction::Sha256 => Sha256::digest(message).to_vec(),
        HashFunction::Sha384 => Sha384::digest(message).to_vec(),
        _ => Sha512::digest(message).to_vec(),
    };
    let curve =
        key.algorithm.parameters.as_ref().and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
    match curve.filter(|_| key.algorithm.oid == EC_KEY) {
        Some(curve) => verifies_ecdsa(curve, &bits, &digest, &signature).ok_or_else(other),
        None => Err(other()),
    }
}

/// None if the curve is another one, or the key is malformed.
fn verifies_ecdsa(curve: ObjectIdentifier, point: &[u8], digest: &[u8], signature: &[u8]) -> Option<bool> {
    if curve == P256 {
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
        let pair = p256::ecdsa::Signature::from_der(signature);
        return Some(pair.is_ok_and(|pair| key.verify_prehash(digest, &pair).is_ok()));
    }
    if curve == P384 {
        let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
        let pair = p384::ecdsa::Signature::from_der(signature);
        return Some(pair.is_ok_and(|pair| key.verify_prehash(digest, &pair).is_ok()));
    }
    if curve == P521 {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
        let pair = p521::ecdsa::Signature::from_der(signature);
        // The crate wants at least half of the curve's length. A digest is a number: zeros before
        // it change nothing.
        let padded = [&vec![0; 66_usize.saturating_sub(digest.len())][..], digest].concat();
        return Some(pair.is_ok_and(|pair| key.verify_prehash(&padded, &pair).is_ok()));
    }
    None
}

/// The key in our form, as a structure of X.509.
pub(super) fn key_info(key: &PublicKey) -> Result<SubjectPublicKeyInfoOwned, FormatError> {
    algorithm_of(key.algorithm())?;
    let der = transfer::export_public(key, transfer::PublicFormat::Der);
    let info = der.ok().and_then(|der| SubjectPublicKeyInfoOwned::from_der(&der).ok());
    info.ok_or_else(|| FormatError::new("the public key cannot be written for X.509"))
}
