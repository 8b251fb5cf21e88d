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
mod by_kernel;
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
mod instance;
#[cfg(feature = "std")]
mod io;
pub mod kernel;
mod lane;
mod many;
mod mode;
mod oneshot;
mod output;
#[cfg(feature = "rayon")]
mod parallel;
mod plan;
mod spec;
mod state;
mod subtree_len;
mod tree;

/// The crate whose traits [`Hasher`] and [`OutputReader`] have with the feature `digest`.
#[cfg(feature = "digest")]
pub mod traits {
    pub use digest;
}

pub use derive::{DeriveKey, derive_key};
pub use hash::{Hash, HexError};
pub use hasher::Hasher;
pub use many::{hash_many, keyed_hash_many};
pub use oneshot::{hash, keyed_hash};
pub use output::OutputReader;
pub use spec::{BLOCK_LEN, CHUNK_LEN, KEY_LEN, OUT_LEN};
pub use state::{MAX_STATE_LEN, SavedState, StateError};
