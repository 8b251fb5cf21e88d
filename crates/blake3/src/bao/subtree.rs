//! A subtree that is completely in memory: its values level by level, its nodes in pre-order.

use super::walk::NodeRank;
use super::{EncodingLayout, GroupSize, PARENT_LEN};
use crate::hazmat::{Mode, merge_subtrees_non_root, merge_subtrees_root};
use crate::kernel::functions;
use crate::keyed_kernel::{KeyedKernel, Value};
use crate::plan::Prefetch;
use crate::spec::IV;
use crate::tree::LevelValues;
use crate::{BLOCK_LEN, CHUNK_LEN};
use std::ops::Range;

/// The most bytes of input that are taken at a time: enough for every kernel's width, and few
/// enough to stay in the second-level cache together with their encoding.
pub(super) const MAX_SUBTREE_LEN: usize = 256 * 1024;

/// Levels of a subtree of that many bytes, the chunks and the topmost parent included.
const LEVELS: usize = (MAX_SUBTREE_LEN / CHUNK_LEN).ilog2() as usize + 1;

const _: () = assert!(GroupSize::MAX.bytes() <= MAX_SUBTREE_LEN);

/// A node of an encoding.
pub(super) enum EncodingNode {
    /// The parent of the value with this number and the next one.
    Parent(usize),
    /// These bytes of the subtree's input.
    Leaf(Range<usize>),
}

/// The shape of a subtree, and where [`SubtreeValues`] has the values of each level.
///
/// A level contains the parents of the values on the level below; an odd value at the end moves up
/// unchanged. So value i of a level belongs to the chunks from i * 2^level on, even if there are
/// fewer than 2^level.
pub(super) struct SubtreeShape {
    len: usize,
    group: GroupSize,
    /// The number of the first value of each level.
    first: [usize; LEVELS + 1],
    /// The level of the topmost node.
    top: usize,
}

impl SubtreeShape {
    /// The shape of a subtree over `len` bytes.
    pub(super) fn new(len: usize, group: GroupSize) -> Self {
        assert!(len <= MAX_SUBTREE_LEN);
        let mut first = [0; LEVELS + 1];
        let (mut n, mut top) = (len.div_ceil(CHUNK_LEN).max(1), 0);
        first[1] = n;
        while n > 1 {
            n = n.div_ceil(2);
            top += 1;
            first[top + 1] = first[top] + n;
        }
        SubtreeShape { len, group, first, top }
    }

    /// The length of the input in bytes.
    pub(super) fn content_len(&self) -> usize {
        self.len
    }

    /// The length of the parents in bytes.
    pub(super) fn parents_len(&self) -> usize {
        PARENT_LEN * (self.group.leaves(self.len as u64) - 1) as usize
    }

    /// The length of an encoding in bytes, without its header.
    pub(super) fn encoded_len(&self, layout: EncodingLayout) -> usize {
        match layout {
            EncodingLayout::Combined => self.len + self.parents_len(),
            EncodingLayout::Outboard => self.parents_len(),
        }
    }

    /// Calls `visit` with each node in pre-order.
    pub(super) fn pre_order(&self, mut visit: impl FnMut(EncodingNode)) {
        self.visit(self.top, 0, &mut visit);
    }

    fn visit(&self, level: usize, i: usize, visit: &mut impl FnMut(EncodingNode)) {
        if level <= usize::from(self.group.chunk_log) {
            let bytes = CHUNK_LEN << level;
            return visit(EncodingNode::Leaf(bytes * i..self.len.min(bytes * (i + 1))));
        }
        let left = self.first[level - 1] + 2 * i;
        let has_right = left + 1 < self.first[level];
        if has_right {
            visit(EncodingNode::Parent(left));
        }
        self.visit(level - 1, 2 * i, visit);
        if has_right {
            self.visit(level - 1, 2 * i + 1, visit);
        }
    }
}

