//! Writing a file so that it is there as a whole or not at all.

use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::interrupt::Unfinished;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes the file at `path` by `fill`: into a temporary file in the same folder, which takes the name `path` once
/// all of it is on the disk. What was at `path` before stays whole until then.
///
/// # Errors
/// Any error of the system. Nothing is left behind then, and `path` is as it was.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    try_write(path, Readers::Any, fill).map_err(|error| Error::io("cannot write", &error).about(shown(path)))
}

/// The same for a file that is not there yet: what is at `path` is never replaced.
///
/// # Errors
/// Those of `fill`; any error of the system, `already_exists` among them. Nothing is left behind then.
pub(crate) fn write_new(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::new("already_exists", "exists already and is not replaced")
            .about(shown(path))
            .hint("move it away, or name another file"),
        _ => Error::io("cannot write", &error).about(shown(path)),
    };
    let folder = folder(path);
    let mut temporary = Temporary::create(folder, Readers::Any).map_err(cannot)?;
    let mut buffer = BufWriter::with_capacity(1 << 16, temporary.file().map_err(cannot)?);
    fill(&mut buffer)?;
    buffer.flush().map_err(cannot)?;
    drop(buffer);
    temporary.file().and_then(|file| file.sync_all()).map_err(cannot)?;
    temporary.persist_new(path).map_err(cannot)?;
    sync_folder(folder).map_err(cannot)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The same for a file that nobody but its owner may read.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_private(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    try_write(path, Readers::Owner, fill)
        .map_err(|error| Error::io("cannot write", &error).about(shown(path)))
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Whom the umask permits it.
    Any,
    /// Its owner alone.
    Owner,
}

fn try_write(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = folder(path);
    let mut temporary = Temporary::create(folder, readers)?;
    let mut buffer = BufWriter::with_capacity(1 << 16, temporary.file()?);
    fill(&mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    temporary.file()?.sync_all()?;
    temporary.persist(path)?;
    sync_folder(folder)
}

/// A temporary file that an error or an interrupt removes.
struct Temporary {
    /// `None` once it has its final name.
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Temporary {
    fn create(folder: &Path, readers: Readers) -> io::Result<Self> {
        let mut unfinished = Unfinished::lock();
        let mut builder = tempfile::Builder::new();
        builder.prefix(".bulla-").suffix(".tmp");
        // The mode that any program would give a new file: the umask takes its part.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(match readers {
            Readers::Any => 0o666,
            Readers::Owner => 0o600,
        }));
        #[cfg(not(unix))]
        let _ = readers;
        let file = builder.tempfile_in(folder)?;
        unfinished.add(file.path());
        Ok(Self { path: file.path().to_owned(), file: Some(file) })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        let file =
            self.file.as_mut().ok_or_else(|| io::Error::other("the file has its final name already"))?;
        Ok(file.as_file_mut())
    }

    fn persist(&mut self, path: &Path) -> io::Result<()> {
        let _no_interrupt = Unfinished::lock();
        match self.file.take() {
            Some(file) => file.persist(path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}

impl Temporary {
    fn persist_new(&mut self, path: &Path) -> io::Result<()> {
        let _no_interrupt = Unfinished::lock();
        match self.file.take() {
            Some(file) => file.persist_noclobber(path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut unfinished = Unfinished::lock();
        self.file = None;
        unfinished.remove(&self.path);
    }
}

/// Makes a new name in `folder` last. Windows has no such call and needs none.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
