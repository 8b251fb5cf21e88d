//! Rows as keys of etcd, and reading them.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, Error, GetOptions, GetResponse, KeyValue};

use super::link::{Failure, Nodes};
use super::pages::{Page, Pages};
use crate::error::{Code, KmsError, Result};
use crate::store::interface::{Rows, STATE, Table};

/// The most operations that etcd accepts in a transaction (`--max-txn-ops`).
pub(super) const MOST_OPERATIONS: usize = 128;
/// The most bytes that etcd accepts in a request (`--max-request-bytes`), less the bytes that it
/// adds to ours.
pub(super) const MOST_BYTES: usize = (3 << 19) - 4096;
/// The bytes of a row in a request, in addition to its name and value.
pub(super) const ROW_OVERHEAD: usize = 32;
/// How long a page after the first one may take. For a page without a near end, etcd looks at every
/// key: at a million keys in half a second, or more if it is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often reading starts again if etcd drops the revision that is being read.
const READINGS: usize = 3;

/// The location of the rows.
#[derive(Clone)]
pub(super) struct RemoteRows {
    pub(super) nodes: Nodes,
    pub(super) prefix: Arc<str>,
}

/// The state in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) value: Vec<u8>,
    /// The revision that wrote it.
    pub(super) revision: i64,
}

impl Table {
    fn in_etcd(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Records => "records",
            Self::PrivateKeys => "private_keys",
        }
    }
}

impl RemoteRows {
    pub(super) fn key(&self, table: Table, name: &str) -> String {
        format!("{}:{}/{name}", self.prefix, table.in_etcd())
    }

    pub(super) fn state_key(&self) -> String {
        self.key(Table::Meta, STATE)
    }

    /// The first key of our tables, and the first key after them.
    pub(super) fn tables(&self) -> (String, String) {
        // '0' comes after '/', and no table after "records".
        (format!("{}:", self.prefix), format!("{}:{}0", self.prefix, Table::Records.in_etcd()))
    }

    /// The first of our keys, and the first key after ours. These are the tables, and what services
    /// keep beside them.
    pub(super) fn range(&self) -> (String, String) {
        // ';' comes after ':'.
        (format!("{}:", self.prefix), format!("{};", self.prefix))
    }

