//! Ed25519 (RFC 8032), eight signatures at a time: strict verification with one verdict each, and signing.
//!
//! Lane i of every vector belongs to signature i, so a verdict is the same for one signature and for many, whatever its neighbours, the
//! order, the number of threads and the CPU. The predicate is that of `verify_strict` of ed25519-dalek 3, which also does the work
//! where there are no vectors: [`kernel`].
//!
//! Verification in lanes needs 74 to 91 KiB of stack: give a thread that verifies 128 KiB or more.
//!
//! ```
//! use bulla_ed25519::{Item, SignItem, SigningKey, Verdict, sign_many, verify_many};
//!
//! let key = SigningKey::from_seed(&[7; 32]); // from a cryptographic generator, in earnest
//! let messages = [b"one".as_slice(), b"two"];
//! let signatures = sign_many(&messages.map(|message| SignItem { key: &key, message }));
//! let items = [0, 1].map(|i| Item {
//!     public_key: key.public_key(),
//!     message: messages[i],
//!     signature: &signatures[i],
//! });
//! assert_eq!(verify_many(&items), [Verdict::Valid; 2]);
//! ```

pub mod cofactored;
#[cfg(feature = "dalek-batch")]
pub mod dalek_batch;
mod generic;
mod item;
pub mod kernel;
mod lanes;
mod message;
#[cfg(feature = "rayon")]
mod parallel;
pub mod prehash;
mod prepared_key;
mod signing;
mod signing_key;
mod strict;
mod verdict;
mod verifying_keys;
mod wipe;

pub use item::Item;
#[cfg(feature = "rayon")]
pub use parallel::{share, verify_many_parallel, verify_many_parallel_into};
pub use prepared_key::{PreparedItem, PreparedKey, verify_many_prepared};
pub use signing::{sign_many, sign_many_into};
pub use signing_key::{SignItem, SigningKey};
pub use strict::{verify_many, verify_many_into, verify_strict};
pub use verdict::{Reason, Verdict};
pub use verifying_keys::{Tables, VerifyingKeys};
