//! Each thread's buffer for reading.

use std::cell::RefCell;

/// The bytes of a buffer: many small files, or a piece of a large one. Half of a core's second
/// cache on most machines.
pub(crate) const BUFFER: usize = 256 << 10;

/// Lends this thread's buffer, which is allocated once: for a small file, allocating it would be
/// most of the work.
///
/// # Panics
/// If `work` asks for it again.
pub(crate) fn with_buffer<R>(work: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
    }
    BYTES.with_borrow_mut(|buffer| work(buffer))
}
