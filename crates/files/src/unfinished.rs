//! The named temporary files, for code that ends the process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary files that exist now.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The locked list of temporary files. Code that ends the process on a signal takes the lock first,
/// and removes the listed files. So no signal ends the process while another caller holds the lock.
///
/// A file is created and added to the list under one lock, and renamed and removed from the list
/// under one lock. So there is no moment at which an interrupt would miss it.
///
/// ```
/// // After an interrupt: no temporary file stays.
/// let unfinished = bulla_files::UnfinishedFiles::lock();
/// for path in unfinished.paths() {
///     let _ = std::fs::remove_file(path);
/// }
/// ```
#[derive(Debug)]
pub struct UnfinishedFiles(MutexGuard<'static, Vec<PathBuf>>);

impl UnfinishedFiles {
    /// Waits for the lock.
    pub fn lock() -> Self {
        Self(UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&mut self, path: &Path) {
        self.0.push(path.to_owned());
    }

    pub(crate) fn remove(&mut self, path: &Path) {
        self.0.retain(|other| other != path);
    }

    /// The temporary files that exist.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }
}
