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
mod table;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_columns;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_rows;

#[doc(hidden)]
pub use table::Functions;
use table::Tables;
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
