//! Public keys, for those who verify without a keystore.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::algorithm::Algorithm;
use crate::backend::{Backends, Encapsulated, Prepared, Request};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, serde_as_text};

/// What a verification says of a signature.
///
/// There is no reason beside `Invalid` on purpose: the equation does not tell a changed message from a changed
/// signature or another key.
#[must_use = "a verdict that is not looked at verifies nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature is one of this message under this key.
    Valid,
    /// It is not.
    Invalid,
    /// Nothing was verified: the keystore has no such key or version, or may not use it. The same call for this one
    /// item, [`Keystore::verify`](crate::Keystore::verify), says why. Only calls about many items answer so.
    Unusable,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}

/// A public key. Cloning it is cheap.
///
/// The text form is the base64 of its bytes for Ed25519, 44 characters with the padding, and `ALGORITHM:BASE64` for
/// every other algorithm.
#[derive(Clone)]
pub struct PublicKey(Arc<Inner>);

struct Inner {
    algorithm: Algorithm,
    bytes: Box<[u8]>,
    /// Decoded when it is first needed, which is at once for bytes from outside; none when they are no key.
    prepared: OnceLock<Option<Prepared>>,
}

impl PublicKey {
    /// From the bytes that the algorithm's specification defines; for Ed25519 the 32 bytes of RFC 8032, section 5.1.5.
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`] for another length and for bytes that are no key: for Ed25519 those that are no point
    /// of the curve, a point of small order, under which one signature fits almost every message, and a y that is not reduced, a
    /// second encoding of a point that has one already; for X-Wing a part of X25519 of low order.
    /// [`Code::UnsupportedAlgorithm`] when this build cannot verify signatures of the algorithm.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self> {
        let prepared = Backends::software().verifier(algorithm)?.prepare(algorithm, bytes)?;
        Ok(Self(Arc::new(Inner { algorithm, bytes: bytes.into(), prepared: OnceLock::from(Some(prepared)) })))
    }

    /// Reads the text form of a key that was checked before it was sealed.
    pub(crate) fn deserialize_trusted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (algorithm, bytes) =
            parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)?;
        Ok(Self(Arc::new(Inner { algorithm, bytes: bytes.into(), prepared: OnceLock::new() })))
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The decoded key, which the backend that verifies in software made as a `T`; `None` when it made something
    /// else.
    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        let prepare = || {
            let backend = Backends::software().verifier(self.0.algorithm).ok()?;
            backend.prepare(self.0.algorithm, &self.0.bytes).ok()
        };
        self.0.prepared.get_or_init(prepare).as_ref()?.downcast_ref()
    }

    /// Whether `signature` is one of `message` under this key.
    ///
    /// For Ed25519 the predicate is the strict one, `verify_strict` of `ed25519-dalek` 3: the equation without the
    /// cofactor, R compared as bytes, S below the order of the group, A and R not of small order. A signature of
    /// another length than the algorithm's is invalid.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Verdict {
        match Backends::software().verifier(self.0.algorithm) {
            Ok(backend) => backend.verify(Request { public_key: self, message, signature }),
            Err(_) => Verdict::Invalid,
        }
    }
}

impl PublicKey {
    /// Makes a key of 32 bytes for the holder of the private key, and the ciphertext that carries it:
    /// [`Keystore::decapsulate`](crate::Keystore::decapsulate).
    ///
    /// # Errors
    /// [`Code::WrongUse`] when keys of the algorithm sign; [`Code::UnsupportedAlgorithm`]; [`Code::RandomUnavailable`].
    pub fn encapsulate(&self) -> Result<Encapsulated> {
        Backends::software().verifier(self.0.algorithm)?.encapsulate(self)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        (self.0.algorithm, &self.0.bytes) == (other.0.algorithm, &other.0.bytes)
    }
}

impl Eq for PublicKey {}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.bytes.hash(state);
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
        match self.0.algorithm {
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

/// A public key with the id of the key version it belongs to, as it is handed to those who verify.
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
    pub key: KeyId,
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
        let (first, rest) =
            text.split_once('\n').ok_or_else(|| invalid("line 1 does not end with a line feed"))?;
        let key = first
            .strip_prefix(HEADER)
            .ok_or_else(|| invalid("line 1 does not start with \"bulla public key v1: \""))?;
        let line = rest.strip_suffix('\n').ok_or_else(|| invalid("line 2 does not end with a line feed"))?;
        Ok(Self {
            key: key.parse().map_err(|error| invalid(&format!("line 1: {error}")))?,
            public_key: line.parse().map_err(|error| invalid(&format!("line 2: {error}")))?,
        })
    }
}
