//! How users name keys.

use super::place::TENANT;
use crate::error::{Error, Result};
use bulla_kms::{KeyId, KeyRef, KeyVersionId, Keystore, KmsError, Name, Snapshot};

/// A source of keys by label.
pub(crate) trait Labels {
    /// The tenant's key with this label.
    fn labeled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError>;
}

impl Labels for Keystore {
    fn labeled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError> {
        self.find(tenant, label)
    }
}

impl Labels for Snapshot {
    fn labeled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError> {
        Ok(self.find(tenant, label))
    }
}

/// The key that a user names, found in a keystore: the whole key, or one version.
pub(crate) enum Named {
    Key(KeyId),
    Version(KeyVersionId),
}

impl Named {
    /// Finds the key by its label, its id, or its id with a version.
    pub(crate) fn find(keys: &impl Labels, text: &str) -> Result<Self> {
        let label = match Asked::parse(text)? {
            Asked::Version(id) => return Ok(Self::Version(id)),
            Asked::Key(key_id) => return Ok(Self::Key(key_id)),
            Asked::Label(label) => label,
        };
        let found = keys.labeled(&TENANT.parse()?, &label)?;
        found.map(Self::Key).ok_or_else(|| no_label(text))
    }

    /// The key without a version.
    pub(crate) fn key_id(&self) -> &KeyId {
        match self {
            Self::Key(key_id) => key_id,
            Self::Version(id) => id.key_id(),
        }
    }

    /// The reference to sign with.
    pub(super) fn as_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Key(key_id) => key_id.into(),
            Self::Version(id) => id.into(),
        }
    }
}

/// The text by which a user names a key, understood but not yet looked for.
pub(crate) enum Asked {
    Label(Name),
    Key(KeyId),
    Version(KeyVersionId),
}

impl Asked {
    /// # Errors
    /// No key can have this name.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if !text.contains('/') {
            return text.parse().map(Self::Label).map_err(|_| no_label(text));
        }
        match text.parse::<KeyVersionId>() {
            Ok(id) => Ok(Self::Version(id)),
            Err(_) => Ok(Self::Key(text.parse().map_err(|error: KmsError| no_such_key(text, error))?)),
        }
    }

    /// The number of the version, if the user names one.
    pub(crate) fn version(&self) -> Option<u32> {
        match self {
            Self::Version(id) => Some(id.version()),
            Self::Label(_) | Self::Key(_) => None,
        }
    }
}

/// The error for a label that no key has.
pub(super) fn no_label(text: &str) -> Error {
    Error::new("key_not_found", format!("there is no key with the label {text:?}"))
        .hint("list the keys with `bulla keys list`, or create one with `bulla keys new LABEL`")
}

fn no_such_key(text: &str, error: KmsError) -> Error {
    Error::new(error.code.as_str(), format!("{text:?} is not a key id: {error}"))
        .hint("`bulla keys list` prints the ids of your keys")
}
