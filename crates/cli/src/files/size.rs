//! How much there is to read.

use crate::files::read::LARGE;
use crate::progress::Progress;
use std::path::{Path, PathBuf};

/// Is this worth all threads at once? Large files are, and folders.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() >= LARGE))
}

/// The size of all files together, if anyone wants to know and each of the paths is a file.
pub(crate) fn total_size(paths: &[PathBuf]) -> Option<u64> {
    if !Progress::is_wanted() {
        return None;
    }
    let size =
        |path: &PathBuf| path.metadata().ok().filter(|metadata| metadata.is_file()).map(|file| file.len());
    paths.iter().map(size).sum()
}