    /// A key's table and name; `None` for keys of other kinds.
    pub(super) fn row(&self, key: &[u8]) -> Result<Option<(Table, String)>> {
        let text = std::str::from_utf8(key)
            .map_err(|_| KmsError::corrupt("a row's name in etcd is not UTF-8; the keystore was edited"))?;
        let row = text.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_prefix(':')?.split_once('/'));
        let table = |name: &str| Table::ALL.into_iter().find(|table| table.in_etcd() == name);
        Ok(row.and_then(|(folder, name)| Some((table(folder)?, name.to_owned()))))
    }

    pub(super) fn own_connection(&self) -> Self {
        Self { nodes: self.nodes.another(), prefix: Arc::clone(&self.prefix) }
    }

    pub(super) fn error(&self, failure: Failure) -> KmsError {
        failure.into_error(&self.prefix)
    }

    /// Refuses rows that etcd would refuse, before anything is sent.
    pub(super) fn check_size<'a>(
        &self,
        rows: impl Iterator<Item = (&'a String, Option<&'a Vec<u8>>)>,
    ) -> Result<()> {
        // The conditions contain the state too, with its value.
        let (mut operations, mut bytes) = (0, 1024);
        for (name, value) in rows {
            operations += 1;
            bytes += self.prefix.len() + name.len() + value.map_or(0, Vec::len) + ROW_OVERHEAD;
        }
        if operations > MOST_OPERATIONS {
            return Err(KmsError::new(
                Code::TooLarge,
                format!(
                    "the change has {operations} rows, and etcd takes {MOST_OPERATIONS} at a time; \
                     destroy older versions of the key one by one first"
                ),
            ));
        }
        if bytes > MOST_BYTES {
            return Err(KmsError::new(
                Code::TooLarge,
                format!(
                    "the change has {bytes} bytes, and etcd takes {MOST_BYTES} in a request; \
                     a key with so many versions has to be replaced by a new key"
                ),
            ));
        }
        Ok(())
    }

    /// All rows at one moment, and the state's revision.
    pub(super) async fn read_all(&self) -> Result<(Rows, i64)> {
        let (from, end) = self.tables();
        self.read(&from, &end).await
    }

    /// The rows that say what a keystore is: a handful, however many keys it has.
    pub(super) async fn read_meta(&self) -> Result<Rows> {
        let from = self.key(Table::Meta, "");
        // '0' comes after '/'.
        let end = format!("{}0", from.trim_end_matches('/'));
        Ok(self.read(&from, &end).await?.0)
    }

    async fn read(&self, from: &str, end: &str) -> Result<(Rows, i64)> {
        for _ in 0..READINGS {
            if let Some(read) = self.read_pages(Pages::new(from, end)).await? {
                return Ok(read);
            }
        }
        Err(KmsError::new(Code::Busy, "etcd is compacted faster than the keystore is read; try again"))
    }

    /// Reads page by page; `None` if etcd dropped the revision that was being read.
    async fn read_pages(&self, mut pages: Pages) -> Result<Option<(Rows, i64)>> {
        let (mut rows, mut seen, mut revision) = (Rows::default(), 0, 0);
        while let Some(page) = pages.next() {
            let answer = match self.page(&page, revision).await {
                Ok(answer) => answer,
                // The answer does not fit into a message: ask for less.
                Err(Failure::Refused(error)) if is_too_long(&error) && pages.shrink() => continue,
                Err(Failure::Refused(error)) if error.to_string().contains("compacted") => return Ok(None),
                Err(failure) => return Err(self.error(failure)),
            };
            if revision == 0 {
                revision = answer.header().map_or(0, |header| header.revision());
            }
            for row in answer.kvs() {
                if let Some((table, name)) = self.row(row.key())? {
                    if (table, name.as_str()) == (Table::Meta, STATE) {
                        seen = row.mod_revision();
                    }
                    rows.table_mut(table).insert(name, row.value().to_vec());
                }
            }
            pages.read(answer.kvs().iter().map(KeyValue::key), answer.more());
        }
        Ok(Some((rows, seen)))
    }

    async fn page(&self, page: &Page, revision: i64) -> Result<GetResponse, Failure> {
        let options = GetOptions::new().with_range(page.to.as_slice());
        let options = options.with_revision(revision).with_limit(page.most);
        // Whether the cluster answers at all is known after the first page.
        let time = if revision == 0 { Duration::ZERO } else { PATIENCE };
        self.nodes
            .ask_for(time, |client: Client| {
                let (from, options) = (page.from.as_slice(), options.clone());
                async move { client.kv_client().get(from, Some(options)).await }
            })
            .await
    }

    /// The current state in the cluster; `None` if there is none.
    pub(super) async fn state(&self) -> Result<Option<Stored>, Failure> {
        self.state_at(0).await
    }

    /// The state at a revision; 0 is the current one.
    pub(super) async fn state_at(&self, revision: i64) -> Result<Option<Stored>, Failure> {
        let options = GetOptions::new().with_revision(revision);
        let key = self.state_key();
        let answer = self
            .nodes
            .ask(|client: Client| {
                let (key, options) = (key.clone(), options.clone());
                async move { client.kv_client().get(key, Some(options)).await }
            })
            .await?;
        Ok(answer.kvs().first().map(Stored::from))
    }

    /// The conditions that the state is the one that was seen. The revision alone would be enough,
    /// except in a cluster that was restored from a backup and counts its revisions again.
    pub(super) fn is_still(&self, state: &Stored) -> Vec<Compare> {
        vec![
            Compare::mod_revision(self.state_key(), CompareOp::Equal, state.revision),
            Compare::value(self.state_key(), CompareOp::Equal, state.value.clone()),
        ]
    }

    pub(super) fn gone(&self) -> KmsError {
        KmsError::corrupt(format!("the keystore {} in etcd is gone: its state row is missing", self.prefix))
    }

    pub(super) fn unknown(&self, first: &str, then: &str) -> KmsError {
        KmsError::new(
            Code::OutcomeUnknown,
            format!(
                "the keystore {} in etcd stopped answering in the middle of a change ({first}; {then}): it was made or \
                 it was not; look at the key when the cluster is whole, and make the change again if it is not there",
                self.prefix
            ),
        )
    }
}

/// Whether an answer was longer than a message may be.
fn is_too_long(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("length too large") || text.contains("larger than max")
}

impl From<&KeyValue> for Stored {
    fn from(row: &KeyValue) -> Self {
        Self { value: row.value().to_vec(), revision: row.mod_revision() }
    }
}
