//! The sizes from which on input and output are computed in another way. The tree and the report of
//! a kernel both use them.

use crate::spec::CHUNK_LEN;

/// Longer input is expected to be in memory outside the caches, and is prefetched.
pub(crate) const FAR: usize = 3 << 20;

/// Up to this many output blocks are computed one after the other: one call of the wide function
/// would cost more.
pub(crate) const FEW_BLOCKS: usize = 2;

/// How the chunks of an input of more than one, and at most a group, become chaining values.
pub(crate) enum Leaves {
    /// Two chunks, one after the other.
    InTurn,
    /// This many whole chunks.
    Whole(usize),
    /// This many chunks; the last one is short.
    Ragged(usize),
    /// A whole group.
    Group,
}

impl Leaves {
    /// For a kernel of that many lanes, which hashes a second chunk of at most `in_turn` bytes
    /// after the first one.
    #[inline(always)]
    pub(crate) fn of(lanes: usize, in_turn: usize, len: usize) -> Self {
        let n = len.div_ceil(CHUNK_LEN);
        let last = len - (n - 1) * CHUNK_LEN;
        match n {
            _ if len == lanes * CHUNK_LEN => Leaves::Group,
            2 if last <= in_turn => Leaves::InTurn,
            _ if last == CHUNK_LEN => Leaves::Whole(n),
            _ => Leaves::Ragged(n),
        }
    }
}

/// Where the input is expected to be: in the caches, or in far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    Near,
    /// More input follows that is in far memory too: a kernel prefetches the next group.
    Far,
}

impl Distance {
    #[inline(always)]
    pub(crate) fn of(input: &[u8]) -> Self {
        if input.len() >= FAR { Distance::Far } else { Distance::Near }
    }
}
