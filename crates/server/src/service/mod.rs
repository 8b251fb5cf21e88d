//! The state that all threads of the service share, and the state of each thread.

mod answers;
mod blocking;
mod bodies;
mod counts;
mod open;
mod revoked;
mod sealing;
mod shared;
mod slow;
mod worker;

pub(crate) use self::answers::{Answer, Before, Ended, Owner, RequestDigest};
pub(crate) use self::blocking::run_off_thread;
pub(crate) use self::bodies::BodyBytes;
pub(crate) use self::open::UnsealedService;
pub use self::open::{KeystoreSource, OpenKeystore};
pub(crate) use self::revoked::Revoker;
pub(crate) use self::shared::Service;
pub(crate) use self::worker::{Cost, Worker, WorkerState};
