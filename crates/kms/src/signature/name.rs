//! The name of a signed file.

use std::fmt;
use std::str::FromStr;

use super::manifest::{Escaped, ManifestPath, unescape};
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};

/// The most bytes of a name: no file system of today has longer ones.
const MAX_NAME_LEN: usize = 255;

/// The name of a file that a signature covers: the last component of its path. It is bytes, because
/// a name need not be UTF-8. Its text form is that of a [`ManifestPath`] with one component.
///
/// ```
/// use bulla_kms::signature::SignedName;
///
/// let name = SignedName::from_bytes("app-1.0.tar.gz")?;
/// assert_eq!(name.to_string(), "app-1.0.tar.gz");
/// assert!(SignedName::from_bytes("releases/app-1.0.tar.gz").is_err());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignedName(Vec<u8>);

impl SignedName {
    /// From the bytes of a name.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for what is not the name of a file, with the reason.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let invalid =
            |why: String| KmsError::new(Code::InvalidArgument, format!("the name of the file {why}"));
        let bytes = bytes.into();
        if bytes.len() > MAX_NAME_LEN {
            return Err(invalid(format!("is longer than {MAX_NAME_LEN} bytes")));
        }
        if bytes.contains(&b'/') {
            return Err(invalid("has a slash".to_owned()));
        }
        match ManifestPath::from_bytes(bytes) {
            Ok(path) => Ok(Self(path.as_bytes().to_vec())),
            Err(error) => Err(invalid(format!("is refused: {}", error.message))),
        }
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for SignedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Escaped(&self.0), f)
    }
}

impl fmt::Debug for SignedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SignedName {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::from_bytes(unescape(text)?)
    }
}

serde_as_text!(SignedName);
