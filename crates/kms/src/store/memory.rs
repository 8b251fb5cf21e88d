//! Stores in this process's memory: one that can change, and the rows of a store that is open for
//! reading only.

use super::interface::{Change, Rows, STATE, Store, changed, key_ranges};
use super::packed::PackedRows;
use crate::error::{Code, KmsError, Result};

/// A store that is deleted when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    rows: Rows,
}

impl MemoryStore {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { rows }
    }
}

impl Store for MemoryStore {
    fn load(&mut self) -> Result<Rows> {
        Ok(self.rows.clone())
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        for (table, names) in key_ranges(key_id) {
            let of_key = self.rows.table(table).range(names);
            rows.table_mut(table).extend(of_key.map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(rows)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        if self.rows.meta.get(STATE).map(Vec::as_slice) != Some(change.expected_state) {
            return Err(changed());
        }
        for (table, name, value) in change.rows {
            match value {
                Some(value) => self.rows.table_mut(table).insert(name, value),
                None => self.rows.table_mut(table).remove(&name),
            };
        }
        Ok(())
    }
}

/// Rows as they were read. Every change fails.
#[derive(Debug)]
pub(crate) struct ReadOnlyStore {
    rows: PackedRows,
}

impl ReadOnlyStore {
    pub(crate) fn new(rows: PackedRows) -> Self {
        Self { rows }
    }
}

impl Store for ReadOnlyStore {
    fn load(&mut self) -> Result<Rows> {
        Ok(Rows::from(&self.rows))
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        Ok(self.rows.of_key(key_id))
    }

    fn commit(&mut self, _change: Change<'_>) -> Result<()> {
        Err(KmsError::new(Code::PermissionDenied, "the keystore is open for reading only"))
    }
}
