//! A store that several machines share, in an etcd cluster.
//!
//! Each row is a key of etcd, `PREFIX:TABLE/NAME`. A change is one transaction, on the condition
//! that the state is the expected one and has the revision at which the writer found it. So two
//! writers never both follow the same state. A late write, which its writer has given up, finds
//! another revision and does nothing.

mod commit;
mod create;
mod feed;
mod rows;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

pub(crate) use bulla_etcd::EtcdOptions;
use bulla_etcd::{ConnectionThread, EtcdNodes};

use self::create::Creation;
use self::feed::Feed;
use self::rows::{RemoteRows, Stored};
use super::interface::{Change, Changed, Changes, Rows, Store};
use crate::error::Result;
use crate::random;

/// The rows of one keystore in a cluster.
pub(crate) struct EtcdStore {
    // The first field, so that it is dropped first: that ends all tasks that still run.
    thread: ConnectionThread,
    rows: RemoteRows,
    /// The revision at which the state was last seen.
    seen: i64,
    /// The changes that the watch has told of.
    feed: Arc<Feed>,
}

impl EtcdStore {
    /// Makes a store with these rows.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`](crate::Code::AlreadyExists) if there is anything under the prefix;
    /// [`Code::OutcomeUnknown`](crate::Code::OutcomeUnknown).
    pub(crate) fn create(options: &EtcdOptions, rows: &Rows) -> Result<Self> {
        let (thread, remote) = connect(options)?;
        let mut claim = [0; 16];
        random::fill(&mut claim)?;
        let creation = Creation::new(&remote, rows, claim)?;
        let seen = thread.run(creation.make())?;
        Ok(Self { thread, rows: remote, seen, feed: Arc::default() })
    }

    /// Connects to a store, without reading anything yet.
    pub(crate) fn open(options: &EtcdOptions) -> Result<Self> {
        let (thread, rows) = connect(options)?;
        Ok(Self { thread, rows, seen: 0, feed: Arc::default() })
    }

    /// The rows of the table `meta`.
    pub(crate) fn meta(&self) -> Result<Rows> {
        let rows = self.rows.clone();
        self.thread.run(async move { rows.read_meta().await })
    }
}

fn connect(options: &EtcdOptions) -> Result<(ConnectionThread, RemoteRows)> {
    let nodes = EtcdNodes::new(options)?;
    Ok((ConnectionThread::start()?, RemoteRows { nodes, prefix: options.prefix.as_str().into() }))
}

impl Store for EtcdStore {
    fn load(&mut self) -> Result<Rows> {
        let rows = self.rows.clone();
        let (loaded, seen) = self.thread.run(async move { rows.read_all().await })?;
        self.seen = seen;
        Ok(loaded)
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        let (rows, key_id) = (self.rows.clone(), key_id.to_owned());
        self.thread.run(async move { rows.read_key(&key_id).await })
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.rows.check_size(change.rows.iter().map(|(_, name, value)| (name, value.as_ref())))?;
        let rows = self.rows.clone();
        let (expected, change) = (change.expected_state.to_vec(), change.rows);
        self.seen = self.thread.run(async move { rows.commit(expected, change).await })?;
        Ok(())
    }

    fn changes(&mut self, known: &[u8]) -> Result<Option<Changes>> {
        let (rows, known) = (self.rows.clone(), Stored { value: known.to_vec(), revision: self.seen });
        let feed = Arc::clone(&self.feed);
        let changes = self.thread.run(async move { rows.changes(known, &feed).await })?;
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
        self.thread.spawn(feed::follow(self.rows.own_connection(), Arc::clone(&self.feed), sender));
        Some(receiver)
    }

    fn is_shared(&self) -> bool {
        true
    }
}
