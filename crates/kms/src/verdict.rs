//! The result of a verification.

use serde::{Deserialize, Serialize};

/// The result of verifying a signature.
///
/// `Invalid` has no reason, on purpose: the equation does not distinguish a changed message from a
/// changed signature or another key.
#[must_use = "ignoring the verdict skips verification"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature is valid for this message under this key.
    Valid,
    /// The signature is not valid.
    Invalid,
    /// Nothing was verified: the keystore has no such key or version, or may not use it.
    /// [`Keystore::verify`](crate::Keystore::verify) for this item alone reports why. Only calls
    /// with many items return this.
    Unusable,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}
