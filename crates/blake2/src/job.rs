//! The arguments of kernels: inputs, and the states that they are compressed into.

use crate::word::Word;

/// One input: `len` bytes in blocks that begin `stride` bytes apart. Each block must be completely
/// readable.
#[derive(Clone, Copy)]
pub(crate) struct StridedInput {
    pub(crate) from: *const u8,
    /// The length in bytes. It is a multiple of the block length and not 0, unless the input is the
    /// last.
    pub(crate) len: usize,
    /// The distance in bytes from the start of a block to the start of the next.
    pub(crate) stride: usize,
}

/// The part of a tree that the end of an input finalizes, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finalization {
    /// More input follows.
    None,
    /// The input ends with the last block of a node.
    LastBlock,
    /// The input ends with the last block of the last node of its level.
    LastNode,
}

impl Finalization {
    /// The finalization flags of the last block.
    #[inline(always)]
    pub(crate) fn flags<W: Word>(self) -> [W; 2] {
        match self {
            Finalization::None => [W::default(); 2],
            Finalization::LastBlock => [W::ONES, W::default()],
            Finalization::LastNode => [W::ONES; 2],
        }
    }
}

/// A state, and the input to compress into it.
pub(crate) struct CompressJob<'a, W> {
    pub(crate) words: &'a mut [W; 8],
    pub(crate) input: StridedInput,
    /// The number of bytes before the input.
    pub(crate) counter: [W; 2],
    pub(crate) last: Finalization,
}

/// The last block of a step of a job. It may have only `len` bytes.
#[derive(Clone, Copy)]
pub(crate) struct StepEnd<W> {
    pub(crate) from: *const u8,
    pub(crate) len: usize,
    /// The number of bytes up to its end.
    pub(crate) counter: [W; 2],
    pub(crate) flags: [W; 2],
}

impl<W: Word> CompressJob<'_, W> {
    /// The number of blocks left; at least 1.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.input.len.div_ceil(W::BLOCK).max(1)
    }

    /// How many blocks the job can go together with others: only the last one may wrap the
    /// counter's low word.
    #[inline(always)]
    pub(crate) fn joint_blocks(&self) -> usize {
        self.blocks().min(W::blocks_to_carry(self.counter).saturating_add(1))
    }

    /// Skips this many blocks, which were compressed. Returns whether more are left.
    #[inline(always)]
    pub(crate) fn skip_blocks(&mut self, blocks: usize) -> bool {
        let bytes = blocks * W::BLOCK;
        if self.input.len <= bytes {
            return false;
        }
        self.counter = W::advance(self.counter, bytes);
        self.input.from = self.input.from.wrapping_add(blocks * self.input.stride);
        self.input.len -= bytes;
        true
    }

    /// The last of the next `step` blocks.
    #[inline(always)]
    pub(crate) fn tail(&self, step: usize) -> StepEnd<W> {
        let before = (step - 1) * W::BLOCK;
        let left = self.input.len - before;
        let (len, flags) =
            if left <= W::BLOCK { (left, self.last.flags()) } else { (W::BLOCK, Finalization::None.flags()) };
        let from = self.input.from.wrapping_add((step - 1) * self.input.stride);
        StepEnd { from, len, counter: W::advance(W::advance(self.counter, before), len), flags }
    }
}

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;
