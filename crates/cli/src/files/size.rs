//! Sizes of files and folders.

use crate::files::read::MIN_SHARED_LEN;
use crate::progress::ShowProgress;
use crate::progress::{Progress, Total};
use std::path::{Path, PathBuf};

/// Whether all threads should work on this at once: large files and folders.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() >= MIN_SHARED_LEN))
}

/// What there is to do, if progress is shown and every path is a file.
pub(crate) fn total_of(paths: &[PathBuf], show: ShowProgress) -> Total {
    if show == ShowProgress::Never || (show == ShowProgress::Auto && !Progress::is_wanted()) {
        return Total::default();
    }
    let size =
        |path: &PathBuf| path.metadata().ok().filter(|metadata| metadata.is_file()).map(|file| file.len());
    let bytes: Option<u64> = paths.iter().map(size).sum();
    Total { bytes, files: bytes.and(Some(paths.len() as u64)) }
}
