//! Who calls, and what they may do.

mod authority;
mod ends;
mod limiter;
mod session;
mod sessions;

pub(crate) use self::authority::{Authority, OperationSet};
pub(crate) use self::ends::{EndClock, later_end};
pub use self::limiter::RequestRate;
pub(crate) use self::limiter::{Limiter, Limiters, Nodes};
pub(crate) use self::session::Session;
pub(crate) use self::sessions::{CredentialDigest, Epoch, Sessions};
