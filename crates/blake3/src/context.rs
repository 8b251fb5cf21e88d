//! The context keys of key derivation.
//!
//! A program uses few contexts, each many times. With the standard library, each thread remembers
//! the last context and its key; neither is a secret. A comparison takes a tenth of the time of
//! hashing the context again.

use crate::kernel::{Functions, functions};
use crate::mode::ContextKey;
use crate::oneshot::digest;
use crate::spec::{DERIVE_KEY_CONTEXT, IV, Words, key_words};

/// The key of a key derivation context: the first of the two steps of key derivation.
pub fn hash_derive_key_context(context: &str) -> ContextKey {
    hash_raw_context(functions(), context.as_bytes())
}

/// The key of a context that need not be UTF-8.
pub(crate) fn hash_raw_context(functions: &'static Functions, context: &[u8]) -> ContextKey {
    digest(functions, context, &IV, DERIVE_KEY_CONTEXT).into()
}

/// The key of a context.
#[cfg(feature = "std")]
pub(crate) fn context_key(context: &str) -> Words {
    LAST.with_borrow_mut(|last| last.key(context))
}

/// The key of a context.
#[cfg(not(feature = "std"))]
pub(crate) fn context_key(context: &str) -> Words {
    key_words(&hash_derive_key_context(context))
}

#[cfg(feature = "std")]
std::thread_local! {
    static LAST: core::cell::RefCell<ContextCache> = const { core::cell::RefCell::new(ContextCache::NONE) };
}

/// A context and its key.
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
        if let Some(room) = self.context.get_mut(..context.len()) {
            room.copy_from_slice(context.as_bytes());
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
