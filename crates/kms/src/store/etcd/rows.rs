//! Rows as keys of etcd, and reading them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bulla_etcd::{EtcdNodes, MAX_OPERATIONS, MAX_REQUEST_BYTES, RequestFailure};
use etcd_client::{Client, Compare, CompareOp, Error, GetOptions, GetResponse, KeyValue};

use crate::error::{Code, KmsError, Result};
use crate::store::interface::{KeyRange, Rows, STATE, Table, key_ranges};

/// The bytes of a row in a request, in addition to its name and value.
pub(super) const ROW_OVERHEAD: usize = 32;
/// How long a page after the first one may take. For a page without a near end, etcd looks at every
/// key: at a million keys in half a second, or more if it is busy.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often reading starts again if etcd drops the revision that is being read.
const MAX_READINGS: usize = 3;

/// The location of the rows.
#[derive(Clone)]
pub(super) struct RemoteRows {
    pub(super) nodes: EtcdNodes,
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
        Self { nodes: self.nodes.with_own_connection(), prefix: Arc::clone(&self.prefix) }
    }

    pub(super) fn error(&self, failure: RequestFailure) -> KmsError {
        failure.into_error(&self.prefix).into()
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
        if operations > MAX_OPERATIONS {
            return Err(KmsError::new(
                Code::TooLarge,
                format!(
                    "the change has {operations} rows, and etcd takes {MAX_OPERATIONS} at a time; \
                     destroy older versions of the key one by one first"
                ),
            ));
        }
        if bytes > MAX_REQUEST_BYTES {
            return Err(KmsError::new(
                Code::TooLarge,
                format!(
                    "the change has {bytes} bytes, and etcd takes {MAX_REQUEST_BYTES} in a request; \
                     a key with so many versions has to be replaced by a new key"
                ),
            ));
        }
        Ok(())
    }

    /// All rows at one moment, and the state's revision.
    pub(super) async fn read_all(&self) -> Result<(Rows, i64)> {
        let (from, end) = self.tables();
        self.read(&[from..end]).await
    }

    /// The rows of one key at one moment.
    pub(super) async fn read_key(&self, key_id: &str) -> Result<Rows> {
        let key = |(table, names): KeyRange| self.key(table, &names.start)..self.key(table, &names.end);
        Ok(self.read(&key_ranges(key_id).map(key)).await?.0)
    }

    /// The rows that say what a keystore is: a handful, however many keys it has.
    pub(super) async fn read_meta(&self) -> Result<Rows> {
        let from = self.key(Table::Meta, "");
        // '0' comes after '/'.
        let end = format!("{}0", from.trim_end_matches('/'));
        Ok(self.read(&[from..end]).await?.0)
    }

    /// The rows of all ranges of keys at one moment, and the state's revision if it is among them.
    async fn read(&self, ranges: &[Range<String>]) -> Result<(Rows, i64)> {
        for _ in 0..MAX_READINGS {
            if let Some(read) = self.read_pages(ranges).await? {
                return Ok(read);
            }
        }
        Err(KmsError::new(Code::Busy, "etcd is compacted faster than the keystore is read; try again"))
    }

    /// Reads page by page; `None` if etcd dropped the revision that was being read.
    async fn read_pages(&self, ranges: &[Range<String>]) -> Result<Option<(Rows, i64)>> {
        let (mut rows, mut seen, mut revision) = (Rows::default(), 0, 0);
        let mut ranges = ranges.iter().map(|range| Pages::new(range.start.as_str(), range.end.as_str()));
        let mut pages = ranges.next();
        while let Some(of_range) = &mut pages {
            let Some(page) = of_range.next() else {
                pages = ranges.next();
                continue;
            };
            let answer = match self.page(&page, revision).await {
                Ok(answer) => answer,
                // The answer does not fit into a message: ask for less.
                Err(RequestFailure::Refused(error)) if is_too_long(&error) && of_range.shrink() => continue,
                Err(RequestFailure::Refused(error)) if error.to_string().contains("compacted") => {
                    return Ok(None);
                }
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
            of_range.read(answer.kvs().iter().map(KeyValue::key), answer.more());
        }
        Ok(Some((rows, seen)))
    }

    async fn page(&self, page: &Page, revision: i64) -> Result<GetResponse, RequestFailure> {
        let options = GetOptions::new().with_range(page.to.as_slice());
        let options = options.with_revision(revision).with_limit(page.max_rows);
        // Whether the cluster answers at all is known after the first page.
        let time = if revision == 0 { Duration::ZERO } else { PAGE_TIMEOUT };
        self.nodes
            .ask_for(time, |client: Client| {
                let (from, options) = (page.from.as_slice(), options.clone());
                async move { client.kv_client().get(from, Some(options)).await }
            })
            .await
    }

    /// The current state in the cluster; `None` if there is none.
    pub(super) async fn state(&self) -> Result<Option<Stored>, RequestFailure> {
        self.state_at(0).await
    }

    /// The state at a revision; 0 is the current one.
    pub(super) async fn state_at(&self, revision: i64) -> Result<Option<Stored>, RequestFailure> {
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

/// The number of rows that one request reads; fewer if they are large.
const MAX_PAGE_ROWS: usize = 1024;
/// A page with fewer rows than this is followed by one with a farther end.
const MIN_PAGE_ROWS: usize = MAX_PAGE_ROWS / 8;

/// A range of keys that is being read.
///
/// etcd looks at every key of the range that a request names, even if the request wants only the
/// first thousand. So pages that all name the end of the whole range take a time that grows with
/// the square of the number of keys. Here a page names a nearer end: the first key that differs
/// from the page's begin in its first few bytes. How many bytes these are follows from the pages
/// before.
struct Pages {
    from: Vec<u8>,
    end: Vec<u8>,
    /// How many of the first bytes all keys of the next page have; 0 for a page that may go on to
    /// the end.
    same: usize,
    rows: usize,
}

/// The range of one request: rows from a key to before another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    from: Vec<u8>,
    to: Vec<u8>,
    max_rows: i64,
}

impl Pages {
    /// The keys from `from` to before `end`.
    fn new(from: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self { from: from.into(), end: end.into(), same: 0, rows: MAX_PAGE_ROWS }
    }

    /// The next page; `None` after the last one.
    fn next(&self) -> Option<Page> {
        let max_rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
        (self.from < self.end).then(|| Page { from: self.from.clone(), to: self.to(), max_rows })
    }

    fn to(&self) -> Vec<u8> {
        let mut to = self.from.clone();
        to.resize(self.same, 0);
        // The first key after all that begin with these bytes.
        while to.pop_if(|last| *last == u8::MAX).is_some() {}
        let Some(last) = to.last_mut() else { return self.end.clone() };
        *last += 1;
        to.min(self.end.clone())
    }

    /// The answer to a page did not fit into a message. Returns whether a smaller page is possible.
    fn shrink(&mut self) -> bool {
        self.rows = (self.rows / 2).max(1);
        self.rows > 1
    }

    /// Goes on after a page that has these keys, in their order. `more` says that the page left
    /// some out.
    fn read<'a>(&mut self, keys: impl IntoIterator<Item = &'a [u8]>, more: bool) {
        let mut keys = keys.into_iter();
        let first = keys.next();
        let (mut rows, mut last) = (usize::from(first.is_some()), first);
        for key in keys {
            (rows, last) = (rows + 1, Some(key));
        }
        match first.zip(last) {
            Some((first, last)) if more => {
                // The next page ends with the keys that have the same byte where this one has
                // different ones.
                self.same = first.iter().zip(last).take_while(|(a, b)| a == b).count() + 1;
                // The smallest key after the last one.
                self.from = [last, &[0]].concat();
            }
            _ => {
                self.from = self.to();
                self.same = self.same.saturating_sub(usize::from(rows < MIN_PAGE_ROWS));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What a store does with these keys: the keys that were read, how many pages there were, and
    /// how many keys the store looked at.
    fn read(keys: &BTreeSet<Vec<u8>>, from: &str, end: &str) -> (Vec<Vec<u8>>, usize, usize) {
        let mut pages = Pages::new(from, end);
        let (mut found, mut requests, mut looked_at) = (Vec::new(), 0, 0);
        while let Some(page) = pages.next() {
            let in_range = keys.range(page.from.clone()..page.to).count();
            let max_rows = usize::try_from(page.max_rows).unwrap();
            let taken: Vec<_> = keys.range(page.from..).take(in_range.min(max_rows)).cloned().collect();
            pages.read(taken.iter().map(Vec::as_slice), in_range > max_rows);
            (requests, looked_at) = (requests + 1, looked_at + in_range);
            found.extend(taken);
            assert!(requests < 10_000, "it ends");
        }
        (found, requests, looked_at)
    }

    /// Keys as a keystore has them: times in hexadecimal digits, and chance.
    fn keys(tenants: usize, each: usize) -> BTreeSet<Vec<u8>> {
        let key = |number: usize| {
            let chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let (time, tenant) = (0x0197_a5c0_4c1e + number / 16, number % tenants);
            format!("p:records/tenant-{tenant}/files/ed25519/{time:012x}-7{chance:012x}")
        };
        (0..tenants * each).map(|number| key(number).into_bytes()).collect()
    }

    #[test]
    fn a_store_looks_at_few_keys_more_than_it_gives() {
        for (tenants, each) in [(1, 100_000), (7, 20_000), (500, 100)] {
            let keys = keys(tenants, each);
            let (found, requests, looked_at) = read(&keys, "p:", "p:records0");
            assert_eq!(found, keys.iter().cloned().collect::<Vec<_>>());
            let pages = keys.len().div_ceil(MAX_PAGE_ROWS);
            assert!(requests < 3 * pages + 100, "{requests} requests for {pages} pages, {tenants} tenants");
            // Page after page to the end would be a look at pages / 2 times as many keys.
            assert!(looked_at < 12 * keys.len(), "{looked_at} of {} keys, {tenants} tenants", keys.len());
        }
    }

    #[test]
    fn an_empty_range_is_one_page_and_nothing_before_or_after_it_is_read() {
        let keys = BTreeSet::from([b"a".to_vec(), b"p:".to_vec(), b"p:records/x".to_vec(), b"q".to_vec()]);
        assert_eq!(read(&BTreeSet::new(), "p:", "p:records0"), (vec![], 1, 0));
        let (found, requests, _) = read(&keys, "p:", "p:records0");
        assert_eq!((found, requests), (vec![b"p:".to_vec(), b"p:records/x".to_vec()], 1));
        assert_eq!(Pages::new("b", "b").next(), None);
    }

    #[test]
    fn pages_shrink_to_one_row() {
        let mut pages = Pages::new("a", "b");
        let mut sizes = vec![pages.next().unwrap().max_rows];
        while pages.shrink() {
            sizes.push(pages.next().unwrap().max_rows);
        }
        assert_eq!(sizes, [1024, 512, 256, 128, 64, 32, 16, 8, 4, 2]);
    }

    proptest! {
        /// Whatever the keys are, each is read once and in order.
        #[test]
        fn every_key_is_read_once(
            keys in prop::collection::btree_set(prop::collection::vec(prop_oneof![Just(0), Just(255), 96..100_u8], 1..9), 0..5000)
        ) {
            let wanted: Vec<_> = keys.range(b"a".to_vec()..b"c".to_vec()).cloned().collect();
            prop_assert_eq!(read(&keys, "a", "c").0, wanted);
        }
    }
}
