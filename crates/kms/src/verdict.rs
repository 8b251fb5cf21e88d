//! What a verification says.

use serde::{Deserialize, Serialize};

/// The result of verifying a signature.
///
/// `Invalid` has no reason, on purpose: the equation does not distinguish a changed message from a changed
/// signature or another key.
#[must_use = "a verdict that is not looked at verifies nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature is one of this message under this key.
    Valid,
    /// It is not.
    Invalid,
    /// Nothing was verified: the keystore has no such key or version, or may not use it. The same call for this single
    /// item, [`Keystore::verify`](crate::Keystore::verify), says why. Only calls with many items give this answer.
    Unusable,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}
