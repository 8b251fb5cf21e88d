//! The keys that every keystore's folder has, and how users name keys.

use crate::error::{Error, ErrorCode, Result};
use bulla_kms::{Algorithm, KeyId, KeySelector, KeyVersionId, Keystore, KmsError, Name, NewKey, Snapshot};

/// The tenant of all keys of a keystore's folder.
pub const TENANT: &str = "local";
/// The label of the key that signs by default. Every new keystore has it.
pub const DEFAULT_LABEL: &str = "default";
/// The purpose of keys that sign files.
pub const DEFAULT_PURPOSE: &str = "files";

/// Returns the tenant of all keys of a keystore's folder.
pub fn tenant() -> Name {
    parse_constant(TENANT)
}

/// Parses a name that this crate chose.
pub(crate) fn parse_constant(name: &str) -> Name {
    name.parse().expect("the constant is a name")
}

/// Finds the key with the label `default`, or creates it: the process that created the keystore may
/// have stopped before that.
///
/// ```
/// use bulla_keystore::{DEFAULT_LABEL, ensure_default_key, find_key, tenant};
/// use bulla_kms::Keystore;
///
/// let keystore = Keystore::in_memory()?;
/// let key = ensure_default_key(&keystore)?;
/// assert_eq!(ensure_default_key(&keystore)?, key);
/// assert_eq!(find_key(&keystore, DEFAULT_LABEL)?.key_id(), &key);
/// assert_eq!(key.tenant(), &tenant());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Keystore::create_key`].
pub fn ensure_default_key(keystore: &Keystore) -> Result<KeyId> {
    let label = parse_constant(DEFAULT_LABEL);
    match keystore.find(&tenant(), &label)? {
        Some(key_id) => Ok(key_id),
        None => Ok(create_own_key(keystore, label, parse_constant(DEFAULT_PURPOSE))?.key_id().clone()),
    }
}

/// Creates a key that the folder itself needs, independent of the options for other keys.
pub(crate) fn create_own_key(keystore: &Keystore, label: Name, purpose: Name) -> Result<KeyVersionId> {
    let new = NewKey::new(tenant(), purpose, Algorithm::Ed25519);
    Ok(keystore.create_key(new.label(label))?)
}

/// The text by which a user names a key, parsed and not yet looked up.
///
/// ```
/// use bulla_keystore::{ErrorCode, LabelOrId};
///
/// assert_eq!(LabelOrId::parse("release")?.version(), None);
/// let id = "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3";
/// assert_eq!(LabelOrId::parse(id)?.version(), Some(3));
/// assert_eq!(LabelOrId::parse("local/files").unwrap_err().code, ErrorCode::InvalidKeyId);
/// # Ok::<(), bulla_keystore::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelOrId {
    /// A label.
    Label(Name),
    /// A key id or a key version id.
    Id(KeySelector),
}

impl LabelOrId {
    /// Parses a label, a key id or a key version id.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownLabel`] and [`ErrorCode::InvalidKeyId`] for a text that can name no key.
    pub fn parse(text: &str) -> Result<Self> {
        if !text.contains('/') {
            return text.parse().map(Self::Label).map_err(|_| Error::unknown_label(text));
        }
        text.parse().map(Self::Id).map_err(|error: KmsError| {
            Error::new(ErrorCode::InvalidKeyId, format!("{text:?} is not a key id: {error}"))
                .with_source(error)
        })
    }

    /// Returns the version, if the user names one.
    pub fn version(&self) -> Option<u32> {
        match self {
            Self::Id(KeySelector::Version(id)) => Some(id.version()),
            _ => None,
        }
    }
}

/// Keys that are found by their label: those of an open keystore, or of a snapshot.
pub trait LabelIndex {
    /// Finds the tenant's key with this label.
    ///
    /// # Errors
    /// Those of reading the keystore.
    fn find_label(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError>;
}

impl LabelIndex for Keystore {
    fn find_label(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError> {
        self.find(tenant, label)
    }
}

impl LabelIndex for Snapshot {
    fn find_label(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>, KmsError> {
        Ok(self.find(tenant, label))
    }
}

/// Finds a key by its label, its key id or a key version id. An id is not looked up: if there is no
/// such key, its use fails.
///
/// # Errors
/// [`ErrorCode::UnknownLabel`], [`ErrorCode::InvalidKeyId`]; those of reading the keystore.
pub fn find_key(keys: &impl LabelIndex, text: &str) -> Result<KeySelector> {
    match LabelOrId::parse(text)? {
        LabelOrId::Id(id) => Ok(id),
        LabelOrId::Label(label) => match keys.find_label(&tenant(), &label)? {
            Some(key_id) => Ok(key_id.into()),
            None => Err(Error::unknown_label(text)),
        },
    }
}
