//! Finds all files in a folder.

use crate::error::Error;
use crate::files::kind::describe;
use crate::files::name::shown;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Something in a folder that is not a folder itself.
pub(crate) struct Found {
    /// The path relative to the folder.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// The kind of thing that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    /// A symbolic link; it is not followed.
    Link,
    /// A fifo, a socket or a device; the text names it.
    Special(&'static str),
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        if kind.is_file() {
            Kind::File
        } else if kind.is_symlink() {
            Kind::Link
        } else {
            Kind::Special(describe(kind))
        }
    }
}

/// Everything below `folder`, in no particular order, and an error for each place that could not be read.
pub(crate) fn walk(folder: &Path) -> (Vec<Found>, Vec<Error>) {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    if is_made_up(folder) {
        return (found, vec![made_up(folder)]);
    }
    let mut entries = WalkDir::new(folder).min_depth(1).into_iter();
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {
                if is_made_up(entry.path()) {
                    errors.push(made_up(entry.path()));
                    entries.skip_current_dir();
                }
            }
            Ok(entry) => {
                let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_owned();
                found.push(Found { path, kind: entry.file_type().into() });
            }
            Err(error) => errors.push(walk_error(folder, &error)),
        }
    }
    (found, errors)
}

/// Whether the kernel generates a folder's content while it is read, as in /proc. Files there have no length, reading some of them
/// takes days or never ends, and the content differs each time.
#[cfg(target_os = "linux")]
fn is_made_up(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_made_up(_folder: &Path) -> bool {
    false
}

fn made_up(folder: &Path) -> Error {
    Error::new("not_a_folder", "is a view of the running system, not a folder with permanent files")
        .about(shown(folder))
        .hint("copy the files you need to another folder")
}

fn walk_error(folder: &Path, error: &walkdir::Error) -> Error {
    let path = error.path().unwrap_or(folder);
    match error.io_error() {
        Some(error) => Error::io("cannot read the folder", error).about(shown(path)),
        None => Error::new("io", error.to_string()).about(shown(path)),
    }
}
