//! BLAKE3 at the limit of the hardware.
//!
//! ```
//! let digest = bulla_blake3::hash(b"abc");
//! assert_eq!(
//!     digest.to_hex().as_str(),
//!     "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
//! );
//! ```
//!
//! The names are those of the `blake3` crate, so that moving over costs a line in `Cargo.toml`. Beyond it there are
//! [`hash_many`] for independent inputs side by side, [`DeriveKey`] for contexts hashed once, [`Hasher::save`] and [`Hasher::restore`],
//! and [`kernel`], which says what code is in use and lets a process force it.
//!
//! # Kernels
//!
//! A kernel is chosen at run time by what the CPU supports; no build flag changes that. See [`kernel`] and `docs/decisions`.
//!
//! # Features
//!
//! `std` (default), `rayon`, `mmap`, `bao` (verified streaming), `digest` (also as `traits-preview`), `serde`, `zeroize`. Without `std` the
//! crate needs neither the standard library nor an allocator; what `rayon` and `mmap` bring needs it all the same.
//!
//! The other features of the crate `blake3` exist under their names:
//!
//! - `no_avx512`, `no_avx2` and `no_sse41` leave these kernels out; another one serves, the portable one at last. They are for tests and for machines
//!   on which a kernel is not wanted: [`kernel::FORCE_VARIABLE`] chooses one without a new build.
//! - `wasm32_simd` has the kernel for WebAssembly's vectors in a build that does not allow them everywhere (`-C target-feature=+simd128`). The
//!   module then loads only in engines that know them.
//! - `pure` and `prefer_intrinsics` choose among C, assembly and Rust there. All is Rust here, and no C compiler is ever asked: they change nothing.
//! - `neon`, `no_neon` and `no_sse2` are about instruction sets for which there is no kernel here: they change nothing.
//!
//! `every_kernel` takes back what `no_avx512` and its like say, so that a build with all features has all kernels.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "bao")]
pub mod bao;
mod buffer;
mod context;
mod derive;
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
mod leaves;
mod many;
mod oneshot;
mod output;
#[cfg(feature = "rayon")]
mod parallel;
mod spec;
mod state;
mod tree;

/// The crate whose traits [`Hasher`] and [`OutputReader`] have with the feature `digest`.
#[cfg(feature = "digest")]
pub mod traits {
    pub use digest;
}

pub use derive::DeriveKey;
pub use hash::{Hash, HexError};
pub use hasher::Hasher;
pub use many::{hash_many, keyed_hash_many};
pub use oneshot::{derive_key, hash, keyed_hash};
pub use output::OutputReader;
pub use state::{MAX_STATE_LEN, SavedState, StateError};

/// Bytes in a digest.
pub const OUT_LEN: usize = 32;

/// Bytes in a key.
pub const KEY_LEN: usize = 32;

/// Bytes in a block: what one compression takes.
pub const BLOCK_LEN: usize = 64;

/// Bytes in a chunk: a leaf of the tree.
pub const CHUNK_LEN: usize = 1024;
