//! Reading files, which `bulla-sums` does, and what a command knows of them before.

use crate::progress::{Progress, ShowProgress, Total};
use std::path::{Path, PathBuf};

pub(crate) use bulla_sums::{HashMode, Links, MIN_SHARED_LEN, ReadError, ReadMode, Source, StreamError};

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
