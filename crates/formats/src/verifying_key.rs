//! Public keys of any algorithm that signs messages, for those that `bulla-kms` verifies only with
//! a C compiler: RSA, and ECDSA on P-384 and P-521. Timing reveals nothing: they are public.

use bulla_kms::{Algorithm, PublicKey};
use p384::pkcs8::der::asn1::UintRef;
use p384::pkcs8::der::{Decode as _, Reader as _, SliceReader};
use rsa::BoxedUint;
use rsa::signature::hazmat::PrehashVerifier as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The sizes of RSA keys in bits. Shorter ones are broken, or soon.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// How a digest is padded, and which digest it is. PSS has a salt as long as the digest, as in JWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    Pkcs1v15Sha256,
    Pkcs1v15Sha384,
    Pkcs1v15Sha512,
    PssSha256,
    PssSha384,
    PssSha512,
}

/// A public key that verifies messages.
#[derive(Clone, Debug)]
pub(crate) enum VerifyingKey {
    /// A key of another algorithm than the following ones.
    Kms(PublicKey),
    P384(p384::ecdsa::VerifyingKey),
    P521(p521::ecdsa::VerifyingKey),
    Rsa(RsaKey),
}

impl VerifyingKey {
    /// One of our keys. None if it is malformed.
    pub(crate) fn of(key: &PublicKey) -> Option<Self> {
        Some(match key.algorithm() {
            Algorithm::EcdsaP384 => {
                Self::P384(p384::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).ok()?)
            }
            Algorithm::EcdsaP521 => {
                Self::P521(p521::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).ok()?)
            }
            algorithm if algorithm.is_rsa() => Self::Rsa(RsaKey::from_der(key.as_bytes())?),
            _ => Self::Kms(key.clone()),
        })
    }
}

/// A public key of RSA.
#[derive(Clone, Debug)]
pub(crate) struct RsaKey(rsa::PublicKey);

/// The modulus and the exponent of an RSAPublicKey in DER (RFC 8017, appendix A.1.1), big-endian.
pub(crate) fn rsa_numbers(der: &[u8]) -> Option<[Vec<u8>; 2]> {
    let mut reader = SliceReader::new(der).ok()?;
    let numbers = reader.sequence(|reader| {
        Ok::<_, p384::pkcs8::der::Error>([UintRef::decode(reader)?, UintRef::decode(reader)?])
    });
    let numbers = numbers.ok()?;
    reader.finish().ok()?;
    Some(numbers.map(|number| number.as_bytes().to_vec()))
}

impl RsaKey {
    /// A key from an RSAPublicKey in DER.
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        let [modulus, exponent] = rsa_numbers(der)?;
        Self::new(&modulus, &exponent)
    }

    /// A key from its modulus and exponent, big-endian. None if it is too short or too long.
    pub(crate) fn new(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let [modulus, exponent] = [modulus, exponent].map(BoxedUint::from_be_slice_vartime);
        rsa::PublicKey::new_with_size_limits(modulus, exponent, RSA_BITS).ok().map(Self)
    }

    /// Whether a signature of the message verifies.
    pub(crate) fn verifies(&self, padding: Padding, message: &[u8], signature: &[u8]) -> bool {
        let digest = match padding {
            Padding::Pkcs1v15Sha256 | Padding::PssSha256 => Sha256::digest(message).to_vec(),
            Padding::Pkcs1v15Sha384 | Padding::PssSha384 => Sha384::digest(message).to_vec(),
            Padding::Pkcs1v15Sha512 | Padding::PssSha512 => Sha512::digest(message).to_vec(),
        };
        self.verifies_digest(padding, &digest, signature)
    }

    /// Whether a signature verifies by the digest of its message.
    pub(crate) fn verifies_digest(&self, padding: Padding, digest: &[u8], signature: &[u8]) -> bool {
        let key = self.0.clone();
        let pkcs1v15 = rsa::pkcs1v15::Signature::try_from(signature);
        let pss = rsa::pss::Signature::try_from(signature);
        let (Ok(pkcs1v15), Ok(pss)) = (pkcs1v15, pss) else { return false };
        let verdict = match padding {
            Padding::Pkcs1v15Sha256 => {
                rsa::pkcs1v15::VerifyingKey::<Sha256>::new(key).verify_prehash(digest, &pkcs1v15)
            }
            Padding::Pkcs1v15Sha384 => {
                rsa::pkcs1v15::VerifyingKey::<Sha384>::new(key).verify_prehash(digest, &pkcs1v15)
            }
            Padding::Pkcs1v15Sha512 => {
                rsa::pkcs1v15::VerifyingKey::<Sha512>::new(key).verify_prehash(digest, &pkcs1v15)
            }
            Padding::PssSha256 => rsa::pss::VerifyingKey::<Sha256>::new(key).verify_prehash(digest, &pss),
            Padding::PssSha384 => rsa::pss::VerifyingKey::<Sha384>::new(key).verify_prehash(digest, &pss),
            Padding::PssSha512 => rsa::pss::VerifyingKey::<Sha512>::new(key).verify_prehash(digest, &pss),
        };
        verdict.is_ok()
    }
}
