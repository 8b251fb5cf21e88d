//! What all threads of the service share, and what one of them has for itself.

mod answers;
mod counts;
mod open;
mod reactor;
mod revoked;
mod shared;

pub(crate) use self::answers::{Answer, Before, Ended, Owner, RequestDigest};
pub(crate) use self::open::Opened;
pub use self::open::{KeystoreSource, OpenKeystore};
pub(crate) use self::reactor::{App, Reactor};
pub(crate) use self::revoked::Revoker;
pub(crate) use self::shared::Service;
