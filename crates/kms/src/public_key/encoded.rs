//! A public key as backends get it: encoded, and decoded by one of them.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use crate::algorithm::Algorithm;
use crate::encoding;

/// A public key in the form in which its backend verifies with it, decoded once: see
/// [`EncodedKey`].
pub type Prepared = Box<dyn Any + Send + Sync>;

/// Decodes a public key's bytes; `None` if they are not a public key.
pub(crate) type Decode = fn(Algorithm, &[u8]) -> Option<Prepared>;

/// An algorithm's public key, in its specification's encoding and decoded. See
/// [`PublicKey::encoded`](crate::PublicKey::encoded).
///
/// ```
/// use bulla_kms::backend::{Backends, VerifyRequest};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let public_key = keystore.public_key(&key)?;
/// let signature = keystore.sign(&key, b"a message")?.bytes;
///
/// // What a backend gets, and what it may hand on to another one.
/// let key = public_key.encoded();
/// assert_eq!((key.algorithm(), key.as_bytes()), (Algorithm::Ed25519, public_key.as_bytes()));
/// let request = VerifyRequest::new(key, b"a message", &signature);
/// assert!(Backends::software().verifier(key.algorithm())?.verify(request).is_valid());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
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
    pub(crate) fn prepared<T: 'static>(&self) -> Option<&T> {
        let prepared = self.prepared.get_or_init(|| (self.decode)(self.algorithm, &self.bytes));
        prepared.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for EncodedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedKey({}:{})", self.algorithm, encoding::base64(&self.bytes))
    }
}
