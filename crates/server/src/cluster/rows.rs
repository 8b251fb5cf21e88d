//! The service's own rows in etcd. `service/rows.rs` says what they are.

use std::sync::Arc;
use std::time::Duration;

use bulla_kms::{Code, KmsError, Result};

use super::node::{AttachedKeystore, ClusterNode};
use super::table::{InsertOutcome, TableRow};

impl ClusterNode {
    fn table_of_rows(&self) -> Result<Arc<AttachedKeystore>> {
        self.attached().ok_or_else(|| KmsError::new(Code::ShuttingDown, "the service is sealed"))
    }

    /// The value of a row, as the majority of etcd has it. It waits for etcd, as the others do.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn row(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.table_of_rows()?.table.get(name)?.map(|row| row.value))
    }

    /// The names and values of a folder's rows, in the order of their names: so many, from after
    /// one of these names on.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn row_page(&self, folder: &str, after: &str, most: usize) -> Result<Vec<(String, Vec<u8>)>> {
        let rows = self.table_of_rows()?.table.page(folder, after, most)?;
        Ok(rows.into_iter().map(|TableRow { name, value }| (name, value)).collect())
    }

    /// The number of a folder's rows.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn count_rows(&self, folder: &str) -> Result<usize> {
        let rows = self.table_of_rows()?.table.count(folder)?;
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// Adds a row, which etcd removes after `lifetime`. Returns false if it is there already.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn insert_row(&self, name: &str, value: &[u8], lifetime: Option<Duration>) -> Result<bool> {
        let attached = self.table_of_rows()?;
        let lease = lifetime.map(|lifetime| attached.table.lease(lifetime)).transpose()?;
        let outcome = attached.table.insert(name, value, lease)?;
        Ok(matches!(outcome, InsertOutcome::New { .. }))
    }

    /// Replaces a row's value, or removes the row, if the value is still `old`.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn replace_row(&self, name: &str, old: &[u8], new: Option<&[u8]>) -> Result<bool> {
        Ok(self.table_of_rows()?.table.replace(name, old, new)?)
    }

    /// Replaces a row's value, if it is still `old`, by one that etcd removes after `lifetime`.
    ///
    /// # Errors
    /// Those of etcd.
    pub(crate) fn replace_row_until(
        &self,
        name: &str,
        old: &[u8],
        new: &[u8],
        lifetime: Duration,
    ) -> Result<bool> {
        let attached = self.table_of_rows()?;
        let lease = attached.table.lease(lifetime)?;
        Ok(attached.table.replace_until(name, old, new, lease)?)
    }
}
