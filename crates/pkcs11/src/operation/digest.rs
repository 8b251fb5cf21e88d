//! Hash functions, computed in the module: for `C_Digest`, for messages that come in pieces, and
//! for keys of a session.

use bulla_kms::prehash::HashFunction;
use cryptoki_sys::*;
use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail};

/// A hash function. SHA-1 is for programs that need it with keys of their own: the service's keys
/// sign nothing by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// # Errors
    /// `CKR_MECHANISM_INVALID` if the mechanism is not one that hashes.
    pub(crate) fn of_mechanism(mechanism: CK_MECHANISM_TYPE) -> Result<Self> {
        Ok(match mechanism {
            CKM_SHA_1 => Self::Sha1,
            CKM_SHA224 => Self::Sha224,
            CKM_SHA256 => Self::Sha256,
            CKM_SHA384 => Self::Sha384,
            CKM_SHA512 => Self::Sha512,
            _ => return fail(CKR_MECHANISM_INVALID),
        })
    }

    /// The mask generation function of the same hash function (RFC 8017, appendix B.2.1).
    pub(crate) fn of_mgf(mgf: CK_RSA_PKCS_MGF_TYPE) -> Result<Self> {
        Ok(match mgf {
            CKG_MGF1_SHA1 => Self::Sha1,
            CKG_MGF1_SHA224 => Self::Sha224,
            CKG_MGF1_SHA256 => Self::Sha256,
            CKG_MGF1_SHA384 => Self::Sha384,
            CKG_MGF1_SHA512 => Self::Sha512,
            _ => return fail(CKR_MECHANISM_PARAM_INVALID),
        })
    }

    pub(crate) fn hasher(self) -> Hasher {
        match self {
            Self::Sha1 => Hasher::Sha1(Sha1::new()),
            Self::Sha224 => Hasher::Sha224(Sha224::new()),
            Self::Sha256 => Hasher::Sha256(Sha256::new()),
            Self::Sha384 => Hasher::Sha384(Sha384::new()),
            Self::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }

    /// The length of the digest in bytes.
    pub(crate) const fn output_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl From<HashFunction> for Hash {
    fn from(hash: HashFunction) -> Self {
        match hash {
            HashFunction::Sha384 => Self::Sha384,
            HashFunction::Sha512 => Self::Sha512,
            _ => Self::Sha256,
        }
    }
}

/// A hash that is being computed.
#[derive(Clone)]
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Sha1(hash) => hash.update(data),
            Self::Sha224(hash) => hash.update(data),
            Self::Sha256(hash) => hash.update(data),
            Self::Sha384(hash) => hash.update(data),
            Self::Sha512(hash) => hash.update(data),
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha1(hash) => hash.finalize().to_vec(),
            Self::Sha224(hash) => hash.finalize().to_vec(),
            Self::Sha256(hash) => hash.finalize().to_vec(),
            Self::Sha384(hash) => hash.finalize().to_vec(),
            Self::Sha512(hash) => hash.finalize().to_vec(),
        }
    }

    /// The length of the digest in bytes.
    pub(crate) const fn output_len(&self) -> usize {
        match self {
            Self::Sha1(_) => Hash::Sha1.output_len(),
            Self::Sha224(_) => Hash::Sha224.output_len(),
            Self::Sha256(_) => Hash::Sha256.output_len(),
            Self::Sha384(_) => Hash::Sha384.output_len(),
            Self::Sha512(_) => Hash::Sha512.output_len(),
        }
    }
}

/// The hash function of a key derivation function of X9.63; none for `CKD_NULL`.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for other functions.
pub(crate) fn of_kdf(kdf: CK_EC_KDF_TYPE) -> Result<Option<Hash>> {
    Ok(Some(match kdf {
        CKD_NULL => return Ok(None),
        CKD_SHA1_KDF => Hash::Sha1,
        CKD_SHA224_KDF => Hash::Sha224,
        CKD_SHA256_KDF => Hash::Sha256,
        CKD_SHA384_KDF => Hash::Sha384,
        CKD_SHA512_KDF => Hash::Sha512,
        _ => return fail(CKR_MECHANISM_PARAM_INVALID),
    }))
}

/// Derives `length` bytes from a shared secret (ANSI X9.63; SEC 1, section 3.6.1): the hash of the
/// secret, a counter and the shared data, for each value of the counter from 1.
pub(crate) fn x963(hash: Hash, secret: &[u8], shared: &[u8], length: usize) -> Result<Zeroizing<Vec<u8>>> {
    let blocks =
        u32::try_from(length.div_ceil(hash.output_len())).map_err(|_| Failure(CKR_KEY_SIZE_RANGE))?;
    let mut derived = Zeroizing::new(Vec::with_capacity(length + hash.output_len()));
    for counter in 1..=blocks {
        let mut hasher = hash.hasher();
        hasher.update(secret);
        hasher.update(&counter.to_be_bytes());
        hasher.update(shared);
        derived.extend_from_slice(&Zeroizing::new(hasher.finish()));
    }
    derived.truncate(length);
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    #[test]
    fn each_digest_has_its_length() {
        for mechanism in [CKM_SHA_1, CKM_SHA224, CKM_SHA256, CKM_SHA384, CKM_SHA512] {
            let mut hasher = Hash::of_mechanism(mechanism).unwrap().hasher();
            hasher.update(b"a message");
            assert_eq!(hasher.output_len(), hasher.finish().len());
        }
        assert!(Hash::of_mechanism(CKM_ECDSA).is_err());
    }

    /// A vector of the validation program of NIST (ANSI X9.63, SHA-256, 192 bits, no shared data),
    /// and one with shared data.
    #[test]
    fn keys_are_derived_as_x963_says() {
        let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).unwrap();
        let secret = hex("96c05619d56c328ab95fe84b18264b08725b85e33fd34f08");
        let derived = x963(Hash::Sha256, &secret, &[], 16).unwrap();
        assert_eq!(*derived, hex("443024c3dae66b95e6f5670601558f71"));
        let secret = hex("22518b10e70f2a3f243810ae3254139efbee04aa57c7af7d");
        let derived = x963(Hash::Sha256, &secret, &hex("75eef81aa3041e33b80971203d2c0c52"), 128).unwrap();
        assert!(derived.starts_with(&hex("c498af77161cc59f2962b9a713e2b215")));
        assert_eq!(derived.len(), 128);
    }
}
