//! Files that are either complete or absent.
//!
//! A [`AtomicFile`] is a file while it is being written. If the file system supports it, the file has no
//! name until it is complete, so that nothing is left if the process dies. Otherwise it has a
//! temporary name, and the next process that writes there removes a leftover.
//!
//! ```
//! use bulla_files::{AtomicFile, IfExists, Visibility, folder_of, sync_folder};
//! use std::io::Write as _;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("file");
//! let mut draft = AtomicFile::create(folder_of(&path), Visibility::OwnerOnly)?;
//! draft.file()?.write_all(b"content")?;
//! draft.persist(&path, IfExists::Fail)?;
//! sync_folder(folder_of(&path))?;
//! assert_eq!(std::fs::read(&path)?, b"content");
//! # std::io::Result::Ok(())
//! ```
#![forbid(unsafe_code)]

mod atomic_file;
mod folder;
mod unfinished;

pub use atomic_file::{AtomicFile, IfExists, Visibility};
pub use folder::{create_folder, folder_of, sync_folder};
pub use unfinished::UnfinishedFiles;
