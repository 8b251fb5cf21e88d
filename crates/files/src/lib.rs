//! Files that are there as a whole or not at all.
//!
//! A [`Draft`] is a file while it is written. Where the file system can do that it has no name until all of it is there, so that no
//! death of the process leaves anything; elsewhere it has a temporary name, which the next process that writes there removes.
//!
//! ```
//! use bulla_files::{Draft, Existing, Readers, folder_of, sync_folder};
//! use std::io::Write as _;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("file");
//! let mut draft = Draft::create(folder_of(&path), Readers::Owner)?;
//! draft.file()?.write_all(b"content")?;
//! draft.persist(&path, Existing::Kept)?;
//! sync_folder(folder_of(&path))?;
//! assert_eq!(std::fs::read(&path)?, b"content");
//! # std::io::Result::Ok(())
//! ```
#![forbid(unsafe_code)]

mod draft;
mod folder;
mod unfinished;

pub use draft::{Draft, Existing, Readers};
pub use folder::{create_folder, folder_of, sync_folder};
pub use unfinished::Unfinished;
