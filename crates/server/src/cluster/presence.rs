//! The row that says that a node is there. etcd removes it when the node stops renewing it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bulla_kms::{Code, KmsError, Result};

use super::table::{EtcdLease, InsertOutcome, Table, TableRow};

/// The folder of the rows.
const NODE_FOLDER: &str = "nodes";
/// How long a node that says nothing counts as there.
const PRESENCE_LEASE_TIME: Duration = Duration::from_secs(15);
/// How often a node says that it is there.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(4);

/// The name of a node's row.
pub(super) fn row(node: &str) -> String {
    format!("{NODE_FOLDER}/{node}")
}

/// Whether a node is there.
///
/// # Errors
/// Those of etcd.
pub(super) fn is_present(table: &Table, node: &str) -> Result<bool> {
    Ok(table.get(&row(node))?.is_some())
}

/// The names of all nodes that are there.
///
/// # Errors
/// Those of etcd.
pub(super) fn nodes(table: &Table) -> Result<HashSet<String>> {
    let rows = table.read(NODE_FOLDER, 0)?.0;
    let name = |there: TableRow| there.name.strip_prefix(&row("")).map(str::to_owned);
    Ok(rows.into_iter().filter_map(name).collect())
}

#[derive(Debug, Default)]
pub(super) struct NodePresence {
    lease: Option<EtcdLease>,
    announced: Option<Instant>,
}

impl NodePresence {
    /// Says that the node is there, and counts the nodes, if it is time to.
    ///
    /// # Errors
    /// Those of etcd.
    pub(super) fn announce(&mut self, table: &Table, node: &str) -> Result<Option<u32>> {
        if self.announced.is_some_and(|announced| announced.elapsed() < ANNOUNCE_INTERVAL) {
            return Ok(None);
        }
        let announced = Instant::now();
        let lasts = match self.lease {
            Some(lease) => table.renew(lease)?,
            None => false,
        };
        if !lasts {
            let lease = table.lease(PRESENCE_LEASE_TIME)?;
            // Each lease has a value of its own, so that a row of another lease is not taken for
            // its row.
            let value = format!("{lease:?}");
            if let InsertOutcome::Exists(_) = table.insert(&row(node), value.as_bytes(), Some(lease))? {
                // The row is of an earlier lease of ours, whose answer got lost. It ends soon.
                return Err(KmsError::new(Code::Busy, "the node's row has not ended yet"));
            }
            self.lease = Some(lease);
        }
        let number = u32::try_from(table.count(NODE_FOLDER)?).unwrap_or(u32::MAX);
        self.announced = Some(announced);
        Ok(Some(number))
    }
}
