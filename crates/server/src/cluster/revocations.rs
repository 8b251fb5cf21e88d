//! Revoked tokens as rows that all nodes read.

use bulla_kms::{Code, Keystore, KmsError, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Insertion, Table, TableRow};

/// The folder of the rows.
pub(super) const FOLDER: &str = "revoked";

/// How long after its token's end a row is kept: a clock that is set back must not bring the token back to life at once.
const GRACE_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// How often a row that others change meanwhile is tried again.
const TRIES: usize = 8;

/// A revoked token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revocation {
    /// The revocation id.
    pub(crate) id: String,
    /// When the token expires, if that is known.
    pub(crate) expires: Option<Timestamp>,
}

impl Revocation {
    /// Reads a row. Nobody without the keystore can make one.
    ///
    /// # Errors
    /// [`Code::StoreDamaged`].
    pub(super) fn read(keystore: &Keystore, row: &TableRow) -> Result<Self> {
        let note = keystore.open_note(&row.name, &row.value)?;
        serde_json::from_slice(&note)
            .map_err(|error| KmsError::new(Code::StoreDamaged, format!("a revocation is malformed: {error}")))
    }

    /// Whether the token expired so long ago that nobody has to remember it.
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|time| time.unix_millis().saturating_add(GRACE_MILLIS) < now.unix_millis())
    }

    /// Tells all nodes, for as long as the token could live. The keystore then has another revision, so that nodes that
    /// have that revision know of the token, and a rollback guard notices if the row is lost with an older copy.
    ///
    /// # Errors
    /// [`Code::Unavailable`] and other errors of etcd.
    pub(super) fn publish(&self, keystore: &Keystore, table: &Table) -> Result<()> {
        self.insert(keystore, table)?;
        keystore.refresh()
    }

    fn insert(&self, keystore: &Keystore, table: &Table) -> Result<()> {
        let id = keystore.note_digest(self.id.as_bytes());
        let name = format!("{FOLDER}/{}", hex::encode(id));
        let seal = |one: &Self| keystore.seal_note(&name, &serde_json::to_vec(one).unwrap_or_default());
        let mut value = seal(self)?;
        for _ in 0..TRIES {
            let Insertion::Exists(row) = table.insert(&name, &value, None)? else { return Ok(()) };
            let known = Self::read(keystore, &row)?;
            // Without a time, it is kept for good. A time that is said later does not shorten one that was said before.
            let expires = known.expires.zip(self.expires).map(|(known, new)| known.max(new));
            if expires == known.expires {
                return Ok(());
            }
            value = seal(&Self { id: self.id.clone(), expires })?;
            if table.replace(&name, &row.value, Some(&value))? {
                return Ok(());
            }
        }
        Err(KmsError::new(Code::Busy, "others keep revoking the same token; try again"))
    }
}

/// Removes the rows of tokens that expired long ago.
///
/// # Errors
/// Those of etcd.
pub(super) fn sweep(keystore: &Keystore, table: &Table, now: Timestamp) -> Result<()> {
    for row in table.read(FOLDER, 0)?.0 {
        if Revocation::read(keystore, &row)?.is_over(now) {
            table.replace(&row.name, &row.value, None)?;
        }
    }
    Ok(())
}
