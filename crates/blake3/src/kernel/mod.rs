//! The kernels of this machine, the one in use, and how to force one.
//!
//! The kernel is chosen once, at the first hash of the process: the best that the CPU supports, or
//! the one that the environment variable `BULLA_BLAKE3_FORCE_KERNEL` names (with the standard
//! library only). It covers every operation: one-shot and streaming hashing, keyed and derived,
//! many inputs, extended output and parents.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[allow(dead_code, reason = "a feature leaves it out of `COMPILED`")]
mod aarch64;
// The arrays have the layout of a little-endian machine's words.
#[cfg(all(test, target_endian = "little"))]
mod arrays;
#[cfg(any(
    all(target_arch = "x86_64", target_feature = "sse2"),
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"),
    all(target_arch = "powerpc64", target_endian = "little"),
    target_arch = "s390x",
    all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")),
    all(test, target_endian = "little")
))]
mod define;
mod portable;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
mod powerpc64;
mod report;
#[cfg(target_arch = "s390x")]
mod s390x;
mod table;
// The WebAssembly module in the npm package consists of two of its functions.
#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
#[doc(hidden)]
pub mod wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(dead_code, reason = "features leave kernels out of `COMPILED`")]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_rounds;

pub use report::{KernelReport, Operation, ReportLine, report};
pub(crate) use table::Functions;
pub use table::{KernelForm, KernelShape};

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[&Functions] = &[
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64::AVX512_FULL,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64::AVX512_HALF,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64::AVX512_SLOW_CHAINS,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx2"))
    ))]
    &x86_64::AVX2,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_sse41"))
    ))]
    &x86_64::SSE41,
    #[cfg(all(
        target_arch = "aarch64",
        target_feature = "neon",
        target_endian = "little",
        any(feature = "every_kernel", not(feature = "no_neon"))
    ))]
    &aarch64::NEON,
    #[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
    &powerpc64::VSX,
    #[cfg(target_arch = "s390x")]
    &s390x::VECTOR,
    #[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
    &wasm32::SIMD128,
    &portable::PORTABLE,
];

bulla_simd::kernel_choice! {
    algorithm: "BLAKE3",
    variable: #[cfg(feature = "std")] "BULLA_BLAKE3_FORCE_KERNEL",
    table: Functions,
    kernels: COMPILED,
}

/// The functions of the kernel in use. After the first call, this is a single load.
#[inline(always)]
pub(crate) fn functions() -> &'static Functions {
    active().0
}
