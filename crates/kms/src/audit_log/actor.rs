//! Who did something, as the log names them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};

/// An actor's name: 1 to 128 bytes of UTF-8 without control characters, line separators and marks
/// that reorder text. It must not be a secret: the log contains it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// The maximum length of an actor's name in bytes.
    pub const MAX_LEN: usize = 128;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The actor, or `-` if nobody is named.
    pub(crate) fn or_unnamed(actor: Option<Self>) -> Self {
        actor.unwrap_or_else(|| Self("-".into()))
    }
}

impl FromStr for Actor {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > Self::MAX_LEN || text.chars().any(encoding::is_deceptive) {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "an actor's name has 1 to 128 bytes, without control characters and without marks that reorder text",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

serde_as_text!(Actor);
