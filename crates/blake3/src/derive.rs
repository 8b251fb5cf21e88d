//! Key derivation: from key material that is all there, once or many times over.

use crate::context::context_key;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::functions;
use crate::many::hash_many_in;
use crate::oneshot::digest;
use crate::spec::{DERIVE_KEY_MATERIAL, OUT_LEN, Words};
use core::fmt;

/// 32 bytes of key for the purpose `context`, from `key_material`.
///
/// The context should be a constant of the program, unique the world over, such as `example.com 2026-11-20 session tokens v1`; never
/// user input. The key material may have any length but must not be a password. To derive many keys for one purpose use
/// [`DeriveKey`], which hashes the context once.
#[inline]
pub fn derive_key(context: &str, key_material: &[u8]) -> [u8; OUT_LEN] {
    let key = context_key(context);
    digest(functions(), key_material, &key, DERIVE_KEY_MATERIAL).into()
}

/// A purpose for which keys are derived, its context hashed once.
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
    /// The purpose that this context names: see [`derive_key`] for what a context should be.
    pub fn new(context: &str) -> Self {
        DeriveKey { key: context_key(context) }
    }

    /// 32 bytes of key from `key_material`.
    #[inline]
    pub fn derive(&self, key_material: &[u8]) -> [u8; OUT_LEN] {
        digest(functions(), key_material, &self.key, DERIVE_KEY_MATERIAL).into()
    }

    /// 32 bytes of key from each of `key_materials`, side by side: see [`hash_many`](crate::hash_many).
    ///
    /// # Panics
    ///
    /// When there are not as many results as inputs.
    pub fn derive_many(&self, key_materials: &[&[u8]], out: &mut [Hash]) {
        hash_many_in(functions(), &self.key, DERIVE_KEY_MATERIAL, key_materials, out);
    }

    /// For key material in pieces, and for longer keys.
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
