//! The laboratory: measures ours against the best peers, in one process, interleaved.
//!
//! - [`measure`] times contenders against each other and knows nothing of what they compute.
//! - [`suites`] say what is measured: cases and contenders, as data.
//! - [`record`] is what one launch found out about one case: a line of JSON.
//! - [`summary`] makes the table that people read from the records of several launches.
//! - [`code`] times nothing: it holds the machine code of the kernels to rules and budgets.
#![forbid(unsafe_code)]

pub mod clock;
pub mod code;
pub mod measure;
pub mod record;
pub mod suites;
pub mod summary;

/// The README's Rust, which must compile and hold.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
