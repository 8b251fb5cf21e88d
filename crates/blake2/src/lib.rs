//! BLAKE2b, BLAKE2s, BLAKE2bp and BLAKE2sp (RFC 7693 and "BLAKE2: simpler, smaller, fast as MD5"),
//! for one input or many at once, with a kernel for the vector instructions of each CPU.
//!
//! ```
//! use bulla_blake2::blake2b::{Params, blake2b};
//!
//! assert!(blake2b(b"abc").to_hex().starts_with("ba80a53f981c4d0d"));
//!
//! let tag = Params::new().hash_length(16).key(b"a secret").personal(b"example").hash(b"message");
//! assert_eq!(tag.as_bytes().len(), 16);
//! ```
//!
//! The names are those of the crates `blake2b_simd` and `blake2s_simd`: `blake2b_simd::X` is
//! [`bulla_blake2::blake2b::X`](mod@blake2b) here, and `blake2s_simd::X` is
//! [`bulla_blake2::blake2s::X`](mod@blake2s). `blake2::X` of RustCrypto's crate (0.11) is
//! `bulla_blake2::digest_traits::X`, with the feature `digest`. In addition there is [`kernel`],
//! which tells which kernel is in use and lets a process force one.
//!
//! # Kernels
//!
//! The crate chooses a kernel at run time, by the features of the CPU; no compiler flag changes
//! that. So a build with `target-cpu=native` and link-time optimization has the same kernels as one
//! without. [`kernel`] says which one is in use.
//!
//! # Features
//!
//! - `std` (default): `io::Write`, and the variable that forces a kernel. Without it the crate
//!   needs neither the standard library nor an allocator.
//! - `digest`: the module `digest_traits`.
//! - `zeroize`: `Zeroize` for hashes, parameters and states.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]

pub mod blake2b;
pub mod blake2s;
#[cfg(feature = "digest")]
pub mod digest_traits;
mod generic;
mod hash;
mod job;
pub mod kernel;
pub mod many;
pub mod parallel;
mod params;
mod state;
#[cfg(test)]
mod tests;
mod variant;
mod word;

pub use blake2b::{blake2b, blake2bp};
pub use blake2s::{blake2s, blake2sp};
pub use hash::Hash;
pub use params::Params;
pub use state::State;
pub use variant::{Blake2b, Blake2s, Variant};
pub use word::Word;

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
