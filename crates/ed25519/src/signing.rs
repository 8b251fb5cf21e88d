//! Signatures: one, and many at once.

use crate::kernel;
use crate::signing_key::{SignItem, SigningKey};

impl SigningKey {
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
}

/// Signs every item. Signature i is that of [`SigningKey::sign`] for item i, byte for byte.
///
/// If the kernel has vectors, it makes eight signatures at a time. The time depends only on the messages' lengths, not on keys or
/// content. Without the feature `lane-signing`, which is on by default, signatures are made one after another.
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

/// [`sign_many`] in place: allocates nothing.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`sign_many`].
pub fn sign_many_into(items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
    kernel::active().sign_many_into(items, out);
}
