//! Writes files that are either complete or absent, and says which files a command may replace.

use super::describe;
use crate::error::{Error, Result};
use crate::interrupt;
use bulla_files::escape_path;
use bulla_files::{AtomicFile, IfExists, Visibility, folder_of, sync_folder};
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;

/// Writes the file at `path` with `fill`. The new file has no name, or a temporary name in the same
/// folder, until all of it is on the disk. Then it gets the name `path`. Until then, the old file
/// at `path` stays unchanged.
///
/// # Errors
/// Any error of the system. After an error, nothing is left behind, and `path` is unchanged.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    put(path, Visibility::Umask, IfExists::Replace, |file| buffered(file, |sink| Ok(fill(sink)?)))
}

/// Like [`write()`], for a file that is not written from start to end. It returns what `fill` does.
///
/// # Errors
/// The errors of `fill`, and those of [`write()`].
pub(crate) fn write_by<R>(path: &Path, fill: impl FnOnce(&mut File) -> Result<R>) -> Result<R> {
    put(path, Visibility::Umask, IfExists::Replace, |file| fill(file).map_err(Failure::Filling))
}

/// Like [`write()`], for a new file: an existing file at `path` is never replaced.
///
/// # Errors
/// The errors of `fill`; any error of the system, including `already_exists`. After an error,
/// nothing is left behind.
pub(crate) fn write_new(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let fill = |sink: &mut dyn Write| fill(sink).map_err(Failure::Filling);
    put(path, Visibility::Umask, IfExists::Fail, |file| buffered(file, fill))
}

/// Like [`write()`], for a file that only its owner may read.
///
/// # Errors
/// The errors of [`write()`].
pub fn write_private(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    put(path, Visibility::OwnerOnly, IfExists::Replace, |file| buffered(file, |sink| Ok(fill(sink)?)))
}

/// Checks that a file can be made in the folder of `path`, before the work that the file is for. No
/// file is left there.
///
/// # Errors
/// Any error of the system.
pub fn check_folder_of(path: &Path) -> Result<()> {
    interrupt::watch_signals();
    let draft = AtomicFile::create(folder_of(path), Visibility::Umask);
    draft.map(drop).map_err(|error| cannot_write(path, &error))
}

/// The reason why a file was not written.
enum Failure {
    /// Its content could not be produced.
    Filling(Error),
    Writing(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Writing(error)
    }
}

fn buffered(
    file: &mut File,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut buffer = BufWriter::with_capacity(1 << 16, file);
    fill(&mut buffer)?;
    Ok(buffer.flush()?)
}

fn put<R>(
    path: &Path,
    visibility: Visibility,
    if_exists: IfExists,
    fill: impl FnOnce(&mut File) -> Result<R, Failure>,
) -> Result<R> {
    interrupt::watch_signals();
    let folder = folder_of(path);
    let written = || -> Result<R, Failure> {
        let mut draft = AtomicFile::create(folder, visibility)?;
        let filled = fill(draft.file()?)?;
        draft.persist(path, if_exists)?;
        Ok(filled)
    };
    let filled = written().map_err(|failure| match failure {
        Failure::Filling(error) => error,
        Failure::Writing(error) => cannot_write(path, &error),
    })?;
    sync_folder(folder).map_err(|error| {
        Error::io("was written, but may be lost if the power fails now: cannot sync its folder", &error)
            .about(escape_path(path))
    })?;
    Ok(filled)
}

/// The error for a file that could not be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let cannot = |error| Error::io("cannot write", error).about(escape_path(path));
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::new("already_exists", "exists already; bulla does not replace it")
                .about(escape_path(path))
                .hint("move it away, or name another file")
        }
        io::ErrorKind::StorageFull => {
            cannot(error).hint("free some space and run the command again; the file has not changed")
        }
        _ => cannot(error),
    }
}

/// How much of an existing file is read to see what it is.
const MAX_PEEK_LEN: u64 = 1 << 20;

/// Checks that writing `what` to `path` would lose nothing: there is no file, or an empty one, or
/// one that is `what` already, as `is_one` sees from its beginning.
///
/// # Errors
/// `already_exists`; any error of the system, also one that writing would have, such as a name that
/// is too long.
pub fn check_replaceable(path: &Path, what: &str, is_one: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot_write(path, &error)),
        Ok(metadata) => metadata,
    };
    let in_the_way = |found: &str| {
        Error::new("already_exists", format!("is {found}; bulla does not overwrite it"))
            .about(escape_path(path))
            .hint("move it away, or name another file with --output FILE")
    };
    if !metadata.is_file() {
        return Err(in_the_way(describe(metadata.file_type())));
    }
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_PEEK_LEN).read_to_end(&mut content));
    read.map_err(|error| Error::io("cannot read the existing file", &error).about(escape_path(path)))?;
    if content.is_empty() || is_one(&content) { Ok(()) } else { Err(in_the_way(&format!("not {what}"))) }
}
