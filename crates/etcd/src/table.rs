//! A table of rows that services keep beside a keystore in etcd.
//!
//! A row is a key of etcd, `PREFIX:service/NAME`. The keystore's state does not bind these rows,
//! and the keystore never reads them. Every change names what it expects, so that a change whose
//! answer did not arrive can be repeated.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn,
    TxnOp, TxnOpResponse, TxnResponse, WatchOptions, WatchResponse,
};

use crate::MAX_REQUEST_BYTES;
use crate::connection::{ConnectionThread, EtcdNodes, watch_keys};
use crate::error::{EtcdError, EtcdErrorKind, RequestFailure, Result};
use crate::options::EtcdOptions;

/// A table of rows beside a keystore in etcd, for the services that share it. Values are public to
/// everybody who can read from etcd, so a program encrypts what they must not see.
pub struct EtcdTable {
    // The first field, so that it is dropped first: that ends all tasks that still run.
    thread: ConnectionThread,
    remote: RemoteTable,
}

/// A row of an [`EtcdTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// Its name, for example `FOLDER/NAME`.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
}

/// The outcome of [`EtcdTable::insert`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The row is new.
    New {
        /// The number of rows in its folder now.
        rows: u64,
    },
    /// A row with this name exists. It stays as it is.
    Exists(TableRow),
}

/// A time after which etcd removes rows by itself, unless it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdLease(i64);

/// The maximum number of rows that one request reads.
const MAX_PAGE_ROWS: i64 = 256;

impl EtcdTable {
    /// Connects to a cluster, without asking it for anything yet.
    ///
    /// # Errors
    /// [`EtcdErrorKind::InvalidArgument`] for invalid options.
    pub fn open(options: &EtcdOptions) -> Result<Self> {
        let nodes = EtcdNodes::new(options)?;
        let remote = RemoteTable { nodes, prefix: options.prefix.as_str().into() };
        Ok(Self { thread: ConnectionThread::start()?, remote })
    }

