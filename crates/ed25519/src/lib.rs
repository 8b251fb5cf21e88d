//! Ed25519 (RFC 8032) under the names of `ed25519-dalek` 3, and eight signatures at a time.
//!
//! # Moving from ed25519-dalek
//!
//! One line in `Cargo.toml`, and no line of code:
//!
//! ```toml
//! ed25519-dalek = { package = "bulla-ed25519", version = "0.1" }
//! ```
//!
//! All items of `ed25519-dalek` 3 are here, with the same meanings, bytes and features. Its own
//! tests pass on this crate. With the feature `std` (default), single signatures are made and
//! verified by the kernels for this CPU too. What differs:
//!
//! - A context of more than 255 bytes is an error when verifying too, not a panic.
//! - Secrets are always zeroized; with `std` also on the stack. `zeroize` and `asm` are accepted,
//!   and change nothing.
//! - `legacy_compatibility` accepts S of the order or more in the functions of dalek, as there, and
//!   nowhere else.
//! - [`SignatureError`] has an [`InvalidReason`] as its source, and texts differ.
//!
//! ```
//! # #[cfg(feature = "rand_core")]
//! # (|| {
//! use bulla_ed25519::rand_core::UnwrapErr;
//! use bulla_ed25519::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
//!
//! // With the feature `rand_core`.
//! let key = SigningKey::generate(&mut UnwrapErr(getrandom::SysRng));
//! let signature: Signature = key.sign(b"message");
//!
//! let public_key = VerifyingKey::from_bytes(&key.verifying_key().to_bytes())?;
//! public_key.verify(b"message", &signature)?;
//! public_key.verify_strict(b"message", &signature)?;
//! # Ok::<(), bulla_ed25519::SignatureError>(())
//! # })().unwrap();
//! ```
//!
//! # Many signatures
//!
//! ```
//! use bulla_ed25519::{SignItem, SigningKey, Verdict, VerifyItem, sign_many, verify_many};
//!
//! let key = SigningKey::from_bytes(&[7; 32]); // in a real program, from a cryptographic generator
//! let messages = [b"one".as_slice(), b"two"];
//! let signatures = sign_many(&messages.map(|message| SignItem { key: &key, message }));
//! let public_key = key.verifying_key();
//! let items = [0, 1].map(|i| VerifyItem {
//!     public_key: public_key.as_bytes(),
//!     message: messages[i],
//!     signature: &signatures[i],
//! });
//! assert_eq!(verify_many(&items), [Verdict::Valid; 2]);
//! ```
//!
//! Each signature gets its own verdict, which does not depend on the batch, the number of threads
//! or the CPU. The predicate is that of [`VerifyingKey::verify_strict`]. Keys that verify often can
//! be kept ready: [`PreparedKey`], [`KeyCache`].
//!
//! AVX-512 IFMA has eight lanes. AVX2 with FMA has four, which only verify. Lane i of every vector
//! belongs to signature i; if there are only a few, each has several lanes or all of them. Where
//! there are no vectors, `curve25519-dalek` does a part of the work: see [`kernel`].
//!
//! Verification in lanes needs 74 to 91 KiB of stack: give a verifying thread 128 KiB or more. In a
//! build with `opt-level = 0`, signing in lanes needs more than 512 KiB, most of it to overwrite
//! what was secret.
//!
//! # Features
//!
//! Of `ed25519-dalek`: `alloc`, `batch` ([`verify_batch`]), `digest` (Ed25519ph, [`Context`]),
//! `fast` (default: tables of the base point), `hazmat`, `legacy_compatibility`, `pem`, `pkcs8`,
//! `rand_core`, `serde`, `signature`, `zeroize`.
//!
//! Of this crate: `std` (default), `rayon` (default: [`verify_many_parallel`]), `lane-signing`
//! (default: signatures eight at a time). Without `std` the crate is `no_std`, with `alloc` or
//! without it, and has the names of dalek only.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "std")]
pub mod cofactored;
#[cfg_attr(not(any(feature = "std", feature = "digest")), expect(dead_code, reason = "for Ed25519ph"))]
mod context;
#[cfg(any(feature = "pkcs8", feature = "serde"))]
mod encoding;
mod error;
#[cfg(feature = "std")]
#[cfg_attr(not(any(test, lanes)), expect(dead_code, reason = "no vectors to compute with"))]
mod generic;
#[cfg(feature = "hazmat")]
pub mod hazmat;
#[cfg(feature = "std")]
pub mod kernel;
#[cfg(feature = "std")]
mod lanes;
#[cfg(feature = "std")]
mod many;
#[cfg(feature = "rayon")]
mod parallel;
#[cfg(feature = "std")]
pub mod prehash;
#[cfg(feature = "std")]
mod prepared_keys;
mod serial;
mod sign_verify;
mod signing_key;
mod verdict;
#[cfg(feature = "batch")]
mod verify_batch;
mod verifying_key;
mod wipe;

#[cfg(feature = "digest")]
pub use context::Context;
#[cfg(any(feature = "batch", feature = "digest"))]
pub use curve25519_dalek::digest::Digest;
pub use ed25519;
pub use ed25519::Signature;
#[cfg(feature = "pkcs8")]
pub use ed25519::pkcs8;
pub use ed25519::signature::{Signer, Verifier};
pub use error::{ContextTooLong, SignatureError};
#[cfg(feature = "std")]
pub use many::{sign_many, sign_many_into, verify_many, verify_many_into, verify_strict};
#[cfg(feature = "rayon")]
pub use parallel::{par_split, verify_many_parallel, verify_many_parallel_into};
#[cfg(feature = "std")]
pub use prepared_keys::{KeyCache, PrecomputedTables, PreparedItem, PreparedKey, verify_many_prepared};
#[cfg(feature = "rand_core")]
pub use rand_core;
#[cfg(feature = "digest")]
pub use sha2::Sha512;
#[cfg(feature = "digest")]
pub use signature::{DigestSigner, DigestVerifier};
#[cfg(feature = "std")]
pub use signing_key::SignItem;
pub use signing_key::{KEYPAIR_LENGTH, SECRET_KEY_LENGTH, SecretKey, SigningKey};
#[cfg(feature = "std")]
pub use verdict::VerifyItem;
pub use verdict::{InvalidReason, Verdict};
#[cfg(feature = "batch")]
pub use verify_batch::verify_batch;
#[cfg(feature = "hazmat")]
pub use verifying_key::StreamVerifier;
pub use verifying_key::{PUBLIC_KEY_LENGTH, SIGNATURE_LENGTH, VerifyingKey};

/// The examples of the README are tested.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
