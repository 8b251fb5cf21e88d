//! The interface of stores. A store has rows in tables, and one of the rows is its state.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::file_identity::FileIdentity;
use crate::error::{Code, KmsError, Result};

/// The tables of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// [`FORMAT`], [`PROTECTION`], [`STATE`] and [`GUARD`].
    Meta,
    /// Maps a key id to its sealed record.
    Records,
    /// Maps a key id to its sealed private key.
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

/// The rows of [`Table::Meta`].
pub(crate) type Meta = BTreeMap<String, Vec<u8>>;

/// The rows of a table, each with its name, in the order of their names.
pub(crate) type SortedRows<'a> = Vec<(&'a str, &'a [u8])>;

/// All rows of a store, to read.
pub(crate) trait ReadRows {
    fn meta(&self) -> &Meta;

    fn records(&self) -> SortedRows<'_>;

    fn private_keys(&self) -> SortedRows<'_>;
}

/// All rows of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) meta: Meta,
    pub(crate) records: BTreeMap<String, Vec<u8>>,
    pub(crate) private_keys: BTreeMap<String, Vec<u8>>,
}

impl Rows {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Table, &String, &Vec<u8>)> {
        let of_table = |table| self.table(table).iter().map(move |(name, value)| (table, name, value));
        Table::ALL.into_iter().flat_map(of_table)
    }

    pub(super) fn table(&self, table: Table) -> &BTreeMap<String, Vec<u8>> {
        match table {
            Table::Meta => &self.meta,
            Table::Records => &self.records,
            Table::PrivateKeys => &self.private_keys,
        }
    }

    pub(crate) fn table_mut(&mut self, table: Table) -> &mut BTreeMap<String, Vec<u8>> {
        match table {
            Table::Meta => &mut self.meta,
            Table::Records => &mut self.records,
            Table::PrivateKeys => &mut self.private_keys,
        }
    }
}

impl ReadRows for Rows {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn records(&self) -> SortedRows<'_> {
        self.records.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect()
    }

    fn private_keys(&self) -> SortedRows<'_> {
        self.private_keys.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect()
    }
}

/// A row to write. It replaces the row of the same name; without a value, it removes that row.
pub(crate) type Row = (Table, String, Option<Vec<u8>>);

/// Rows that are written together or not at all.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// The value that the row [`STATE`] must have; otherwise the change is not made.
    pub(crate) expected_state: &'a [u8],
    /// The rows to write. Each replaces the row of the same name; `None` removes it.
    pub(crate) rows: Vec<Row>,
}

/// Rows that other processes wrote; `None` for removed rows.
pub(crate) type Changes = BTreeMap<(Table, String), Option<Vec<u8>>>;

/// A notice that another process changed, or may have changed, a store.
#[derive(Debug)]
pub(crate) struct Changed;

/// The names of a key's rows in a table.
pub(super) type KeyRange = (Table, Range<String>);

/// The names of all rows of a key: its record's, and those of its private keys, which are the key's
/// id, a slash and more.
pub(super) fn key_ranges(key_id: &str) -> [KeyRange; 2] {
    // '0' comes after '/'.
    [
        (Table::Records, key_id.to_owned()..format!("{key_id}\0")),
        (Table::PrivateKeys, format!("{key_id}/")..format!("{key_id}0")),
    ]
}

pub(crate) trait Store: Send {
    /// Reads everything.
    fn load(&mut self) -> Result<Rows>;

    /// Reads the rows of one key as of one moment, and no others: its record, if there is one, and
    /// its private keys.
    fn load_key(&mut self, key_id: &str) -> Result<Rows>;

    /// Makes a change. It is durable when this returns. After an error, the store contains either
    /// all or none of the change.
    ///
    /// # Errors
    /// [`Code::KeystoreChanged`] if the state is not the expected one.
    fn commit(&mut self, change: Change<'_>) -> Result<()>;

    /// The rows that other processes changed since the last load, commit or call of this, all as of
    /// one moment. The map is empty if the state is still `known`. `None` if the store cannot tell;
    /// then the caller must load everything.
    ///
    /// # Errors
    /// Errors of reading; the next call then returns the same changes again.
    fn changes(&mut self, known: &[u8]) -> Result<Option<Changes>> {
        let _ = known;
        Ok(None)
    }

    /// The rows that other processes changed since then, as far as the store was told of them by
    /// itself: it asks nobody. `None` if it may have missed some; then the caller must ask, by
    /// [`Store::changes`].
    fn announced(&mut self) -> Option<Changes> {
        None
    }

    /// Announces other processes' changes as they are made, until the store is dropped. `None` if
    /// there are none, or the store cannot announce them.
    fn watch(&mut self) -> Option<Receiver<Changed>> {
        None
    }

    /// The file that the store is in, if it is in one.
    fn file(&self) -> Option<Arc<FileIdentity>> {
        None
    }

    /// Whether other processes may change the store while it is open. If so, a change that finds
    /// another state is tried again on the new state.
    fn is_shared(&self) -> bool {
        false
    }
}

/// The error if a store's state is not the expected one.
pub(super) fn changed() -> KmsError {
    KmsError::new(Code::KeystoreChanged, "the keystore was changed by another process; open it again")
}
