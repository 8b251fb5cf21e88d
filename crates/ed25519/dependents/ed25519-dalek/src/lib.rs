//! Our crate under the name of the other.
#![no_std]
#![forbid(unsafe_code)]

pub use bulla_ed25519::*;