    /// The rows of a folder that are newer than the revision `since`, and a revision after all of
    /// them. It asks the majority, so every acknowledged row is among them or was removed. Revision
    /// 0 is before all rows.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn read(&self, folder: &str, since: i64) -> Result<(Vec<TableRow>, i64)> {
        let table = self.remote.clone();
        let (from, end) = table.folder(folder);
        let newer = GetOptions::new().with_min_mod_revision(since + 1).with_range(end);
        self.thread.run(async move { table.range(from, newer, usize::MAX).await })
    }

    /// Up to `most` rows of a folder in the order of their names, from after the name `after` on,
    /// whether there is a row of that name or not. It asks the majority.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn page(&self, folder: &str, after: &str, most: usize) -> Result<Vec<TableRow>> {
        let table = self.remote.clone();
        let (from, (_, end)) = (table.key(after) + "\0", table.folder(folder));
        let options = GetOptions::new().with_range(end);
        self.thread.run(async move { Ok(table.range(from, options, most).await?.0) })
    }

    /// One row.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn get(&self, name: &str) -> Result<Option<TableRow>> {
        let (table, key) = (self.remote.clone(), self.remote.key(name));
        self.thread.run(async move {
            let answer = table.get(&key, GetOptions::new()).await?;
            Ok(answer.kvs().first().and_then(|row| table.row(row)))
        })
    }

    /// The number of rows in a folder.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn count(&self, folder: &str) -> Result<u64> {
        let (table, folder) = (self.remote.clone(), folder.to_owned());
        self.thread.run(async move {
            let (begin, end) = table.folder(&folder);
            let answer = table.get(&begin, GetOptions::new().with_range(end).with_count_only()).await?;
            Ok(u64::try_from(answer.count()).unwrap_or(0))
        })
    }

    /// The oldest rows of a folder, the oldest first.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn oldest(&self, folder: &str, most: u32) -> Result<Vec<TableRow>> {
        let (table, folder) = (self.remote.clone(), folder.to_owned());
        self.thread.run(async move {
            let (begin, end) = table.folder(&folder);
            let sorted = GetOptions::new().with_sort(SortTarget::Create, SortOrder::Ascend);
            let answer = table.get(&begin, sorted.with_range(end).with_limit(i64::from(most))).await?;
            Ok(answer.kvs().iter().filter_map(|row| table.row(row)).collect())
        })
    }

    /// Adds a row, unless a row with its name exists.
    ///
    /// # Errors
    /// [`EtcdErrorKind::TooLarge`]; [`EtcdErrorKind::Unavailable`]: the row may appear nonetheless.
    /// [`EtcdErrorKind::PermissionDenied`], [`EtcdErrorKind::StorageFull`]: the row was not added.
    pub fn insert(&self, name: &str, value: &[u8], lease: Option<EtcdLease>) -> Result<InsertOutcome> {
        check_size(value)?;
        let (table, key, value) = (self.remote.clone(), self.remote.key(name), value.to_vec());
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        self.thread.run(async move {
            let (begin, end) = table.folder(&folder);
            let count = TxnOp::get(begin, Some(GetOptions::new().with_range(end).with_count_only()));
            let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
            let put = TxnOp::put(key.as_str(), value.clone(), options(lease));
            let change = Txn::new().when([absent]).and_then([put, count.clone()]);
            let answer = table.transaction(change, vec![TxnOp::get(key.as_str(), None), count]).await?;
            let rows = u64::try_from(answer.read.last().map_or(0, GetResponse::count)).unwrap_or(0);
            let there = answer.read.first().and_then(|found| found.kvs().first());
            match (there.and_then(|row| table.row(row)), answer.full) {
                // No two values are the same: a row with ours is ours.
                (Some(row), _) if row.value != value => Ok(InsertOutcome::Exists(row)),
                (None, Some(full)) => Err(full),
                _ => Ok(InsertOutcome::New { rows }),
            }
        })
    }

    /// Replaces a row's value, if it is still `old`. `None` removes the row. Returns false if it
    /// has another value.
    ///
    /// # Errors
    /// [`EtcdErrorKind::TooLarge`]; [`EtcdErrorKind::Unavailable`]: the row may change nonetheless.
    /// [`EtcdErrorKind::PermissionDenied`], [`EtcdErrorKind::StorageFull`]: the row was not
    /// changed.
    pub fn replace(&self, name: &str, old: &[u8], new: Option<&[u8]>) -> Result<bool> {
        // The row ends when it would have ended.
        self.change(name, old, new, PutOptions::new().with_ignore_lease())
    }

    /// Like [`EtcdTable::replace`], and from now on the row ends with a lease.
    ///
    /// # Errors
    /// Those of [`EtcdTable::replace`].
    pub fn replace_until(&self, name: &str, old: &[u8], new: &[u8], lease: EtcdLease) -> Result<bool> {
        self.change(name, old, Some(new), PutOptions::new().with_lease(lease.0))
    }

    fn change(&self, name: &str, old: &[u8], new: Option<&[u8]>, options: PutOptions) -> Result<bool> {
        check_size(new.unwrap_or_default())?;
        let (table, key) = (self.remote.clone(), self.remote.key(name));
        let (old, new) = (old.to_vec(), new.map(<[u8]>::to_vec));
        self.thread.run(async move {
            let change = match &new {
                Some(new) => TxnOp::put(key.as_str(), new.clone(), Some(options)),
                None => TxnOp::delete(key.as_str(), None),
            };
            let is_old = Compare::value(key.as_str(), CompareOp::Equal, old.clone());
            let change = Txn::new().when([is_old]).and_then([change]);
            let answer = table.transaction(change, vec![TxnOp::get(key.as_str(), None)]).await?;
            let found = answer.read.first().and_then(|found| found.kvs().first());
            let found = found.map(|row| row.value().to_vec());
            match answer.full {
                Some(full) if found == Some(old) => Err(full),
                _ => Ok(answer.made || found == new),
            }
        })
    }

    /// A time after which etcd removes the rows that were inserted with it.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn lease(&self, time: Duration) -> Result<EtcdLease> {
        let (table, seconds) = (self.remote.clone(), i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
        self.thread.run(async move {
            let granted = table
                .nodes
                .ask(|client: Client| async move { client.lease_client().grant(seconds, None).await });
            Ok(EtcdLease(granted.await.map_err(|failure| failure.into_error(&table.prefix))?.id()))
        })
    }

    /// Starts the time anew. Returns false if it has ended.
    ///
    /// # Errors
    /// [`EtcdErrorKind::Unavailable`], [`EtcdErrorKind::PermissionDenied`].
    pub fn renew(&self, lease: EtcdLease) -> Result<bool> {
        let table = self.remote.clone();
        self.thread.run(async move {
            let renewed = table.nodes.ask(|client: Client| async move {
                let (mut keeper, mut answers) = match client.lease_client().keep_alive(lease.0).await {
                    // The time has ended.
                    Err(etcd_client::Error::LeaseKeepAliveError(_)) => return Ok(None),
                    begun => begun?,
                };
                keeper.keep_alive().await?;
                answers.message().await
            });
            match renewed.await {
                Ok(answer) => Ok(answer.is_some_and(|answer| answer.ttl() > 0)),
                Err(failure) => Err(failure.into_error(&table.prefix)),
            }
        })
    }

    /// Announces each change of a folder's rows by `changed`, until its receiver or the table is
    /// dropped. A channel with a capacity of one is enough: one notice covers any number of
    /// changes.
    pub fn notify(&self, folder: &str, changed: SyncSender<()>) {
        let (begin, end) = self.remote.folder(folder);
        self.thread.spawn(announce_changes(self.remote.nodes.with_own_connection(), begin, end, changed));
    }
}

