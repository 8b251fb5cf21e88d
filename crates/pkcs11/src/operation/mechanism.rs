//! Mechanisms: which there are, and how a key signs under each.

use bulla_kms::prehash::HashFunction;
use bulla_kms::{Algorithm, KeyUsage};
use cryptoki_sys::*;

use crate::error::{Result, fail, require};

/// The longest value of a secret key in bytes.
pub(crate) const MAX_SECRET_LEN: usize = 4096;

/// The longest plaintext that the service takes.
pub(crate) const MAX_PLAINTEXT_LEN: usize = 64 << 20;
/// The length of the nonce of AES-GCM.
pub(crate) const NONCE_LEN: usize = 12;
/// The length of the tag of AES-GCM.
pub(crate) const TAG_LEN: usize = 16;

/// Which way a cipher goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

/// A mechanism with its parameters, as a program gives it.
#[derive(Debug)]
pub(crate) struct Mechanism {
    pub(crate) kind: CK_MECHANISM_TYPE,
    pub(crate) parameters: Parameters,
}

/// The parameters of a mechanism.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parameters {
    None,
    Pss {
        hash: CK_MECHANISM_TYPE,
        mgf: CK_RSA_PKCS_MGF_TYPE,
        salt_length: CK_ULONG,
    },
    Oaep {
        hash: CK_MECHANISM_TYPE,
        mgf: CK_RSA_PKCS_MGF_TYPE,
        label: Vec<u8>,
    },
    Gcm {
        nonce: Vec<u8>,
        associated_data: Vec<u8>,
        tag_bits: CK_ULONG,
    },
    /// The initialization vector of CBC.
    Iv([u8; 16]),
    /// The first block of a counter, and how many of its bits count.
    Counter {
        bits: CK_ULONG,
        first: [u8; 16],
    },
    /// Data that is encrypted to derive a key, by CBC if there is an initialization vector.
    Data {
        iv: Option<[u8; 16]>,
        data: Vec<u8>,
    },
    Ecdh {
        kdf: CK_EC_KDF_TYPE,
        shared_data: Vec<u8>,
        /// The public key of the peer.
        public_data: Vec<u8>,
    },
    /// Those of a mechanism that has none here.
    Unknown,
}

/// How an RSA key pads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// It is not an RSA key.
    None,
    Pkcs1v15,
    Pss,
}

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Ed25519 of the message.
    EdDsa,
    /// ECDSA or RSA of the message's hash.
    Hashed(HashFunction, Padding),
    /// ECDSA of a digest of the program's.
    EcdsaDigest,
    /// RSASSA-PKCS1-v1_5 of a `DigestInfo` of the program's.
    DigestInfo,
    /// RSASSA-PSS of a digest of the program's.
    PssDigest(HashFunction),
    /// A message authentication code, whose hash function is the key's.
    Hmac,
}

impl Scheme {
    /// How a key of the algorithm signs under a mechanism.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` if no key signs so; `CKR_KEY_TYPE_INCONSISTENT` if other keys do;
    /// `CKR_MECHANISM_PARAM_INVALID` for parameters that it does not take.
    pub(crate) fn of(mechanism: &Mechanism, algorithm: Algorithm) -> Result<Self> {
        let scheme = Self::of_kind(mechanism.kind)?;
        let scheme = match (scheme, &mechanism.parameters) {
            (Self::PssDigest(_), parameters) => Self::PssDigest(pss_hash(parameters)?),
            (Self::Hashed(hash, Padding::Pss), parameters) => {
                require(pss_hash(parameters)? == hash, CKR_MECHANISM_PARAM_INVALID)?;
                scheme
            }
            (_, Parameters::None) => scheme,
            _ => return fail(CKR_MECHANISM_PARAM_INVALID),
        };
        let fits = match scheme {
            Self::EdDsa => algorithm == Algorithm::Ed25519,
            Self::EcdsaDigest | Self::Hashed(_, Padding::None) => algorithm.is_ecdsa(),
            Self::DigestInfo | Self::PssDigest(_) | Self::Hashed(..) => algorithm.is_rsa(),
            Self::Hmac => mac_mechanism(algorithm) == Some(mechanism.kind),
        };
        require(fits, CKR_KEY_TYPE_INCONSISTENT)?;
        Ok(scheme)
    }

