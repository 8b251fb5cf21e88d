//! Noticing that an older copy was put in a keystore's place.
//!
//! A store binds all of its rows to one another, so that no single row can be put back. A copy of the *whole* store is
//! consistent, though, however old it is: nothing in it can tell. What can is a counter that lies elsewhere. A
//! [`RollbackGuard`] is such a counter: the keystore tells it of every change, and asks it when a store is opened.
//!
//! # The protocol
//!
//! A change is made in this order: (1) the store has it, on its disk; (2) the guard has it, as far as the guard remembers;
//! (3) the call returns. A store is opened in this order: (1) the guard is asked, and refuses a store that is behind it;
//! (2) the guard takes up a store that is ahead of it.
//!
//! So the guard is never ahead of the store, and a process that is killed between any two steps leaves a store that
//! opens. What it may leave is a guard that is one change behind: of that change no call has returned, and putting the
//! store back to before it does no more than the kill could have done a moment earlier. The other order, guard first,
//! would either lock the owner out after such a kill or have to allow one step back of changes that were acknowledged.
//!
//! When the guard cannot be told, the call fails although the change was made; the next change, or the next opening, tells
//! it.

mod file;
mod guard;
mod named;
mod time;

pub use self::file::FileGuard;
pub(crate) use self::guard::rolled_back;
pub use self::guard::{RollbackGuard, StoreGuard, StoreMark};
pub use self::named::NamedGuard;
pub use self::time::{SignedTime, TimeGuard, TimeSource};
