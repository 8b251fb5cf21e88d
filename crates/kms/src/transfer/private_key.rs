//! The import of private keys, in any format.

use std::fmt;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::public_key::{MAX_INPUT_LEN, malformed};
use super::{der, openssh, public_key, vault};
use crate::algorithm::Algorithm;
use crate::backend::{Backends, KeyMaterial, SOFTWARE, hmac_key};
use crate::error::{Code, Result};
use crate::key_identity::KeyIdentity;
use crate::public_key::PublicKey;

/// A private key, or the secret of a symmetric algorithm, that was read and checked. Its public key
/// was computed, and matches the one that came with it, if any. It is wiped on drop, and its debug
/// output shows only the algorithm and the public key.
///
/// ```
/// use bulla_kms::Algorithm;
/// use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
///
/// let key = PrivateKeyData::read(&[7; 32], PrivateFormat::Raw, Some(Algorithm::Ed25519), None)?;
/// assert_eq!(key.algorithm(), Algorithm::Ed25519);
/// assert!(key.public_key().is_some());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub struct PrivateKeyData {
    algorithm: Algorithm,
    material: KeyMaterial,
    identity: KeyIdentity,
}

impl PrivateKeyData {
    /// A key from its material. `claimed` is the public key that came with it.
    pub(crate) fn new(algorithm: Algorithm, material: KeyMaterial, claimed: Option<&[u8]>) -> Result<Self> {
        let backend = Backends::software().find(SOFTWARE, algorithm)?;
        let key = backend.load(algorithm, &material).map_err(|error| match error.code {
            Code::KeystoreCorrupt if algorithm.is_rsa() => malformed(format_args!(
                "it is not an RSAPrivateKey of {algorithm} with the exponent 65537 whose parts fit each other"
            )),
            Code::KeystoreCorrupt => {
                malformed(format_args!("a private key of {algorithm} has another length"))
            }
            _ => error,
        })?;
        let identity = KeyIdentity::of(algorithm, &*key)?;
        let public_key = identity.public_key().map(PublicKey::as_bytes);
        if claimed.is_some_and(|claimed| public_key != Some(claimed)) {
            return Err(malformed("the public key beside it is not its own"));
        }
        if !backend.is_consistent(algorithm, &material) {
            return Err(malformed("its parts do not fit each other"));
        }
        Ok(Self { algorithm, material, identity })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key that belongs to it; none if the algorithm is symmetric.
    pub fn public_key(&self) -> Option<&PublicKey> {
        self.identity.public_key()
    }

    /// The key as Vault's transit engine exports it, and as [`PrivateFormat::Vault`] is read: a
    /// symmetric key as base64, an Ed25519 key as the base64 of its seed and its public key, a key
    /// of ECDSA or RSA as PEM. Vault has no form for other algorithms: they are PKCS#8 as PEM.
    ///
    /// ```
    /// use bulla_kms::Algorithm::Ed25519;
    /// use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
    ///
    /// let key = PrivateKeyData::read(&[7; 32], PrivateFormat::Raw, Some(Ed25519), None)?;
    /// let text = key.to_vault()?;
    /// let same = PrivateKeyData::read(text.as_bytes(), PrivateFormat::Vault, None, None)?;
    /// assert_eq!(same.public_key(), key.public_key());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the key cannot be written as DER.
    #[cfg(feature = "tokens")]
    pub fn to_vault(&self) -> Result<Zeroizing<String>> {
        vault::private(self)
    }

    /// The key that makes the HMACs of [`Keystore::hmac`](crate::Keystore::hmac) with this key.
    ///
    /// ```
    /// use bulla_kms::Algorithm::{Aes256Gcm, HmacSha256};
    /// use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
    ///
    /// let read = |algorithm| PrivateKeyData::read(&[7; 32], PrivateFormat::Raw, Some(algorithm), None);
    /// assert_eq!(*read(HmacSha256)?.hmac_key(), [7; 32], "the key itself");
    /// assert_ne!(*read(Aes256Gcm)?.hmac_key(), [7; 32], "a key that is derived from it");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn hmac_key(&self) -> Zeroizing<Vec<u8>> {
        hmac_key(self.algorithm, &self.material)
    }

    pub(crate) fn identity(&self) -> &KeyIdentity {
        &self.identity
    }

    pub(crate) fn material(&self) -> &KeyMaterial {
        &self.material
    }
}

impl fmt::Debug for PrivateKeyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKeyData")
            .field("algorithm", &self.algorithm)
            .field("public_key", &self.public_key())
            .finish_non_exhaustive()
    }
}

/// The format of a private key to import.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivateFormat {
    /// PKCS#8 (RFC 5958) as PEM: the label `PRIVATE KEY`, lines of 64 characters, only line feeds.
    /// ML-DSA and ML-KEM keys must have the seed, alone or beside the expanded key. It must not be
    /// encrypted, and must have no attributes.
    Pkcs8Pem,
    /// PKCS#8 as DER, under the same rules.
    Pkcs8Der,
    /// A private key file of OpenSSH, encrypted or not. Only Ed25519.
    OpenSsh,
    /// Only the bytes that `spec/keystore.md` names for the algorithm: for Ed25519 the seed. It is
    /// the only form of symmetric keys.
    Raw,
    /// One value of `keys` as Vault and OpenBao export it from their transit engine: an Ed25519 key
    /// as the base64 of 64 bytes, a key of ECDSA as PEM with the label `EC PRIVATE KEY`, or an RSA
    /// key as PEM with the label `RSA PRIVATE KEY`. A line feed may follow.
    Vault,
}

impl PrivateKeyData {
    /// Reads a private key. If `algorithm` is given, the key must have that algorithm;
    /// [`PrivateFormat::Raw`] needs it. PKCS#8 does not say whether a key of P-256, P-384 or P-521
    /// is for ECDSA or ECDH: it is for ECDSA, unless `algorithm` is one of ECDH. `passphrase` is
    /// for an encrypted file of OpenSSH; other formats ignore it.
    ///
    /// # Errors
    /// [`Code::MalformedKey`] for anything but one key in the only form
    /// of its format, and for a key that does not match the public key beside it;
    /// [`Code::WrongPassphrase`];
    /// [`Code::InvalidArgument`] if the key has another algorithm, or
    /// the algorithm of raw bytes is not given;
    /// [`Code::UnsupportedAlgorithm`] if this build does not
    /// support it.
    pub fn read(
        bytes: &[u8],
        format: PrivateFormat,
        algorithm: Option<Algorithm>,
        passphrase: Option<&SecretString>,
    ) -> Result<Self> {
        if bytes.len() > MAX_INPUT_LEN {
            return Err(malformed(format_args!("it is longer than {MAX_INPUT_LEN} bytes")));
        }
        let text = || std::str::from_utf8(bytes).map_err(|_| malformed("it is not text"));
        let key = match format {
            PrivateFormat::Pkcs8Pem => der::parse_private_pem(text()?, algorithm)?,
            PrivateFormat::Pkcs8Der => der::parse_private_der(bytes, algorithm)?,
            PrivateFormat::OpenSsh => openssh::parse_private(text()?, passphrase)?,
            PrivateFormat::Vault => vault::parse_private(text()?)?,
            PrivateFormat::Raw => {
                let algorithm = algorithm.ok_or_else(public_key::raw_without_algorithm)?;
                Self::new(algorithm, Zeroizing::new(bytes.to_vec()), None)?
            }
        };
        public_key::check_algorithm(key.algorithm(), algorithm)?;
        Ok(key)
    }
}
