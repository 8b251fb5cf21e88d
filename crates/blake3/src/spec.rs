//! Constants of the BLAKE3 specification, section 2: sizes, words, flags, and the order of message
//! words.

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
