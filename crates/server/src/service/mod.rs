//! The state that all threads of the service share, and the state of each thread.

mod answer_cache;
mod approvals;
mod blocking_pool;
mod body_memory;
mod metrics;
mod mounts;
mod policies;
mod revocation_file;
mod rows;
mod state;
mod worker;

pub(crate) use self::answer_cache::{AnswerOwner, PriorRequest, RequestDigest, RequestOutcome, StoredAnswer};
pub(crate) use self::approvals::{Approvals, KeptRequest, TooManyRequests, WantedUse};
pub(crate) use self::blocking_pool::run_off_thread;
pub(crate) use self::body_memory::{AnonymousBytes, BodyReservation};
pub(crate) use self::mounts::Mounts;
pub(crate) use self::policies::Policies;
pub use self::policies::{PolicyDecision, check_policy, explain_policies};
pub(crate) use self::revocation_file::RevokedBy;
pub(crate) use self::rows::{OwnerDigest, RowFolder, RowInsertion, RowKind, ServiceRow, ServiceRows};
pub use self::state::{KeystoreSource, OpenKeystore};
pub(crate) use self::state::{Service, UnsealedService};
pub(crate) use self::worker::{BatchCost, Worker, WorkerState};
