//! The algorithms that keys may have.

use std::fmt;
use std::num::NonZeroU64;
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
    /// ECDSA on the curve P-384 with SHA-384 (FIPS 186-5). Public keys are uncompressed points.
    /// Otherwise as [`Algorithm::EcdsaP256`].
    EcdsaP384,
    /// ECDSA on the curve P-521 with SHA-512 (FIPS 186-5). Public keys are uncompressed points.
    /// Otherwise as [`Algorithm::EcdsaP256`].
    EcdsaP521,
    /// RSA with a modulus of 2048 bits and the exponent 65537 (RFC 8017). Signatures are of PSS
    /// with SHA-256 and a salt of 32 bytes, unless a call asks for something else
    /// ([`Keystore::sign_hashed`](crate::Keystore::sign_hashed)). The keys also encrypt, by OAEP
    /// with SHA-256. Public keys are an `RSAPublicKey` in DER.
    Rsa2048,
    /// RSA with a modulus of 3072 bits. Otherwise as [`Algorithm::Rsa2048`].
    Rsa3072,
    /// RSA with a modulus of 4096 bits. Otherwise as [`Algorithm::Rsa2048`].
    Rsa4096,
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
    /// Elliptic-curve Diffie-Hellman on the curve P-256 (NIST SP 800-56A, section 5.7.1.2). Public
    /// keys are uncompressed points.
    EcdhP256,
    /// Elliptic-curve Diffie-Hellman on the curve P-384. Otherwise as [`Algorithm::EcdhP256`].
    EcdhP384,
    /// Elliptic-curve Diffie-Hellman on the curve P-521. Otherwise as [`Algorithm::EcdhP256`].
    EcdhP521,
    /// X25519 (RFC 7748). A public key of low order is refused.
    X25519,
    /// AES-128 in Galois/Counter Mode (NIST SP 800-38D), with nonces of 96 bits.
    Aes128Gcm,
    /// AES-256 in Galois/Counter Mode (NIST SP 800-38D), with nonces of 96 bits.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439), with nonces of 96 bits.
    ChaCha20Poly1305,
    /// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), with nonces of 192 bits.
    XChaCha20Poly1305,
    /// HMAC with SHA-256 (FIPS 198-1).
    HmacSha256,
    /// HMAC with SHA-384 (FIPS 198-1).
    HmacSha384,
    /// HMAC with SHA-512 (FIPS 198-1).
    HmacSha512,
    /// BLAKE3 in its keyed mode, with 32 bytes of output.
    Blake3,
}

/// What an algorithm's keys are for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyUsage {
    /// They sign and verify.
    Signature,
    /// They encapsulate and decapsulate keys of 32 bytes.
    KeyEncapsulation,
    /// They agree with the public key of a peer on a shared secret.
    KeyAgreement,
    /// They encrypt and decrypt, with one secret for both.
    Encryption,
    /// They make and verify message authentication codes (MACs), with one secret for both.
    Authentication,
}

impl KeyUsage {
    /// Whether one secret does both halves of the work. Such a key has no public key.
    pub const fn is_symmetric(self) -> bool {
        matches!(self, Self::Encryption | Self::Authentication)
    }
}

/// The facts about an algorithm that need no key. All lengths are in bytes.
struct Facts {
    name: &'static str,
    usage: KeyUsage,
    /// 0 if there are no public keys.
    public_key: usize,
    /// The signature, the ciphertext that carries an encapsulated key, the shared secret, the MAC,
    /// or the bytes that a ciphertext has more than its plaintext.
    output: usize,
}

const fn signature(name: &'static str, public_key: usize, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::Signature, public_key, output }
}

const fn encapsulation(name: &'static str, public_key: usize, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::KeyEncapsulation, public_key, output }
}

const fn agreement(name: &'static str, public_key: usize, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::KeyAgreement, public_key, output }
}

/// `nonce` is the length of its nonces.
const fn encryption(name: &'static str, nonce: usize) -> Facts {
    Facts { name, usage: KeyUsage::Encryption, public_key: 0, output: HEADER_LEN + nonce + TAG_LEN }
}

const fn authentication(name: &'static str, output: usize) -> Facts {
    Facts { name, usage: KeyUsage::Authentication, public_key: 0, output }
}

/// The length of the part of a ciphertext before its nonce: a format and the version of the key.
pub(crate) const HEADER_LEN: usize = 5;
/// The length of the tag of every algorithm that encrypts.
pub(crate) const TAG_LEN: usize = 16;

impl Algorithm {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Ed25519,
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::EcdsaP521,
        Self::Rsa2048,
        Self::Rsa3072,
        Self::Rsa4096,
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
        Self::EcdhP256,
        Self::EcdhP384,
        Self::EcdhP521,
        Self::X25519,
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20Poly1305,
        Self::XChaCha20Poly1305,
        Self::HmacSha256,
        Self::HmacSha384,
        Self::HmacSha512,
        Self::Blake3,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::Ed25519 => signature("ed25519", 32, 64),
            Self::EcdsaP256 => signature("ecdsa-p256", 33, 64),
            Self::EcdsaP384 => signature("ecdsa-p384", 97, 96),
            Self::EcdsaP521 => signature("ecdsa-p521", 133, 132),
            Self::Rsa2048 => signature("rsa-2048", 270, 256),
            Self::Rsa3072 => signature("rsa-3072", 398, 384),
            Self::Rsa4096 => signature("rsa-4096", 526, 512),
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
            Self::EcdhP256 => agreement("ecdh-p256", 65, 32),
            Self::EcdhP384 => agreement("ecdh-p384", 97, 48),
            Self::EcdhP521 => agreement("ecdh-p521", 133, 66),
            Self::X25519 => agreement("x25519", 32, 32),
            Self::Aes128Gcm => encryption("aes-128-gcm", 12),
            Self::Aes256Gcm => encryption("aes-256-gcm", 12),
            Self::ChaCha20Poly1305 => encryption("chacha20-poly1305", 12),
            Self::XChaCha20Poly1305 => encryption("xchacha20-poly1305", 24),
            Self::HmacSha256 => authentication("hmac-sha256", 32),
            Self::HmacSha384 => authentication("hmac-sha384", 48),
            Self::HmacSha512 => authentication("hmac-sha512", 64),
            Self::Blake3 => authentication("blake3", 32),
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

