//! Makes a change in etcd, and finds out the outcome of one whose answer did not arrive.

use bulla_etcd::RequestFailure;
use etcd_client::{Client, Txn, TxnOp, TxnOpResponse};

use super::rows::{RemoteRows, Stored};
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
            Err(failure @ RequestFailure::Refused(_)) if !failure.is_full() => Err(self.error(failure)),
            Err(failure) => {
                let outcome = match &failure {
                    RequestFailure::Refused(_) => self.outcome_of_finished(&expected, &new).await,
                    RequestFailure::Unanswered(_) => self.outcome(&expected, &new).await,
                };
                match outcome {
                    CommitOutcome::Made { revision } => Ok(revision),
                    CommitOutcome::NotMade => Err(self.error(failure)),
                    CommitOutcome::Outrun => Err(changed()),
                    CommitOutcome::Gone => Err(self.gone()),
                    CommitOutcome::Unknown(then) => Err(self.unknown(&failure.reason(), &then)),
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

/// How many past states to search for a change: as many changes as other processes may make in a
/// few seconds.
const MAX_SEARCHED_STATES: usize = 1000;

/// The outcome of a change.
#[derive(Debug, PartialEq, Eq)]
enum CommitOutcome {
    /// It was made, at this revision.
    Made { revision: i64 },
    /// It was not made, and never will be.
    NotMade,
    /// It was not made, and never will be: another writer came first.
    Outrun,
    /// The state was deleted.
    Gone,
    /// The outcome cannot be found out, for this reason.
    Unknown(String),
}

impl RemoteRows {
    /// The outcome of a change from the state `expected` to a state with the value `new`.
    ///
    /// If the state is still the expected one, that proves nothing: the change may be on its way
    /// and arrive later. So the state is written once more, unchanged. That gives it another
    /// revision, and the change, which names the old one, can never take effect.
    async fn outcome(&self, expected: &Stored, new: &[u8]) -> CommitOutcome {
        let fence = Txn::new()
            .when(self.is_still(expected))
            .and_then([TxnOp::put(self.state_key(), expected.value.clone(), None)])
            .or_else([TxnOp::get(self.state_key(), None)]);
        let answer = self.nodes.ask(|client: Client| {
            let fence = fence.clone();
            async move { client.kv_client().txn(fence).await }
        });
        let answer = match answer.await {
            Ok(answer) if answer.succeeded() => return CommitOutcome::NotMade,
            Ok(answer) => answer,
            Err(failure) => return CommitOutcome::Unknown(failure.reason()),
        };
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(found) => found.kvs().first().map(Stored::from),
            _ => None,
        });
        self.found(found, expected, new).await
    }

    /// The outcome of a change that the server has finished, so that it cannot arrive later.
    async fn outcome_of_finished(&self, expected: &Stored, new: &[u8]) -> CommitOutcome {
        match self.state().await {
            Ok(found) => self.found(found, expected, new).await,
            Err(failure) => CommitOutcome::Unknown(failure.reason()),
        }
    }

    async fn found(&self, state: Option<Stored>, expected: &Stored, new: &[u8]) -> CommitOutcome {
        match state {
            None => CommitOutcome::Gone,
            Some(state) if state.value == new => CommitOutcome::Made { revision: state.revision },
            // It is still the expected state, or an earlier attempt, whose answer did not arrive,
            // wrote it again.
            Some(state) if state.value == expected.value => CommitOutcome::NotMade,
            Some(state) => self.search(state, expected, new).await,
        }
    }

    /// Looks for the change among the predecessors of another writer's state.
    async fn search(&self, mut state: Stored, expected: &Stored, new: &[u8]) -> CommitOutcome {
        for _ in 0..MAX_SEARCHED_STATES {
            if state.value == new {
                return CommitOutcome::Made { revision: state.revision };
            }
            if state.revision <= expected.revision || state.value == expected.value {
                return CommitOutcome::Outrun;
            }
            state = match self.state_at(state.revision - 1).await {
                Ok(Some(state)) => state,
                Ok(None) => return CommitOutcome::Outrun,
                // The revision may have been compacted away.
                Err(failure) => return CommitOutcome::Unknown(failure.reason()),
            };
        }
        CommitOutcome::Unknown("others have changed too much since".to_owned())
    }
}