impl std::fmt::Debug for EtcdTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdTable").field("prefix", &self.remote.prefix).finish_non_exhaustive()
    }
}

/// Announces each change of the keys from `begin` to before `end`, until the receiver is dropped.
async fn announce_changes(nodes: EtcdNodes, begin: String, end: String, changed: SyncSender<()>) {
    let options = WatchOptions::new().with_range(end);
    let told = |message: Option<&WatchResponse>| {
        message.is_none() || !matches!(changed.try_send(()), Err(TrySendError::Disconnected(())))
    };
    watch_keys(&nodes, &begin, options, told).await;
}

fn check_size(value: &[u8]) -> Result<()> {
    if value.len() <= MAX_REQUEST_BYTES / 2 {
        return Ok(());
    }
    Err(EtcdError::new(EtcdErrorKind::TooLarge, format!("a row has at most {} bytes", MAX_REQUEST_BYTES / 2)))
}

fn options(lease: Option<EtcdLease>) -> Option<PutOptions> {
    lease.map(|lease| PutOptions::new().with_lease(lease.0))
}

/// The rows in the cluster.
#[derive(Clone)]
struct RemoteTable {
    nodes: EtcdNodes,
    prefix: Arc<str>,
}

impl RemoteTable {
    fn key(&self, name: &str) -> String {
        format!("{}:service/{name}", self.prefix)
    }

    /// The first key of a folder, and the first key after it.
    fn folder(&self, folder: &str) -> (String, String) {
        // '0' comes after '/'.
        let begin = self.key(folder);
        (format!("{begin}/"), format!("{begin}0"))
    }

    fn row(&self, row: &KeyValue) -> Option<TableRow> {
        let name = std::str::from_utf8(row.key()).ok()?.strip_prefix(&self.key(""))?;
        Some(TableRow { name: name.to_owned(), value: row.value().to_vec() })
    }

    /// Up to `most` rows from a key on, as far as the options say, and a revision after all of
    /// them.
    async fn range(
        &self,
        mut from: String,
        options: GetOptions,
        most: usize,
    ) -> Result<(Vec<TableRow>, i64)> {
        let (mut rows, mut revision) = (Vec::new(), 0);
        while rows.len() < most {
            let missing = i64::try_from(most - rows.len()).unwrap_or(i64::MAX);
            let answer = self.get(&from, options.clone().with_limit(missing.min(MAX_PAGE_ROWS))).await?;
            if revision == 0 {
                revision = answer.header().map_or(0, |header| header.revision());
            }
            rows.extend(answer.kvs().iter().filter_map(|row| self.row(row)));
            match answer.kvs().last() {
                Some(last) if answer.more() => from = String::from_utf8_lossy(last.key()).into_owned() + "\0",
                _ => break,
            }
        }
        Ok((rows, revision))
    }

    async fn get(&self, from: &str, options: GetOptions) -> Result<GetResponse> {
        let answer = self.nodes.ask(|client: Client| {
            let (from, options) = (from.to_owned(), options.clone());
            async move { client.kv_client().get(from, Some(options)).await }
        });
        answer.await.map_err(|failure| failure.into_error(&self.prefix))
    }

    /// Makes a transaction that may be repeated. If it is not made, it reads instead.
    async fn transaction(&self, change: Txn, reading: Vec<TxnOp>) -> Result<TableAnswer> {
        let read = Txn::new().and_then(reading.clone());
        let (answer, full) = match self.send(change.or_else(reading)).await {
            Err(failure) if failure.is_full() => {
                (self.send(read).await, Some(failure.into_error(&self.prefix)))
            }
            answer => (answer, None),
        };
        let answer = answer.map_err(|failure| failure.into_error(&self.prefix))?;
        let read = answer.op_responses().into_iter().filter_map(|response| match response {
            TxnOpResponse::Get(found) => Some(found),
            _ => None,
        });
        Ok(TableAnswer { made: full.is_none() && answer.succeeded(), read: read.collect(), full })
    }

    async fn send(&self, transaction: Txn) -> Result<TxnResponse, RequestFailure> {
        let answer = self.nodes.ask(|client: Client| {
            let transaction = transaction.clone();
            async move { client.kv_client().txn(transaction).await }
        });
        answer.await
    }
}

/// The answer to a transaction.
struct TableAnswer {
    /// Whether its conditions were true.
    made: bool,
    /// The answers to its reads.
    read: Vec<GetResponse>,
    /// The error if etcd refused it for lack of space. It may be made nonetheless: what was read
    /// tells.
    full: Option<EtcdError>,
}
