//! The machine code of the kernels, read back from a compiled file.
//!
//! A kernel is a generic body inlined into one function per instruction set. If one call is not
//! inlined, every intrinsic becomes a call, and the kernel is fifty times slower, although its
//! results are right. So rules and budgets apply to the code itself.
//!
//! - [`image`] builds the libraries, and reads functions from an executable, an object file or a
//!   library.
//! - [`count`] counts a function's instructions.
//! - [`kernels`] finds the kernels, and has the rules for them.
//! - [`budget`] compares the counts with those recorded in `lab/kernels.toml`.
//! - [`secrets`] finds the steps of Ed25519 that process secrets, and follows the secrets in them.

pub mod budget;
pub mod count;
pub mod image;
pub mod kernels;
pub mod secrets;
