use crate::context::context_key;
use crate::kernel::functions;
use crate::oneshot::digest;
use crate::spec::{DERIVE_KEY_MATERIAL, Words};
use crate::{Hash, Hasher, OUT_LEN, many};
use core::fmt;

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
    /// The purpose that this context names: see [`derive_key`](crate::derive_key) for what a context should be.
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
        many::hash_many_in(functions(), &self.key, DERIVE_KEY_MATERIAL, key_materials, out);
    }

    /// For key material that comes piece by piece, and for longer keys.
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
