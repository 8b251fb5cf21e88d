//! The algorithms that keys may have.

use std::fmt;
use std::str::FromStr;

use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};

/// An algorithm, by its name in key ids.
///
/// A build's features decide which algorithms it supports; the names are the same in all builds.
///
/// ```
/// use bulla_kms::{Algorithm, KeyUsage};
///
/// assert_eq!(Algorithm::Ed25519.as_str(), "ed25519");
/// assert_eq!(Algorithm::Ed25519.usage(), KeyUsage::Signature);
/// assert_eq!(Algorithm::Ed25519.public_key_length(), 32);
/// assert_eq!(Algorithm::Ed25519.output_length(), 64); // a signature
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032), verified strictly: see [`PublicKey::verify`](crate::PublicKey::verify).
    Ed25519,
    /// ECDSA on the curve P-256 with SHA-256 (FIPS 186-5). Public keys are compressed points,
    /// signatures are r and s, two values of s satisfy the equation, and only the lower one is
    /// accepted.
    EcdsaP256,
    /// ML-DSA-44 (FIPS 204), pure, hedged, with an empty context.
    MlDsa44,
    /// ML-DSA-65 (FIPS 204), pure, hedged, with an empty context.
    MlDsa65,
    /// ML-DSA-87 (FIPS 204), pure, hedged, with an empty context.
    MlDsa87,
    /// SLH-DSA-SHA2-128s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_128s,
    /// SLH-DSA-SHA2-128f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_128f,
    /// SLH-DSA-SHA2-192s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_192s,
    /// SLH-DSA-SHA2-192f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_192f,
    /// SLH-DSA-SHA2-256s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_256s,
    /// SLH-DSA-SHA2-256f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaSha2_256f,
    /// SLH-DSA-SHAKE-128s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake128s,
    /// SLH-DSA-SHAKE-128f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake128f,
    /// SLH-DSA-SHAKE-192s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake192s,
    /// SLH-DSA-SHAKE-192f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake192f,
    /// SLH-DSA-SHAKE-256s (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake256s,
    /// SLH-DSA-SHAKE-256f (FIPS 205), pure, hedged, with an empty context.
    SlhDsaShake256f,
    /// ML-DSA-65 and Ed25519 as one (draft-ietf-lamps-pq-composite-sigs,
    /// `id-MLDSA65-Ed25519-SHA512`): both must verify, and Ed25519 strictly.
    MlDsa65Ed25519,
    /// ML-KEM-512 (FIPS 203).
    MlKem512,
    /// ML-KEM-768 (FIPS 203).
    MlKem768,
    /// ML-KEM-1024 (FIPS 203).
    MlKem1024,
    /// X25519 and ML-KEM-768 as one: X-Wing (draft-connolly-cfrg-xwing-kem).
    XWing,
}

/// What an algorithm's keys are for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyUsage {
    /// They sign and verify.
    Signature,
    /// They encapsulate and decapsulate keys of 32 bytes.
    KeyEncapsulation,
}

/// The facts about an algorithm that need no key. All lengths are in bytes.
struct Facts {
    name: &'static str,
    usage: KeyUsage,
    public_key: usize,
    /// The signature, or the ciphertext that carries an encapsulated key.
    output: usize,
}

const fn signature(name: &'static str, public_key: usize, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::Signature, public_key, output }
}

const fn encapsulation(name: &'static str, public_key: usize, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::KeyEncapsulation, public_key, output }
}

impl Algorithm {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Ed25519,
        Self::EcdsaP256,
        Self::MlDsa44,
        Self::MlDsa65,
        Self::MlDsa87,
        Self::SlhDsaSha2_128s,
        Self::SlhDsaSha2_128f,
        Self::SlhDsaSha2_192s,
        Self::SlhDsaSha2_192f,
        Self::SlhDsaSha2_256s,
        Self::SlhDsaSha2_256f,
        Self::SlhDsaShake128s,
        Self::SlhDsaShake128f,
        Self::SlhDsaShake192s,
        Self::SlhDsaShake192f,
        Self::SlhDsaShake256s,
        Self::SlhDsaShake256f,
        Self::MlDsa65Ed25519,
        Self::MlKem512,
        Self::MlKem768,
        Self::MlKem1024,
        Self::XWing,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::Ed25519 => signature("ed25519", 32, 64),
            Self::EcdsaP256 => signature("ecdsa-p256", 33, 64),
            Self::MlDsa44 => signature("ml-dsa-44", 1312, 2420),
            Self::MlDsa65 => signature("ml-dsa-65", 1952, 3309),
            Self::MlDsa87 => signature("ml-dsa-87", 2592, 4627),
            Self::SlhDsaSha2_128s => signature("slh-dsa-sha2-128s", 32, 7856),
            Self::SlhDsaSha2_128f => signature("slh-dsa-sha2-128f", 32, 17088),
            Self::SlhDsaSha2_192s => signature("slh-dsa-sha2-192s", 48, 16224),
            Self::SlhDsaSha2_192f => signature("slh-dsa-sha2-192f", 48, 35664),
            Self::SlhDsaSha2_256s => signature("slh-dsa-sha2-256s", 64, 29792),
            Self::SlhDsaSha2_256f => signature("slh-dsa-sha2-256f", 64, 49856),
            Self::SlhDsaShake128s => signature("slh-dsa-shake-128s", 32, 7856),
            Self::SlhDsaShake128f => signature("slh-dsa-shake-128f", 32, 17088),
            Self::SlhDsaShake192s => signature("slh-dsa-shake-192s", 48, 16224),
            Self::SlhDsaShake192f => signature("slh-dsa-shake-192f", 48, 35664),
            Self::SlhDsaShake256s => signature("slh-dsa-shake-256s", 64, 29792),
            Self::SlhDsaShake256f => signature("slh-dsa-shake-256f", 64, 49856),
            Self::MlDsa65Ed25519 => signature("ml-dsa-65-ed25519", 1984, 3373),
            Self::MlKem512 => encapsulation("ml-kem-512", 800, 768),
            Self::MlKem768 => encapsulation("ml-kem-768", 1184, 1088),
            Self::MlKem1024 => encapsulation("ml-kem-1024", 1568, 1568),
            Self::XWing => encapsulation("x-wing", 1216, 1120),
        }
    }

    /// The name in a key id.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// All names. Not by `join`: LLVM takes minutes to optimize that for an array of this length.
    fn names() -> String {
        let mut names = String::new();
        for &algorithm in Self::ALL {
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(algorithm.as_str());
        }
        names
    }

    /// What its keys are for.
    pub const fn usage(self) -> KeyUsage {
        self.facts().usage
    }

    /// The length of a public key in bytes.
    pub const fn public_key_length(self) -> usize {
        self.facts().public_key
    }

    /// The length in bytes of a signature, or of the ciphertext that carries an encapsulated key.
    pub const fn output_length(self) -> usize {
        self.facts().output
    }
}

impl FromStr for Algorithm {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.as_str() == text).ok_or_else(|| {
            KmsError::new(
                Code::InvalidId,
                format!("the algorithm {text:?} is unknown; known are: {}", Self::names()),
            )
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

serde_as_text!(Algorithm);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_its_own_and_reads_back() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(algorithm.as_str().parse::<Algorithm>().unwrap(), algorithm);
            // A key id has the name between slashes.
            assert!(
                algorithm.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
        }
        assert_eq!("rsa".parse::<Algorithm>().unwrap_err().code, Code::InvalidId);
    }
}
