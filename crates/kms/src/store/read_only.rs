//! The rows of a store that is not open for writing.

use super::interface::{Change, Rows, Store};
use crate::error::{Code, KmsError, Result};

/// Rows as they were read. Every change fails.
#[derive(Debug)]
pub(crate) struct ReadOnlyStore {
    rows: Rows,
}

impl ReadOnlyStore {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { rows }
    }
}

impl Store for ReadOnlyStore {
    fn load(&mut self) -> Result<Rows> {
        Ok(self.rows.clone())
    }

    fn commit(&mut self, _change: Change<'_>) -> Result<()> {
        Err(KmsError::new(Code::PermissionDenied, "the keystore is open for reading only"))
    }
}
