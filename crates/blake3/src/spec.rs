//! The BLAKE3 specification, section 2: sizes, words, flags, the order of message words, the modes,
//! and the lengths of subtrees.

/// Bytes in a digest.
pub const OUT_LEN: usize = 32;

/// Bytes in a key.
pub const KEY_LEN: usize = 32;

/// Bytes in a block: the input of one compression.
pub const BLOCK_LEN: usize = 64;

/// Bytes in a chunk: a leaf of the tree.
pub const CHUNK_LEN: usize = 1024;

/// Eight words: a chaining value, a key, or the initialization vector.
pub(crate) type Words = [u32; 8];

/// Initialization vector (table 1).
pub(crate) const IV: Words =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Flags (table 3).
pub(crate) const CHUNK_START: u32 = 1;
pub(crate) const CHUNK_END: u32 = 1 << 1;
pub(crate) const PARENT: u32 = 1 << 2;
pub(crate) const ROOT: u32 = 1 << 3;
pub(crate) const KEYED_HASH: u32 = 1 << 4;
pub(crate) const DERIVE_KEY_CONTEXT: u32 = 1 << 5;
pub(crate) const DERIVE_KEY_MATERIAL: u32 = 1 << 6;

/// Message permutation between rounds (table 2).
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// `SCHEDULE[r][i]` is the message word that round r uses at place i. Places 2j and 2j + 1 belong
/// to the j-th of the round's eight quarter rounds.
pub(crate) const SCHEDULE: [[usize; 16]; 7] = {
    let mut schedule = [[0; 16]; 7];
    let mut round = 0;
    while round < 7 {
        let mut i = 0;
        while i < 16 {
            schedule[round][i] = if round == 0 { i } else { schedule[round - 1][PERMUTATION[i]] };
            i += 1;
        }
        round += 1;
    }
    schedule
};

/// The words of a key.
#[inline]
pub(crate) fn key_words(key: &[u8; KEY_LEN]) -> Words {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The bytes of a key.
pub(crate) fn key_bytes(words: &Words) -> [u8; KEY_LEN] {
    let mut bytes = [0; KEY_LEN];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
}

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

/// # Panics
///
/// If `count + more` bytes do not fit into a subtree that begins at chunk `offset`.
pub(crate) fn check_subtree_len(offset: u64, count: u64, more: u64) {
    if let Some(most) = max_subtree_len(offset * CHUNK_LEN as u64) {
        let len = count.saturating_add(more);
        assert!(
            len <= most,
            "the subtree that begins at chunk {offset} holds at most {most} bytes, not {len}"
        );
    }
}

/// The most bytes that a subtree beginning at `input_offset` can have; `None` for 0, where there is
/// no limit.
///
/// # Panics
///
/// If the offset is not a multiple of 1024.
///
/// ```
/// use bulla_blake3::hazmat::max_subtree_len;
///
/// assert_eq!(max_subtree_len(0), None); // a subtree that begins the input has no limit
/// assert_eq!(max_subtree_len(3072), Some(1024));
/// assert_eq!(max_subtree_len(4096), Some(4096));
/// ```
pub fn max_subtree_len(input_offset: u64) -> Option<u64> {
    assert!(
        input_offset.is_multiple_of(CHUNK_LEN as u64),
        "offset {input_offset} is not a multiple of {CHUNK_LEN}"
    );
    (input_offset != 0).then(|| 1 << input_offset.trailing_zeros())
}

/// The bytes in the left child of a parent that covers `input_len` bytes: the largest power of two
/// of chunks that leaves at least one byte for the right child.
///
/// # Panics
///
/// For 1024 bytes and fewer: a chunk has no children.
///
/// ```
/// use bulla_blake3::hazmat::left_subtree_len;
///
/// assert_eq!(left_subtree_len(1025), 1024);
/// assert_eq!(left_subtree_len(4096), 2048);
/// ```
pub fn left_subtree_len(input_len: u64) -> u64 {
    assert!(input_len > CHUNK_LEN as u64, "{input_len} bytes are one chunk, which has no children");
    1 << (input_len - 1).ilog2()
}
