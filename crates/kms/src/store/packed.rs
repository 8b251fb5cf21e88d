//! The rows of a large store that is read once, to be opened. Each table is in two buffers: a map
//! of a million rows would be two million allocations.

use std::collections::BTreeMap;

use super::interface::{Meta, ReadRows, Rows, SortedRows, Table, key_ranges};

/// All rows of a store as they were read.
#[derive(Debug, Default)]
pub(crate) struct PackedRows {
    pub(super) meta: Meta,
    pub(super) records: PackedTable,
    pub(super) private_keys: PackedTable,
}

/// The rows of a table, one after another.
#[derive(Debug, Default)]
pub(crate) struct PackedTable {
    names: String,
    values: Vec<u8>,
    /// Where each row ends in both.
    ends: Vec<(usize, usize)>,
}

impl PackedTable {
    /// Adds a row, whose name comes after those of all other rows.
    pub(super) fn push(&mut self, name: &str, value: &[u8]) {
        self.names.push_str(name);
        self.values.extend_from_slice(value);
        self.ends.push((self.names.len(), self.values.len()));
    }

    fn rows(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let begins = [(0, 0)].into_iter().chain(self.ends.iter().copied());
        let row = |((name, value), (name_end, value_end)): ((usize, usize), &(usize, usize))| {
            (&self.names[name..*name_end], &self.values[value..*value_end])
        };
        begins.zip(&self.ends).map(row)
    }

    fn to_map(&self) -> BTreeMap<String, Vec<u8>> {
        self.rows().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl PackedRows {
    /// The rows of one key.
    pub(super) fn of_key(&self, key_id: &str) -> Rows {
        let mut rows = Rows::default();
        for (table, names) in key_ranges(key_id) {
            let packed = if table == Table::Records { &self.records } else { &self.private_keys };
            let names = names.start.as_str()..names.end.as_str();
            let of_key = packed.rows().filter(|(name, _)| names.contains(name));
            rows.table_mut(table).extend(of_key.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        rows
    }
}

impl ReadRows for PackedRows {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn records(&self) -> SortedRows<'_> {
        self.records.rows().collect()
    }

    fn private_keys(&self) -> SortedRows<'_> {
        self.private_keys.rows().collect()
    }
}

impl From<&PackedRows> for Rows {
    fn from(rows: &PackedRows) -> Self {
        let (records, private_keys) = (rows.records.to_map(), rows.private_keys.to_map());
        Self { meta: rows.meta.clone(), records, private_keys }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_rows_are_the_rows_that_were_added() {
        let mut table = PackedTable::default();
        assert_eq!(table.rows().count(), 0);
        let rows = [("", &b"empty name"[..]), ("a", b""), ("\u{e9}", b"1"), ("\u{ea}b", b"23")];
        rows.iter().for_each(|(name, value)| table.push(name, value));
        assert!(table.rows().eq(rows));
        let rows = PackedRows { records: table, ..PackedRows::default() };
        let map = Rows::from(&rows);
        assert_eq!((map.records(), map.private_keys()), (rows.records(), rows.private_keys()));
    }

    #[test]
    fn the_rows_of_one_key_are_found_among_those_of_others() {
        let mut rows = PackedRows::default();
        for name in ["a", "b", "b-", "b0"] {
            rows.records.push(name, name.as_bytes());
        }
        for name in ["a/v1", "b-/v1", "b/v1", "b/v10", "b/v2", "b0/v1"] {
            rows.private_keys.push(name, name.as_bytes());
        }
        let names = |key: &str| {
            let rows = rows.of_key(key);
            assert!(rows.iter().all(|(_, name, value)| name.as_bytes() == value));
            rows.iter().map(|(_, name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("b"), ["b", "b/v1", "b/v10", "b/v2"]);
        assert_eq!(names("b0"), ["b0", "b0/v1"]);
        assert_eq!(names("c"), [""; 0]);
    }
}
