//! The secrets that open a keystore.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::key_file::KeyFileProvider;
use super::passphrase::Passphrase;
use super::provider::{Capsule, KeyProvider};
use crate::error::Result;

/// The secret that opens a keystore.
#[derive(Clone, Debug)]
pub enum Unlock {
    /// A passphrase. It is normalized (Unicode, form C), and its UTF-8 bytes are used. It must not
    /// be empty.
    Passphrase(SecretString),
    /// The path of a key file that [`KeyFile::create`](crate::KeyFile::create) made.
    KeyFile(PathBuf),
    /// Any other provider of key-encryption keys: a token, or a recipient's identity.
    Provider(Arc<dyn KeyProvider>),
}

impl Unlock {
    /// The provider of the key-encryption key.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) for an empty passphrase.
    pub(crate) fn provider(&self) -> Result<Arc<dyn KeyProvider>> {
        Ok(match self {
            Self::Passphrase(secret) => Arc::new(Passphrase::new(secret.clone())?),
            Self::KeyFile(path) => Arc::new(KeyFileProvider::new(path)),
            Self::Provider(provider) => Arc::clone(provider),
        })
    }
}

/// The kind of secret that opens a keystore.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnlockMethod {
    /// [`Unlock::Passphrase`].
    Passphrase,
    /// [`Unlock::KeyFile`].
    KeyFile,
    /// [`Unlock::Provider`], with its names.
    Provider {
        /// [`KeyProvider::method`].
        method: String,
        /// [`KeyProvider::key_name`].
        key_name: String,
    },
}

impl UnlockMethod {
    pub(crate) fn of(capsule: &Capsule) -> Self {
        match capsule.method() {
            Passphrase::METHOD => Self::Passphrase,
            KeyFileProvider::METHOD => Self::KeyFile,
            method => Self::Provider { method: method.to_owned(), key_name: capsule.key_name().to_owned() },
        }
    }
}

impl fmt::Display for UnlockMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase => f.write_str("a passphrase"),
            Self::KeyFile => f.write_str("a key file"),
            Self::Provider { method, key_name } if key_name.is_empty() => f.write_str(method),
            Self::Provider { method, key_name } => write!(f, "{method} ({key_name})"),
        }
    }
}
