//! What a kernel is to the rest of the crate: tables of functions.

use crate::job::{Input, Job, Last};
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
/// set (every reference to a table comes from [`super::available`]), and pointers must be valid as each function requires.
pub struct Functions<W: 'static> {
    /// How many inputs `lanes_of` takes, at most [`MAX_LANES`](crate::job::MAX_LANES).
    pub(crate) lanes: usize,
    /// Compresses one input into the state.
    pub(crate) compress: unsafe fn(&mut [W; 8], Input, [W; 2], Last),
    /// Takes 2 to `lanes` jobs of one stride as far as all of them go. Those that have more are moved to the front; it returns how many.
    pub(crate) lanes_of: unsafe fn(&mut [Job<'_, W>]) -> usize,
}
