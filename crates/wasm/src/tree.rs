//! The last compression of a tree, from which all output comes.

use crate::found;
use crate::kernel::{
    BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, KeyedKernel, PARENT, ROOT, Value, Words, words,
};
use crate::memory::values;

/// The last compression of a tree, not computed yet.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Node {
    value: Words,
    block: [u8; BLOCK_LEN],
    len: u32,
    flags: u32,
}

impl Node {
    /// All zeros.
    pub(crate) const NONE: Self = Node { value: [0; 8], block: [0; BLOCK_LEN], len: 0, flags: 0 };

    /// Writes output from a position on. Positions are modulo 2^64.
    pub(crate) fn read(&self, mut position: u64, mut out: &mut [u8]) {
        let kernel = KeyedKernel { key: self.value, flags: self.flags | ROOT };
        let len = (self.len as usize).min(BLOCK_LEN);
        while !out.is_empty() {
            let within = (position % BLOCK_LEN as u64) as usize;
            let mut block = [0; BLOCK_LEN];
            kernel.fold(&self.block[..len], position / BLOCK_LEN as u64, (0, 0), &mut block);
            let n = out.len().min(BLOCK_LEN - within);
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&block[within..within + n]);
            out = later;
            position = position.wrapping_add(n as u64);
        }
    }
}

impl KeyedKernel {
    /// The root of a tree over `input`, at most 64 chunks.
    pub(crate) fn root(&self, input: &[u8]) -> Node {
        if input.len() <= CHUNK_LEN {
            return self.root_of_chunk(input);
        }
        let values = values();
        let n = self.leaves(input, 0, values);
        self.ascend(values, n, 2);
        self.node(&values[0], &values[1])
    }

    fn root_of_chunk(&self, input: &[u8]) -> Node {
        let before = input.len().saturating_sub(1) / BLOCK_LEN * BLOCK_LEN;
        let (before, last) = found(input.split_at_checked(before));
        let mut node =
            Node { value: self.key, len: last.len() as u32, flags: self.flags | CHUNK_END, ..Node::NONE };
        for (to, byte) in node.block.iter_mut().zip(last) {
            *to = *byte;
        }
        if before.is_empty() {
            node.flags |= CHUNK_START;
        } else {
            node.value = words(&self.value(before, 0, (CHUNK_START, 0)));
        }
        node
    }

    /// The parent of two values, not compressed yet.
    pub(crate) fn node(&self, left: &Value, right: &Value) -> Node {
        Node { value: self.key, block: join(left, right), len: BLOCK_LEN as u32, flags: self.flags | PARENT }
    }
}

/// The block of a parent.
pub(crate) fn join(left: &Value, right: &Value) -> [u8; BLOCK_LEN] {
    let mut block = [0; BLOCK_LEN];
    block[..32].copy_from_slice(left);
    block[32..].copy_from_slice(right);
    block
}