    fn of_kind(kind: CK_MECHANISM_TYPE) -> Result<Self> {
        use HashFunction::{Sha256, Sha384, Sha512};
        Ok(match kind {
            CKM_EDDSA => Self::EdDsa,
            CKM_ECDSA => Self::EcdsaDigest,
            CKM_ECDSA_SHA256 => Self::Hashed(Sha256, Padding::None),
            CKM_ECDSA_SHA384 => Self::Hashed(Sha384, Padding::None),
            CKM_ECDSA_SHA512 => Self::Hashed(Sha512, Padding::None),
            CKM_RSA_PKCS => Self::DigestInfo,
            CKM_SHA256_RSA_PKCS => Self::Hashed(Sha256, Padding::Pkcs1v15),
            CKM_SHA384_RSA_PKCS => Self::Hashed(Sha384, Padding::Pkcs1v15),
            CKM_SHA512_RSA_PKCS => Self::Hashed(Sha512, Padding::Pkcs1v15),
            // The parameters say which hash function it is.
            CKM_RSA_PKCS_PSS => Self::PssDigest(Sha256),
            CKM_SHA256_RSA_PKCS_PSS => Self::Hashed(Sha256, Padding::Pss),
            CKM_SHA384_RSA_PKCS_PSS => Self::Hashed(Sha384, Padding::Pss),
            CKM_SHA512_RSA_PKCS_PSS => Self::Hashed(Sha512, Padding::Pss),
            CKM_SHA256_HMAC | CKM_SHA384_HMAC | CKM_SHA512_HMAC => Self::Hmac,
            _ => return fail(CKR_MECHANISM_INVALID),
        })
    }

    /// Whether the program hashes, and the key must have been made for that.
    pub(crate) fn takes_digests(self) -> bool {
        matches!(self, Self::EcdsaDigest | Self::DigestInfo | Self::PssDigest(_))
    }

    /// Whether the service signs so when it is not told how.
    pub(crate) fn is_default_of(self, algorithm: Algorithm) -> bool {
        match self {
            Self::EdDsa => true,
            Self::Hashed(hash, padding) => {
                hash == default_hash(algorithm) && (padding == Padding::None || padding == Padding::Pss)
            }
            _ => false,
        }
    }
}

/// The hash function by which keys of an algorithm sign if nothing else is asked for.
fn default_hash(algorithm: Algorithm) -> HashFunction {
    match algorithm {
        Algorithm::EcdsaP384 => HashFunction::Sha384,
        Algorithm::EcdsaP521 => HashFunction::Sha512,
        _ => HashFunction::Sha256,
    }
}

/// The hash function of PSS. The service signs with a salt as long as the digest, and verifies no
/// other, and its mask generation function has the same hash function.
fn pss_hash(parameters: &Parameters) -> Result<HashFunction> {
    let Parameters::Pss { hash, mgf, salt_length } = *parameters else {
        return fail(CKR_MECHANISM_PARAM_INVALID);
    };
    let (known, generator) = match hash {
        CKM_SHA256 => (HashFunction::Sha256, CKG_MGF1_SHA256),
        CKM_SHA384 => (HashFunction::Sha384, CKG_MGF1_SHA384),
        CKM_SHA512 => (HashFunction::Sha512, CKG_MGF1_SHA512),
        _ => return fail(CKR_MECHANISM_PARAM_INVALID),
    };
    let fits = mgf == generator && salt_length == known.digest_length() as CK_ULONG;
    require(fits, CKR_MECHANISM_PARAM_INVALID)?;
    Ok(known)
}

/// Whether an algorithm is AES-GCM.
pub(crate) fn is_aes(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Aes128Gcm | Algorithm::Aes256Gcm)
}

/// Whether keys of an algorithm agree on secrets, and do nothing else.
pub(crate) fn agrees(algorithm: Algorithm) -> bool {
    algorithm.usage() == KeyUsage::KeyAgreement
}

/// The mechanism of a key that makes message authentication codes.
pub(crate) fn mac_mechanism(algorithm: Algorithm) -> Option<CK_MECHANISM_TYPE> {
    match algorithm {
        Algorithm::HmacSha256 => Some(CKM_SHA256_HMAC),
        Algorithm::HmacSha384 => Some(CKM_SHA384_HMAC),
        Algorithm::HmacSha512 => Some(CKM_SHA512_HMAC),
        _ => None,
    }
}

/// A mechanism, and what a program learns of it.
pub(crate) struct MechanismInfo {
    pub(crate) kind: CK_MECHANISM_TYPE,
    /// The lengths of its keys: bits for RSA and curves, bytes for secret keys, 0 without a key.
    pub(crate) key_sizes: (CK_ULONG, CK_ULONG),
    pub(crate) flags: CK_FLAGS,
}

