//! The machine code of the kernels: what the compiler made of them, read back from a compiled file.
//!
//! A kernel is a generic body inlined into one function per instruction set. When one inline is missed, every intrinsic becomes a call,
//! and the kernel is fifty times slower while it still computes the right thing. So the code itself is held to rules and budgets.
//!
//! - [`image`] reads functions from an executable, an object file or a library.
//! - [`count`] counts what a function consists of.
//! - [`kernels`] knows the kernels: where they are, and what must be true of them.
//! - [`budget`] holds the counts to those that are recorded in `lab/kernels.toml`.
//! - [`build`] makes the file that is read.
//! - [`secret`] reads the steps of Ed25519 that see secrets, and [`flow`] follows the secrets in them.

pub mod budget;
pub mod build;
pub mod count;
pub mod flow;
pub mod image;
pub mod kernels;
pub mod secret;
