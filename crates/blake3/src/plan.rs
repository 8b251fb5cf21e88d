//! From which sizes on input and output are computed in another way: what the tree does, and what the report of a kernel says.

use crate::spec::{BLOCK_LEN, CHUNK_LEN};

/// Input from here on is expected to come from beyond the caches, and is prefetched.
pub(crate) const FAR: usize = 3 << 20;

/// Up to so many output blocks are made one after the other: as wide as the kernel they would cost more.
pub(crate) const FEW_BLOCKS: usize = 2;

/// A second chunk up to here is hashed after the first: beside it, it would cost more than the blocks it saves.
const SHORT: usize = 2 * BLOCK_LEN;

/// How the chunks of an input of more than one, and at most a group, become chaining values.
pub(crate) enum Leaves {
    /// Two chunks, one after the other.
    InTurn,
    /// So many whole chunks.
    Whole(usize),
    /// So many chunks, of which the last is short.
    Ragged(usize),
    /// A whole group.
    Group,
}

impl Leaves {
    #[inline(always)]
    pub(crate) fn of(lanes: usize, len: usize) -> Self {
        let n = len.div_ceil(CHUNK_LEN);
        let last = len - (n - 1) * CHUNK_LEN;
        match n {
            _ if len == lanes * CHUNK_LEN => Leaves::Group,
            2 if last <= SHORT => Leaves::InTurn,
            _ if last == CHUNK_LEN => Leaves::Whole(n),
            _ => Leaves::Ragged(n),
        }
    }
}
