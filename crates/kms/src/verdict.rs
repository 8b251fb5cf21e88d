//! What a verification says.

use serde::{Deserialize, Serialize};

/// What a verification says of a signature.
///
/// There is no reason beside `Invalid` on purpose: the equation does not tell a changed message from a changed
/// signature or another key.
#[must_use = "a verdict that is not looked at verifies nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The signature is one of this message under this key.
    Valid,
    /// It is not.
    Invalid,
    /// Nothing was verified: the keystore has no such key or version, or may not use it. The same call for this one
    /// item, [`Keystore::verify`](crate::Keystore::verify), says why. Only calls about many items answer so.
    Unusable,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    pub fn is_valid(self) -> bool {
        self == Self::Valid
    }
}
