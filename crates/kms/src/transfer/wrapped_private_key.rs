//! Private keys under a wrapping key: for a recipient with a key for encapsulation, or under an AES
//! key that both sides have.
//!
//! The file is text with exactly one form:
//!
//! ```text
//! bulla wrapped key v1
//! key: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3
//! public-key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
//! recipient: x-wing 9b7b8f03e9f2a3b8...
//! encapsulated: <base64>
//! wrapped-key: <base64>
//! ```
//!
//! The wrapped key of a symmetric algorithm has no line `public-key`.
//!
//! The recipient's public key gives a shared key, and the ciphertext in line 5. BLAKE3 derives the
//! wrapping key from the shared key and lines 1 to 5 with their line feeds, so that nobody can
//! change a line. With it, AES-KWP (RFC 5649, 256 bits) wraps the private key as PKCS#8 in DER, or
//! the bytes of a symmetric key.

use std::fmt;
use std::str::FromStr;

use aes_kw::{KeyInit as _, KwpAes256};
use bulla_blake3::Hash;
use zeroize::Zeroizing;

use super::der;
use super::private_key::PrivateKeyData;
use super::public_key::{MAX_INPUT_LEN, malformed};
use crate::algorithm::{Algorithm, KeyUsage};
use crate::backend::{SharedKey, key_usage_mismatch};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::public_key::PublicKey;

const FIRST_LINE: &str = "bulla wrapped key v1";

/// The context in which the wrapping key is derived from the shared key and the lines before the
/// last.
const WRAPPING_CONTEXT: &str = "bulla wrapped key v1 wrapping key";

/// The bytes that AES-KWP adds to a key: a block for its header, and up to 7 bytes of padding.
const KWP_OVERHEAD: usize = 16;

/// A private key that only its recipient can open. `Display` is the file, and `FromStr` is the
/// exact inverse.
///
/// ```
/// # #[cfg(all(feature = "mlkem", feature = "tokens"))]
/// # (|| {
/// use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
/// use bulla_kms::{Algorithm, Keystore, Name, NewKey, Timestamp};
///
/// let keystore = Keystore::in_memory()?;
/// let tenant: Name = "local".parse()?;
/// let new = |algorithm| NewKey::new(tenant.clone(), "files".parse().unwrap(), algorithm);
/// let recipient = keystore.create_key(new(Algorithm::XWing))?;
/// let recipient_key = keystore.public_key(&recipient)?;
/// let key = keystore.create_key(new(Algorithm::Ed25519).exportable(true))?;
/// keystore.create_token_root(&tenant)?;
/// let soon = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
/// let grant = Grant::new(tenant.clone(), GrantedKeys::All, vec![TokenOperation::Export], soon);
/// let token = keystore.mint_token(&grant)?;
/// let wrapped = keystore.export_key(&key, &recipient_key, &token, &Revocations::default())?;
///
/// // A recipient whose key is elsewhere decapsulates there, and unwraps here.
/// wrapped.check_recipient(&recipient_key)?;
/// let shared_key = keystore.decapsulate(&recipient, wrapped.encapsulated())?;
/// assert_eq!(wrapped.unwrap(&shared_key)?.algorithm(), Algorithm::Ed25519);
/// # Ok::<(), bulla_kms::KmsError>(())
/// # })().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedPrivateKey {
    /// The key version that it was exported from.
    pub key: KeyVersionId,
    /// Its public key; none if the algorithm is symmetric.
    pub public_key: Option<PublicKey>,
    /// The algorithm of the recipient's key.
    pub recipient_algorithm: Algorithm,
    /// The BLAKE3 digest of the recipient's public key.
    pub recipient: Hash,
    encapsulated: Vec<u8>,
    wrapped: Vec<u8>,
}

impl WrappedPrivateKey {
    /// Wraps a private key.
    #[cfg(feature = "tokens")]
    pub(crate) fn wrap(
        key: &KeyVersionId,
        public_key: Option<&PublicKey>,
        material: &crate::backend::KeyMaterial,
        recipient: &PublicKey,
    ) -> Result<Self> {
        let encapsulated = recipient.encapsulate()?;
        let mut file = Self {
            key: key.clone(),
            public_key: public_key.cloned(),
            recipient_algorithm: recipient.algorithm(),
            recipient: bulla_blake3::hash(recipient.as_bytes()),
            encapsulated: encapsulated.ciphertext,
            wrapped: Vec::new(),
        };
        let wrapping_key = file.wrapping_key(&encapsulated.shared_key);
        let algorithm = key.key_id().algorithm();
        file.wrapped = if algorithm.is_symmetric() {
            wrap_aes_kwp(&wrapping_key, material)?
        } else {
            wrap_aes_kwp(&wrapping_key, der::private_der(algorithm, material)?.as_bytes())?
        };
        Ok(file)
    }

    /// The ciphertext that carries the shared key: an input of
    /// [`Keystore::decapsulate`](crate::Keystore::decapsulate).
    pub fn encapsulated(&self) -> &[u8] {
        &self.encapsulated
    }

    /// An error unless it was wrapped for the holder of this public key.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`].
    pub fn check_recipient(&self, public_key: &PublicKey) -> Result<()> {
        if (self.recipient_algorithm, self.recipient)
            == (public_key.algorithm(), bulla_blake3::hash(public_key.as_bytes()))
        {
            return Ok(());
        }
        let message =
            "the key was wrapped for another recipient; name the key version that it was wrapped for";
        Err(KmsError::new(Code::InvalidArgument, message))
    }

