//! Message authentication codes in software: HMAC (FIPS 198-1) by the crates of RustCrypto, and
//! BLAKE3 in its keyed mode. The material is the key. A new key has the length of the MAC; an
//! imported one of HMAC may have another.

use std::sync::Arc;

use bulla_blake3::Hash;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use super::interface::{
    Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, VerifyRequest, key_usage_mismatch,
};
use crate::algorithm::{Algorithm, KeyUsage};
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;
use crate::random;

/// The lengths that a key of HMAC may have, in bytes.
const HMAC_KEY_LENGTHS: std::ops::RangeInclusive<usize> = 16..=512;

/// The context in which check values are derived from secrets.
const CHECK_VALUE_CONTEXT: &str = "bulla keystore v1 check value of a secret key";

/// See [`PrivateKey::check_value`].
pub(super) fn check_value(secret: &[u8]) -> [u8; 32] {
    bulla_blake3::derive_key(CHECK_VALUE_CONTEXT, secret)
}

/// HMAC-SHA-256.
pub(super) fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    hmac.update(message);
    hmac.finalize().into_bytes().into()
}

/// A hash function of SHA-2 for [`Keystore::hmac`](crate::Keystore::hmac).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HmacHash {
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HmacHash {
    pub(crate) fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        fn of<M: hmac::Mac + hmac::KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
            keyed::<M>(key).chain_update(message).finalize().into_bytes().to_vec()
        }
        match self {
            Self::Sha224 => of::<Hmac<Sha224>>(key, message),
            Self::Sha256 => of::<Hmac<Sha256>>(key, message),
            Self::Sha384 => of::<Hmac<Sha384>>(key, message),
            Self::Sha512 => of::<Hmac<Sha512>>(key, message),
        }
    }

    pub(crate) fn verify(self, key: &[u8], message: &[u8], mac: &[u8]) -> Verdict {
        fn is_of<M: hmac::Mac + hmac::KeyInit>(key: &[u8], message: &[u8], mac: &[u8]) -> bool {
            keyed::<M>(key).chain_update(message).verify_slice(mac).is_ok()
        }
        let is_valid = match self {
            Self::Sha224 => is_of::<Hmac<Sha224>>(key, message, mac),
            Self::Sha256 => is_of::<Hmac<Sha256>>(key, message, mac),
            Self::Sha384 => is_of::<Hmac<Sha384>>(key, message, mac),
            Self::Sha512 => is_of::<Hmac<Sha512>>(key, message, mac),
        };
        if is_valid { Verdict::Valid } else { Verdict::Invalid }
    }
}

fn keyed<M: hmac::KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("HMAC takes keys of every length")
}

/// The salt with which [`hmac_key`] differs from the keys that encrypt in a context: those
/// are derived without a salt, from a context that a caller chooses.
const HMAC_KEY_SALT: &[u8] = b"bulla keystore v1 key for HMAC";

/// The key for HMAC of a key with this secret: a key for HMAC itself, or derived from it.
pub(crate) fn hmac_key(algorithm: Algorithm, secret: &[u8]) -> Zeroizing<Vec<u8>> {
    if let Algorithm::HmacSha256 | Algorithm::HmacSha384 | Algorithm::HmacSha512 = algorithm {
        return Zeroizing::new(secret.to_vec());
    }
    let mut key = Zeroizing::new(vec![0; 32]);
    let hkdf = Hkdf::<Sha256>::new(Some(HMAC_KEY_SALT), secret);
    hkdf.expand(&[], &mut key).expect("HKDF-SHA-256 gives up to 8160 bytes");
    key
}

/// Keys that make MACs, in this process's memory.
#[derive(Debug)]
pub(super) struct MacBackend;

impl Backend for MacBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm.usage() == KeyUsage::Authentication)
            .then_some(Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut key = Zeroizing::new(vec![0; algorithm.output_length()]);
        random::fill(&mut key)?;
        Ok(key)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let function = MacFunction::new(algorithm, material)
            .ok_or_else(|| KmsError::corrupt(format!("a stored key of {algorithm} has a wrong length")))?;
        Ok(Arc::new(MacKey { algorithm, check_value: check_value(material), function }))
    }

    fn prepare(&self, algorithm: Algorithm, _public_key: &[u8]) -> Result<Prepared> {
        Err(key_usage_mismatch(algorithm))
    }

    /// A key that does not sign verifies nothing.
    fn verify(&self, _request: VerifyRequest<'_>) -> Verdict {
        Verdict::Invalid
    }
}

/// A function under one key. The crates wipe the state of HMAC on drop.
enum MacFunction {
    HmacSha256(Box<Hmac<Sha256>>),
    HmacSha384(Box<Hmac<Sha384>>),
    HmacSha512(Box<Hmac<Sha512>>),
    Blake3(Zeroizing<[u8; 32]>),
}

impl MacFunction {
    /// The function, if the key has a length for the algorithm.
    fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        fn boxed<M: hmac::KeyInit>(key: &[u8]) -> Option<Box<M>> {
            let fits = HMAC_KEY_LENGTHS.contains(&key.len());
            fits.then(|| M::new_from_slice(key).ok().map(Box::new)).flatten()
        }
        match algorithm {
            Algorithm::HmacSha256 => boxed(key).map(Self::HmacSha256),
            Algorithm::HmacSha384 => boxed(key).map(Self::HmacSha384),
            Algorithm::HmacSha512 => boxed(key).map(Self::HmacSha512),
            Algorithm::Blake3 => Some(Self::Blake3(Zeroizing::new(key.try_into().ok()?))),
            _ => None,
        }
    }
}

struct MacKey {
    algorithm: Algorithm,
    check_value: [u8; 32],
    function: MacFunction,
}

impl PrivateKey for MacKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Err(key_usage_mismatch(self.algorithm))
    }

    fn check_value(&self) -> Result<[u8; 32]> {
        Ok(self.check_value)
    }

    fn mac(&self, message: &[u8]) -> Result<Vec<u8>> {
        fn of<M: hmac::Mac + Clone>(hmac: &M, message: &[u8]) -> Vec<u8> {
            hmac.clone().chain_update(message).finalize().into_bytes().to_vec()
        }
        Ok(match &self.function {
            MacFunction::HmacSha256(hmac) => of(&**hmac, message),
            MacFunction::HmacSha384(hmac) => of(&**hmac, message),
            MacFunction::HmacSha512(hmac) => of(&**hmac, message),
            MacFunction::Blake3(key) => bulla_blake3::keyed_hash(key, message).as_bytes().to_vec(),
        })
    }

    fn verify_mac(&self, message: &[u8], mac: &[u8]) -> Result<Verdict> {
        fn is_of<M: hmac::Mac + Clone>(hmac: &M, message: &[u8], mac: &[u8]) -> bool {
            hmac.clone().chain_update(message).verify_slice(mac).is_ok()
        }
        let is_valid = match &self.function {
            MacFunction::HmacSha256(hmac) => is_of(&**hmac, message, mac),
            MacFunction::HmacSha384(hmac) => is_of(&**hmac, message, mac),
            MacFunction::HmacSha512(hmac) => is_of(&**hmac, message, mac),
            // Hashes compare in constant time.
            MacFunction::Blake3(key) => <[u8; 32]>::try_from(mac)
                .is_ok_and(|mac| bulla_blake3::keyed_hash(key, message) == Hash::from_bytes(mac)),
        };
        Ok(if is_valid { Verdict::Valid } else { Verdict::Invalid })
    }
}
