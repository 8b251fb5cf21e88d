//! The place of a subtree in the input and in an encoding of it.

use super::{GroupSize, HEADER_LEN, PARENT_LEN};
use crate::subtree_len::left_subtree_len;

/// A subtree, by the part of the input that it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubtreeSpan {
    /// Bytes of the input before it.
    pub(super) start: u64,
    /// Bytes of the input in it.
    pub(super) len: u64,
    /// Parents that come before it in pre-order.
    parents_before: u64,
}

impl SubtreeSpan {
    pub(super) fn root(content_len: u64) -> Self {
        SubtreeSpan { start: 0, len: content_len, parents_before: 0 }
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.len
    }

    pub(super) fn rank(&self) -> NodeRank {
        if self.parents_before == 0 { NodeRank::Root } else { NodeRank::Inner }
    }

    pub(super) fn is_leaf(&self, group: GroupSize) -> bool {
        self.len <= group.bytes() as u64
    }

    /// The two children of a subtree that is not a leaf.
    pub(super) fn children(&self, group: GroupSize) -> (SubtreeSpan, SubtreeSpan) {
        let left_len = left_subtree_len(self.len);
        let left = SubtreeSpan { len: left_len, parents_before: self.parents_before + 1, ..*self };
        let right = SubtreeSpan {
            start: self.start + left_len,
            len: self.len - left_len,
            parents_before: self.parents_before + group.leaves(left_len),
        };
        (left, right)
    }

    /// The position of its first byte in an outboard encoding. For a combined encoding, add the
    /// length of the input before it.
    pub(super) fn tree_position(&self) -> u64 {
        HEADER_LEN as u64 + PARENT_LEN as u64 * self.parents_before
    }
}

/// Whether a subtree is the root, which is compressed with an additional flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeRank {
    Root,
    Inner,
}
