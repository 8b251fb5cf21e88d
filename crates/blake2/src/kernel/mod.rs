//! The kernels of this machine, the kernel in use, and how to force one.
//!
//! The crate chooses the kernel once, at the first hash of the process: the best that the CPU
//! supports, or the one that the environment variable `BULLA_BLAKE2_FORCE_KERNEL` names (only with
//! the standard library). The kernel covers both hash functions and every operation: one input,
//! streams, and many inputs. [`Params::kernel`](crate::Params::kernel) selects another kernel for
//! everything made from these parameters.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod aarch64;
// The arrays have the layout of a little-endian machine's words.
#[cfg(all(test, target_endian = "little"))]
pub(crate) mod arrays;
mod portable;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
mod powerpc64;
#[cfg(target_arch = "s390x")]
mod s390x;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_columns;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_rows;

use crate::job::{CompressJob, Finalization, StridedInput};
use bulla_simd::KernelTable;
use bulla_simd::cpu::{self, Isa};

#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use x86_64_rows::{FastRotate, NoRotate, SlowRotate};

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[&Tables] = &[
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_FAST_ROTATE,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_SLOW_ROTATE,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_SLOW_CHAINS,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX2,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::SSE41,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    &aarch64::NEON,
    #[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
    &powerpc64::VSX,
    #[cfg(target_arch = "s390x")]
    &s390x::VECTOR,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    &wasm32::SIMD128,
    &portable::PORTABLE,
];

bulla_simd::kernel_choice! {
    algorithm: "BLAKE2",
    variable: #[cfg(feature = "std")] "BULLA_BLAKE2_FORCE_KERNEL",
    table: Tables,
    kernels: COMPILED,
}

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
/// must support the instruction set (every reference to a table comes from [`available`]),
/// and pointers must be valid as each function requires.
#[doc(hidden)]
pub struct Functions<W: 'static> {
    /// How many inputs `compress_lanes` takes, at most [`MAX_LANES`](crate::job::MAX_LANES).
    pub(crate) lanes: usize,
    /// Compresses one input into the state.
    pub(crate) compress: unsafe fn(&mut [W; 8], StridedInput, [W; 2], Finalization),
    /// Compresses 2 to `lanes` jobs of one stride as far as all of them reach. Moves the jobs with
    /// blocks left to the front, and returns how many there are.
    pub(crate) compress_lanes: unsafe fn(&mut [CompressJob<'_, W>]) -> usize,
}
