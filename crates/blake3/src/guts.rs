//! The counterpart of the crate `blake3`'s module `guts`, for programs that were written before
//! [`hazmat`](crate::hazmat). It supports only plain hashing. New programs should use `hazmat`.

use crate::hazmat::{Mode, merge_subtrees_non_root, merge_subtrees_root};
use crate::spec::{CHUNK_END, ROOT};
use crate::{Hash, Hasher};
use arrayvec::ArrayVec;
use core::fmt;

pub use crate::{BLOCK_LEN, CHUNK_LEN};

/// A chunk that is being filled.
#[derive(Clone)]
pub struct ChunkState {
    bytes: ArrayVec<u8, CHUNK_LEN>,
    counter: u64,
}

impl ChunkState {
    /// An empty chunk with this counter: the number of chunks before it.
    pub fn new(chunk_counter: u64) -> Self {
        ChunkState { bytes: ArrayVec::new(), counter: chunk_counter }
    }

    /// The number of bytes in it.
    #[allow(clippy::len_without_is_empty, reason = "the crate `blake3` has none")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes.
    ///
    /// # Panics
    ///
    /// If the chunk then has more than [`CHUNK_LEN`] bytes.
    pub fn update(&mut self, input: &[u8]) -> &mut Self {
        let added = self.bytes.try_extend_from_slice(input);
        assert!(
            added.is_ok(),
            "a chunk holds {CHUNK_LEN} bytes: {} and {} are more",
            self.len(),
            input.len()
        );
        self
    }

    /// The chaining value; as the root, the digest of these bytes alone.
    ///
    /// # Panics
    ///
    /// If it is the root and not chunk number 0.
    pub fn finalize(&self, is_root: bool) -> Hash {
        assert!(!is_root || self.counter == 0, "chunk {} cannot be the root: only chunk 0 can", self.counter);
        let mut hasher = Hasher::new();
        hasher.offset = self.counter;
        let root = if is_root { ROOT } else { 0 };
        Hash::from_bytes(hasher.chunk_value(&self.bytes, CHUNK_END | root))
    }
}

/// Omits the bytes.
impl fmt::Debug for ChunkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkState")
            .field("len", &self.len())
            .field("chunk_counter", &self.counter)
            .finish_non_exhaustive()
    }
}

/// The chaining value of the parent of two others; as the root, the digest.
pub fn parent_cv(left_child: &Hash, right_child: &Hash, is_root: bool) -> Hash {
    let (left, right) = (left_child.as_bytes(), right_child.as_bytes());
    if is_root {
        merge_subtrees_root(left, right, Mode::Hash)
    } else {
        Hash::from_bytes(merge_subtrees_non_root(left, right, Mode::Hash))
    }
}
