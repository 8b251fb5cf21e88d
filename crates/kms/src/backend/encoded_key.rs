//! Public keys as backends see them.

use std::any::Any;
use std::sync::OnceLock;

use crate::algorithm::Algorithm;

/// A public key as its backend wants it for verification, decoded once: see [`EncodedKey::prepared`].
pub type Prepared = Box<dyn Any + Send + Sync>;

/// Decodes the bytes of a public key; `None` when they are none.
pub(crate) type Decode = fn(Algorithm, &[u8]) -> Option<Prepared>;

/// A public key of an algorithm, as the algorithm's specification encodes it, and what it was decoded to. A
/// [`PublicKey`](crate::PublicKey) has one and gives it out by `Deref`.
pub struct EncodedKey {
    algorithm: Algorithm,
    bytes: Box<[u8]>,
    decode: Decode,
    /// Decoded when it is first needed, which is at once for bytes from outside; none when they are no key.
    prepared: OnceLock<Option<Prepared>>,
}

impl EncodedKey {
    /// A key that is decoded when that is needed.
    pub(crate) fn new(algorithm: Algorithm, bytes: &[u8], decode: Decode) -> Self {
        Self { algorithm, bytes: bytes.into(), decode, prepared: OnceLock::new() }
    }

    /// A key that was decoded already.
    pub(crate) fn decoded(algorithm: Algorithm, bytes: &[u8], decode: Decode, prepared: Prepared) -> Self {
        Self { prepared: OnceLock::from(Some(prepared)), ..Self::new(algorithm, bytes, decode) }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The decoded key, which the backend that verifies in software made as a `T`; `None` when it made something
    /// else.
    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        let prepared = self.prepared.get_or_init(|| (self.decode)(self.algorithm, &self.bytes));
        prepared.as_ref()?.downcast_ref()
    }
}

impl std::fmt::Debug for EncodedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedKey({}:{})", self.algorithm, crate::encoding::base64(&self.bytes))
    }
}
