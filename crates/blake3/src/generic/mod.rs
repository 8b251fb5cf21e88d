//! The kernels, each written once over the traits of `bulla-simd`.
//!
//! Everything here is `#[inline(always)]` and becomes part of the `#[target_feature]` functions
//! that `crate::kernel` makes for each instruction set. All functions have the same requirements:
//! the CPU must have the vector type's instruction set, and pointers must be valid for the memory
//! that the function says it reads and writes.

#![cfg_attr(
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd"))
    )),
    allow(dead_code, reason = "no other architecture uses every form")
)]

pub(crate) mod columns;
pub(crate) mod lanes;
pub(crate) mod rows;
