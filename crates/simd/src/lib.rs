//! Vectors of 32-bit and 64-bit words for hash kernels: small traits, one thin backend per instruction set, CPU
//! detection, and the cell that holds the chosen kernel.
//!
//! A kernel is written once, generic over [`Columns`] or [`Rows`]; a backend is a type that says how the dozen
//! operations are done on one kind of register. The entry of each instruction set is one
//! `#[target_feature]` function into which the generic body is inlined: every method here is
//! `#[inline(always)]` and holds intrinsics or one-line assembly only, so that after inlining nothing is left of the traits.
//!
//! On x86-64 the backends need a target whose calling convention has vector registers (`sse2`): not the soft-float targets of
//! kernels and firmware, which get the portable code.
//!
//! # Safety of the methods
//!
//! Every method of the traits is `unsafe` for the same reason: it may only be called from code that was compiled for, and runs on, a
//! CPU with the instruction set of the type (see [`cpu::supports`]). Methods that take pointers say in their documentation
//! what must be readable or writable.

#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

// For the tests of what is made of vectors: see there.
#[cfg(target_endian = "little")]
#[doc(hidden)]
pub mod arrays;
mod blake;
mod cell;
pub mod cpu;
mod pair;
pub mod scalar;
mod vector;
#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
pub mod wasm32;
mod words;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod x86_64;

pub use cell::Cell;
pub use pair::Pair;
pub use vector::{Columns, Rows, Vector};
pub use words::{WordColumns, WordRows};
