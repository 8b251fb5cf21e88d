//! Public keys as backends see them.

use std::any::Any;
use std::sync::OnceLock;

use crate::algorithm::Algorithm;

/// A public key in the form in which its backend verifies with it, decoded once: see
/// [`EncodedKey::prepared`].
pub type Prepared = Box<dyn Any + Send + Sync>;

/// Decodes a public key's bytes; `None` if they are not a public key.
pub(crate) type Decode = fn(Algorithm, &[u8]) -> Option<Prepared>;

/// An algorithm's public key, in its specification's encoding and decoded. A
/// [`PublicKey`](crate::PublicKey) dereferences to it.
pub struct EncodedKey {
    algorithm: Algorithm,
    bytes: Box<[u8]>,
    decode: Decode,
    /// Decoded when first needed, which is at once for bytes from outside; `None` if they are not a
    /// key.
    prepared: OnceLock<Option<Prepared>>,
}

impl EncodedKey {
    /// A key that is decoded when first needed.
    pub(crate) fn new(algorithm: Algorithm, bytes: &[u8], decode: Decode) -> Self {
        Self { algorithm, bytes: bytes.into(), decode, prepared: OnceLock::new() }
    }

    /// A key that is already decoded.
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

    /// The key as the software backend decoded it; `None` if that is not a `T`.
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
