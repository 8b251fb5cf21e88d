//! Temporary files that have a name, for those who end the process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary files that exist now.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list of temporary files, locked. Whatever ends a process on a signal takes it first, and removes what is on it: so no signal
/// ends the process while another caller holds it.
///
/// A file is created and put on the list under one lock, and renamed and taken off under one lock, so that there is
/// no moment at which an interrupt would miss it.
#[derive(Debug)]
pub struct Unfinished(MutexGuard<'static, Vec<PathBuf>>);

impl Unfinished {
    /// Waits until nobody else has the list.
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
