//! What a kernel works on, lanes and groups, and the sizes from which on input and output are
//! computed in another way. The tree and the report of a kernel both use these sizes.

use crate::spec::CHUNK_LEN;

/// The largest number of lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;

/// Input of this length or more is expected to be in memory outside the caches, and is prefetched.
pub(crate) const MIN_PREFETCH_LEN: usize = 3 << 20;

/// Up to this many output blocks are computed one after the other: one call of the wide function
/// would cost more.
pub(crate) const MAX_SERIAL_BLOCKS: usize = 2;

/// One of several inputs side by side, of at most 1024 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) counter: u64,
    /// The flags that its last block has in addition to the mode's: `CHUNK_END`, perhaps `ROOT`.
    pub(crate) last_flags: u32,
}

/// A filler for arrays of lanes.
pub(crate) const EMPTY_LANE: Lane<'static> = Lane { input: &[], counter: 0, last_flags: 0 };

/// The chaining values of `lanes` neighbors, in a layout of the kernel that wrote them.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [u32; 128]);

/// How the chunks of an input of more than one chunk, and at most a group, become chaining values.
pub(crate) enum ChunkPlan {
    /// Two chunks, one after the other.
    Serial,
    /// This many whole chunks, side by side.
    EqualLen(usize),
    /// This many chunks side by side, the last of which is short.
    Lanes(usize),
    /// A whole group.
    Group,
}

impl ChunkPlan {
    /// The plan of a kernel with so many lanes, which hashes a second chunk of at most
    /// `serial_tail_max` bytes after the first one.
    #[inline(always)]
    pub(crate) fn new(lanes: usize, serial_tail_max: usize, len: usize) -> Self {
        let n = len.div_ceil(CHUNK_LEN);
        let last = len - (n - 1) * CHUNK_LEN;
        match n {
            _ if len == lanes * CHUNK_LEN => ChunkPlan::Group,
            2 if last <= serial_tail_max => ChunkPlan::Serial,
            _ if last == CHUNK_LEN => ChunkPlan::EqualLen(n),
            _ => ChunkPlan::Lanes(n),
        }
    }
}

/// Whether a kernel prefetches the group after the one that it hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// The input is expected to be in the caches.
    Off,
    /// More input follows, and all of it is expected to be in memory outside the caches.
    On,
}

impl Prefetch {
    #[inline(always)]
    pub(crate) fn for_input(input: &[u8]) -> Self {
        if input.len() >= MIN_PREFETCH_LEN { Prefetch::On } else { Prefetch::Off }
    }
}
