//! The state that all threads of the service share, and the state of each thread.

mod answers;
mod blocking;
mod bodies;
mod counts;
mod open;
mod reactor;
mod revoked;
mod sealing;
mod shared;
mod slow;

pub(crate) use self::answers::{Answer, Before, Ended, Owner, RequestDigest};
pub(crate) use self::blocking::blocking;
pub(crate) use self::bodies::BodyBytes;
pub(crate) use self::open::Opened;
pub use self::open::{KeystoreSource, OpenKeystore};
pub(crate) use self::reactor::{App, Cost, Reactor};
pub(crate) use self::revoked::Revoker;
pub(crate) use self::shared::Service;
