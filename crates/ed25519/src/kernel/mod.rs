//! The kernels of this machine, the kernel in use, and how to force one.
//!
//! The crate chooses the kernel once, at the first use in the process: the best that the CPU
//! supports, or the one that the environment variable `BULLA_ED25519_FORCE_KERNEL` names. All
//! kernels give the same verdicts and signatures.

mod choice;
#[cfg(any(test, lanes))]
mod cofactored;
mod encodings;
mod engine;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod fours;
mod halved;
#[cfg(any(test, lanes))]
mod lanes;
#[cfg(any(test, lanes))]
pub(crate) mod machine;
pub(crate) mod portable;
#[cfg(any(test, lanes))]
mod prepared;
#[cfg(any(test, lanes))]
mod signing;
#[cfg(any(test, lanes))]
mod single;
#[cfg(test)]
mod stack;

pub use choice::{FORCE_VARIABLE, Kernel, UnknownKernel, active, available, forced};
pub(crate) use engine::PreparedKey;
