//! The laboratory: measures ours against the best peers, interleaved in one process.
//!
//! - [`measure`] times contenders against each other, and does not know what they compute.
//! - [`core_probe`] finds out how fast the core is, and whether it is currently ours alone.
//! - [`suites`] define what is measured: cases and contenders, as data. The results are records of
//!   `bulla-record`.
//! - [`code`] times nothing: it checks the kernels' machine code against rules and budgets.
#![forbid(unsafe_code)]

pub mod code;
pub mod core_probe;
pub mod measure;
pub mod suites;

/// The README's Rust examples, which must compile and pass.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
