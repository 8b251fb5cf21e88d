//! Creates a store, which may have more rows than etcd accepts in one transaction.

use bulla_etcd::{MAX_OPERATIONS, MAX_REQUEST_BYTES, RequestFailure};
use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp, TxnOpResponse};

use super::rows::{ROW_OVERHEAD, RemoteRows};
use crate::error::{Code, KmsError, Result};
use crate::store::interface::{Rows, STATE, Table};

/// The row of `meta` that names the process that is creating the store. The transaction that writes
/// the state removes it.
const CLAIM: &str = "claim";

/// A store that is being created: first a claim, then the keys, then everything that makes it a
/// store. A process that is killed meanwhile leaves no store, only rows that [`Creation::make`]
/// refuses to mix with others.
pub(super) struct Creation {
    rows: RemoteRows,
    claim: Vec<u8>,
    /// The writes of the rows, in batches that etcd accepts.
    batches: Vec<Vec<TxnOp>>,
    last: Vec<TxnOp>,
    state: Vec<u8>,
}

impl Creation {
    /// # Errors
    /// [`Code::TooLarge`] if a row is too large.
    pub(super) fn new(remote: &RemoteRows, rows: &Rows, claim: [u8; 16]) -> Result<Self> {
        let (mut batches, mut last, mut batch, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (table, name, value) in rows.iter() {
            remote.check_size(std::iter::once((name, Some(value))))?;
            let put = TxnOp::put(remote.key(table, name), value.clone(), None);
            if table == Table::Meta {
                last.push(put);
                continue;
            }
            let size = remote.prefix.len() + name.len() + value.len() + ROW_OVERHEAD;
            if batch.len() == MAX_OPERATIONS || bytes + size > MAX_REQUEST_BYTES / 2 && !batch.is_empty() {
                batches.push(std::mem::take(&mut batch));
                bytes = 0;
            }
            bytes += size;
            batch.push(put);
        }
        batches.push(batch);
        last.push(TxnOp::delete(remote.key(Table::Meta, CLAIM), None));
        let state = rows.meta.get(STATE).cloned().unwrap_or_default();
        Ok(Self { rows: remote.clone(), claim: claim.to_vec(), batches, last, state })
    }

    /// Creates the store, and returns the revision of its state. A request whose answer did not
    /// arrive may be repeated: if it was already carried out, that is detected.
    pub(super) async fn make(self) -> Result<i64> {
        if self.anything_there().await? {
            return Err(self.already_exists());
        }
        let (claim, state) = (self.rows.key(Table::Meta, CLAIM), self.rows.state_key());
        let absent = |key: &str| Compare::create_revision(key, CompareOp::Equal, 0);
        let claiming = vec![TxnOp::put(claim.as_str(), self.claim.clone(), None)];
        let unclaimed = vec![absent(&state), absent(&claim)];
        self.step(unclaimed, claiming, &claim, &self.claim, Doubt::Harmless).await?;
        let ours = || vec![Compare::value(claim.as_str(), CompareOp::Equal, self.claim.clone())];
        for batch in &self.batches {
            self.step(ours(), batch.clone(), &claim, &self.claim, Doubt::Harmless).await?;
        }
        self.step(ours(), self.last.clone(), &state, &self.state, Doubt::IsTheStore).await
    }

    async fn anything_there(&self) -> Result<bool> {
        let (begin, end) = self.rows.range();
        let options = GetOptions::new().with_range(end).with_limit(1).with_keys_only();
        let found = self.rows.nodes.ask(|client: Client| {
            let (begin, options) = (begin.clone(), options.clone());
            async move { client.kv_client().get(begin, Some(options)).await }
        });
        Ok(!found.await.map_err(|failure| self.rows.error(failure))?.kvs().is_empty())
    }

    /// One transaction. If `key` has the value `done`, it was already made.
    async fn step(
        &self,
        conditions: Vec<Compare>,
        operations: Vec<TxnOp>,
        key: &str,
        done: &[u8],
        doubt: Doubt,
    ) -> Result<i64> {
        let transaction = Txn::new().when(conditions).and_then(operations).or_else([TxnOp::get(key, None)]);
        let answer = self.rows.nodes.ask(|client: Client| {
            let transaction = transaction.clone();
            async move { client.kv_client().txn(transaction).await }
        });
        let answer = match (answer.await, doubt) {
            (Ok(answer), _) => answer,
            (Err(RequestFailure::Unanswered(why)), Doubt::IsTheStore) => {
                return Err(self.rows.unknown(&why, "and did not answer again"));
            }
            (Err(failure), Doubt::IsTheStore) if failure.is_full() => {
                return match self.rows.state().await {
                    Ok(Some(state)) if state.value == done => Ok(state.revision),
                    Ok(_) => Err(self.rows.error(failure)),
                    Err(then) => Err(self.rows.unknown(&failure.reason(), &then.reason())),
                };
            }
            (Err(failure), _) => return Err(self.rows.error(failure)),
        };
        let revision = answer.header().map_or(0, |header| header.revision());
        if answer.succeeded() {
            return Ok(revision);
        }
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(found) => {
                found.kvs().first().map(|row| (row.value().to_vec(), row.mod_revision()))
            }
            _ => None,
        });
        match found {
            Some((value, revision)) if value == done => Ok(revision),
            _ => Err(self.already_exists()),
        }
    }

    fn already_exists(&self) -> KmsError {
        let prefix = &self.rows.prefix;
        KmsError::new(
            Code::AlreadyExists,
            format!(
                "there is a keystore {prefix} in etcd already, or the beginning of one that was not finished: \
                 open it, take another prefix, or delete what begins with {prefix}:"
            ),
        )
    }
}

/// The state that a transaction without an answer may have left behind.
#[derive(Clone, Copy)]
enum Doubt {
    /// Rows that do not form a store.
    Harmless,
    /// A complete store.
    IsTheStore,
}
