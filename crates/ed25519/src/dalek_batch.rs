//! The batch verification of ed25519-dalek: one verdict for all. Its predicate is **not** the one
//! of [`verify_many`](crate::verify_many): for a signature with a part of small order, the result
//! depends on chance and on its neighbors.
//!
//! It is here for users who need exactly this function. [`cofactored`](crate::cofactored) is a
//! batch that agrees with single verification.

use crate::VerifyItem;
use ed25519_dalek::{Signature, VerifyingKey};

/// Whether the random combination of all equations holds, without the cofactor. This is **not** the
/// strict predicate; for signatures with parts of small order the result depends on chance.
///
/// A key that is not a point makes the whole batch invalid. An empty batch is valid.
#[must_use]
pub fn verify_batch(items: &[VerifyItem<'_>]) -> bool {
    let keys: Result<Vec<_>, _> =
        items.iter().map(|item| VerifyingKey::from_bytes(item.public_key)).collect();
    let messages: Vec<_> = items.iter().map(|item| item.message).collect();
    let signatures: Vec<_> = items.iter().map(|item| Signature::from_bytes(item.signature)).collect();
    keys.is_ok_and(|keys| ed25519_dalek::verify_batch(&messages, &signatures, &keys).is_ok())
}
