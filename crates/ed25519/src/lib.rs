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
mod verdict;
mod verifying_keys;
mod wipe;

pub use item::Item;
#[cfg(feature = "rayon")]
pub use parallel::{share, verify_many_parallel, verify_many_parallel_into};
pub use prepared_key::{PreparedItem, PreparedKey, verify_many_prepared};
pub use signing::{SignItem, SigningKey, sign_many, sign_many_into};
pub use verdict::{Reason, Verdict};
pub use verifying_keys::{Tables, VerifyingKeys};

/// The strict verdict on one signature: exactly that of `verify_strict` of ed25519-dalek 3.
///
/// ```
/// use bulla_ed25519::{Item, Reason, Verdict, verify_strict};
///
/// let item = Item { public_key: &[0; 32], message: b"any", signature: &[0; 64] };
/// assert_eq!(verify_strict(&item), Verdict::Invalid(Reason::KeyOfSmallOrder));
/// ```
///
/// That is the equation without the cofactor, R compared as bytes, S below the order of the group, and A and R not of small order.
pub fn verify_strict(item: &Item<'_>) -> Verdict {
    kernel::portable::verify_in(&[], item)
}

/// Verifies every item: verdict i is that of [`verify_strict`] for item i, whatever its neighbours, their order and number, the threads
/// and the CPU.
///
/// # Panics
///
/// When the environment forces a kernel that this machine does not have: [`kernel::active`].
pub fn verify_many(items: &[Item<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(Reason::Mismatch); items.len()];
    verify_many_into(items, &mut out);
    out
}

/// [`verify_many`] in place: allocates nothing.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`verify_many`].
pub fn verify_many_into(items: &[Item<'_>], out: &mut [Verdict]) {
    kernel::active().verify_many_into(items, out);
}