/// With keys of a session; the service's have 2048 to 4096.
const RSA: (CK_ULONG, CK_ULONG) = (1024, 8192);
const AES: (CK_ULONG, CK_ULONG) = (16, 32);
const SECRETS: (CK_ULONG, CK_ULONG) = (1, MAX_SECRET_LEN as CK_ULONG);
const CURVES: (CK_ULONG, CK_ULONG) = (256, 521);
const SIGNS: CK_FLAGS = CKF_SIGN | CKF_VERIFY;
const ENCRYPTS: CK_FLAGS = CKF_ENCRYPT | CKF_DECRYPT;
const WRAPS: CK_FLAGS = CKF_WRAP | CKF_UNWRAP;
const SIGNS_BY_CURVE: CK_FLAGS = SIGNS | CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS;

const fn info(kind: CK_MECHANISM_TYPE, key_sizes: (CK_ULONG, CK_ULONG), flags: CK_FLAGS) -> MechanismInfo {
    MechanismInfo { kind, key_sizes, flags }
}

/// All mechanisms.
pub(crate) const MECHANISMS: &[MechanismInfo] = &[
    info(CKM_EDDSA, (255, 255), SIGNS),
    info(CKM_ECDSA, CURVES, SIGNS_BY_CURVE),
    info(CKM_ECDSA_SHA256, CURVES, SIGNS_BY_CURVE),
    info(CKM_ECDSA_SHA384, CURVES, SIGNS_BY_CURVE),
    info(CKM_ECDSA_SHA512, CURVES, SIGNS_BY_CURVE),
    info(CKM_RSA_PKCS, RSA, SIGNS | ENCRYPTS | WRAPS),
    info(CKM_SHA1_RSA_PKCS, RSA, SIGNS),
    info(CKM_SHA224_RSA_PKCS, RSA, SIGNS),
    info(CKM_SHA256_RSA_PKCS, RSA, SIGNS),
    info(CKM_SHA384_RSA_PKCS, RSA, SIGNS),
    info(CKM_SHA512_RSA_PKCS, RSA, SIGNS),
    info(CKM_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA1_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA224_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA256_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA384_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA512_RSA_PKCS_PSS, RSA, SIGNS),
    info(CKM_SHA_1_HMAC, SECRETS, SIGNS),
    info(CKM_SHA224_HMAC, SECRETS, SIGNS),
    info(CKM_SHA256_HMAC, SECRETS, SIGNS),
    info(CKM_SHA384_HMAC, SECRETS, SIGNS),
    info(CKM_SHA512_HMAC, SECRETS, SIGNS),
    info(CKM_RSA_PKCS_OAEP, RSA, ENCRYPTS | WRAPS),
    // The service makes the nonce: with its keys, only the functions for messages encrypt.
    info(CKM_AES_GCM, AES, ENCRYPTS | WRAPS | CKF_MESSAGE_ENCRYPT | CKF_MESSAGE_DECRYPT),
    info(CKM_AES_ECB, AES, ENCRYPTS),
    info(CKM_AES_CBC, AES, ENCRYPTS),
    info(CKM_AES_CBC_PAD, AES, ENCRYPTS | WRAPS),
    info(CKM_AES_CTR, AES, ENCRYPTS),
    info(CKM_AES_KEY_WRAP, AES, WRAPS),
    info(CKM_AES_KEY_WRAP_PAD, AES, WRAPS),
    info(CKM_AES_KEY_WRAP_KWP, AES, WRAPS),
    info(CKM_AES_ECB_ENCRYPT_DATA, AES, CKF_DERIVE),
    info(CKM_AES_CBC_ENCRYPT_DATA, AES, CKF_DERIVE),
    info(CKM_EC_EDWARDS_KEY_PAIR_GEN, (255, 255), CKF_GENERATE_KEY_PAIR),
    info(CKM_EC_KEY_PAIR_GEN, CURVES, CKF_GENERATE_KEY_PAIR | CKF_EC_F_P | CKF_EC_NAMEDCURVE),
    info(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, (255, 255), CKF_GENERATE_KEY_PAIR),
    info(CKM_ECDH1_DERIVE, (255, 521), CKF_DERIVE | CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS),
    info(CKM_RSA_PKCS_KEY_PAIR_GEN, RSA, CKF_GENERATE_KEY_PAIR),
    info(CKM_AES_KEY_GEN, AES, CKF_GENERATE),
    info(CKM_GENERIC_SECRET_KEY_GEN, SECRETS, CKF_GENERATE),
    info(CKM_SHA_1, (0, 0), CKF_DIGEST),
    info(CKM_SHA224, (0, 0), CKF_DIGEST),
    info(CKM_SHA256, (0, 0), CKF_DIGEST),
    info(CKM_SHA384, (0, 0), CKF_DIGEST),
    info(CKM_SHA512, (0, 0), CKF_DIGEST),
];

