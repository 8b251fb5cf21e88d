//! The location of a rollback guard.

use bulla_kms::Name;
use std::fmt;
use std::path::{PathBuf, absolute};
use std::str::FromStr;

/// The location of a rollback guard, as the command line gives it and the keystore remembers it.
#[derive(Clone)]
pub(crate) enum GuardPlace {
    /// In a file, by its absolute path.
    File(PathBuf),
    /// On the token, under this name.
    Token(Name),
}

impl FromStr for GuardPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => {
                absolute(path).map(Self::File).map_err(|error| error.to_string())
            }
            Some(("pkcs11", name)) => name.parse().map(Self::Token).map_err(|error| format!("{error}")),
            _ => Err("a guard is file:PATH, or pkcs11:NAME for a guard on the token of --pkcs11".to_owned()),
        }
    }
}

impl fmt::Display for GuardPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Token(name) => write!(f, "pkcs11:{name}"),
        }
    }
}
