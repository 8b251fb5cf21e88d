//! Hash functions, computed in the module: for `C_Digest`, and for messages that come in pieces.

use bulla_kms::prehash::HashFunction;
use cryptoki_sys::*;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

use crate::error::{Result, fail};

/// A hash that is being computed.
#[derive(Clone)]
pub(crate) enum Hasher {
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    /// # Errors
    /// `CKR_MECHANISM_INVALID` if the mechanism is not one that hashes.
    pub(crate) fn of_mechanism(mechanism: CK_MECHANISM_TYPE) -> Result<Self> {
        Ok(match mechanism {
            CKM_SHA224 => Self::Sha224(Sha224::new()),
            CKM_SHA256 => Self::Sha256(Sha256::new()),
            CKM_SHA384 => Self::Sha384(Sha384::new()),
            CKM_SHA512 => Self::Sha512(Sha512::new()),
            _ => return fail(CKR_MECHANISM_INVALID),
        })
    }

    pub(crate) fn new(hash: HashFunction) -> Self {
        match hash {
            HashFunction::Sha384 => Self::Sha384(Sha384::new()),
            HashFunction::Sha512 => Self::Sha512(Sha512::new()),
            _ => Self::Sha256(Sha256::new()),
        }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Sha224(hash) => hash.update(data),
            Self::Sha256(hash) => hash.update(data),
            Self::Sha384(hash) => hash.update(data),
            Self::Sha512(hash) => hash.update(data),
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha224(hash) => hash.finalize().to_vec(),
            Self::Sha256(hash) => hash.finalize().to_vec(),
            Self::Sha384(hash) => hash.finalize().to_vec(),
            Self::Sha512(hash) => hash.finalize().to_vec(),
        }
    }

    /// The length of the digest in bytes.
    pub(crate) const fn output_len(&self) -> usize {
        match self {
            Self::Sha224(_) => 28,
            Self::Sha256(_) => 32,
            Self::Sha384(_) => 48,
            Self::Sha512(_) => 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_digest_has_its_length() {
        for mechanism in [CKM_SHA224, CKM_SHA256, CKM_SHA384, CKM_SHA512] {
            let mut hasher = Hasher::of_mechanism(mechanism).unwrap();
            hasher.update(b"a message");
            assert_eq!(hasher.output_len(), hasher.finish().len());
        }
        assert!(Hasher::of_mechanism(CKM_ECDSA).is_err());
    }
}