    /// Opens it with the key that its [`WrappedPrivateKey::encapsulated`] ciphertext carries.
    ///
    /// # Errors
    /// [`Code::MalformedKey`] if anything in it was changed, if the shared key is another one, or
    /// if the key inside is not the one that the file names.
    pub fn unwrap(&self, shared_key: &SharedKey) -> Result<PrivateKeyData> {
        let document = unwrap_aes_kwp(&self.wrapping_key(shared_key), &self.wrapped)?;
        let algorithm = self.key.key_id().algorithm();
        if algorithm.is_symmetric() {
            return PrivateKeyData::new(algorithm, document, None);
        }
        let key = der::parse_private_der(&document, Some(algorithm))?;
        if key.public_key() == self.public_key.as_ref() {
            Ok(key)
        } else {
            Err(malformed("the key inside is not the one that the file names"))
        }
    }

    fn wrapping_key(&self, shared_key: &SharedKey) -> Zeroizing<[u8; 32]> {
        let lines = self.lines();
        let input = Zeroizing::new([&shared_key[..], lines.as_bytes()].concat());
        Zeroizing::new(bulla_blake3::derive_key(WRAPPING_CONTEXT, &input))
    }

    /// The lines before the last one.
    fn lines(&self) -> String {
        let Self { key, public_key, recipient_algorithm, recipient, encapsulated, wrapped: _ } = self;
        let public_key = public_key.as_ref().map(|key| format!("public-key: {key}\n")).unwrap_or_default();
        format!(
            "{FIRST_LINE}\nkey: {key}\n{public_key}recipient: {recipient_algorithm} {}\n\
             encapsulated: {}\n",
            recipient.to_hex(),
            encoding::base64(encapsulated),
        )
    }
}

impl fmt::Display for WrappedPrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}wrapped-key: {}", self.lines(), encoding::base64(&self.wrapped))
    }
}

impl FromStr for WrappedPrivateKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MAX_INPUT_LEN {
            return Err(malformed(format_args!("it is longer than {MAX_INPUT_LEN} bytes")));
        }
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(malformed(format_args!("line 1 must be {FIRST_LINE:?}")));
        }
        let mut value = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.ok_or_else(|| malformed(format_args!("the line `{name}: ...` is not in its place")))
        };
        let invalid = |name: &str| malformed(format_args!("the line `{name}: ...` has another form"));
        let key: KeyVersionId = value("key")?.parse().map_err(|_| invalid("key"))?;
        let algorithm = key.key_id().algorithm();
        let public_key: Option<PublicKey> = match algorithm.is_symmetric() {
            true => None,
            false => Some(value("public-key")?.parse().map_err(|_| invalid("public-key"))?),
        };
        let (name, digest) = value("recipient")?.split_once(' ').ok_or_else(|| invalid("recipient"))?;
        let recipient_algorithm: Algorithm = name.parse().map_err(|_| invalid("recipient"))?;
        if recipient_algorithm.usage() != KeyUsage::KeyEncapsulation {
            return Err(key_usage_mismatch(recipient_algorithm));
        }
        let file = Self {
            key,
            public_key,
            recipient_algorithm,
            recipient: encoding::digest(digest).ok_or_else(|| invalid("recipient"))?,
            encapsulated: encoding::from_base64(value("encapsulated")?)
                .filter(|bytes| bytes.len() == recipient_algorithm.output_length())
                .ok_or_else(|| invalid("encapsulated"))?,
            wrapped: encoding::from_base64(value("wrapped-key")?).ok_or_else(|| invalid("wrapped-key"))?,
        };
        if file.public_key.as_ref().is_some_and(|key| key.algorithm() != algorithm) {
            return Err(malformed("its public key is of another algorithm than its key"));
        }
        if file.to_string() == text { Ok(file) } else { Err(malformed("nothing may follow the last line")) }
    }
}

/// Wraps bytes under a key of 32 bytes by AES-KWP (RFC 5649).
///
/// # Errors
/// [`Code::InvalidArgument`] if there is nothing to wrap, or 4 GiB or more.
///
/// ```
/// use bulla_kms::transfer::{unwrap_aes_kwp, wrap_aes_kwp};
///
/// let wrapped = wrap_aes_kwp(&[7; 32], b"a private key")?;
/// assert_eq!(*unwrap_aes_kwp(&[7; 32], &wrapped)?, b"a private key");
/// assert!(unwrap_aes_kwp(&[8; 32], &wrapped).is_err());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn wrap_aes_kwp(wrapping_key: &[u8; 32], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut wrapped = vec![0; bytes.len() + KWP_OVERHEAD];
    let length = match KwpAes256::new(wrapping_key.into()).wrap_key(bytes, &mut wrapped) {
        Ok(written) if !bytes.is_empty() => written.len(),
        _ => return Err(KmsError::new(Code::InvalidArgument, "there is nothing to wrap, or too much")),
    };
    wrapped.truncate(length);
    Ok(wrapped)
}

/// Unwraps a key that [`wrap_aes_kwp`], or any other AES-KWP of 256 bits, wrapped.
///
/// # Errors
/// [`Code::MalformedKey`] if it was wrapped under another key, or changed.
pub fn unwrap_aes_kwp(wrapping_key: &[u8; 32], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; wrapped.len()]);
    let unwrapped = KwpAes256::new(wrapping_key.into()).unwrap_key(wrapped, &mut bytes);
    // RFC 5649 wraps 1 byte and more. Without any, nothing is encrypted: the header alone is the
    // same under every key.
    match unwrapped.map(<[u8]>::len) {
        Ok(length) if length > 0 => bytes.truncate(length),
        _ => return Err(malformed("it was wrapped under another key, or was changed")),
    }
    Ok(bytes)
}
