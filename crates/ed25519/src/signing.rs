//! Making signatures: one, and many at once.

use crate::kernel;
use crate::signing_key::{SignItem, SigningKey};

impl SigningKey {
    /// Signs one message: R and S, 64 bytes. If the kernel has vectors, all lanes work on it
    /// ([`sign_many`]).
    ///
    /// # Panics
    ///
    /// If [`sign_many`] panics.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut out = [[0; 64]];
        kernel::active().sign_in(&[], &[SignItem { key: self, message }], &mut out);
        out[0]
    }
}

/// Signs every item. Signature i is the one that [`SigningKey::sign`] makes for item i, byte for
/// byte.
///
/// If the kernel has vectors, it makes eight signatures at a time. The time depends only on the
/// messages' lengths, not on keys or content. Without the feature `lane-signing`, which is on by
/// default, signatures are made one after another.
///
/// # Panics
///
/// If the environment forces a kernel that this machine does not have: see [`kernel::active`].
#[must_use]
pub fn sign_many(items: &[SignItem<'_>]) -> Vec<[u8; 64]> {
    let mut out = vec![[0; 64]; items.len()];
    sign_many_into(items, &mut out);
    out
}

/// Like [`sign_many`], with the signatures in `out`. It allocates nothing.
///
/// # Panics
///
/// If `out` is not as long as `items`, or if [`sign_many`] panics.
pub fn sign_many_into(items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
    kernel::active().sign_many_into(items, out);
}
