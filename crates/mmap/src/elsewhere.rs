//! Systems other than Linux: none tells which pages are gone.

use std::fs::File;
use std::io;
use std::ops::Range;

/// A map, which cannot be made.
#[derive(Debug)]
pub(crate) enum Map {}

impl Map {
    pub(crate) fn new(_file: &File, _len: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn with_pages<R>(&self, _range: Range<u64>, _work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match *self {}
    }
}
