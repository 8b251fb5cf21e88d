//! The source of key-encryption keys: one small trait, which anyone may implement.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bulla_blake3 as blake3;
use secrecy::SecretString;
use zeroize::{Zeroize as _, Zeroizing};

use super::envelope::{Envelope, EnvelopeKind};
use super::key_file::KeyFileProvider;
use super::passphrase::Passphrase;
use crate::error::{Code, KmsError, Result};

/// A key of 32 bytes that encrypts one other key. It is wiped on drop.
pub type KeyEncryptionKey = Zeroizing<[u8; 32]>;

/// Makes key-encryption keys, and recovers them to decrypt what they encrypted.
///
/// A provider never sees the encrypted data. It makes a new key together with *wrapping
/// parameters*, which are stored as plain data beside what the key encrypts. With them, the
/// provider, or the holder of the private half, recovers the same key. They are the salt of a
/// passphrase, a ciphertext that carries the key, or the input of a device's HMAC. The code above
/// the provider binds the encrypted data to the method, the key's name and the parameters.
///
/// A recipient has only the public half of a key pair: it makes keys, and recovers none.
pub trait KeyProvider: fmt::Debug + Send + Sync {
    /// The name of the method by which it makes keys: up to 32 characters of `a-z`, `0-9` and `-`.
    /// The name is stored, and tells which provider can decrypt the data.
    fn method(&self) -> &str;

    /// The name of the key that it uses among those of this method: up to 255 bytes without control
    /// characters, stored as plain data. It is empty if there is nothing to name, as with a
    /// passphrase.
    fn key_name(&self) -> String;

    /// A new key, and its parameters: at most [`WrappingParams::MAX_LEN`] bytes. Each call makes
    /// another key.
    ///
    /// # Errors
    /// Errors of the device or the system that makes it.
    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)>;

    /// The key that belongs to parameters of this method. They are hostile input: a length, cost or
    /// content that [`KeyProvider::new_kek`] would not produce must be refused before it costs
    /// much.
    ///
    /// If the parameters alone do not show whether the key is right, as with a passphrase, this may
    /// return a wrong key, which decrypts nothing.
    ///
    /// # Errors
    /// [`KeyProvider::wrong_key`] if the parameters belong to another key;
    /// [`Code::KeystoreCorrupt`] if they are malformed; [`Code::KeyUsageMismatch`] from a
    /// recipient.
    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey>;

    /// Whether it is worth trying this provider on these parameters. By default, the method and the
    /// name must be its own.
    fn matches(&self, params: &WrappingParams) -> bool {
        params.method == self.method() && params.key_name == self.key_name()
    }

    /// The error for a key that decrypted nothing.
    fn wrong_key(&self) -> KmsError {
        let name = self.key_name();
        let key =
            if name.is_empty() { self.method().to_owned() } else { format!("{} {name}", self.method()) };
        KmsError::new(
            Code::WrongDecryptionKey,
            format!("it does not open with this key ({key}); name another one"),
        )
    }
}

/// What a provider needs to recover a key: the method, the key's name, and bytes that
/// only the provider understands. None of it is secret.
///
/// ```
/// use bulla_kms::encryption::WrappingParams;
///
/// let params = WrappingParams::new("age", "age1...", [7; 32])?;
/// assert_eq!((params.method(), params.key_name(), params.bytes()), ("age", "age1...", &[7; 32][..]));
/// assert!(WrappingParams::new("not a method", "", []).is_err());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappingParams {
    method: String,
    key_name: String,
    bytes: Vec<u8>,
}

impl WrappingParams {
    /// The maximum length of the bytes that only the provider understands.
    pub const MAX_LEN: usize = 16 << 10;

