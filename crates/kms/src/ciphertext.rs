//! Ciphertexts: their format, what else decrypts them beside the key, and keys for data.
//!
//! ```text
//! format       1   1
//! key version  4   big-endian
//! nonce        12  24 for XChaCha20-Poly1305
//! ciphertext   n
//! tag          16
//! ```
//!
//! A ciphertext of RSA has no nonce and no tag: after the version come the bytes of RSAES-OAEP, as
//! many as the modulus has. The associated data is the label of OAEP.
//!
//! The tag covers the caller's associated data and the ciphertext. It need not cover the version,
//! because each version has its own key. So the nonce, the ciphertext and the tag are also the
//! bytes in a ciphertext of Vault's transit engine, `vault:vN:BASE64`.

use std::fmt;
use std::num::NonZeroU32;

use zeroize::Zeroizing;

use crate::algorithm::KeyUsage;
use crate::algorithm::{Algorithm, HEADER_LEN, TAG_LEN};
use crate::backend::{check_usage, invalid_ciphertext};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyRef, KeyVersionId};
use crate::secret_bytes::SecretBytes;

/// The format that this program writes and reads.
const FORMAT: u8 = 1;

/// The maximum length of a plaintext in bytes. Encrypt more with a data key, or as a file.
pub const MAX_PLAINTEXT_LEN: usize = 64 << 20;

/// The options of an encryption. Decryption needs the same ones.
///
/// ```
/// use bulla_kms::{Algorithm, Code, EncryptionOptions, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "orders".parse()?, Algorithm::Aes256Gcm);
/// let key = keystore.create_key(new)?.key_id().clone();
/// let order = EncryptionOptions::default().associated_data(b"order 7");
/// let ciphertext = keystore.encrypt(&key, b"4 crates", &order)?;
/// assert_eq!(**keystore.decrypt(&key, &ciphertext.bytes, &order)?.bytes, *b"4 crates");
/// let other = EncryptionOptions::default().associated_data(b"order 8");
/// assert_eq!(keystore.decrypt(&key, &ciphertext.bytes, &other).unwrap_err().code, Code::InvalidCiphertext);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncryptionOptions<'a> {
    /// Data that must be the same when the ciphertext is decrypted, for example the id of the row
    /// that it is in. It is not secret, and not part of the ciphertext.
    pub associated_data: &'a [u8],
    /// The context from which the key is derived, if the key was made for that
    /// ([`NewKey::derivation`](crate::NewKey::derivation)); otherwise it must be empty.
    pub context: &'a [u8],
}

impl<'a> EncryptionOptions<'a> {
    /// The maximum length of the associated data and of the context, in bytes.
    pub const MAX_LEN: usize = 1 << 20;
    /// No associated data and no context, which is the default.
    pub const NONE: EncryptionOptions<'static> = EncryptionOptions { associated_data: &[], context: &[] };

    /// Sets the associated data.
    #[must_use]
    pub fn associated_data(mut self, associated_data: &'a [u8]) -> Self {
        self.associated_data = associated_data;
        self
    }

    /// Sets the context from which the key is derived.
    ///
    /// ```
    /// use bulla_kms::EncryptionOptions;
    ///
    /// let options = EncryptionOptions::default().context(b"customer 17");
    /// assert_eq!(options.context, b"customer 17");
    /// ```
    #[must_use]
    pub fn context(mut self, context: &'a [u8]) -> Self {
        self.context = context;
        self
    }
}

/// A ciphertext, and the key version that made it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ciphertext {
    /// The key version.
    pub key: KeyVersionId,
    /// The ciphertext in the format of `spec/ciphertext.md`.
    pub bytes: Vec<u8>,
}

impl Ciphertext {
    /// A ciphertext of this key version.
    pub fn new(key: KeyVersionId, bytes: Vec<u8>) -> Self {
        Self { key, bytes }
    }
}

/// The parts of a ciphertext. Nothing proves them before it is decrypted.
///
/// ```
/// use bulla_kms::{Algorithm, CiphertextParts, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "orders".parse()?, Algorithm::Aes256Gcm);
/// let key = keystore.create_key(new)?.key_id().clone();
/// let ciphertext = keystore.encrypt(&key, b"4 crates", &Default::default())?;
/// let parts = CiphertextParts::parse(key.algorithm(), &ciphertext.bytes)?;
/// assert_eq!((parts.key_version.get(), parts.nonce().len()), (1, 12));
/// assert_eq!(parts.ciphertext().len(), 8 + 16, "as long as the plaintext, and a tag");
/// // The bytes of the text `vault:v1:BASE64`, and back.
/// let vault = parts.nonce_and_ciphertext();
/// let same = CiphertextParts::new(key.algorithm(), parts.key_version, vault)?;
/// assert_eq!(same.to_bytes(), ciphertext.bytes);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CiphertextParts<'a> {
    /// The number of the key version that encrypted.
    pub key_version: NonZeroU32,
    nonce: &'a [u8],
    /// Nonce, ciphertext and tag; for RSA the ciphertext.
    body: &'a [u8],
}

