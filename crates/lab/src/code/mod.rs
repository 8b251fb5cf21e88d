//! The machine code of the kernels, read back from a compiled file.
//!
//! A kernel is a generic body inlined into one function per instruction set. If one call is not
//! inlined, every intrinsic becomes a call, and the kernel is fifty times slower, although its
//! results are right. So rules and budgets apply to the code itself.
//!
//! - [`image`] reads functions from an executable, an object file or a library.
//! - [`count`] counts a function's instructions.
//! - [`kernels`] finds the kernels, and has the rules for them.
//! - [`budget`] compares the counts with those recorded in `lab/kernels.toml`.
//! - [`build`] builds the file to check.
//! - [`secret`] finds the steps of Ed25519 that process secrets, and [`flow`] follows the secrets
//!   in them.

pub mod budget;
pub mod build;
pub mod count;
pub mod flow;
pub mod image;
pub mod kernels;
pub mod secret;
