//! What all threads of the service share, and what one of them has for itself.

mod open;
mod reactor;
mod shared;

pub(crate) use self::open::Opened;
pub use self::open::{KeystoreSource, OpenKeystore};
pub(crate) use self::reactor::{App, Reactor};
pub(crate) use self::shared::Service;
