//! Finds the key that a user names.

use super::place::{TENANT, parse_name, tenant};
use crate::args::{DEFAULT_LABEL, DEFAULT_PURPOSE};
use crate::error::{Error, Result};
use bulla_kms::{Algorithm, KeyFamily, KeyId, KeyRef, Keystore, KmsError, Name, NewKey, Snapshot};

/// Creates the key `default` if it does not exist: the process that created the keystore may have stopped before that.
pub(crate) fn ensure_default(keystore: &Keystore) -> Result<KeyFamily> {
    let label = parse_name(DEFAULT_LABEL)?;
    match keystore.find(&tenant()?, &label)? {
        Some(family) => Ok(family),
        None => Ok(create_key(keystore, label, parse_name(DEFAULT_PURPOSE)?)?.family().clone()),
    }
}

/// Creates a key that the command itself needs, independent of the options for other keys.
pub(super) fn create_key(keystore: &Keystore, label: Name, purpose: Name) -> Result<KeyId> {
    let new = NewKey::new(tenant()?, purpose, Algorithm::Ed25519);
    Ok(keystore.create_key(new.label(label))?)
}

/// A source of keys by label.
pub(crate) trait Labels {
    /// The tenant's key with this label.
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError>;
}

impl Labels for Keystore {
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError> {
        self.find(tenant, label)
    }
}

impl Labels for Snapshot {
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError> {
        Ok(self.find(tenant, label))
    }
}

/// The key that a user names: the whole key, or one version.
pub(crate) enum Named {
    Family(KeyFamily),
    Version(KeyId),
}

impl Named {
    /// Finds the key by its label, its id, or its id with a version.
    pub(crate) fn find(keys: &impl Labels, text: &str) -> Result<Self> {
        if text.contains('/') {
            return match text.parse::<KeyId>() {
                Ok(id) => Ok(Self::Version(id)),
                Err(_) => Ok(Self::Family(text.parse().map_err(|error: KmsError| no_such_key(text, error))?)),
            };
        }
        let found = match (text.parse(), TENANT.parse()) {
            (Ok(label), Ok(tenant)) => keys.labelled(&tenant, &label)?,
            _ => None,
        };
        found.map(Self::Family).ok_or_else(|| {
            Error::new("key_not_found", format!("there is no key with the label {text:?}"))
                .hint("list the keys with `bulla keys list`, or create one with `bulla keys new LABEL`")
        })
    }

    /// The key without a version.
    pub(crate) fn family(&self) -> &KeyFamily {
        match self {
            Self::Family(family) => family,
            Self::Version(id) => id.family(),
        }
    }

    /// The reference to sign with.
    pub(crate) fn as_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Family(family) => family.into(),
            Self::Version(id) => id.into(),
        }
    }
}

fn no_such_key(text: &str, error: KmsError) -> Error {
    Error::new(error.code.as_str(), format!("{text:?} is not a key id: {error}"))
        .hint("`bulla keys list` prints the ids of your keys")
}
