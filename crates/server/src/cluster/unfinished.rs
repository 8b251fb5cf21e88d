//! Rows that etcd did not take yet.

use bulla_kms::Result;

use super::Table;

/// A row that has to be written as soon as etcd takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) name: String,
    pub(super) old: Vec<u8>,
    /// None if the row is to be removed.
    pub(super) new: Option<Vec<u8>>,
}

impl Unfinished {
    /// Writes the row.
    ///
    /// # Errors
    /// Those of etcd.
    pub(super) fn write(&self, table: &Table) -> Result<()> {
        // If the row has another value, another node has found out that nobody knows the answer.
        table.replace(&self.name, &self.old, self.new.as_deref())?;
        Ok(())
    }
}
