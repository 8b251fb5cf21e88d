//! The program `bulla-serve` as its users meet it, started by `bulla serve`.
#![cfg(unix)]

mod crash;
mod policy;
mod serve;
#[cfg(feature = "otel")]
mod traces;

use bulla_testing::{self as support, serving};