/// The chaining values of a subtree, level by level. Its memory is reused from one subtree to the
/// next.
#[derive(Clone)]
pub(super) struct SubtreeValues {
    values: Vec<Value>,
    /// Where the input comes from.
    prefetch: Prefetch,
}

impl SubtreeValues {
    pub(super) fn new(prefetch: Prefetch) -> Self {
        SubtreeValues { values: Vec::new(), prefetch }
    }

    /// Computes the values of the subtree over `content`, which begins `start` bytes into the
    /// input. Returns the value of its topmost node.
    pub(super) fn compute(&mut self, content: &[u8], start: u64, rank: NodeRank) -> Value {
        let SubtreeValues { values, prefetch } = self;
        values.clear();
        if content.len() <= CHUNK_LEN && rank == NodeRank::Root {
            return crate::hash(content).into();
        }
        values.reserve(2 * content.len().div_ceil(CHUNK_LEN) + LEVELS);
        push_chunks(content, start / CHUNK_LEN as u64, *prefetch, values);
        let mut level = 0;
        while values.len() - level > 2 {
            let below = level;
            level = values.len();
            push_parents(values, below);
        }
        match values[level..] {
            [left, right] => merge(&left, &right, rank),
            _ => values[level],
        }
    }

    /// The parent of a value and the next one, as in an encoding.
    pub(super) fn parent(&self, left: usize) -> &[u8] {
        self.values[left..][..2].as_flattened()
    }

    /// Appends the encoding of the subtree over `content` to `out`; returns the value of its
    /// topmost node.
    pub(super) fn encode(
        &mut self,
        (content, start, rank): (&[u8], u64, NodeRank),
        (layout, group): (EncodingLayout, GroupSize),
        out: &mut Vec<u8>,
    ) -> Value {
        let value = self.compute(content, start, rank);
        SubtreeShape::new(content.len(), group).pre_order(|node| match node {
            EncodingNode::Parent(left) => out.extend_from_slice(self.parent(left)),
            EncodingNode::Leaf(range) if layout == EncodingLayout::Combined => {
                out.extend_from_slice(&content[range])
            }
            EncodingNode::Leaf(_) => {}
        });
        value
    }
}

/// The value of a parent.
pub(super) fn merge(left: &Value, right: &Value, rank: NodeRank) -> Value {
    match rank {
        NodeRank::Root => merge_subtrees_root(left, right, Mode::Hash).into(),
        NodeRank::Inner => merge_subtrees_non_root(left, right, Mode::Hash),
    }
}

/// The two values in a parent.
pub(super) fn split(parent: &[u8; BLOCK_LEN]) -> (Value, Value) {
    let (values, _) = parent.as_chunks();
    (values[0], values[1])
}

/// Appends the chaining values of the chunks of `input`. Only the last chunk may be short, and none
/// is the root. `counter` is the first chunk's counter.
pub(super) fn push_chunks(input: &[u8], mut counter: u64, prefetch: Prefetch, values: &mut Vec<Value>) {
    let kernel = KeyedKernel::new(functions(), &IV, 0);
    for group in input.chunks(kernel.lanes() * CHUNK_LEN) {
        let mut level = LevelValues::new();
        level.hash_chunks(&kernel, group, counter, prefetch);
        values.extend_from_slice(level.as_slice());
        counter += kernel.lanes() as u64;
    }
}

/// Appends the parents of the pairs of values that begin at `from`, and an odd last value
/// unchanged.
pub(super) fn push_parents(values: &mut Vec<Value>, from: usize) {
    let kernel = KeyedKernel::new(functions(), &IV, 0);
    let end = values.len();
    for first in (from..end).step_by(2 * kernel.lanes()) {
        let mut level = LevelValues::new();
        level.hash_pairs(&kernel, &values[first..end.min(first + 2 * kernel.lanes())]);
        values.extend_from_slice(level.as_slice());
    }
    if (end - from) % 2 == 1 {
        values.push(values[end - 1]);
    }
}
