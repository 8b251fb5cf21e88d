//! Files that are either complete or absent.
//!
//! A [`Draft`] is a file while it is being written. If the file system supports it, the file has no
//! name until it is complete, so that nothing is left if the process dies. Otherwise it has a
//! temporary name, and the next process that writes there removes a leftover.
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
