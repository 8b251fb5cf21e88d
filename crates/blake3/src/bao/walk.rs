//! The walk through a tree in pre-order, which skips unwanted parts, and the place of each subtree
//! in the input and in an encoding.

use super::{GroupSize, HEADER_LEN, PARENT_LEN};
use crate::spec::left_subtree_len;
use std::ops::Range;

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

/// The subtrees still to come, the next one on top, each with its known value. Together they cover
/// the input from the next one to the end.
#[derive(Clone, Debug)]
pub(super) struct Walk<V> {
    stack: Vec<(SubtreeSpan, V)>,
    /// Whether a subtree was skipped whose bytes in the encoding are still to be skipped.
    pub(super) skipped: bool,
}

impl<V: Copy> Walk<V> {
    /// A walk through the whole tree.
    pub(super) fn new(content_len: u64, root: V) -> Self {
        Walk { stack: vec![(SubtreeSpan::root(content_len), root)], skipped: false }
    }

    /// The start of the next subtree; `None` at the end.
    pub(super) fn position(&self) -> Option<u64> {
        self.stack.last().map(|(span, _)| span.start)
    }

    /// Skips subtrees before `wanted`, and returns the next one that contains a byte of it. The
    /// root of an empty input has no bytes, but is always returned.
    pub(super) fn next_in(&mut self, wanted: &Range<u64>) -> Option<(SubtreeSpan, V)> {
        while let Some((span, value)) = self.stack.last().copied() {
            if span.start >= wanted.end {
                return None;
            }
            if span.end() > wanted.start || span.len == 0 {
                return Some((span, value));
            }
            self.skip_next();
            self.skipped = true;
        }
        None
    }

    /// Goes past the next subtree.
    pub(super) fn skip_next(&mut self) {
        self.stack.pop();
    }

    /// Goes into the next subtree, which is not a leaf. Its children have these values.
    pub(super) fn descend(&mut self, group: GroupSize, left: V, right: V) {
        if let Some((span, _)) = self.stack.pop() {
            let children = span.children(group);
            self.stack.extend([(children.1, right), (children.0, left)]);
        }
    }
}

/// The bytes to visit for a range from `start` to `end`: at least one if the input has any, and the
/// last one if the start is beyond the end, because only the last leaf verifies the end of the
/// input (final chunk requirement, Bao specification, section "Decoder").
pub(super) fn wanted(start: u64, end: u64, content_len: u64) -> Range<u64> {
    let start = start.min(content_len.saturating_sub(1));
    start..end.max(start.saturating_add(1))
}
