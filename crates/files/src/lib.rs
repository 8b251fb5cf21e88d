//! Files that are either complete or absent, and file names as text.
//!
//! An [`AtomicFile`] is a file while it is being written. If the file system supports it, the file
//! has no name until it is complete, so that nothing is left if the process dies. Otherwise it has
//! a temporary name, and the next process that writes there removes a leftover.
//!
//! ```
//! use bulla_files::{AtomicFile, IfExists, Visibility, folder_of, sync_folder};
//! use std::io::Write as _;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("file");
//! let mut file = AtomicFile::create(folder_of(&path), Visibility::OwnerOnly)?;
//! file.file()?.write_all(b"content")?;
//! file.persist(&path, IfExists::Fail)?;
//! sync_folder(folder_of(&path))?;
//! assert_eq!(std::fs::read(&path)?, b"content");
//! # std::io::Result::Ok(())
//! ```
//!
//! [`escape_path`] and its neighbors write file names for people and for shells.
//!
//! The feature `unix-socket` adds `listen_unix`, for programs that listen on a Unix socket.
#![forbid(unsafe_code)]

mod atomic_file;
mod escape;
mod folder;
mod unfinished;
#[cfg(all(unix, feature = "unix-socket"))]
mod unix_socket;

pub use atomic_file::{AtomicFile, IfExists, Visibility};
pub use escape::{escape_path, escape_text, is_deceptive, quote_for_shell};
pub use folder::{create_folder, folder_of, sync_folder};
pub use unfinished::UnfinishedFiles;
#[cfg(all(unix, feature = "unix-socket"))]
pub use unix_socket::{SocketFile, listen_unix};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
