//! A kernel as the rest of the crate sees it: tables of functions.

use crate::job::{CompressJob, Finalization, StridedInput};
use bulla_simd::KernelTable;
use bulla_simd::cpu::{self, Isa};

/// Both hash functions of one kernel.
pub(crate) struct Tables {
    pub(crate) isa: Isa,
    pub(crate) tuning: Tuning,
    pub(crate) blake2b: &'static Functions<u64>,
    pub(crate) blake2s: &'static Functions<u32>,
}

impl KernelTable for Tables {
    fn name(&self) -> &'static str {
        self.isa.name()
    }

    fn is_runnable(&self) -> bool {
        cpu::supports(self.isa)
    }

    fn is_suitable(&self) -> bool {
        self.tuning.fits()
    }
}

/// The kind of CPU for which a kernel is the right one, if there are several for one instruction
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// The kernel is the only one for its instruction set.
    Only,
    /// AVX-512 whose rotates take one cycle.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    FastRotate,
    /// AVX-512 whose rotates take two cycles.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    SlowRotate,
    /// AVX-512, but a chain of vector operations takes longer than one on general registers.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    SlowVectorChains,
}

impl Tuning {
    /// Whether this CPU is of that kind.
    pub(crate) fn fits(self) -> bool {
        match self {
            Tuning::Only => true,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::FastRotate => !cpu::has_half_width_avx512() && !cpu::has_slow_vector_chains(),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::SlowRotate => cpu::has_half_width_avx512(),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::SlowVectorChains => cpu::has_slow_vector_chains(),
        }
    }
}

/// The functions of one kernel for words of one size. All are unsafe for the same reasons: the CPU
/// must support the instruction set (every reference to a table comes from [`super::available`]),
/// and pointers must be valid as each function requires.
pub struct Functions<W: 'static> {
    /// How many inputs `compress_lanes` takes, at most [`MAX_LANES`](crate::job::MAX_LANES).
    pub(crate) lanes: usize,
    /// Compresses one input into the state.
    pub(crate) compress: unsafe fn(&mut [W; 8], StridedInput, [W; 2], Finalization),
    /// Compresses 2 to `lanes` jobs of one stride as far as all of them reach. Moves the jobs with
    /// blocks left to the front, and returns how many there are.
    pub(crate) compress_lanes: unsafe fn(&mut [CompressJob<'_, W>]) -> usize,
}
