//! Files mapped into memory whose reader survives when they shrink.
//!
//! Hashing a mapped file saves the copy out of the page cache, which costs as much as the hash on
//! some processors. But if another process makes the file shorter, or if the disk fails, the
//! processor finds no page, and the signal SIGBUS ends the reader. Here it does not:
//!
//! - [`MappedFile::with_pages`] asks the system for all pages of a range first
//!   (`MADV_POPULATE_READ`, Linux 5.14). If a page is missing, the system returns an error and
//!   sends no signal.
//! - If a page goes afterwards, a handler of SIGBUS puts zeros in its place, and the result is
//!   thrown away.
//!
//! In both cases `with_pages` returns `None`. The caller then reads the range as a file: the error
//! of that read says what has happened.
//!
//! ```
//! use bulla_mmap::MappedFile;
//!
//! # let mut file = tempfile::tempfile()?;
//! # std::io::Write::write_all(&mut file, b"content")?;
//! let len = file.metadata()?.len();
//! let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
//! let by_map = MappedFile::new(&file, len).ok().and_then(|map| map.with_pages(0..len, sum));
//! // `None`: the system has no such map, or the file is shorter now.
//! # assert!(by_map.is_none_or(|value| value == sum(b"content")));
//! # std::io::Result::Ok(())
//! ```
//!
//! # The handler
//!
//! The first [`MappedFile`] of the process installs the handler, and it stays. It passes every
//! SIGBUS that does not come from a map of this crate to the handler that was there before, or does
//! what the system would have done. A handler that another library installs later and that does not
//! do the same ends this protection.
//!
//! # What no map can promise
//!
//! Another process may write to the file while its bytes are read. Then `work` sees a mixture of
//! old and new bytes, as it does with `read`. Do not look twice at a byte that decides something:
//! compute a digest, and check afterwards that the file was not changed.

use std::fs::File;
use std::io;
use std::ops::Range;

#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod system;

/// A file mapped into memory, for reading.
#[derive(Debug)]
pub struct MappedFile(system::Map);

impl MappedFile {
    /// Maps the first `len` bytes of `file`. The map outlives the file's descriptor.
    ///
    /// # Errors
    /// - [`io::ErrorKind::InvalidInput`] if `len` is 0 or passes the address space.
    /// - [`io::ErrorKind::ResourceBusy`] if too many maps (64) are in use.
    /// - [`io::ErrorKind::Unsupported`] if the system is not Linux.
    /// - The error of the system if it maps no such file.
    pub fn new(file: &File, len: u64) -> io::Result<Self> {
        system::Map::new(file, len).map(Self)
    }

    /// Passes the bytes of `range` to `work`, and returns its result; `None` if some of the bytes
    /// could not be had, before `work` or meanwhile.
    ///
    /// After a `None`, the map is of no use any more. Where the system lacks
    /// `MADV_POPULATE_READ`, no map is.
    ///
    /// # Panics
    /// If `range` is not within the map.
    pub fn with_pages<R>(&self, range: Range<u64>, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.with_pages(range, work)
    }
}
