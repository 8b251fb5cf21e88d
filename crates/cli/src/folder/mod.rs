//! Folders: their content as the entries of a manifest, and the differences from the signed
//! entries.

mod compare;
mod gone;
mod list;
mod packed;
mod stamps;
mod walk;

pub(crate) use self::compare::{Wanted, compare, compare_source, duplicates, total};
pub(crate) use self::gone::{Earlier, Gone};
pub(crate) use self::list::{Drafts, Listed, Mode, list};
pub(crate) use self::packed::{Entries, Packed};
pub(crate) use self::stamps::{Known, Place, Recorder};
pub(crate) use self::walk::rules;