impl<'a> CiphertextParts<'a> {
    /// Takes a ciphertext apart.
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] if it is too short or of another format;
    /// [`Code::KeyUsageMismatch`] if the algorithm does not encrypt.
    pub fn parse(algorithm: Algorithm, bytes: &'a [u8]) -> Result<Self> {
        let (header, body) = bytes.split_first_chunk::<HEADER_LEN>().ok_or_else(invalid_ciphertext)?;
        let [format, version @ ..] = *header;
        let version = NonZeroU32::new(u32::from_be_bytes(version));
        let version = version.filter(|_| format == FORMAT).ok_or_else(invalid_ciphertext)?;
        Self::new(algorithm, version, body)
    }

    /// The ciphertext of a key version from its nonce, ciphertext and tag in a row; for RSA from
    /// the ciphertext of OAEP.
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] if these have a wrong length; [`Code::KeyUsageMismatch`] if the
    /// algorithm does not encrypt.
    pub fn new(algorithm: Algorithm, key_version: NonZeroU32, body: &'a [u8]) -> Result<Self> {
        check_usage(algorithm, KeyUsage::Encryption)?;
        let lengths = match algorithm.is_rsa() {
            true => algorithm.output_length()..=algorithm.output_length(),
            false => TAG_LEN..=MAX_PLAINTEXT_LEN + TAG_LEN,
        };
        match body.split_at_checked(algorithm.nonce_length()) {
            Some((nonce, rest)) if lengths.contains(&rest.len()) => Ok(Self { key_version, nonce, body }),
            _ => Err(invalid_ciphertext()),
        }
    }

    /// The nonce.
    pub fn nonce(&self) -> &'a [u8] {
        self.nonce
    }

    /// The ciphertext and its tag, if it has one.
    pub fn ciphertext(&self) -> &'a [u8] {
        &self.body[self.nonce.len()..]
    }

    /// The nonce, the ciphertext and the tag in a row.
    pub fn nonce_and_ciphertext(&self) -> &'a [u8] {
        self.body
    }

    /// The whole ciphertext.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&header(self.key_version), self.body].concat()
    }
}

/// The bytes of a ciphertext before its nonce.
pub(crate) fn header(key_version: NonZeroU32) -> [u8; HEADER_LEN] {
    let mut header = [FORMAT; HEADER_LEN];
    header[1..].copy_from_slice(&key_version.get().to_be_bytes());
    header
}

/// A plaintext, and the key version that decrypted it. Its debug output does not show the bytes,
/// which are wiped on drop.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq)]
pub struct Plaintext {
    /// The key version.
    pub key: KeyVersionId,
    /// The plaintext.
    pub bytes: SecretBytes,
}

impl Plaintext {
    pub(crate) fn new(key: KeyVersionId, bytes: impl Into<SecretBytes>) -> Self {
        Self { key, bytes: bytes.into() }
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plaintext").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The length of a data key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataKeyLength {
    /// 16 bytes.
    Bits128,
    /// 32 bytes.
    #[default]
    Bits256,
    /// 64 bytes.
    Bits512,
}

impl DataKeyLength {
    /// The length of this number of bits.
    ///
    /// ```
    /// use bulla_kms::DataKeyLength;
    ///
    /// assert_eq!(DataKeyLength::from_bits(256)?.bytes(), 32);
    /// assert!(DataKeyLength::from_bits(255).is_err());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for other numbers than 128, 256 and 512.
    pub fn from_bits(bits: u32) -> Result<Self> {
        match bits {
            128 => Ok(Self::Bits128),
            256 => Ok(Self::Bits256),
            512 => Ok(Self::Bits512),
            _ => Err(KmsError::new(Code::InvalidArgument, "a data key has 128, 256 or 512 bits")),
        }
    }

    /// The length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bits128 => 16,
            Self::Bits256 => 32,
            Self::Bits512 => 64,
        }
    }
}

/// A new key for data, and the same key encrypted under a key of the keystore. Use the plain one at
/// once and forget it; keep the wrapped one beside the data. [`Keystore::decrypt`] gives the plain
/// one again.
///
/// [`Keystore::decrypt`]: crate::Keystore::decrypt
#[non_exhaustive]
#[derive(Clone)]
pub struct DataKey {
    /// The key itself. It is wiped on drop, and debug output does not show it.
    pub plaintext: Zeroizing<Vec<u8>>,
    /// The key, encrypted.
    pub wrapped: Ciphertext,
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKey").field("wrapped", &self.wrapped).finish_non_exhaustive()
    }
}

/// A plaintext to encrypt: see [`Keystore::encrypt_batch`](crate::Keystore::encrypt_batch).
#[derive(Clone, Copy)]
pub struct EncryptItem<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The plaintext.
    pub plaintext: &'a [u8],
    /// The options.
    pub options: EncryptionOptions<'a>,
}

/// A ciphertext to decrypt or to rewrap: see
/// [`Keystore::decrypt_batch`](crate::Keystore::decrypt_batch).
#[derive(Clone, Copy, Debug)]
pub struct DecryptItem<'a> {
    /// The key.
    pub key: &'a KeyId,
    /// The ciphertext.
    pub ciphertext: &'a [u8],
    /// The options of its encryption.
    pub options: EncryptionOptions<'a>,
}
