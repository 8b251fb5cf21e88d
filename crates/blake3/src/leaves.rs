//! The plan by which few chunks are taken in: what the tree does, and what the report says.

use crate::{BLOCK_LEN, CHUNK_LEN};

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
