//! Ed25519 (RFC 8032), eight signatures at a time: strict verification with one verdict for each,
//! and signing. AVX-512 IFMA has eight lanes. AVX2 with FMA has four, which only verify.
//!
//! Lane i of every vector belongs to signature i; a few signatures are computed one by one, each
//! with all lanes. The verdict on a signature does not depend on the batch, the number of threads
//! or the CPU. The predicate is that of `verify_strict` of ed25519-dalek 3. Where there are no
//! vectors, ed25519-dalek also does the work: see [`kernel`].
//!
//! Verification in lanes needs 74 to 91 KiB of stack: give a verifying thread 128 KiB or more. In a
//! build with `opt-level = 0`, signing in lanes needs more than 512 KiB, most of it to overwrite
//! what was secret.
//!
//! ```
//! use bulla_ed25519::{VerifyItem, SignItem, SigningKey, Verdict, sign_many, verify_many};
//!
//! let key = SigningKey::from_seed(&[7; 32]); // in a real program, from a cryptographic generator
//! let messages = [b"one".as_slice(), b"two"];
//! let signatures = sign_many(&messages.map(|message| SignItem { key: &key, message }));
//! let items = [0, 1].map(|i| VerifyItem {
//!     public_key: key.public_key(),
//!     message: messages[i],
//!     signature: &signatures[i],
//! });
//! assert_eq!(verify_many(&items), [Verdict::Valid; 2]);
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
pub mod cofactored;
#[cfg(feature = "dalek-batch")]
pub mod dalek_batch;
#[cfg_attr(not(any(test, lanes)), expect(dead_code, reason = "no vectors to compute with"))]
mod generic;
pub mod kernel;
mod lanes;
#[cfg(feature = "rayon")]
mod parallel;
pub mod prehash;
mod prepared_keys;
mod signing_key;
mod verdict;
mod wipe;

pub use batch::{sign_many, sign_many_into, verify_many, verify_many_into, verify_strict};
#[cfg(feature = "rayon")]
pub use parallel::{par_split, verify_many_parallel, verify_many_parallel_into};
pub use prepared_keys::{KeyCache, PrecomputedTables, PreparedItem, PreparedKey, verify_many_prepared};
pub use signing_key::{SignItem, SigningKey};
pub use verdict::{InvalidReason, Verdict, VerifyItem};
