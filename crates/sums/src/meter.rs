//! What was read so far: the command shows it, and may stop the work.

use std::path::Path;

/// Hears of what was read. Threads share one.
pub trait Meter: Sync {
    /// `bytes` more were read.
    fn add(&self, bytes: u64);

    /// Whether [`Meter::now`] is wanted.
    fn wants_names(&self) -> bool {
        false
    }

    /// This file is about to be read. Not every small file is told.
    fn now(&self, path: &Path) {
        let _ = path;
    }

    /// `files` more are done, whether they could be read or not.
    fn done(&self, files: u64) {
        let _ = files;
    }

    /// Whether the work has to stop: what is not read yet stays unread.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Meter for Unwatched {
    fn add(&self, _bytes: u64) {}
}
