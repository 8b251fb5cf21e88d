//! The input and the result of verification.

use core::error::Error;
use core::fmt;

/// One signature to verify.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyItem<'a> {
    /// The public key, as RFC 8032 encodes it: 32 bytes.
    pub public_key: &'a [u8; 32],
    /// The message that was signed.
    pub message: &'a [u8],
    /// The signature: R and S, 64 bytes.
    pub signature: &'a [u8; 64],
}

#[cfg(feature = "std")]
impl<'a> VerifyItem<'a> {
    /// R, the first half of the signature.
    pub(crate) fn r(&self) -> &'a [u8; 32] {
        self.signature.first_chunk().expect("64 bytes have a half")
    }

    /// S, the second half.
    pub(crate) fn s(&self) -> &'a [u8; 32] {
        self.signature.last_chunk().expect("64 bytes have a half")
    }
}

/// The result of verifying one signature.
///
/// If several reasons apply, the verdict has the first one in the order of [`InvalidReason`], with
/// every kernel.
#[must_use = "ignoring the verdict skips verification"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The signature is valid for this message under this key.
    Valid,
    /// The signature is not valid, for this reason.
    Invalid(InvalidReason),
}

/// The reason why a signature is not valid. There may be more reasons in later versions.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvalidReason {
    /// S is not below the order of the base point, so adding the order could make a second
    /// signature from a valid one.
    ScalarNotCanonical,
    /// The public key is not a point of the curve.
    KeyNotAPoint,
    /// The public key has small order: one signature would fit almost every message.
    KeyOfSmallOrder,
    /// R has small order.
    ROfSmallOrder,
    /// The equation does not hold, or R is not a canonical encoding: a changed message, a changed
    /// signature, or another key.
    Mismatch,
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    #[must_use]
    pub const fn is_valid(self) -> bool {
        matches!(self, Self::Valid)
    }

    /// The verdict as a result, for the operator `?`.
    ///
    /// # Errors
    ///
    /// The reason why the signature is not valid.
    ///
    /// ```
    /// use bulla_ed25519::{InvalidReason, Verdict};
    ///
    /// assert_eq!(Verdict::Valid.ok(), Ok(()));
    /// assert_eq!(Verdict::Invalid(InvalidReason::Mismatch).ok(), Err(InvalidReason::Mismatch));
    /// ```
    pub const fn ok(self) -> Result<(), InvalidReason> {
        match self {
            Self::Valid => Ok(()),
            Self::Invalid(reason) => Err(reason),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.write_str("valid"),
            Self::Invalid(reason) => write!(f, "invalid: {reason}"),
        }
    }
}

impl Error for InvalidReason {}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScalarNotCanonical => "S is not below the order of the group",
            Self::KeyNotAPoint => "the public key is no point of the curve",
            Self::KeyOfSmallOrder => "the public key is of small order",
            Self::ROfSmallOrder => "R is of small order",
            Self::Mismatch => "the signature does not match the message and the key",
        })
    }
}
