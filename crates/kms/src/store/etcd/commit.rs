//! Makes a change in etcd.

use etcd_client::{Client, Txn, TxnOp};

use super::link::Failure;
use super::outcome::Outcome;
use super::rows::RemoteRows;
use crate::error::Result;
use crate::store::interface::{Row, STATE, Table, changed};

impl RemoteRows {
    /// Makes a change, and returns its revision.
    ///
    /// It reads the state first, which detects a disconnected node before anything is sent: then
    /// the change was certainly not made, and the caller may try again.
    pub(super) async fn commit(&self, expected: Vec<u8>, change: Vec<Row>) -> Result<i64> {
        let expected = match self.state().await.map_err(|failure| self.error(failure))? {
            Some(state) if state.value == expected => state,
            Some(_) => return Err(changed()),
            None => return Err(self.gone()),
        };
        let new = change.iter().find(|(table, name, _)| (*table, name.as_str()) == (Table::Meta, STATE));
        let new = new.and_then(|(_, _, value)| value.clone()).unwrap_or_else(|| expected.value.clone());
        let operations: Vec<_> =
            change.into_iter().map(|(table, name, value)| self.operation(table, &name, value)).collect();
        let transaction = Txn::new().when(self.is_still(&expected)).and_then(operations);
        let sent = self
            .nodes
            .ask_once(|client: Client| {
                let transaction = transaction.clone();
                async move { client.kv_client().txn(transaction).await }
            })
            .await;
        match sent {
            Ok(answer) if answer.succeeded() => Ok(answer.header().map_or(0, |header| header.revision())),
            Ok(_) => Err(changed()),
            Err(failure @ Failure::Refused(_)) if !failure.is_full() => Err(self.error(failure)),
            Err(failure) => {
                let outcome = match &failure {
                    Failure::Refused(_) => self.outcome_of_finished(&expected, &new).await,
                    Failure::Unanswered(_) => self.outcome(&expected, &new).await,
                };
                match outcome {
                    Outcome::Made { revision } => Ok(revision),
                    Outcome::NotMade => Err(self.error(failure)),
                    Outcome::Outrun => Err(changed()),
                    Outcome::Gone => Err(self.gone()),
                    Outcome::Unknown(then) => Err(self.unknown(&failure.reason(), &then)),
                }
            }
        }
    }

    fn operation(&self, table: Table, name: &str, value: Option<Vec<u8>>) -> TxnOp {
        let key = self.key(table, name);
        match value {
            Some(value) => TxnOp::put(key, value, None),
            None => TxnOp::delete(key, None),
        }
    }
}