    /// The parameters of a method and a key.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the method, the name or the bytes break the rules of
    /// [`KeyProvider`].
    pub fn new(
        method: impl Into<String>,
        key_name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Self> {
        let params = Self { method: method.into(), key_name: key_name.into(), bytes: bytes.into() };
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_method = (1..=32).contains(&params.method.len()) && params.method.bytes().all(plain);
        let is_name =
            params.key_name.len() <= 255 && !params.key_name.contains(crate::encoding::is_deceptive);
        if is_method && is_name && params.bytes.len() <= Self::MAX_LEN {
            Ok(params)
        } else {
            Err(KmsError::new(
                Code::InvalidArgument,
                "a key provider has an invalid name or invalid parameters",
            ))
        }
    }

    /// The method by which the key was made: [`KeyProvider::method`].
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The key's name: [`KeyProvider::key_name`].
    pub fn key_name(&self) -> &str {
        &self.key_name
    }

    /// The bytes that only the provider understands.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// method length (1), method, name length (1), name, bytes length (2, big-endian), bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for text in [&self.method, &self.key_name] {
            out.push(u8::try_from(text.len()).expect("the bound is checked when the parameters are made"));
            out.extend_from_slice(text.as_bytes());
        }
        let length =
            u16::try_from(self.bytes.len()).expect("the bound is checked when the parameters are made");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.bytes);
    }

    /// Reads parameters that [`WrappingParams::write`] wrote from the start of `bytes`. Also
    /// returns the rest.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (method, rest) = read_text(bytes)?;
        let (key_name, rest) = read_text(rest)?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((Self::new(method, key_name, bytes).ok()?, rest))
    }
}

fn read_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// A key of 32 bytes, encrypted under a key-encryption key: the wrapping parameters and an
/// envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    pub(crate) params: WrappingParams,
    pub(super) envelope: Envelope,
}

impl WrappedKey {
    /// Wraps `key` under a new key of the provider.
    pub(crate) fn wrap(provider: &dyn KeyProvider, place: EnvelopeKind, key: &[u8; 32]) -> Result<Self> {
        let (kek, bytes) = provider.new_kek()?;
        let params = WrappingParams::new(provider.method(), provider.key_name(), bytes)?;
        let envelope = Envelope::encrypt(&bind_kek(&kek, &params), place, key)?;
        Ok(Self { params, envelope })
    }

    /// Unwraps the key.
    ///
    /// # Errors
    /// [`KeyProvider::wrong_key`] if it belongs to another provider, or was changed; the errors of
    /// [`KeyProvider::recover_kek`].
    pub(crate) fn unwrap(
        &self,
        provider: &dyn KeyProvider,
        place: &EnvelopeKind,
    ) -> Result<KeyEncryptionKey> {
        let kek = provider.recover_kek(&self.params)?;
        let opened = self.envelope.decrypt(&bind_kek(&kek, &self.params), place);
        let key = opened.ok_or_else(|| provider.wrong_key())?;
        let key =
            key.as_slice().try_into().map_err(|_| KmsError::corrupt("a wrapped key has a wrong length"));
        key.map(Zeroizing::new)
    }

    /// The parameters, then length (2, big-endian) and bytes of the envelope.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.params.write(out);
        let envelope = self.envelope.to_bytes();
        let length = u16::try_from(envelope.len()).expect("an envelope with a key is short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&envelope);
    }

    /// Reads a key that [`WrappedKey::write`] wrote from the start of `bytes`. Also returns the
    /// rest.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (params, rest) = WrappingParams::read(bytes)?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (envelope, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((Self { params, envelope: Envelope::parse(envelope).ok()? }, rest))
    }
}

/// The key that encrypts: the provider's key, bound to all wrapping parameters, so that no part of
/// them can be replaced.
fn bind_kek(kek: &KeyEncryptionKey, params: &WrappingParams) -> KeyEncryptionKey {
    let mut described = Vec::new();
    params.write(&mut described);
    let mut hasher = blake3::Hasher::new_derive_key("bulla sealing v1 key under a key encryption key");
    let mut hash = hasher.update(&**kek).update(&described).finalize();
    let key = Zeroizing::new(*hash.as_bytes());
    hash.zeroize();
    hasher.zeroize();
    key
}