fn has_flag(kind: CK_MECHANISM_TYPE, flag: CK_FLAGS) -> bool {
    MECHANISMS.iter().any(|info| info.kind == kind && info.flags & flag != 0)
}

/// Whether some keys sign by a mechanism.
pub(crate) fn can_sign(kind: CK_MECHANISM_TYPE) -> bool {
    has_flag(kind, CKF_SIGN)
}

/// Whether some keys wrap others by a mechanism.
pub(crate) fn can_wrap(kind: CK_MECHANISM_TYPE) -> bool {
    has_flag(kind, CKF_WRAP)
}

/// The mechanisms of a key of the service, for `CKA_ALLOWED_MECHANISMS`.
pub(crate) fn allowed_mechanisms(algorithm: Algorithm, signs_digests: bool) -> Vec<CK_MECHANISM_TYPE> {
    let is_allowed = |info: &&MechanismInfo| {
        let Ok(scheme) = Scheme::of_kind(info.kind) else {
            return match info.kind {
                CKM_RSA_PKCS_OAEP => algorithm.is_rsa(),
                CKM_AES_GCM => is_aes(algorithm),
                CKM_ECDH1_DERIVE => agrees(algorithm),
                _ => false,
            };
        };
        let fits = match scheme {
            Scheme::EdDsa => algorithm == Algorithm::Ed25519,
            Scheme::EcdsaDigest | Scheme::Hashed(_, Padding::None) => algorithm.is_ecdsa(),
            Scheme::DigestInfo | Scheme::PssDigest(_) | Scheme::Hashed(..) => algorithm.is_rsa(),
            Scheme::Hmac => mac_mechanism(algorithm) == Some(info.kind),
        };
        fits && (signs_digests || !scheme.takes_digests())
    };
    MECHANISMS.iter().filter(is_allowed).map(|info| info.kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(kind: CK_MECHANISM_TYPE, parameters: Parameters, algorithm: Algorithm) -> Result<Scheme> {
        Scheme::of(&Mechanism { kind, parameters }, algorithm)
    }

    fn pss(hash: CK_MECHANISM_TYPE, mgf: CK_RSA_PKCS_MGF_TYPE, salt_length: CK_ULONG) -> Parameters {
        Parameters::Pss { hash, mgf, salt_length }
    }

    #[test]
    fn pss_has_a_salt_as_long_as_the_digest_and_one_hash_function() {
        let of = |kind, parameters| scheme(kind, parameters, Algorithm::Rsa2048);
        let good = || pss(CKM_SHA384, CKG_MGF1_SHA384, 48);
        assert_eq!(of(CKM_RSA_PKCS_PSS, good()), Ok(Scheme::PssDigest(HashFunction::Sha384)));
        assert!(of(CKM_SHA384_RSA_PKCS_PSS, good()).is_ok());
        for wrong in [
            Parameters::None,
            pss(CKM_SHA384, CKG_MGF1_SHA384, 20),
            pss(CKM_SHA384, CKG_MGF1_SHA256, 48),
            pss(CKM_SHA_1, CKG_MGF1_SHA1, 20),
        ] {
            assert_eq!(of(CKM_RSA_PKCS_PSS, wrong), fail(CKR_MECHANISM_PARAM_INVALID));
        }
        assert_eq!(of(CKM_SHA256_RSA_PKCS_PSS, good()), fail(CKR_MECHANISM_PARAM_INVALID));
    }

    #[test]
    fn a_mechanism_of_other_keys_is_told_from_one_of_none() {
        let of = |kind, algorithm| scheme(kind, Parameters::None, algorithm);
        assert_eq!(of(CKM_ECDSA, Algorithm::Ed25519), fail(CKR_KEY_TYPE_INCONSISTENT));
        assert_eq!(of(CKM_SHA256_HMAC, Algorithm::HmacSha512), fail(CKR_KEY_TYPE_INCONSISTENT));
        assert_eq!(of(CKM_DSA, Algorithm::Ed25519), fail(CKR_MECHANISM_INVALID));
        assert_eq!(
            scheme(CKM_EDDSA, Parameters::Unknown, Algorithm::Ed25519),
            fail(CKR_MECHANISM_PARAM_INVALID)
        );
    }

    #[test]
    fn keys_that_do_not_sign_digests_have_no_mechanism_for_them() {
        let signs = |signs_digests| allowed_mechanisms(Algorithm::EcdsaP256, signs_digests);
        assert!(signs(true).contains(&CKM_ECDSA) && !signs(false).contains(&CKM_ECDSA));
        assert!(signs(false).contains(&CKM_ECDSA_SHA256));
        assert_eq!(allowed_mechanisms(Algorithm::HmacSha384, false), [CKM_SHA384_HMAC]);
    }
}
