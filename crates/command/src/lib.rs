//! What the programs `bulla`, `bulla-serve` and `bulla-audit` share, so that a user sees one
//! command: [errors](error) with hints and stable codes, the [exit status](exit), [output] as text
//! and as JSON Lines, [colors](color), [progress], and what an [interrupt] does.
//!
//! | feature | brings |
//! |---|---|
//! | `kms` | errors of `bulla-kms` become [`error::Error`], with hints |
//! | `keystore` | errors of `bulla-keystore` do too |
//! | `sums` | errors of `bulla-sums` do too, and [`progress::Progress`] counts what it reads |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(unix)]
mod closed_streams;
pub mod color;
pub mod diagnostics;
pub mod error;
pub mod exit;
pub mod interrupt;
#[cfg(any(feature = "kms", feature = "sums"))]
mod library_errors;
pub mod output;
pub mod program;
pub mod progress;
pub mod tree;