    /// What its keys are for. RSA keys sign, and have a second use, which is encryption:
    /// [`Algorithm::has_usage`].
    pub const fn usage(self) -> KeyUsage {
        self.facts().usage
    }

    /// Whether its keys may be used for this.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyUsage};
    ///
    /// assert!(Algorithm::Rsa3072.has_usage(KeyUsage::Signature));
    /// assert!(Algorithm::Rsa3072.has_usage(KeyUsage::Encryption));
    /// assert!(!Algorithm::Ed25519.has_usage(KeyUsage::Encryption));
    /// ```
    pub fn has_usage(self, usage: KeyUsage) -> bool {
        self.usage() == usage || (self.is_rsa() && usage == KeyUsage::Encryption)
    }

    /// The name that JOSE has for its signatures of messages (RFC 7518, RFC 8037, RFC 9964). None
    /// if it signs nothing there. An RSA key has several: this is the one by which bulla signs.
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    ///
    /// assert_eq!(Algorithm::EcdsaP256.jose_name(), Some("ES256"));
    /// assert_eq!(Algorithm::Rsa2048.jose_name(), Some("PS256"));
    /// assert_eq!(Algorithm::MlKem768.jose_name(), None);
    /// ```
    pub const fn jose_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Ed25519 => "EdDSA",
            Self::EcdsaP256 => "ES256",
            Self::EcdsaP384 => "ES384",
            Self::EcdsaP521 => "ES512",
            Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096 => "PS256",
            Self::MlDsa44 => "ML-DSA-44",
            Self::MlDsa65 => "ML-DSA-65",
            Self::MlDsa87 => "ML-DSA-87",
            _ => return None,
        })
    }

    /// Whether it is RSA, of any length.
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    ///
    /// assert!(Algorithm::Rsa4096.is_rsa() && !Algorithm::EcdsaP384.is_rsa());
    /// ```
    pub const fn is_rsa(self) -> bool {
        matches!(self, Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096)
    }

    /// Whether it is ECDSA, on any curve.
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    ///
    /// assert!(Algorithm::EcdsaP521.is_ecdsa() && !Algorithm::Ed25519.is_ecdsa());
    /// ```
    pub const fn is_ecdsa(self) -> bool {
        matches!(self, Self::EcdsaP256 | Self::EcdsaP384 | Self::EcdsaP521)
    }

    /// Whether a key can be made to sign digests that callers hash themselves, so that it signs no
    /// statements: see [`NewKey::signs_digests`](crate::NewKey::signs_digests).
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    ///
    /// assert!(Algorithm::EcdsaP256.can_sign_digests() && Algorithm::Rsa2048.can_sign_digests());
    /// // Every key of Ed25519 signs digests, apart from messages.
    /// assert!(!Algorithm::Ed25519.can_sign_digests());
    /// ```
    pub const fn can_sign_digests(self) -> bool {
        self.is_ecdsa() || self.is_rsa()
    }

    /// Whether its keys have no public key: one secret does both halves of the work.
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    ///
    /// assert!(Algorithm::Aes256Gcm.is_symmetric() && !Algorithm::Ed25519.is_symmetric());
    /// assert_eq!(Algorithm::Aes256Gcm.max_encryptions().map(|most| most.get()), Some(1 << 32));
    /// assert_eq!(Algorithm::XChaCha20Poly1305.max_encryptions(), None);
    /// ```
    pub const fn is_symmetric(self) -> bool {
        self.usage().is_symmetric()
    }

    /// The length of a public key in bytes; 0 if the algorithm has no public keys.
    pub const fn public_key_length(self) -> usize {
        self.facts().public_key
    }

    /// The length in bytes of a signature, of a MAC, of a shared secret, or of the ciphertext that
    /// carries an encapsulated key. For a symmetric algorithm that encrypts, the bytes that a
    /// ciphertext has more than its plaintext.
    pub const fn output_length(self) -> usize {
        self.facts().output
    }

    /// The length in bytes of the nonces of a symmetric algorithm that encrypts; 0 for all others.
    pub(crate) const fn nonce_length(self) -> usize {
        match self.usage() {
            KeyUsage::Encryption => self.output_length() - HEADER_LEN - TAG_LEN,
            _ => 0,
        }
    }

    /// How many times one version may encrypt: with more random nonces of 96 bits, two equal ones
    /// would be too likely (NIST SP 800-38D, section 8.3). None if nonces of 192 bits, or no
    /// nonces, set no such limit.
    ///
    /// Convergent encryption counts as well. Its nonces come from a hash of the plaintext, and
    /// those of different plaintexts are as likely to be equal as random ones.
    pub const fn max_encryptions(self) -> Option<NonZeroU64> {
        match self.nonce_length() {
            12 => NonZeroU64::new(1 << 32),
            _ => None,
        }
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
