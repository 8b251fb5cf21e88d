//! A store in this process's memory; dropping it deletes it.

use super::interface::{Change, Rows, STATE, Store, changed};
use crate::error::Result;

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
