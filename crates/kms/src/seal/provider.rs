//! The source of key-encryption keys: one small trait, which anyone may implement.

use std::fmt;

use bulla_blake3 as blake3;
use zeroize::{Zeroize as _, Zeroizing};

use super::envelope::{Envelope, Place};
use crate::error::{Code, KmsError, Result};

/// A key of 32 bytes that encrypts one other key. It is wiped on drop.
pub type KeyEncryptionKey = Zeroizing<[u8; 32]>;

/// Makes key-encryption keys, and makes them again to open sealed data.
///
/// A provider never sees the sealed data. It makes a new key together with a *capsule*. The capsule
/// is stored as plain data beside the sealed data. With it, the provider, or the holder of the
/// private half, can make the same key again: it is the salt of a passphrase, a ciphertext that
/// carries the key, or the key wrapped by a token. The code above the provider binds the sealed
/// data to the method, the key's name and the capsule.
///
/// A recipient has only the public half of a key pair: it makes keys, and refuses to make them
/// again.
pub trait KeyProvider: fmt::Debug + Send + Sync {
    /// The name of the method by which it makes keys: up to 32 characters of `a-z`, `0-9` and `-`.
    /// It is stored, and tells which provider can open the sealed data.
    fn method(&self) -> &str;

    /// The name of the key that it uses among those of this method: up to 255 bytes without control
    /// characters, stored as plain data. It is empty if there is nothing to name, as with a
    /// passphrase.
    fn key_name(&self) -> String;

    /// A new key and the bytes of its capsule, at most [`Capsule::MOST`]. Each call makes another
    /// key.
    ///
    /// # Errors
    /// Errors of the device or the system that makes it.
    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)>;

    /// The key that belongs to a capsule of this method. A capsule is hostile input: a length, cost
    /// or content that [`KeyProvider::new_key`] would not produce must be refused before it costs
    /// much.
    ///
    /// If the capsule alone does not show whether the key is right, as with a passphrase, this may
    /// return a wrong key, which opens nothing.
    ///
    /// # Errors
    /// [`KeyProvider::wrong_key`] if the capsule belongs to another key; [`Code::KeystoreCorrupt`] if
    /// it is malformed; [`Code::KeyUsageMismatch`] from a recipient.
    fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey>;

    /// Whether it is worth trying this provider on a capsule. By default, the method and the name
    /// must be its own.
    fn fits(&self, capsule: &Capsule) -> bool {
        capsule.method == self.method() && capsule.key_name == self.key_name()
    }

    /// The error for a key that opened nothing.
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

/// The data with which a provider makes a key again: the method, the key's name, and bytes that
/// only the provider understands. None of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capsule {
    method: String,
    key_name: String,
    bytes: Vec<u8>,
}

impl Capsule {
    /// The most bytes of a capsule.
    pub const MOST: usize = 16 << 10;

    /// # Errors
    /// [`Code::InvalidArgument`] if the method, the name or the bytes break the rules of
    /// [`KeyProvider`].
    pub fn new(
        method: impl Into<String>,
        key_name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Self> {
        let capsule = Self { method: method.into(), key_name: key_name.into(), bytes: bytes.into() };
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_method = (1..=32).contains(&capsule.method.len()) && capsule.method.bytes().all(plain);
        let is_name =
            capsule.key_name.len() <= 255 && !capsule.key_name.contains(crate::encoding::is_deceptive);
        if is_method && is_name && capsule.bytes.len() <= Self::MOST {
            Ok(capsule)
        } else {
            Err(KmsError::new(Code::InvalidArgument, "a key provider has an invalid name or capsule"))
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
            out.push(u8::try_from(text.len()).expect("the bound is checked when a capsule is made"));
            out.extend_from_slice(text.as_bytes());
        }
        let length = u16::try_from(self.bytes.len()).expect("the bound is checked when a capsule is made");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.bytes);
    }

    /// Reads a capsule that [`Capsule::write`] wrote from the start of `bytes`. Also returns the
    /// rest.
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

/// A key of 32 bytes, encrypted under a key-encryption key: the capsule and an envelope. The
/// provider opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    pub(crate) capsule: Capsule,
    pub(super) envelope: Envelope,
}

impl WrappedKey {
    /// Seals `key` under a new key of the provider.
    pub(crate) fn wrap(provider: &dyn KeyProvider, place: Place, key: &[u8; 32]) -> Result<Self> {
        let (kek, bytes) = provider.new_key()?;
        let capsule = Capsule::new(provider.method(), provider.key_name(), bytes)?;
        let envelope = Envelope::seal(&bound(&kek, &capsule), place, key)?;
        Ok(Self { capsule, envelope })
    }

    /// Opens the key.
    ///
    /// # Errors
    /// [`KeyProvider::wrong_key`] if it belongs to another provider, or was changed; the errors of
    /// [`KeyProvider::key`].
    pub(crate) fn unwrap(&self, provider: &dyn KeyProvider, place: &Place) -> Result<KeyEncryptionKey> {
        let kek = provider.key(&self.capsule)?;
        let opened = self.envelope.open(&bound(&kek, &self.capsule), place);
        let key = opened.ok_or_else(|| provider.wrong_key())?;
        let key = key.as_slice().try_into().map_err(|_| KmsError::corrupt("a sealed key has a wrong length"));
        key.map(Zeroizing::new)
    }

    /// The capsule, then length (2, big-endian) and bytes of the envelope.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.capsule.write(out);
        let envelope = self.envelope.to_bytes();
        let length = u16::try_from(envelope.len()).expect("an envelope with a key is short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&envelope);
    }

    /// Reads a key that [`WrappedKey::write`] wrote from the start of `bytes`. Also returns the
    /// rest.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (capsule, rest) = Capsule::read(bytes)?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (envelope, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((Self { capsule, envelope: Envelope::parse(envelope).ok()? }, rest))
    }
}

/// The key that encrypts: the provider's key, bound to the whole capsule, so that no part of the
/// capsule can be replaced.
fn bound(kek: &KeyEncryptionKey, capsule: &Capsule) -> KeyEncryptionKey {
    let mut described = Vec::new();
    capsule.write(&mut described);
    let mut hasher = blake3::Hasher::new_derive_key("bulla sealing v1 key under a key encryption key");
    let mut hash = hasher.update(&**kek).update(&described).finalize();
    let key = Zeroizing::new(*hash.as_bytes());
    hash.zeroize();
    hasher.zeroize();
    key
}

/// The error of a recipient that should open something.
#[cfg(feature = "soft-seal")]
pub(super) fn only_seals(recipient: &dyn KeyProvider) -> KmsError {
    let message = format!("{} is a public key and opens nothing; give its identity", recipient.key_name());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capsule_comes_back_as_it_was_written_and_no_cut_of_it_does() {
        let capsule = Capsule::new("key-file", "a name", vec![1, 2, 3]).unwrap();
        let mut bytes = Vec::new();
        capsule.write(&mut bytes);
        bytes.push(9);
        assert_eq!(Capsule::read(&bytes), Some((capsule, &[9][..])));
        for cut in 0..bytes.len() - 1 {
            assert_eq!(Capsule::read(&bytes[..cut]), None);
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
            ("a", "", Capsule::MOST + 1),
        ] {
            assert!(Capsule::new(method, name, vec![0; length]).is_err(), "{method:?} {name:?} {length}");
        }
        assert!(Capsule::new("a", "a".repeat(255), vec![0; Capsule::MOST]).is_ok());
    }
}
