//! The live state of a hasher: finished subtrees. The bytes in the window are not part of it.

use crate::areas::values;
use crate::kernel::KeyedKernel;
use crate::spec::{CHUNK_LEN, Value};
use crate::trap::found;
use crate::tree::{Node, join};

/// The most subtrees that can be side by side: one per bit of a chunk count, and one that is not merged yet.
const STACK: usize = 55;

/// Finished subtrees, the largest first. Neighbors of equal size merge only when the next subtree comes, because their
/// parent might be the root.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct State {
    pub(crate) kernel: KeyedKernel,
    len: u32,
    /// The number of chunks in the subtrees.
    pub(crate) chunks: u64,
    /// The counter of the first chunk: 0, except for a subtree.
    pub(crate) offset: u64,
    stack: [Value; STACK],
}

impl State {
    /// All zeros.
    pub(crate) const NONE: Self = State {
        kernel: KeyedKernel { key: [0; 8], flags: 0 },
        len: 0,
        chunks: 0,
        offset: 0,
        stack: [[0; 32]; STACK],
    };

    /// A state without input.
    pub(crate) fn new(kernel: KeyedKernel, offset: u64) -> Self {
        State { kernel, offset, ..Self::NONE }
    }

    /// The subtrees' chaining values.
    pub(crate) fn values(&self) -> &[Value] {
        &self.stack[..(self.len as usize).min(STACK)]
    }

    /// Adds a subtree of `chunks` chunks, a power of two that divides the number of chunks before it.
    pub(crate) fn push(&mut self, value: &Value, chunks: u64) {
        self.merge(0);
        self.put(value);
        self.chunks += chunks;
    }

    /// Adds a value without knowing its subtree.
    pub(crate) fn put(&mut self, value: &Value) {
        *found(self.stack.get_mut(self.len as usize)) = *value;
        self.len += 1;
    }

    /// Merges neighbors of equal size, until there are at most `spare` more subtrees than set bits in the chunk count.
    pub(crate) fn merge(&mut self, spare: u32) {
        while self.len > self.chunks.count_ones() + spare {
            let [.., left, right] = self.values() else { return };
            let value = self.kernel.parent(&join(left, right));
            self.len -= 2;
            self.put(&value);
        }
    }

    /// The most chunks, up to 64, that may follow as one subtree, complete or not.
    fn room(&self) -> usize {
        1 << self.chunks.trailing_zeros().min(6)
    }

    /// Takes whole chunks, subtree by subtree, each as its two halves.
    pub(crate) fn absorb(&mut self, mut input: &[u8]) {
        let values = values();
        while !input.is_empty() {
            let fits = 1 << (usize::BITS - 1 - (input.len() / CHUNK_LEN).leading_zeros());
            let (subtree, rest) = found(input.split_at_checked(CHUNK_LEN * self.room().min(fits)));
            let chunks = self.kernel.leaves(subtree, self.offset + self.chunks, values);
            let n = self.kernel.ascend(values, chunks, 2);
            for value in found(values.get(..n)) {
                self.push(value, (chunks / n) as u64);
            }
            input = rest;
        }
    }

    /// The root of the tree over the state and `held`.
    pub(crate) fn root(mut self, mut held: &[u8]) -> Node {
        if self.chunks == 0 {
            return self.kernel.root(held);
        }
        while held.len() > CHUNK_LEN * self.room() {
            let (subtree, rest) = found(held.split_at_checked(CHUNK_LEN * self.room()));
            self.absorb(subtree);
            held = rest;
        }
        let mut right = if held.is_empty() {
            self.len -= 1;
            *found(self.stack.get(self.len as usize))
        } else {
            self.merge(0);
            let values = values();
            let n = self.kernel.leaves(held, self.offset + self.chunks, values);
            self.kernel.ascend(values, n, 1);
            values[0]
        };
        let [first, others @ ..] = self.values() else { return Node::NONE };
        for left in others.iter().rev() {
            right = self.kernel.parent(&join(left, &right));
        }
        self.kernel.node(first, &right)
    }
}
