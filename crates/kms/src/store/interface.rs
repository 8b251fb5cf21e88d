//! What a store is: rows in tables, one of which is its state.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use crate::error::{Code, KmsError, Result};

/// The tables of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// [`FORMAT`], [`PROTECTION`], [`STATE`] and [`GUARD`].
    Meta,
    /// Key family to sealed record.
    Records,
    /// Key id to sealed private key.
    PrivateKeys,
}

impl Table {
    pub(crate) const ALL: [Self; 3] = [Self::Meta, Self::Records, Self::PrivateKeys];
}

/// The row with the store's format: a number of four bytes, big-endian.
pub(crate) const FORMAT: &str = "format";
/// The row that says how the root key is protected.
pub(crate) const PROTECTION: &str = "protection";
/// The row with the sealed state; each change replaces it.
pub(crate) const STATE: &str = "state";
/// The row with the name of the rollback guard, in a store that remembers one.
pub(crate) const GUARD: &str = "guard";

/// All rows of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) meta: BTreeMap<String, Vec<u8>>,
    pub(crate) records: BTreeMap<String, Vec<u8>>,
    pub(crate) private_keys: BTreeMap<String, Vec<u8>>,
}

impl Rows {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Table, &String, &Vec<u8>)> {
        let tables = [
            (Table::Meta, &self.meta),
            (Table::Records, &self.records),
            (Table::PrivateKeys, &self.private_keys),
        ];
        tables
            .into_iter()
            .flat_map(|(table, rows)| rows.iter().map(move |(name, value)| (table, name, value)))
    }

    pub(crate) fn table_mut(&mut self, table: Table) -> &mut BTreeMap<String, Vec<u8>> {
        match table {
            Table::Meta => &mut self.meta,
            Table::Records => &mut self.records,
            Table::PrivateKeys => &mut self.private_keys,
        }
    }
}

/// A row that is written, replacing the one of its name; without a value it is removed.
pub(crate) type Row = (Table, String, Option<Vec<u8>>);

/// Rows that are written together or not at all.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// What the row [`STATE`] must hold for the change to be made.
    pub(crate) expected_state: &'a [u8],
    /// What is written, each replacing the row of its name; `None` removes it.
    pub(crate) rows: Vec<Row>,
}

/// Rows that others wrote; `None` where they removed one.
pub(crate) type Changes = BTreeMap<(Table, String), Option<Vec<u8>>>;

/// Word that others have, or may have, changed a store.
#[derive(Debug)]
pub(crate) struct Changed;

pub(crate) trait Store: Send {
    /// Reads everything.
    fn load(&mut self) -> Result<Rows>;

    /// Makes a change; it is durable when this returns. After an error the store holds either all of the change or
    /// nothing of it.
    ///
    /// # Errors
    /// [`Code::StoreChanged`] when the state is not the expected one.
    fn commit(&mut self, change: Change<'_>) -> Result<()>;

    /// What others changed since the last load, commit or call of this: the rows as they are at one moment, none when the
    /// state is `known`. `None` when the store cannot tell; then everything has to be loaded.
    ///
    /// # Errors
    /// Those of reading; the next call then tells the same changes again.
    fn changes(&mut self, known: &[u8]) -> Result<Option<Changes>> {
        let _ = known;
        Ok(None)
    }

    /// Tells of changes by others as they come, until the store is dropped. `None` where there are none, or where nobody
    /// tells.
    fn watch(&mut self) -> Option<Receiver<Changed>> {
        None
    }

    /// Whether others may change the store while it is open: then a change that meets another state is tried again on
    /// what the others left.
    fn is_shared(&self) -> bool {
        false
    }
}

/// The error of a store whose state is not the expected one.
pub(super) fn changed() -> KmsError {
    KmsError::new(Code::StoreChanged, "the keystore was changed by another process; open it again")
}
