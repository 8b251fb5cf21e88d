//! Finds out the outcome of a change whose answer did not arrive.

use etcd_client::{Client, Txn, TxnOp, TxnOpResponse};

use super::rows::{RemoteRows, Stored};

/// How many past states to search for a change: as many changes as other processes may make in a
/// few seconds.
const STEPS: usize = 1000;

/// The outcome of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
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
    pub(super) async fn outcome(&self, expected: &Stored, new: &[u8]) -> Outcome {
        let fence = Txn::new()
            .when(self.is_still(expected))
            .and_then([TxnOp::put(self.state_key(), expected.value.clone(), None)])
            .or_else([TxnOp::get(self.state_key(), None)]);
        let answer = self.nodes.ask(|client: Client| {
            let fence = fence.clone();
            async move { client.kv_client().txn(fence).await }
        });
        let answer = match answer.await {
            Ok(answer) if answer.succeeded() => return Outcome::NotMade,
            Ok(answer) => answer,
            Err(failure) => return Outcome::Unknown(failure.reason()),
        };
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(found) => found.kvs().first().map(Stored::from),
            _ => None,
        });
        self.found(found, expected, new).await
    }

    /// The same for a change that the server has finished, so that it cannot arrive later.
    pub(super) async fn outcome_of_finished(&self, expected: &Stored, new: &[u8]) -> Outcome {
        match self.state().await {
            Ok(found) => self.found(found, expected, new).await,
            Err(failure) => Outcome::Unknown(failure.reason()),
        }
    }

    async fn found(&self, state: Option<Stored>, expected: &Stored, new: &[u8]) -> Outcome {
        match state {
            None => Outcome::Gone,
            Some(state) if state.value == new => Outcome::Made { revision: state.revision },
            // It is still the expected state, or an earlier attempt, whose answer did not arrive,
            // wrote it again.
            Some(state) if state.value == expected.value => Outcome::NotMade,
            Some(state) => self.search(state, expected, new).await,
        }
    }

    /// Looks for the change among the predecessors of another writer's state.
    async fn search(&self, mut state: Stored, expected: &Stored, new: &[u8]) -> Outcome {
        for _ in 0..STEPS {
            if state.value == new {
                return Outcome::Made { revision: state.revision };
            }
            if state.revision <= expected.revision || state.value == expected.value {
                return Outcome::Outrun;
            }
            state = match self.state_at(state.revision - 1).await {
                Ok(Some(state)) => state,
                Ok(None) => return Outcome::Outrun,
                // The revision may have been compacted away.
                Err(failure) => return Outcome::Unknown(failure.reason()),
            };
        }
        Outcome::Unknown("others have changed too much since".to_owned())
    }
}
