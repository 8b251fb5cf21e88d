//! Inputs that end where readable memory ends: a kernel that reads one byte too many stops the
//! process.

use crate::input;
use memmap2::{MmapOptions, MmapRaw};
use std::io::Write as _;

/// The length in bytes of the largest pages of today's systems.
pub const PAGE_LEN: usize = 64 * 1024;

/// A page with input, before memory that cannot be read. That memory belongs to the map of a file,
/// but is behind the file's end.
#[derive(Debug)]
pub struct PageBeforeGap(MmapRaw);

impl PageBeforeGap {
    /// A page with the bytes of [`input`].
    ///
    /// # Panics
    ///
    /// If the system has no memory for it.
    #[expect(clippy::new_without_default, reason = "it is a resource, not a value")]
    pub fn new() -> Self {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&input(PAGE_LEN)).expect("the disk has room for a page");
        Self(MmapOptions::new().len(2 * PAGE_LEN).map_raw_read_only(&file).expect("a map of the file"))
    }

    /// The last `len` bytes that can be read.
    ///
    /// # Panics
    ///
    /// If a page has fewer bytes.
    pub fn end(&self, len: usize) -> &[u8] {
        assert!(len <= PAGE_LEN);
        // SAFETY: they are in the file, which nobody else knows.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(PAGE_LEN - len), len) }
    }
}
