//! Key derivation from complete key material, once or many times.

use crate::context::context_key;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::functions;
use crate::many::hash_many_in;
use crate::oneshot::digest;
use crate::spec::{DERIVE_KEY_MATERIAL, OUT_LEN, Words};
use core::fmt;

/// Derives a key of 32 bytes from `key_material`, for the purpose that `context` names.
///
/// The context should be a constant in the program, globally unique, such as `example.com
/// 2026-11-20 session tokens v1`. It must never contain user input. The key material may have any
/// length, but must not be a password. To derive many keys for one purpose, use [`DeriveKey`],
/// which hashes the context once.
#[inline]
pub fn derive_key(context: &str, key_material: &[u8]) -> [u8; OUT_LEN] {
    let key = context_key(context);
    digest(functions(), key_material, &key, DERIVE_KEY_MATERIAL).into()
}

/// Derives many keys for one purpose, and hashes the purpose's context only once.
///
/// ```
/// use bulla_blake3::{DeriveKey, derive_key};
///
/// const CONTEXT: &str = "example.com 2026-11-20 session tokens v1";
/// let sessions = DeriveKey::new(CONTEXT);
/// assert_eq!(sessions.derive(b"key material"), derive_key(CONTEXT, b"key material"));
/// ```
#[derive(Clone)]
pub struct DeriveKey {
    key: Words,
}

impl DeriveKey {
    /// Hashes the context that names the purpose. [`derive_key`] explains how to choose a context.
    pub fn new(context: &str) -> Self {
        DeriveKey { key: context_key(context) }
    }

    /// Derives a key of 32 bytes from `key_material`.
    #[inline]
    pub fn derive(&self, key_material: &[u8]) -> [u8; OUT_LEN] {
        digest(functions(), key_material, &self.key, DERIVE_KEY_MATERIAL).into()
    }

    /// Derives a key of 32 bytes from each of `key_materials`, side by side: see
    /// [`hash_many`](crate::hash_many).
    ///
    /// # Panics
    ///
    /// If `out` is not as long as `key_materials`.
    pub fn derive_many(&self, key_materials: &[&[u8]], out: &mut [Hash]) {
        hash_many_in(functions(), &self.key, DERIVE_KEY_MATERIAL, key_materials, out);
    }

    /// A hasher for key material in pieces, and for longer keys.
    pub fn hasher(&self) -> Hasher {
        Hasher::with(functions(), &self.key, DERIVE_KEY_MATERIAL)
    }
}

impl fmt::Debug for DeriveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeriveKey").finish_non_exhaustive()
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for DeriveKey {
    fn zeroize(&mut self) {
        self.key.zeroize();
    }
}