/// The error of a recipient that should decrypt something.
#[cfg(feature = "soft-seal")]
pub(super) fn only_encrypts(recipient: &dyn KeyProvider) -> KmsError {
    let message = format!("{} is a public key and decrypts nothing; give its identity", recipient.key_name());
    KmsError::new(Code::KeyUsageMismatch, message)
}

/// The error for a text that is not an identity. It quotes nothing of the text.
#[cfg(feature = "soft-seal")]
pub(super) fn malformed_identity() -> KmsError {
    KmsError::new(
        Code::MalformedKeyFile,
        "not an identity: one line AGE-SECRET-KEY-1... or x-wing-secret:...",
    )
}

/// The secret that opens a keystore.
#[derive(Clone, Debug)]
pub enum Unlock {
    /// A passphrase. It is normalized (Unicode, form C), and its UTF-8 bytes are used. It must not
    /// be empty.
    Passphrase(SecretString),
    /// The path of a key file that [`KeyFile::create`](crate::KeyFile::create) made.
    KeyFile(PathBuf),
    /// Any other provider of key-encryption keys: a device, or an identity.
    Provider(Arc<dyn KeyProvider>),
}

impl Unlock {
    /// The provider of the key-encryption key.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for an empty passphrase.
    pub(crate) fn provider(&self) -> Result<Arc<dyn KeyProvider>> {
        Ok(match self {
            Self::Passphrase(secret) => Arc::new(Passphrase::new(secret.clone())?),
            Self::KeyFile(path) => Arc::new(KeyFileProvider::new(path)),
            Self::Provider(provider) => Arc::clone(provider),
        })
    }
}

/// The kind of secret that opens a keystore.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnlockMethod {
    /// [`Unlock::Passphrase`].
    Passphrase,
    /// [`Unlock::KeyFile`].
    KeyFile,
    /// [`Unlock::Provider`], with its names.
    Provider {
        /// [`KeyProvider::method`].
        method: String,
        /// [`KeyProvider::key_name`].
        key_name: String,
    },
}

impl UnlockMethod {
    pub(crate) fn of(params: &WrappingParams) -> Self {
        match params.method() {
            Passphrase::METHOD => Self::Passphrase,
            KeyFileProvider::METHOD => Self::KeyFile,
            method => Self::Provider { method: method.to_owned(), key_name: params.key_name().to_owned() },
        }
    }
}

impl fmt::Display for UnlockMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase => f.write_str("a passphrase"),
            Self::KeyFile => f.write_str("a key file"),
            Self::Provider { method, key_name } if key_name.is_empty() => f.write_str(method),
            Self::Provider { method, key_name } => write!(f, "{method} ({key_name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_params_come_back_as_they_were_written_and_no_cut_of_them_does() {
        let params = WrappingParams::new("key-file", "a name", vec![1, 2, 3]).unwrap();
        let mut bytes = Vec::new();
        params.write(&mut bytes);
        bytes.push(9);
        assert_eq!(WrappingParams::read(&bytes), Some((params, &[9][..])));
        for cut in 0..bytes.len() - 1 {
            assert_eq!(WrappingParams::read(&bytes[..cut]), None);
        }
    }

    #[test]
    fn names_that_could_mislead_are_refused() {
        for (method, name, length) in [
            ("", "", 0),
            ("Key", "", 0),
            ("a b", "", 0),
            (&*"a".repeat(33), "", 0),
            ("a", "line\nline", 0),
            ("a", "\u{202e}", 0),
            ("a", &"a".repeat(256), 0),
            ("a", "", WrappingParams::MAX_LEN + 1),
        ] {
            assert!(
                WrappingParams::new(method, name, vec![0; length]).is_err(),
                "{method:?} {name:?} {length}"
            );
        }
        assert!(WrappingParams::new("a", "a".repeat(255), vec![0; WrappingParams::MAX_LEN]).is_ok());
    }
}
