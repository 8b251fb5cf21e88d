//! Vectors of 32-bit and 64-bit words for hash kernels: small traits, one thin backend per
//! instruction set, CPU detection, and the choice of a kernel.
//!
//! A kernel is written once, generic over [`Columns`] or [`Rows`]. A backend is a type that
//! implements the dozen operations for one kind of register. The entry of each instruction set is
//! one `#[target_feature]` function, into which the generic body is inlined. Every method here is
//! `#[inline(always)]` and contains only intrinsics or one-line assembly, so that nothing of the
//! traits remains after inlining.
//!
//! On x86-64 the backends need a target whose calling convention has vector registers (`sse2`). The
//! soft-float targets of operating system kernels and firmware do not have them; they get the
//! portable code.
//!
//! # Safety of the methods
//!
//! Every method of the traits is `unsafe` for the same reason: only code that was compiled for a
//! CPU with the type's instruction set, and runs on such a CPU, may call it (see
//! [`cpu::supports`]). If a method takes pointers, its documentation says which memory must be
//! readable or writable.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub mod aarch64;
// For the tests of code that uses vectors: see the module.
#[cfg(target_endian = "little")]
#[doc(hidden)]
pub mod arrays;
pub mod cpu;
mod dispatch;
pub mod lanes;
mod pair;
pub mod scalar;
mod vector;
#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
pub mod wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod x86_64;

pub use dispatch::{DispatchCell, KernelTable};
pub use pair::Pair;
pub use vector::{Columns, Rows, Vector, WordColumns, WordRows};
