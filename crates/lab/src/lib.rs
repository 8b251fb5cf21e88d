//! The laboratory: measures ours against the best peers, in one process, interleaved.
//!
//! - [`measure`] times contenders against each other and knows nothing of what they compute.
//! - [`quiet`] knows whether the core is ours alone at a moment.
//! - [`suites`] say what is measured: cases and contenders, as data. What comes out are the records of `bulla-record`.
//! - [`code`] times nothing: it holds the machine code of the kernels to rules and budgets.
#![forbid(unsafe_code)]

pub mod clock;
pub mod code;
pub mod measure;
pub mod quiet;
pub mod suites;

/// The README's Rust, which must compile and hold.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
