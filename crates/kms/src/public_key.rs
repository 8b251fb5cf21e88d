//! Public keys, for verification without a keystore.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::algorithm::Algorithm;
use crate::backend::{Backends, Encapsulated, EncodedKey, Prepared, VerifyRequest};
use crate::encoding::{self, TextVisitor, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::key_signature::Verdict;

/// A public key. Cloning it is cheap.
///
/// The text form is the base64 of its bytes for Ed25519, 44 characters with the padding, and
/// `ALGORITHM:BASE64` for every other algorithm.
///
/// ```
/// use bulla_kms::{Algorithm, Keystore, NewKey, PublicKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let public_key = keystore.public_key(&key)?;
/// let same = PublicKey::from_bytes(public_key.algorithm(), public_key.as_bytes())?;
/// assert_eq!(same, public_key);
///
/// let signature = keystore.sign(&key, b"a message")?;
/// assert!(same.verify(b"a message", &signature.bytes).is_valid());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone)]
pub struct PublicKey(Arc<EncodedKey>);

/// Decodes a key with the software backend.
fn decode(algorithm: Algorithm, bytes: &[u8]) -> Option<Prepared> {
    Backends::software().verifier(algorithm).ok()?.prepare(algorithm, bytes).ok()
}

impl PublicKey {
    /// Reads the bytes that the algorithm's specification defines; for Ed25519 the 32 bytes of RFC
    /// 8032, section 5.1.5.
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`] for another length, and for bytes that are not a key. For Ed25519
    /// these are bytes that are not a point of the curve; a point of small order, under which one
    /// signature fits almost every message; and a y that is not reduced, which is a second encoding
    /// of a point. For X-Wing it is an X25519 part of low order. [`Code::UnsupportedAlgorithm`] if
    /// this build cannot verify signatures of the algorithm. [`Code::KeyUsageMismatch`] if the
    /// algorithm has no public keys.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self> {
        let prepared = Backends::software().verifier(algorithm)?.prepare(algorithm, bytes)?;
        Ok(Self(Arc::new(EncodedKey::decoded(algorithm, bytes, decode, prepared))))
    }

    /// Reads the text form of a key that was checked before it was encrypted.
    pub(crate) fn deserialize_trusted<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        /// The parts of the text.
        struct Parts(Algorithm, Vec<u8>);
        impl FromStr for Parts {
            type Err = KmsError;
            fn from_str(text: &str) -> Result<Self> {
                parse(text).map(|(algorithm, bytes)| Self(algorithm, bytes))
            }
        }
        let Parts(algorithm, bytes) = deserializer.deserialize_str(TextVisitor(PhantomData))?;
        Ok(Some(Self(Arc::new(EncodedKey::new(algorithm, &bytes, decode)))))
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.0.algorithm()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The part of the key that backends get.
    ///
    /// ```
    /// use bulla_kms::backend::{Backends, VerifyRequest};
    /// use bulla_kms::{Algorithm, Keystore, NewKey, Verdict};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let public_key = keystore.public_key(&key)?;
    /// let request = VerifyRequest::new(public_key.encoded(), b"a message", &[0; 64]);
    /// let backend = Backends::software().verifier(Algorithm::Ed25519)?;
    /// assert_eq!(backend.verify(request), Verdict::Invalid);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn encoded(&self) -> &EncodedKey {
        &self.0
    }

    /// Whether `signature` is one of `message` under this key.
    ///
    /// For Ed25519 the predicate is the strict one, `verify_strict` of `ed25519-dalek` 3: the
    /// equation without the cofactor, R compared as bytes, S below the order of the group, A and R
    /// not of small order. A signature of the wrong length for the algorithm is invalid.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Verdict {
        match Backends::software().verifier(self.algorithm()) {
            Ok(backend) => backend.verify(VerifyRequest { public_key: self.encoded(), message, signature }),
            Err(_) => Verdict::Invalid,
        }
    }

    /// Makes a key of 32 bytes for the holder of the private key, and the ciphertext that carries
    /// it: [`Keystore::decapsulate`](crate::Keystore::decapsulate).
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is one for signatures;
    /// [`Code::UnsupportedAlgorithm`]; [`Code::RandomUnavailable`].
    ///
    /// ```
    /// # #[cfg(feature = "mlkem")]
    /// # (|| {
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::XWing);
    /// let public_key = keystore.public_key(&keystore.create_key(new)?)?;
    /// let sent = public_key.encapsulate()?;
    /// assert_eq!(sent.shared_key.len(), 32);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    pub fn encapsulate(&self) -> Result<Encapsulated> {
        Backends::software().verifier(self.algorithm())?.encapsulate(self.encoded())
    }

    /// Encrypts for the holder of an RSA key: RSAES-OAEP with SHA-256, with `label`, which may be
    /// empty, as its label (RFC 8017, section 7.1). The plaintext has at most 66 bytes less than
    /// the modulus: 190, 318 or 446.
    ///
    /// The ciphertext is that of OpenSSL and of others, without the version of the key.
    /// [`CiphertextParts::new`](crate::CiphertextParts::new) adds that for
    /// [`Keystore::decrypt`](crate::Keystore::decrypt), where the label is the associated data.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use std::num::NonZeroU32;
    ///
    /// use bulla_kms::{Algorithm, CiphertextParts, EncryptionOptions, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::Rsa2048);
    /// let key = keystore.create_key(new)?;
    /// let sent = keystore.public_key(&key)?.encrypt(b"a secret", b"letter 7")?;
    ///
    /// let sent = CiphertextParts::new(Algorithm::Rsa2048, NonZeroU32::MIN, &sent)?.to_bytes();
    /// let options = EncryptionOptions::default().associated_data(b"letter 7");
    /// assert_eq!(**keystore.decrypt(key.key_id(), &sent, &options)?.bytes, *b"a secret");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for other algorithms; [`Code::InvalidArgument`] for a plaintext
    /// that is too long; [`Code::UnsupportedAlgorithm`].
    pub fn encrypt(&self, plaintext: &[u8], label: &[u8]) -> Result<Vec<u8>> {
        Backends::software().verifier(self.algorithm())?.encrypt(self.encoded(), label, plaintext)
    }
}

