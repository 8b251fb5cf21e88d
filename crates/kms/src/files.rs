//! Creating files that are either complete or absent.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::Path;

use bulla_files::{AtomicFile, IfExists, Visibility, create_folder, folder_of, sync_folder};

use crate::error::{Code, KmsError, Result};

/// A draft of a file (mode 0600) for `path`. A missing folder is created with mode 0700.
pub(crate) fn draft(path: &Path) -> Result<AtomicFile> {
    let folder = folder_of(path);
    create_folder(folder)
        .map_err(|error| KmsError::io(format!("cannot create {}", folder.display()), error))?;
    AtomicFile::create(folder, Visibility::OwnerOnly)
        .map_err(|error| KmsError::io(format!("cannot create a file in {}", folder.display()), error))
}

/// Creates a file (mode 0600) with this content. When this returns, the file is complete and on the
/// disk.
///
/// # Errors
/// [`Code::AlreadyExists`] if something has that name; it stays as it is.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(already_exists(path));
    }
    put(path, content, IfExists::Fail)
}

/// Like [`create`], but replaces whatever has that name.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    put(path, content, IfExists::Replace)
}

fn put(path: &Path, content: &[u8], if_exists: IfExists) -> Result<()> {
    let mut draft = draft(path)?;
    let written = draft.file().and_then(|file| file.write_all(content));
    written.map_err(|error| KmsError::io(format!("cannot write {}", path.display()), error))?;
    persist(draft, path, if_exists)
}

/// Makes a finished file durable and gives it its final name.
///
/// # Errors
/// [`Code::AlreadyExists`] if something has that name and `if_exists` says to fail; it stays as
/// it is.
pub(crate) fn persist(draft: AtomicFile, path: &Path, if_exists: IfExists) -> Result<()> {
    draft.persist(path, if_exists).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => KmsError::io(format!("cannot write {}", path.display()), error),
    })?;
    sync_folder(folder_of(path))
        .map_err(|error| KmsError::io(format!("cannot sync the folder of {}", path.display()), error))
}

/// Distinguishes two files that exist at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    /// Elsewhere an open file cannot be replaced.
    #[cfg(not(unix))]
    fn of(_file: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// The identity of the file at `path`.
pub(crate) fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|file| Identity::of(&file))
}

/// Whether an open file is still the one at `path`.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(Identity::of(&file.metadata()?) == identity(path)?)
}

pub(crate) fn already_exists(path: &Path) -> KmsError {
    KmsError::new(Code::AlreadyExists, format!("{} exists already", path.display()))
}
