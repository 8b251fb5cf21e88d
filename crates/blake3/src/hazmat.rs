//! Subtrees: low-level access to the tree, for example for verified streaming or distributed
//! hashing.
//!
//! **Easy to get wrong.** A chaining value is not a digest. A tree that is built in a way that the
//! specification does not allow gives values that no other implementation computes, and may lose
//! collision resistance. Most programs do not need this module.
//!
//! A subtree is a chunk, or a parent with everything below it. In a tree over n bytes, the root's
//! left child covers [`left_subtree_len`]`(n)` bytes, and the right one the rest (specification,
//! section 2.1).

use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::functions;
use crate::keyed_kernel::{KeyedKernel, join};
use crate::output::{Output, OutputReader};
use crate::spec::{CHUNK_LEN, DERIVE_KEY_MATERIAL, OUT_LEN, ROOT, key_words};

pub use crate::derive_key::hash_derive_key_context;
pub use crate::spec::{ContextKey, Mode};
pub use crate::spec::{left_subtree_len, max_subtree_len};

/// The chaining value of a subtree that is not the root.
pub type ChainingValue = [u8; OUT_LEN];

impl Mode<'_> {
    fn keyed_kernel(&self) -> KeyedKernel {
        KeyedKernel::new(functions(), &self.key_words(), self.flags())
    }
}

/// Operations of a [`Hasher`] on subtrees.
pub trait HasherExt {
    /// Like [`Hasher::new_derive_key`], with a context that is already hashed.
    fn new_from_context_key(context_key: &ContextKey) -> Self;

    /// Makes this the hasher of a subtree that begins `offset` bytes into the whole input.
    ///
    /// # Panics
    ///
    /// If the offset is not a multiple of 1024, or input has been hashed already.
    fn set_input_offset(&mut self, offset: u64) -> &mut Self;

    /// The chaining value of the subtree.
    ///
    /// # Panics
    ///
    /// If there was no input: an empty subtree can only be the root.
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

/// The chaining value of a parent that is not the root.
///
/// ```
/// use bulla_blake3::Hasher;
/// use bulla_blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root};
///
/// let left = Hasher::new().update(&[7; 1024]).finalize_non_root();
/// let right = Hasher::new().set_input_offset(1024).update(&[7; 1024]).finalize_non_root();
/// let both = Hasher::new().update(&[7; 2048]).finalize_non_root();
/// assert_eq!(merge_subtrees_non_root(&left, &right, Mode::Hash), both);
/// ```
pub fn merge_subtrees_non_root(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> ChainingValue {
    mode.keyed_kernel().parent(&join(left, right), 0)
}

/// The digest of a tree of two subtrees.
///
/// ```
/// use bulla_blake3::Hasher;
/// use bulla_blake3::hazmat::{HasherExt, Mode, left_subtree_len, merge_subtrees_root};
///
/// let input = [7; 5000];
/// let (left, right) = input.split_at(left_subtree_len(5000) as usize);
/// let left_value = Hasher::new().update(left).finalize_non_root();
/// let right_value =
///     Hasher::new().set_input_offset(left.len() as u64).update(right).finalize_non_root();
/// let digest = merge_subtrees_root(&left_value, &right_value, Mode::Hash);
/// assert_eq!(digest, bulla_blake3::hash(&input));
/// ```
pub fn merge_subtrees_root(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> Hash {
    Hash::from_bytes(mode.keyed_kernel().parent(&join(left, right), ROOT))
}

/// The digest, of any length, of a tree of two subtrees.
///
/// ```
/// use bulla_blake3::Hasher;
/// use bulla_blake3::hazmat::{HasherExt, Mode, merge_subtrees_root_xof};
///
/// let left = Hasher::new().update(&[7; 1024]).finalize_non_root();
/// let right = Hasher::new().set_input_offset(1024).update(&[7; 1024]).finalize_non_root();
/// let mut bytes = [0; 100];
/// merge_subtrees_root_xof(&left, &right, Mode::Hash).fill(&mut bytes);
/// assert_eq!(bytes[..32], *bulla_blake3::hash(&[7; 2048]).as_bytes());
/// ```
pub fn merge_subtrees_root_xof(left: &ChainingValue, right: &ChainingValue, mode: Mode<'_>) -> OutputReader {
    OutputReader::new(Output::of_parent(&mode.keyed_kernel(), &join(left, right)))
}
