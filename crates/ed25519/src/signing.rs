//! Signing keys, and many signatures at once.

use crate::{kernel, wipe};
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha2::Sha512;
use std::fmt;
use zeroize::ZeroizeOnDrop;

/// A private key, expanded: the scalar, the prefix of nonces, and the public key (RFC 8032, section 5.1.5).
///
/// Expanding a seed costs as much as a signature: keep the expanded key. It is zeroised when it is dropped, and does not show itself in
/// [`Debug`](fmt::Debug).
pub struct SigningKey {
    /// On the heap, so that moving the key leaves no copy of its secrets behind.
    secret: Box<ExpandedSecretKey>,
    public: VerifyingKey,
}

impl SigningKey {
    /// From the seed, which RFC 8032 calls the private key: 32 bytes from a cryptographic generator.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = Self::expand(seed);
        wipe::stack::<{ wipe::ONE_BY_ONE }>();
        key
    }

    /// Leaves the scalar, the prefix and the seed in its own frame and in those below, which the caller wipes.
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

    /// The signature of one message: R and S, 64 bytes. Where the kernel has vectors, all lanes work for it ([`sign_many`]).
    ///
    /// # Panics
    ///
    /// As [`sign_many`].
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut out = [[0; 64]];
        kernel::active().sign_in(&[], &[SignItem { key: self, message }], &mut out);
        out[0]
    }

    /// The same by ed25519-dalek, which leaves the nonce on the stack: the caller wipes it.
    pub(crate) fn sign_portable(&self, message: &[u8]) -> [u8; 64] {
        raw_sign::<Sha512>(&self.secret, message, &self.public).to_bytes()
    }

    pub(crate) fn secret_scalar(&self) -> &curve25519_dalek::Scalar {
        &self.secret.scalar
    }

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

/// One message to be signed.
#[derive(Clone, Copy, Debug)]
pub struct SignItem<'a> {
    /// The key.
    pub key: &'a SigningKey,
    /// The message.
    pub message: &'a [u8],
}

/// Signs every item: signature i is that of [`SigningKey::sign`] for item i, byte for byte.
///
/// Where the kernel has vectors, eight are made at a time, in a time that does not depend on keys and
/// messages but for the messages' lengths. Without the feature `lane-signing`, which is on by default, they are made one after the other.
///
/// # Panics
///
/// When the environment forces a kernel that this machine does not have: [`kernel::active`].
#[must_use]
pub fn sign_many(items: &[SignItem<'_>]) -> Vec<[u8; 64]> {
    let mut out = vec![[0; 64]; items.len()];
    sign_many_into(items, &mut out);
    out
}

/// [`sign_many`] in place: allocates nothing.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`sign_many`].
pub fn sign_many_into(items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
    kernel::active().sign_many_into(items, out);
}
