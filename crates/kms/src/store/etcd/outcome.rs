//! The outcome of a change without an answer.

use etcd_client::{Client, Txn, TxnOp, TxnOpResponse};

use super::link::Failure;
use super::rows::{RemoteRows, Stored};

/// How many states back the past is searched for a change: as many changes as others may make in a few seconds.
const STEPS: usize = 1000;

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was made, at this revision.
    Made { revision: i64 },
    /// It was not made, and never will be.
    NotMade,
    /// It was not made, and never will be: another writer came first.
    Outrun,
    /// There is no state any more.
    Gone,
    /// It cannot be told, for this reason.
    Unknown(String),
}

impl RemoteRows {
    /// What became of a change from the state `expected` to one with the value `new`.
    ///
    /// That the state is still the expected one would prove nothing: the change may be under way and arrive later. So the
    /// state is written once more as it is. That gives it another revision, and the change, which names the old one, comes
    /// too late for ever.
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
            Err(failure) => return Outcome::Unknown(reason(failure)),
        };
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(found) => found.kvs().first().map(Stored::from),
            _ => None,
        });
        match found {
            None => Outcome::Gone,
            Some(state) if state.value == new => Outcome::Made { revision: state.revision },
            // The fence stands since an earlier attempt at it, whose answer did not come.
            Some(state) if state.value == expected.value => Outcome::NotMade,
            Some(state) => self.search(state, expected, new).await,
        }
    }

    /// Looks for the change in the past of a state that another writer made.
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
                // It was compacted away, perhaps.
                Err(failure) => return Outcome::Unknown(reason(failure)),
            };
        }
        Outcome::Unknown("others have changed too much since".to_owned())
    }
}

fn reason(failure: Failure) -> String {
    match failure {
        Failure::Refused(error) => error.to_string(),
        Failure::Unanswered(why) => why,
    }
}