/// The bytes, as [`PublicKey::as_bytes`] returns them.
impl AsRef<[u8]> for PublicKey {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        (self.algorithm(), self.as_bytes()) == (other.algorithm(), other.as_bytes())
    }
}

impl Eq for PublicKey {}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = encoding::base64(self.as_bytes());
        match self.algorithm() {
            Algorithm::Ed25519 => f.pad(&base64),
            algorithm => f.pad(&format!("{algorithm}:{base64}")),
        }
    }
}

impl FromStr for PublicKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let (algorithm, bytes) = parse(text)?;
        Self::from_bytes(algorithm, &bytes)
    }
}

/// The parts of the text form.
fn parse(text: &str) -> Result<(Algorithm, Vec<u8>)> {
    let invalid = |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not a public key: {why}"));
    let (algorithm, base64) = match text.split_once(':') {
        Some(("ed25519", _)) => return Err(invalid("an Ed25519 key has no prefix")),
        Some((algorithm, base64)) => (algorithm.parse()?, base64),
        None => (Algorithm::Ed25519, text),
    };
    let bytes = encoding::from_base64(base64)
        .ok_or_else(|| invalid("it is not base64 with the standard alphabet and padding"))?;
    Ok((algorithm, bytes))
}

serde_as_text!(PublicKey);

/// A public key with the id of its key version, for people who verify.
///
/// The text form is two lines, each with its line feed:
///
/// ```text
/// bulla public key v1: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3
/// 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPublicKey {
    /// The key version.
    pub key: KeyVersionId,
    /// Its public key.
    pub public_key: PublicKey,
}

const HEADER: &str = "bulla public key v1: ";

impl fmt::Display for NamedPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEADER}{}\n{}\n", self.key, self.public_key)
    }
}

impl FromStr for NamedPublicKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not a public key file: {why}"));
        let caused = |line: u8, error: KmsError| invalid(&format!("line {line}: {error}")).with_source(error);
        let (first, rest) =
            text.split_once('\n').ok_or_else(|| invalid("line 1 does not end with a line feed"))?;
        let key = first
            .strip_prefix(HEADER)
            .ok_or_else(|| invalid("line 1 does not start with \"bulla public key v1: \""))?;
        let line = rest.strip_suffix('\n').ok_or_else(|| invalid("line 2 does not end with a line feed"))?;
        Ok(Self {
            key: key.parse().map_err(|error| caused(1, error))?,
            public_key: line.parse().map_err(|error| caused(2, error))?,
        })
    }
}
