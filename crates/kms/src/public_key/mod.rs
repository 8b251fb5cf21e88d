//! Public keys, for verification without a keystore.

mod encoded;
mod software;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::encoded::{EncodedKey, Prepared};
use crate::algorithm::Algorithm;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;

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

impl PublicKey {
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
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let public_key = keystore.public_key(&key)?;
    /// let request = VerifyRequest::new(public_key.encoded(), b"a message", &[0; 64]);
    /// let backend = Backends::software().verifier(Algorithm::Ed25519)?;
    /// assert_eq!(backend.verify(request), Verdict::Invalid);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn encoded(&self) -> &EncodedKey {
        &self.0
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
