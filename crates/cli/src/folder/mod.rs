//! Folders: their content as the entries of a manifest, and the differences from the signed
//! entries.

mod compare;
mod list;
mod stamps;
mod walk;

pub(crate) use self::compare::{Selection, compare, compare_source, duplicates, summary, total};
pub(crate) use self::list::{EarlierPaths, FolderList, ListJob, ListMode, RemovedPaths, list};
pub(crate) use self::stamps::{EntryTable, ModelStamps, PackedEntries, StampCache, StampFile, StampWriter};
pub(crate) use self::walk::rules;
