//! The errors of keys and signatures.

use core::error::Error;
use core::fmt;
use ed25519::signature::Error as OpaqueError;

/// The error of everything here with a name of `ed25519-dalek`: that of the crate `signature`.
///
/// With the feature `alloc` it has a source that says why: for a signature that is not valid, an
/// [`InvalidReason`](crate::InvalidReason).
///
/// ```
/// use bulla_ed25519::{InvalidReason, Signer, SigningKey};
/// use std::error::Error;
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let error = key.verify(b"a", &key.sign(b"another")).unwrap_err();
/// let reason = error.source().and_then(|source| source.downcast_ref());
/// assert_eq!(reason, Some(&InvalidReason::Mismatch));
/// ```
pub type SignatureError = OpaqueError;

/// The error for a context of more than 255 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextTooLong;

impl fmt::Display for ContextTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the context of a prehashed signature has more than 255 bytes; shorten it, or hash it")
    }
}

impl Error for ContextTooLong {}

/// Why bytes are no key, or a batch cannot be verified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputError {
    /// Bytes of another length than those of the named type.
    Length { name: &'static str, expected: usize },
    /// The second half of a key pair is not the public key of the first.
    MismatchedKeyPair,
    /// Lists of a batch that are not equally long: messages, signatures, keys.
    #[cfg(feature = "batch")]
    BatchLengths([usize; 3]),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { name, expected } => write!(f, "{name} must have {expected} bytes"),
            Self::MismatchedKeyPair => f.write_str("the public key is not that of the secret key"),
            #[cfg(feature = "batch")]
            Self::BatchLengths([messages, signatures, keys]) => write!(
                f,
                "a batch must have as many messages as signatures and keys: it has {messages} messages, \
                 {signatures} signatures and {keys} keys"
            ),
        }
    }
}

impl Error for InputError {}

/// The error with that source, where there is memory for it.
pub(crate) fn signature_error(source: impl Error + Send + Sync + 'static) -> SignatureError {
    #[cfg(feature = "alloc")]
    return SignatureError::from_source(source);
    #[cfg(not(feature = "alloc"))]
    {
        let _ = source;
        SignatureError::new()
    }
}
