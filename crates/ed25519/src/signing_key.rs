//! Signing keys, and the input of signing.

use crate::wipe;
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha2::Sha512;
use std::fmt;
use zeroize::{ZeroizeOnDrop, zeroize_stack};

/// A private key, expanded: the scalar, the prefix of nonces, and the public key (RFC 8032, section
/// 5.1.5).
///
/// Expanding a seed costs as much as a signature: keep the expanded key. It is zeroized on drop,
/// and [`Debug`](fmt::Debug) shows nothing of it.
pub struct SigningKey {
    /// On the heap, so that moving the key leaves no copy of its secrets behind.
    secret: Box<ExpandedSecretKey>,
    public: VerifyingKey,
}

impl SigningKey {
    /// Expands a seed, which RFC 8032 calls the private key: 32 bytes from a cryptographic
    /// generator.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = Self::expand(seed);
        zeroize_stack::<{ wipe::SERIAL_STACK_LEN }>();
        key
    }

    /// Leaves the scalar, the prefix and the seed in its own frame and in the frames below it,
    /// which the caller wipes.
    #[inline(never)]
    pub(crate) fn expand(seed: &[u8; 32]) -> Self {
        let secret = Box::new(ExpandedSecretKey::from(seed));
        let public = VerifyingKey::from(&*secret);
        Self { secret, public }
    }

    /// The public key: 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8; 32] {
        self.public.as_bytes()
    }

    /// The signature of one message by ed25519-dalek, which leaves the nonce on the stack: the
    /// caller wipes it.
    pub(crate) fn sign_portable(&self, message: &[u8]) -> [u8; 64] {
        raw_sign::<Sha512>(&self.secret, message, &self.public).to_bytes()
    }

    pub(crate) fn secret_scalar(&self) -> &curve25519_dalek::Scalar {
        &self.secret.scalar
    }

    #[cfg(any(test, lanes))]
    pub(crate) fn scalar(&self) -> &[u8; 32] {
        self.secret.scalar.as_bytes()
    }

    pub(crate) fn prefix(&self) -> &[u8; 32] {
        &self.secret.hash_prefix
    }
}

impl ZeroizeOnDrop for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public_key", self.public_key()).finish_non_exhaustive()
    }
}

/// One message to sign.
#[derive(Clone, Copy, Debug)]
pub struct SignItem<'a> {
    /// The key that signs.
    pub key: &'a SigningKey,
    /// The message that is signed.
    pub message: &'a [u8],
}
