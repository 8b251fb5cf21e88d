//! The keys of a keystore, for callers that neither change anything nor sign.

use std::fmt;

use super::index::Index;
use crate::attestation::Attestation;
use crate::error::Result;
use crate::id::{KeyId, Name};

/// A keystore's keys as they were at one moment, for reading only: see
/// [`Keystore::snapshot`](crate::Keystore::snapshot).
///
/// It does not sign or decapsulate, because somebody may have disabled or replaced the key since
/// then.
pub struct Snapshot {
    index: Index,
}

impl Snapshot {
    pub(super) fn new(index: Index) -> Self {
        Self { index }
    }

    pub(super) fn into_index(self) -> Index {
        self.index
    }

    /// As [`Keystore::attest`](crate::Keystore::attest).
    ///
    /// # Errors
    /// [`Code::KeyNotFound`](crate::Code::KeyNotFound).
    pub fn attest(&self, key_id: &KeyId) -> Result<Attestation> {
        self.index.attest(key_id)
    }

    /// All keys, sorted by their names.
    pub fn list(&self) -> Vec<Attestation> {
        self.index.list()
    }

    /// The tenant's key with this label.
    pub fn find(&self, tenant: &Name, label: &Name) -> Option<KeyId> {
        self.index.find(tenant, label).cloned()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("keys", &self.index.len()).finish()
    }
}
