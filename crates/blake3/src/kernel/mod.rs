//! The kernels of this machine, the one in use, and how to force one.
//!
//! The kernel is chosen once, at the first hash of the process: the best that the CPU supports, or
//! the one that the environment variable `BULLA_BLAKE3_FORCE_KERNEL` names (with the standard
//! library only). It covers every operation: one-shot and streaming hashing, keyed and derived,
//! many inputs, extended output and parents.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[allow(dead_code, reason = "a feature leaves it out of the list in `choice.rs`")]
mod aarch64;
// The arrays have the layout of a little-endian machine's words.
#[cfg(all(test, target_endian = "little"))]
mod arrays;
mod choice;
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
#[allow(dead_code, reason = "features leave kernels out of the list in `choice.rs`")]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(dead_code, reason = "features leave kernels out of the list in `choice.rs`")]
mod x86_64_alone;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_rounds;

pub(crate) use choice::functions;
#[doc(hidden)]
pub use choice::runnable;
pub use choice::{FORCE_VARIABLE, Kernel, UnknownKernel, active, available, forced};
pub use report::{Line, Operation, Report, report};
pub(crate) use table::Functions;
pub use table::{Form, Shape};
