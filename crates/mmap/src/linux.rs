//! The map itself.

use crate::guard::{self, Slot};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    len: usize,
    slot: &'static Slot,
}

// SAFETY: the map belongs to the process, and nobody writes through it.
unsafe impl Send for Map {}
// SAFETY: all methods that take `&self` only read.
unsafe impl Sync for Map {}

impl Map {
    pub(crate) fn new(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).ok().filter(|len| (1..=isize::MAX as usize).contains(len));
        let len = len.ok_or(io::ErrorKind::InvalidInput)?;
        guard::install()?;
        let slot = guard::claim().ok_or(io::ErrorKind::ResourceBusy)?;
        // SAFETY: the system chooses an address that nothing uses.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            slot.release();
            return Err(error);
        }
        let start = NonNull::new(start.cast()).expect("the system maps nothing at address 0");
        slot.protect(start.as_ptr() as usize, len);
        Ok(Self { start, len, slot })
    }

    pub(crate) fn with_pages<R>(&self, range: Range<u64>, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        assert!(range.start <= range.end && range.end <= self.len as u64, "the range is within the map");
        if self.slot.is_damaged() {
            return None;
        }
        let (at, len) = (range.start as usize, (range.end - range.start) as usize);
        // The system takes whole pages.
        let before = at % guard::page_len();
        // SAFETY: the address is within the map, or at its end.
        let first_page = unsafe { self.start.as_ptr().add(at - before) };
        // SAFETY: the pages are of the map. This advice changes no content.
        let answer = unsafe { libc::madvise(first_page.cast(), before + len, libc::MADV_POPULATE_READ) };
        if answer != 0 {
            return None;
        }
        // SAFETY: the bytes are within the map, which lives as long as `self`. Nobody in this
        // process writes there, except the handler, which puts zeros in the place of pages that
        // are gone: another process that writes to the file does no other harm. The result of
        // `work` is then thrown away.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), len) };
        let result = work(bytes);
        (!self.slot.is_damaged()).then_some(result)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // No thread reads any more: no fault can need the slot.
        self.slot.release();
        // SAFETY: the map is that of `new`, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
