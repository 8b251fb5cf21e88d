//! The numbers of logs.

use std::fmt;
use std::str::FromStr;

use bulla_blake3::Hash;

use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};
use crate::random;

/// A log's own number: 16 random bytes, as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId([u8; 16]);

impl LogId {
    pub(super) fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        random::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Where the chain of this log begins.
    pub(super) fn chain(self) -> Hash {
        bulla_blake3::derive_key("bulla audit log v1 first link", &self.0).into()
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for LogId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let number = u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()));
        number.filter(|id| id.to_string() == text).ok_or_else(|| {
            KmsError::new(Code::InvalidArgument, "a log's number is 32 lower-case hexadecimal digits")
        })
    }
}

serde_as_text!(LogId);
