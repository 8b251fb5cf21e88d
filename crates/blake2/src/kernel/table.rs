//! What a kernel is to the rest of the crate: tables of functions.

use crate::variant::Word;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use bulla_simd::cpu;
use bulla_simd::cpu::Isa;

/// Both hash functions of one kernel.
pub(crate) struct Tables {
    pub(crate) isa: Isa,
    pub(crate) tuning: Tuning,
    pub(crate) blake2b: &'static Functions<u64>,
    pub(crate) blake2s: &'static Functions<u32>,
}

/// Which of several kernels for one instruction set is the right one for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// There is only this one.
    Only,
    /// AVX-512 whose rotates take one cycle.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    FastRotate,
    /// AVX-512 whose rotates take two cycles.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    SlowRotate,
}

impl Tuning {
    /// Whether this CPU is one that it is meant for.
    pub(crate) fn fits(self) -> bool {
        match self {
            Tuning::Only => true,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::FastRotate => !cpu::has_half_width_avx512(),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::SlowRotate => cpu::has_half_width_avx512(),
        }
    }
}

/// The functions of one kernel for words of one size. All are unsafe for the same reasons: the CPU must support the instruction
/// set (every reference to a table comes from [`super::available`]), and pointers must be valid as each function says.
pub struct Functions<W: 'static> {
    /// How many inputs `lanes_of` takes, at most [`MAX_LANES`].
    pub(crate) lanes: usize,
    /// Compresses one input into the state.
    pub(crate) compress: unsafe fn(&mut [W; 8], Input, [W; 2], Last),
    /// Takes 2 to `lanes` jobs of one stride as far as all of them go. Those that have more are moved to the front; it returns how many.
    pub(crate) lanes_of: unsafe fn(&mut [Job<'_, W>]) -> usize,
}

/// One input: `len` bytes, whose blocks begin `stride` bytes apart. All of each must be readable.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) from: *const u8,
    /// Bytes. A multiple of the block length, and not 0, unless the input is the last.
    pub(crate) len: usize,
    /// Bytes from the start of a block to that of the next.
    pub(crate) stride: usize,
}

/// Whether an input is the end of what a state hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// More follows.
    No,
    /// The last block of a node.
    Block,
    /// The last block of the last node of its level.
    Node,
}

impl Last {
    /// The finalisation flags of the last block.
    #[inline(always)]
    pub(crate) fn flags<W: Word>(self) -> [W; 2] {
        match self {
            Last::No => [W::default(); 2],
            Last::Block => [W::ONES, W::default()],
            Last::Node => [W::ONES; 2],
        }
    }
}

/// A state and what is to be compressed into it.
pub(crate) struct Job<'a, W> {
    pub(crate) words: &'a mut [W; 8],
    pub(crate) input: Input,
    /// Bytes before the input.
    pub(crate) counter: [W; 2],
    pub(crate) last: Last,
}

/// The last block of a step of a job: only `len` bytes of it may be there.
#[derive(Clone, Copy)]
pub(crate) struct Tail<W> {
    pub(crate) from: *const u8,
    pub(crate) len: usize,
    /// Bytes up to its end.
    pub(crate) counter: [W; 2],
    pub(crate) flags: [W; 2],
}

impl<W: Word> Job<'_, W> {
    /// Blocks that are left; at least 1.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.input.len.div_ceil(W::BLOCK).max(1)
    }

    /// How far the job can go with others: its tail is the only block that may wrap the counter's low word.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.blocks().min(W::blocks_to_carry(self.counter).saturating_add(1))
    }

    /// Passes over this many blocks, which were compressed; whether more are left.
    #[inline(always)]
    pub(crate) fn pass(&mut self, blocks: usize) -> bool {
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
    pub(crate) fn tail(&self, step: usize) -> Tail<W> {
        let before = (step - 1) * W::BLOCK;
        let left = self.input.len - before;
        let (len, flags) =
            if left <= W::BLOCK { (left, self.last.flags()) } else { (W::BLOCK, Last::No.flags()) };
        let from = self.input.from.wrapping_add((step - 1) * self.input.stride);
        Tail { from, len, counter: W::advance(W::advance(self.counter, before), len), flags }
    }
}

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;
