//! Which kernels this machine has, which one is in use, and how one is forced.
//!
//! The kernel is chosen once, at the first use in the process: the best that the CPU supports, or the one that the environment variable
//! `BULLA_ED25519_FORCE_KERNEL` names. The verdicts and the signatures are the same by all of them.

mod choice;
mod cofactored;
mod engine;
mod lanes;
pub(crate) mod machine;
pub(crate) mod portable;
mod prepared;
mod signing;

pub use choice::{FORCE_VARIABLE, Kernel, UnknownKernel, active, available, forced};
pub(crate) use engine::PreparedKey;
