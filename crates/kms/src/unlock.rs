//! What opens a keystore.

use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;

/// The secret that opens a keystore.
#[derive(Clone, Debug)]
pub enum Unlock {
    /// A passphrase; its UTF-8 bytes count, as they are. It may not be empty.
    Passphrase(SecretString),
    /// The path of a key file that [`KeyFile::create`](crate::KeyFile::create) made.
    KeyFile(PathBuf),
}

/// Which kind of secret opens a keystore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnlockMethod {
    /// [`Unlock::Passphrase`].
    Passphrase,
    /// [`Unlock::KeyFile`].
    KeyFile,
}

impl fmt::Display for UnlockMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passphrase => "passphrase",
            Self::KeyFile => "key file",
        })
    }
}
