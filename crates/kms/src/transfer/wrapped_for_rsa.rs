//! Private keys wrapped for the holder of an RSA key, as Vault's clients and several key management
//! services wrap keys that they import: an AES key of 256 bits, encrypted by RSAES-OAEP with
//! SHA-256, and after it the key, wrapped with that by AES-KWP (RFC 5649).
//!
//! The wrapped key is PKCS#8 in DER, or the bytes of a symmetric key.

#[cfg(feature = "tokens")]
use zeroize::Zeroizing;

use super::private_key::{PrivateFormat, PrivateKeyData};
use super::wrapped_private_key::unwrap_aes_kwp;
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};

/// A private key that only the holder of an RSA key can open.
///
/// ```
/// use bulla_kms::transfer::WrappedForRsa;
///
/// assert_eq!(WrappedForRsa::from_bytes(&[7; 296]).as_bytes().len(), 296);
/// ```
///
/// [`Keystore::export_for_rsa`](crate::Keystore::export_for_rsa) makes one, and
/// [`Keystore::unwrap_for_rsa`](crate::Keystore::unwrap_for_rsa) opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedForRsa(Vec<u8>);

/// The length of the key that wraps.
const WRAPPING_KEY_LEN: usize = 32;

impl WrappedForRsa {
    /// A wrapped key from its bytes. Nothing proves them before it is unwrapped.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Wraps a private key.
    #[cfg(feature = "tokens")]
    pub(crate) fn wrap(
        algorithm: Algorithm,
        material: &crate::backend::KeyMaterial,
        recipient: &crate::public_key::PublicKey,
    ) -> Result<Self> {
        let mut wrapping_key = Zeroizing::new([0; WRAPPING_KEY_LEN]);
        crate::random::fill(&mut *wrapping_key)?;
        let mut bytes = recipient.encrypt(&*wrapping_key, &[])?;
        let wrapped = match algorithm.is_symmetric() {
            true => super::wrap_aes_kwp(&wrapping_key, material)?,
            false => {
                super::wrap_aes_kwp(&wrapping_key, super::der::private_der(algorithm, material)?.as_bytes())?
            }
        };
        bytes.extend_from_slice(&wrapped);
        Ok(Self(bytes))
    }

    /// The encrypted key that wraps, for an RSA key with a modulus of so many bytes, and the
    /// wrapped key.
    pub(crate) fn parts(&self, length: usize) -> Result<(&[u8], &[u8])> {
        self.0.split_at_checked(length).ok_or_else(does_not_unwrap)
    }

    /// Unwraps a key of this algorithm, which is the second part, with the decrypted first part.
    pub(crate) fn unwrap(
        algorithm: Algorithm,
        wrapping_key: &[u8],
        wrapped: &[u8],
    ) -> Result<PrivateKeyData> {
        let wrapping_key: &[u8; WRAPPING_KEY_LEN] = wrapping_key.try_into().map_err(|_| does_not_unwrap())?;
        let bytes = unwrap_aes_kwp(wrapping_key, wrapped).map_err(|_| does_not_unwrap())?;
        let format = if algorithm.is_symmetric() { PrivateFormat::Raw } else { PrivateFormat::Pkcs8Der };
        PrivateKeyData::read(&bytes, format, Some(algorithm), None)
    }
}

/// One error says that unwrapping failed, and not where.
pub(crate) fn does_not_unwrap() -> KmsError {
    KmsError::new(Code::InvalidCiphertext, "the wrapped key does not unwrap")
}
