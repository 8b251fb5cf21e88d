//! Detects that somebody replaced a keystore with an older copy.
//!
//! A store binds all of its rows to one another, so that nobody can put back a single row. But a
//! copy of the *whole* store is consistent, however old it is: nothing in it shows its age. Only a
//! counter in another place can show it. A [`RollbackGuard`] is such a counter: the keystore tells
//! it of every change, and asks it when a store is opened.
//!
//! # The protocol
//!
//! A change is made in this order: (1) the store writes it to its disk; (2) the guard records it,
//! as far as the guard remembers anything; (3) the call returns. A store is opened in this order:
//! (1) the guard is asked, and refuses a store that is behind it; (2) if the store is ahead, the
//! guard advances.
//!
//! So the guard is never ahead of the store, and a process that is killed between any two steps
//! leaves a store that opens. It may leave a guard that is one change behind. No call has returned
//! for that change, so putting the store back to before it achieves no more than an earlier kill
//! could have. The other order, guard first, would either lock the owner out after such a kill, or
//! allow an attacker to undo one acknowledged change.
//!
//! If the guard cannot be told, the call fails, although the change was made. The next change, or
//! the next opening of the store, tells it.

mod file;
mod guard;
mod time;

pub use self::file::FileGuard;
pub(crate) use self::guard::rolled_back;
pub use self::guard::{NamedGuard, RollbackGuard, StoreGuard, StoreMark};
pub use self::time::{SignedTime, TimeGuard, TimeSource};
