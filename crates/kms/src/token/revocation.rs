//! The list of revoked tokens.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::encoding;
use crate::error::{Code, KmsError, Result};

/// The revocation ids of a token, in hexadecimal.
pub(super) fn revocation_ids(ids: Vec<Vec<u8>>) -> Vec<String> {
    ids.iter().map(|id| encoding::hex(id)).collect()
}

/// Revoked tokens, by the revocation ids of their blocks.
///
/// The text form has one id per line, in lower-case hexadecimal. Empty lines and lines that begin
/// with `#` are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<String>);

impl Revocations {
    /// Revokes a block, and every token that contains it.
    pub fn add(&mut self, revocation_id: impl Into<String>) {
        self.0.insert(revocation_id.into());
    }

    /// Takes a revocation back: for a token that has expired since, and is refused anyway.
    pub fn remove(&mut self, revocation_id: &str) {
        self.0.remove(revocation_id);
    }

    /// Whether a block is revoked by this very id.
    pub fn contains(&self, revocation_id: &str) -> bool {
        self.0.contains(revocation_id)
    }

    /// The ids, sorted.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn has_any(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| self.0.contains(id))
    }
}

impl FromStr for Revocations {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let mut revoked = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_id = line.len() % 2 == 0 && line.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if !is_id {
                let message =
                    format!("line {number} is not a revocation id: those are lower-case hexadecimal");
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            revoked.add(line);
        }
        Ok(revoked)
    }
}

impl fmt::Display for Revocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|id| writeln!(f, "{id}"))
    }
}
