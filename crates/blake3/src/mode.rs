//! The three modes: the key and the flags of every compression.

use crate::spec::{DERIVE_KEY_MATERIAL, IV, KEY_LEN, KEYED_HASH, Words, key_words};

/// The key of a key derivation context.
pub type ContextKey = [u8; KEY_LEN];

/// The mode in which the parents of a tree are computed. It must be the mode of the chunks.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Plain hashing.
    Hash,
    /// Keyed hashing with this key.
    KeyedHash(&'a [u8; KEY_LEN]),
    /// Key derivation with the key of a context: see
    /// [`hash_derive_key_context`](crate::hazmat::hash_derive_key_context).
    DeriveKeyMaterial(&'a ContextKey),
}

impl Mode<'_> {
    pub(crate) fn key_words(&self) -> Words {
        match self {
            Mode::Hash => IV,
            Mode::KeyedHash(key) | Mode::DeriveKeyMaterial(key) => key_words(key),
        }
    }

    pub(crate) fn flags(&self) -> u32 {
        match self {
            Mode::Hash => 0,
            Mode::KeyedHash(_) => KEYED_HASH,
            Mode::DeriveKeyMaterial(_) => DERIVE_KEY_MATERIAL,
        }
    }
}
