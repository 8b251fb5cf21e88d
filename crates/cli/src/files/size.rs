//! Sizes of files and folders.

use crate::files::read::LARGE;
use crate::progress::Progress;
use std::path::{Path, PathBuf};

/// Whether all threads should work on this at once: large files and folders.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() >= LARGE))
}

/// The total size of the files, if progress is shown and every path is a file.
pub(crate) fn total_size(paths: &[PathBuf]) -> Option<u64> {
    if !Progress::is_wanted() {
        return None;
    }
    let size =
        |path: &PathBuf| path.metadata().ok().filter(|metadata| metadata.is_file()).map(|file| file.len());
    paths.iter().map(size).sum()
}
