//! What hashing leaves in memory that it gives back: nothing of input that may be a secret.

use bulla_blake3::Hasher;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Read};

/// The input's pattern. It is complemented, so that this constant is not what the search finds.
const NEEDLE: [u8; 16] = *b"input of readers";

thread_local! {
    /// The freed blocks of this thread that had the input's pattern; `None` if nobody counts.
    static FOUND: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The system's allocator, with a look at what is freed. Growing a block frees the old one.
struct Looking;

// SAFETY: memory comes from the system's allocator, and goes back there with the same layout.
unsafe impl GlobalAlloc for Looking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // A thread that is ending counts nothing.
        let counted = FOUND.try_with(Cell::get).ok().flatten();
        if let Some(count) = counted
            && (0..layout.size().saturating_sub(NEEDLE.len())).any(|start| {
                // SAFETY: inside of the block. Bytes that were never written may have any value
                // here.
                (0..NEEDLE.len()).all(|n| unsafe { at.add(start + n).read_volatile() } == !NEEDLE[n])
            })
        {
            FOUND.set(Some(count + 1));
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Looking = Looking;

/// A reader of the pattern, `left` bytes of it. Then it is at its end, or fails.
struct Pattern {
    left: usize,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Here,
    Failure,
}

impl Read for Pattern {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out.len().min(self.left);
        for (byte, needle) in out[..n].iter_mut().zip(NEEDLE.iter().cycle()) {
            *byte = !needle;
        }
        self.left -= n;
        match self.end {
            End::Failure if n == 0 => Err(io::Error::other("on purpose")),
            _ => Ok(n),
        }
    }
}

/// How many blocks with the pattern are freed while a hasher reads it.
fn freed_by(mut hasher: Hasher, len: usize, end: End) -> usize {
    FOUND.set(Some(0));
    let read = hasher.update_reader(Pattern { left: len, end }).map(drop);
    drop(hasher);
    let found = FOUND.take().expect("it counted");
    assert_eq!(read.is_err(), matches!(end, End::Failure));
    found
}

#[test]
fn a_reader_under_a_key_leaves_nothing_of_its_input() {
    for len in [100, 1024, 5000, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 300_000] {
        for end in [End::Here, End::Failure] {
            assert!(freed_by(Hasher::new(), len, end) > 0, "what is left is found: {len} bytes");
            assert_eq!(freed_by(Hasher::new_keyed(&[7; 32]), len, end), 0, "{len} bytes, {end:?}");
            assert_eq!(freed_by(Hasher::new_derive_key("a context"), len, end), 0, "{len} bytes, {end:?}");
        }
    }
}
