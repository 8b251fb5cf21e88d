//! A store that several machines share, in an etcd cluster.
//!
//! Each row is a key of etcd, `PREFIX:TABLE/NAME`. A change is one transaction, on the condition
//! that the state is the expected one and has the revision at which the writer found it. So two
//! writers never both follow the same state. A late write, which its writer has given up, finds
//! another revision and does nothing.

mod commit;
mod create;
mod feed;
mod link;
mod options;
mod outcome;
mod pages;
mod rows;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use self::create::Creation;
use self::feed::Feed;
use self::link::{Driver, Nodes};
pub use self::options::{EtcdIdentity, EtcdOptions, EtcdTls, EtcdUser};
use self::rows::{RemoteRows, Stored};
pub use self::table::{EtcdLease, EtcdTable, Insertion, TableRow};
use super::interface::{Change, Changed, Changes, Rows, Store};
use crate::error::Result;
use crate::random;

/// The rows of one keystore in a cluster.
pub(crate) struct EtcdStore {
    // The first field, so that it is dropped first: that ends all tasks that still run.
    driver: Driver,
    rows: RemoteRows,
    /// The revision at which the state was last seen.
    seen: i64,
    /// What the watch has told.
    feed: Arc<Feed>,
}

impl EtcdStore {
    /// Makes a store with these rows.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`](crate::Code::AlreadyExists) if there is anything under the prefix;
    /// [`Code::OutcomeUnknown`](crate::Code::OutcomeUnknown).
    pub(crate) fn create(options: &EtcdOptions, rows: &Rows) -> Result<Self> {
        let (driver, remote) = begin(options)?;
        let mut claim = [0; 16];
        random::fill(&mut claim)?;
        let creation = Creation::new(&remote, rows, claim)?;
        let seen = driver.run(creation.make())?;
        Ok(Self { driver, rows: remote, seen, feed: Arc::default() })
    }

    /// Connects to a store, without reading anything yet.
    pub(crate) fn open(options: &EtcdOptions) -> Result<Self> {
        let (driver, rows) = begin(options)?;
        Ok(Self { driver, rows, seen: 0, feed: Arc::default() })
    }

    /// The rows of the table `meta`.
    pub(crate) fn meta(&self) -> Result<Rows> {
        let rows = self.rows.clone();
        self.driver.run(async move { rows.read_meta().await })
    }
}

fn begin(options: &EtcdOptions) -> Result<(Driver, RemoteRows)> {
    options.check()?;
    let nodes = Nodes::new(&Arc::new(options.clone()));
    Ok((Driver::start()?, RemoteRows { nodes, prefix: options.prefix.as_str().into() }))
}

impl Store for EtcdStore {
    fn load(&mut self) -> Result<Rows> {
        let rows = self.rows.clone();
        let (loaded, seen) = self.driver.run(async move { rows.read_all().await })?;
        self.seen = seen;
        Ok(loaded)
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.rows.check_size(change.rows.iter().map(|(_, name, value)| (name, value.as_ref())))?;
        let rows = self.rows.clone();
        let (expected, change) = (change.expected_state.to_vec(), change.rows);
        self.seen = self.driver.run(async move { rows.commit(expected, change).await })?;
        Ok(())
    }

    fn changes(&mut self, known: &[u8]) -> Result<Option<Changes>> {
        let (rows, known) = (self.rows.clone(), Stored { value: known.to_vec(), revision: self.seen });
        let feed = Arc::clone(&self.feed);
        let changes = self.driver.run(async move { rows.changes(known, &feed).await })?;
        Ok(changes.map(|(changes, seen)| {
            self.seen = seen;
            changes
        }))
    }

    fn announced(&mut self) -> Option<Changes> {
        let (changes, seen) = self.feed.so_far(self.seen)?;
        self.seen = seen;
        Some(changes)
    }

    fn watch(&mut self) -> Option<Receiver<Changed>> {
        // A capacity of one is enough: one notice covers any number of changes.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.driver.spawn(watch::follow(self.rows.own_connection(), Arc::clone(&self.feed), sender));
        Some(receiver)
    }

    fn is_shared(&self) -> bool {
        true
    }
}
