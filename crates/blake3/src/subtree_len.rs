//! The lengths of subtrees (specification, section 2.1).

use crate::spec::CHUNK_LEN;

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
pub fn left_subtree_len(input_len: u64) -> u64 {
    assert!(input_len > CHUNK_LEN as u64, "{input_len} bytes are one chunk, which has no children");
    1 << (input_len - 1).ilog2()
}
