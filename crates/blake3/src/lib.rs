//! BLAKE3: hash, keyed hash, key derivation and extendable output, with a kernel for the vector
//! instructions of each CPU.
//!
//! ```
//! let digest = bulla_blake3::hash(b"abc");
//! assert_eq!(
//!     digest.to_hex().as_str(),
//!     "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
//! );
//! ```
//!
//! The names are those of the `blake3` crate, so that migration costs one line in `Cargo.toml`. In
//! addition there are [`hash_many`] for independent inputs at once, [`DeriveKey`] for contexts that
//! are hashed once, [`Hasher::save`] and [`Hasher::restore`], and [`kernel`], which tells which
//! kernel is in use and lets a process force one.
//!
//! # Kernels
//!
//! The crate chooses a kernel at run time, by the features of the CPU; no compiler flag changes
//! that. [`kernel`] says which one is in use. How fast it is beside others, with the losses:
//! [the README of bulla](https://github.com/bulla-dev/bulla#speed).
//!
//! # Features
//!
//! `std` (default), `rayon`, `mmap`, `bao` (verified streaming), `digest` (also as
//! `traits-preview`), `serde`, `zeroize`. Without `std` the crate itself needs neither the standard
//! library nor an allocator. The dependencies of `rayon` and `mmap` still need the standard
//! library.
//!
//! The other features of the crate `blake3` exist under their names:
//!
//! - `no_avx512`, `no_avx2`, `no_sse41` and `no_neon` remove these kernels; the next best kernel is
//!   used, and ultimately the portable one. Use them for tests, and for machines on which you do
//!   not want a kernel. [`kernel::FORCE_VARIABLE`] chooses a kernel without a new build.
//! - `wasm32_simd` adds the kernel for WebAssembly's vectors to a build that does not allow vectors
//!   everywhere (`-C target-feature=+simd128`). The module then loads only in engines with vectors.
//! - `pure` and `prefer_intrinsics` choose among C, assembly and Rust there. This crate is all Rust
//!   and needs no C compiler: they change nothing.
//! - `neon` and `no_sse2` change nothing: the NEON kernel needs no feature, and this crate has no
//!   kernel for SSE2.
//!
//! `every_kernel` cancels `no_avx512`, `no_avx2`, `no_sse41` and `no_neon`, so that a build with
//! all features has all kernels.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "bao")]
pub mod bao;
mod buffer;
mod compact;
mod derive_key;
#[cfg(feature = "digest")]
mod digest_traits;
mod generic;
#[doc(hidden)]
pub mod guts;
mod hash;
mod hasher;
pub mod hazmat;
#[cfg(feature = "std")]
mod io;
pub mod kernel;
mod keyed_kernel;
mod many;
mod oneshot;
mod output;
#[cfg(feature = "rayon")]
mod parallel;
mod plan;
mod saved_state;
mod spec;
mod tree;

/// The crate whose traits [`Hasher`] and [`OutputReader`] have with the feature `digest`.
#[cfg(feature = "digest")]
pub mod traits {
    pub use digest;
}

pub use compact::CompactHasher;
pub use derive_key::{DeriveKey, derive_key};
pub use hash::{Hash, HexError};
pub use hasher::Hasher;
pub use many::{hash_many, keyed_hash_many};
#[doc(hidden)]
pub use oneshot::hash_into;
pub use oneshot::{hash, keyed_hash};
pub use output::OutputReader;
#[cfg(feature = "rayon")]
#[doc(hidden)]
pub use parallel::MIN_PARALLEL_LEN;
pub use saved_state::{MAX_STATE_LEN, SavedState, StateError};
pub use spec::{BLOCK_LEN, CHUNK_LEN, KEY_LEN, OUT_LEN};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
