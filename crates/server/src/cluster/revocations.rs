//! Revoked tokens as rows that all nodes read.

use bulla_kms::{Code, Keystore, KmsError, Name, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::table::{InsertOutcome, Table, TableRow};
use crate::access::later_expiry;

/// The folder of the rows.
pub(super) const REVOCATION_FOLDER: &str = "revoked";

/// How often a row that others change meanwhile is tried again.
const MAX_WRITE_TRIES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revocation {
    /// The token's tenant. Without it, the id is revoked for every tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Name>,
    pub(crate) id: String,
    /// When the token expires, if that is known. Without it, the token is refused for good.
    pub(crate) expires: Option<Timestamp>,
}

impl Revocation {
    /// Reads a row. Nobody without the keystore can make one.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`].
    pub(super) fn read(keystore: &Keystore, row: &TableRow) -> Result<Self> {
        let note = keystore.data_cipher().decrypt(&row.name, &row.value)?;
        serde_json::from_slice(&note).map_err(|error| {
            KmsError::new(Code::KeystoreCorrupt, format!("a revocation is malformed: {error}"))
        })
    }

    /// Tells all nodes, for as long as the token could live. The keystore then has another
    /// revision, so that nodes that have that revision know of the token, and a rollback guard
    /// notices if the row is lost with an older copy.
    ///
    /// # Errors
    /// [`Code::Unavailable`] and other errors of etcd.
    pub(super) fn publish(&self, keystore: &Keystore, table: &Table) -> Result<()> {
        self.insert(keystore, table)?;
        keystore.refresh()
    }

    fn insert(&self, keystore: &Keystore, table: &Table) -> Result<()> {
        // A tenant has rows of its own, so that no other tenant can change what they say.
        let subject = match &self.tenant {
            Some(tenant) => keystore.data_cipher().keyed_digest(format!("{tenant}\n{}", self.id).as_bytes()),
            None => keystore.data_cipher().keyed_digest(self.id.as_bytes()),
        };
        let name = format!("{REVOCATION_FOLDER}/{}", hex::encode(subject));
        let seal =
            |one: &Self| keystore.data_cipher().encrypt(&name, &serde_json::to_vec(one).unwrap_or_default());
        let mut value = seal(self)?;
        for _ in 0..MAX_WRITE_TRIES {
            let InsertOutcome::Exists(row) = table.insert(&name, &value, None)? else { return Ok(()) };
            let known = Self::read(keystore, &row)?;
            let expires = later_expiry(known.expires, self.expires);
            if expires == known.expires {
                return Ok(());
            }
            value = seal(&Self { expires, ..self.clone() })?;
            if table.replace(&name, &row.value, Some(&value))? {
                return Ok(());
            }
        }
        Err(KmsError::new(Code::Busy, "others keep revoking the same token; try again"))
    }
}

/// Removes the rows of tokens that ended before `passed`.
///
/// # Errors
/// Those of etcd.
pub(super) fn remove_expired(keystore: &Keystore, table: &Table, passed: Timestamp) -> Result<()> {
    for row in table.read(REVOCATION_FOLDER, 0)?.0 {
        if Revocation::read(keystore, &row)?.expires.is_some_and(|end| end < passed) {
            table.replace(&row.name, &row.value, None)?;
        }
    }
    Ok(())
}
