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
    /// One step of 2 to `lanes` inputs, of this many blocks and one more.
    pub(crate) lanes_of: unsafe fn(&mut [Lane<W>], Step),
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

/// How far all lanes go together: `blocks` blocks that are like any other, and then one that may differ from lane to lane.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) blocks: usize,
    /// Bytes from the start of a block to that of the next.
    pub(crate) stride: usize,
}

/// An input beside others. Its blocks, and the bytes of its tail, must be readable.
pub(crate) struct Lane<W> {
    pub(crate) record: Record<W>,
    /// The first of the ordinary blocks.
    pub(crate) from: *const u8,
    /// The block after these, of which only so many bytes are there.
    pub(crate) tail: *const u8,
    pub(crate) tail_len: usize,
}

/// The numbers of a lane, a word each, of the size of a block: kernels read the records of all lanes as they read blocks.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record<W> {
    /// The state.
    pub(crate) words: [W; 8],
    /// Bytes before the ordinary blocks. Its low word does not wrap in these.
    pub(crate) counter: [W; 2],
    /// Bytes up to the end of the tail.
    pub(crate) tail_counter: [W; 2],
    /// Finalisation flags of the tail.
    pub(crate) flags: [W; 2],
    pub(crate) unused: [W; 2],
}

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;
