//! Key derivation from complete key material, once or many times, and the keys of contexts.
//!
//! A program uses few contexts, each many times. With the standard library, each thread remembers
//! the last context and its key; neither is a secret. A comparison takes a tenth of the time of
//! hashing the context again.

use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::{Functions, functions};
use crate::many::hash_many_in;
use crate::oneshot::digest;
use crate::spec::{ContextKey, DERIVE_KEY_CONTEXT, DERIVE_KEY_MATERIAL, IV, OUT_LEN, Words, key_words};
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
///
/// ```
/// use bulla_blake3::{DeriveKey, derive_key};
///
/// const CONTEXT: &str = "example.com 2026-11-28 sessions";
/// let sessions = DeriveKey::new(CONTEXT);
/// let mut keys = [bulla_blake3::hash(b""); 2];
/// sessions.derive_many(&[b"one", b"two"], &mut keys);
/// assert_eq!(keys[1].as_bytes(), &derive_key(CONTEXT, b"two"));
/// assert_eq!(sessions.hasher().update(b"two").finalize(), keys[1]);
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

/// The key of a key derivation context: the first of the two steps of key derivation.
///
/// ```
/// use bulla_blake3::hazmat::{HasherExt, hash_derive_key_context};
/// use bulla_blake3::{Hasher, derive_key};
///
/// let context_key = hash_derive_key_context("example.com 2026-11-28 sessions");
/// let key = Hasher::new_from_context_key(&context_key).update(b"secret").finalize();
/// assert_eq!(key.as_bytes(), &derive_key("example.com 2026-11-28 sessions", b"secret"));
/// ```
pub fn hash_derive_key_context(context: &str) -> ContextKey {
    hash_raw_context(functions(), context.as_bytes())
}

/// The key of a context that need not be UTF-8.
pub(crate) fn hash_raw_context(functions: &'static Functions, context: &[u8]) -> ContextKey {
    digest(functions, context, &IV, DERIVE_KEY_CONTEXT).into()
}

/// The key of a context, from the cache of this thread if it is there.
#[cfg(feature = "std")]
pub(crate) fn context_key(context: &str) -> Words {
    CONTEXT_CACHE.with_borrow_mut(|cache| cache.key(context))
}

/// The key of a context.
#[cfg(not(feature = "std"))]
pub(crate) fn context_key(context: &str) -> Words {
    key_words(&hash_derive_key_context(context))
}

#[cfg(feature = "std")]
std::thread_local! {
    static CONTEXT_CACHE: core::cell::RefCell<ContextCache> = const { core::cell::RefCell::new(ContextCache::NONE) };
}

/// The last context of a thread, and its key.
#[cfg(feature = "std")]
struct ContextCache {
    /// The context is the first `len` bytes.
    context: [u8; Self::MAX_CONTEXT_LEN],
    /// `usize::MAX` if no context is remembered.
    len: usize,
    key: Words,
}

#[cfg(feature = "std")]
impl ContextCache {
    /// The length of the longest context that is remembered, in bytes.
    const MAX_CONTEXT_LEN: usize = 128;

    const NONE: Self = ContextCache { context: [0; Self::MAX_CONTEXT_LEN], len: usize::MAX, key: [0; 8] };

    fn key(&mut self, context: &str) -> Words {
        if self.context.get(..self.len) == Some(context.as_bytes()) {
            return self.key;
        }
        let key = key_words(&hash_derive_key_context(context));
        if let Some(slot) = self.context.get_mut(..context.len()) {
            slot.copy_from_slice(context.as_bytes());
            (self.len, self.key) = (context.len(), key);
        }
        key
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_context_is_never_taken_for_another() {
        let long = "x".repeat(ContextCache::MAX_CONTEXT_LEN + 1);
        let contexts = ["", "a", "b", "ab", "a\0", "a", &long, &long[1..], &long[2..], "", &long];
        let mut last = ContextCache::NONE;
        for _ in 0..2 {
            for context in contexts {
                assert_eq!(last.key(context), key_words(&hash_derive_key_context(context)), "{context:?}");
            }
        }
    }
}
