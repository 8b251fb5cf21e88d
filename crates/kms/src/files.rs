//! Creating files that are whole or not there at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use crate::error::{Code, KmsError, Result};

/// The folder a path lies in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file (mode 0600) in the folder of `path`, so that it can be renamed to `path`. The folder is made,
/// with mode 0700, if it is missing.
pub(crate) fn temporary(path: &Path) -> Result<NamedTempFile> {
    let folder = folder(path);
    create_folder(folder)
        .map_err(|error| KmsError::io(format!("cannot create {}", folder.display()), error))?;
    tempfile::Builder::new()
        .prefix(".bulla-")
        .tempfile_in(folder)
        .map_err(|error| KmsError::io(format!("cannot create a file in {}", folder.display()), error))
}

/// Makes a folder and those above it that are missing, each of them on the disk.
fn create_folder(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        match builder.create(folder) {
            // Another process made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            created => created?,
        }
        sync_folder(self::folder(folder))?;
    }
    Ok(())
}

/// Makes a file (mode 0600) with this content, whole and on the disk when this returns.
///
/// # Errors
/// [`Code::AlreadyExists`] when something has that name; it stays as it is.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(already_exists(path));
    }
    let mut file = temporary(path)?;
    file.write_all(content)
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| KmsError::io(format!("cannot write {}", path.display()), error))?;
    publish(file.into_temp_path(), path)
}

/// Gives a finished, synced temporary file its name, for good.
///
/// # Errors
/// [`Code::AlreadyExists`] when something has that name; it stays as it is.
pub(crate) fn publish(file: TempPath, path: &Path) -> Result<()> {
    file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => KmsError::io(format!("cannot create {}", path.display()), error.error),
    })?;
    sync_folder(folder(path))
        .map_err(|error| KmsError::io(format!("cannot sync the folder of {}", path.display()), error))
}

/// Gives a finished, synced temporary file its name, in the place of what has it.
pub(crate) fn replace(file: TempPath, path: &Path) -> Result<()> {
    file.persist(path)
        .map_err(|error| KmsError::io(format!("cannot replace {}", path.display()), error.error))?;
    sync_folder(folder(path))
        .map_err(|error| KmsError::io(format!("cannot sync the folder of {}", path.display()), error))
}

/// Whether an open file is still the one at `path`.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (open, there) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

pub(crate) fn already_exists(path: &Path) -> KmsError {
    KmsError::new(Code::AlreadyExists, format!("{} exists already", path.display()))
}

/// A rename is on the disk only when its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Windows has no handle on a folder that can be synced; NTFS journals the rename.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
