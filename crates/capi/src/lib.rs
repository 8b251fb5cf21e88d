//! The C libraries of this project.
//!
//! One crate makes two libraries. With the feature `native`, it has the functions of `bulla.h`,
//! which `cbindgen` writes from this source. With `official`, it has the functions and the ABI of
//! the official C library, `blake3.h`. `cargo xtask install-c` builds and installs both.
//!
//! No function of `bulla.h` unwinds into its caller, or ends the process: see [`status`].

#![allow(non_camel_case_types, reason = "types have the names that they have in C")]

#[cfg(feature = "native")]
mod args;
#[cfg(feature = "native")]
pub mod blake2;
#[cfg(feature = "native")]
pub mod blake3;
#[cfg(feature = "native")]
pub mod blake3_file;
#[cfg(feature = "native")]
pub mod blake3_hasher;
#[cfg(feature = "native")]
pub mod blake3_state;
#[cfg(feature = "native")]
pub mod ed25519;
#[cfg(feature = "native")]
pub mod kernels;
#[cfg(feature = "official")]
pub mod official;
mod pool;
#[cfg(feature = "native")]
pub mod status;
