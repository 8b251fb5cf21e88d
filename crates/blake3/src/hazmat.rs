//! Subtrees: low-level access for those who build verified streaming, distributed hashing and the like on the tree.
//!
//! **Easy to get wrong.** A chaining value is not a digest; a tree that is put together in a way the specification does not
//! allow gives values that no other implementation knows, and may lose collision resistance. Most programs want nothing from here.
//!
//! A subtree is a chunk, or a parent with everything below it. In a tree over n bytes the left child of a parent covers
//! [`left_subtree_len`]`(n)` bytes, the right one the rest (specification, section 2.1).

use crate::kernel::functions;
use crate::oneshot::{digest, key_words};
use crate::output::{Output, OutputReader};
use crate::spec::{DERIVE_KEY_CONTEXT, DERIVE_KEY_MATERIAL, IV, KEYED_HASH, ROOT, Words};
use crate::tree::{Instance, join};
use crate::{CHUNK_LEN, Hash, Hasher, KEY_LEN, OUT_LEN};

/// The chaining value of a subtree that is not the root.
pub type ChainingValue = [u8; OUT_LEN];

/// The key that a key derivation context stands for.
pub type ContextKey = [u8; KEY_LEN];

/// The mode in which the parents of a tree are computed. It must be that of the chunks.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Plain hashing.
    Hash,
    /// Keyed hashing with this key.
    KeyedHash(&'a [u8; KEY_LEN]),
    /// Key derivation with the key of a context: see [`hash_derive_key_context`].
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

    fn instance(&self) -> Instance {
        Instance::new(functions(), &self.key_words(), self.flags())
    }
}

/// What a [`Hasher`] can do beside hashing all of an input.
pub trait HasherExt {
    /// As [`Hasher::new_derive_key`], with the context hashed before.
    fn new_from_context_key(context_key: &ContextKey) -> Self;

    /// Makes this the hasher of a subtree that begins `offset` bytes into the whole input.
    ///
    /// # Panics
    ///
    /// When the offset is not a multiple of 1024, or input has been hashed already.
    fn set_input_offset(&mut self, offset: u64) -> &mut Self;

    /// The chaining value of the subtree.
    ///
    /// # Panics
    ///
    /// When there was no input: an empty subtree can only be the root.
    fn finalize_non_root(&self) -> ChainingValue;
}

impl HasherExt for Hasher {
    fn new_from_context_key(context_key: &ContextKey) -> Self {
        Hasher::with(functions(), &key_words(context_key), DERIVE_KEY_MATERIAL)
    }

    fn set_input_offset(&mut self, offset: u64) -> &mut Self {
        assert_eq!(self.count(), 0, "the input offset must be set before any input");
        assert!(offset.is_multiple_of(CHUNK_LEN as u64), "offset {offset} is not a multiple of {CHUNK_LEN}");
        self.offset = offset / CHUNK_LEN as u64;
        self
    }

    fn finalize_non_root(&self) -> ChainingValue {
        assert_ne!(self.count(), 0, "an empty subtree can only be the root");
        Hasher::finalize_non_root(self)
    }
}

/// # Panics
///
/// When `count + more` bytes do not fit into a subtree that begins at chunk `offset`.
pub(crate) fn check_subtree_len(offset: u64, count: u64, more: u64) {
    if let Some(most) = max_subtree_len(offset * CHUNK_LEN as u64) {
        let len = count.saturating_add(more);
        assert!(
            len <= most,
            "the subtree that begins at chunk {offset} holds at most {most} bytes, not {len}"
        );
    }
}

/// The most bytes that a subtree beginning at `input_offset` can have; `None`, without limit, for 0.
///
/// # Panics
///
/// When the offset is not a multiple of 1024.
pub fn max_subtree_len(input_offset: u64) -> Option<u64> {
    assert!(
        input_offset.is_multiple_of(CHUNK_LEN as u64),
        "offset {input_offset} is not a multiple of {CHUNK_LEN}"
    );
    (input_offset != 0).then(|| 1 << input_offset.trailing_zeros())
}

/// The bytes in the left child of a parent that covers `input_len` bytes: the largest power of two of chunks that leaves
/// something for the right one.
///
/// # Panics
///
/// For 1024 bytes and fewer: a chunk has no children.
pub fn left_subtree_len(input_len: u64) -> u64 {
    assert!(input_len > CHUNK_LEN as u64, "{input_len} bytes are one chunk, which has no children");
    1 << (input_len - 1).ilog2()
}

/// The chaining value of a parent that is not the root.
pub fn merge_subtrees_non_root(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> ChainingValue {
    mode.instance().parent(&join(left, right), 0)
}

/// The digest of a tree of two subtrees.
pub fn merge_subtrees_root(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> Hash {
    Hash::from_bytes(mode.instance().parent(&join(left, right), ROOT))
}

/// The digest, of any length, of a tree of two subtrees.
pub fn merge_subtrees_root_xof(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> OutputReader {
    OutputReader::new(Output::of_parent(&mode.instance(), &join(left, right)))
}

/// The key that a context of key derivation stands for: the first of its two steps.
pub fn hash_derive_key_context(context: &str) -> ContextKey {
    digest(functions(), context.as_bytes(), &IV, DERIVE_KEY_CONTEXT).into()
}
