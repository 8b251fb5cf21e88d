//! Inputs that end where readable memory ends: a kernel that reads one byte too many stops this
//! process.

use crate::support::{CONTEXT, input, modes, official};
use bulla_blake3::hazmat::hash_derive_key_context;
use bulla_blake3::{Hash, hash, kernel};
use memmap2::{MmapOptions, MmapRaw};
use std::io::Write as _;

/// The largest pages of today's systems.
const PAGE: usize = 64 * 1024;

/// A page with input and, behind it, memory that cannot be read: it belongs to the map of a file,
/// but is behind the file's end.
struct Page(MmapRaw);

impl Page {
    fn new(bytes: &[u8; PAGE]) -> Self {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("room for a page");
        Page(MmapOptions::new().len(2 * PAGE).map_raw_read_only(&file).expect("a map of the file"))
    }

    /// The last `len` bytes that can be read.
    fn end(&self, len: usize) -> &[u8] {
        assert!(len <= PAGE);
        // SAFETY: they are in the file, which nobody else knows.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(PAGE - len), len) }
    }
}

fn page() -> Page {
    Page::new(input(PAGE).as_slice().try_into().expect("a page"))
}

#[test]
fn nothing_behind_an_input_of_any_length_is_read() {
    let page = page();
    let context_key = hash_derive_key_context(CONTEXT);
    for len in 0..=40 * 1024 {
        let data = page.end(len);
        let (name, mode) = modes(&context_key)[len % 3];
        let theirs = official(name).update(data).finalize();
        for kernel in kernel::runnable() {
            assert_eq!(
                kernel.hash_in(mode, data).as_bytes(),
                theirs.as_bytes(),
                "{kernel}, {name}, {len} bytes"
            );
        }
    }
}

#[test]
fn nothing_behind_one_of_many_inputs_is_read() {
    let page = page();
    let mut digests = [Hash::from_bytes([0; 32]); 21];
    for kernel in kernel::runnable() {
        for len in (0..=1024).chain([1025, 2048, 3000, 5000, 9000]) {
            // Inputs of one length, and of as many lengths as lanes.
            for step in [0, 1, 67] {
                let inputs: [&[u8]; 21] = std::array::from_fn(|i| page.end(len + i * step));
                kernel.hash_many(&inputs, &mut digests);
                for (digest, input) in digests.iter().zip(inputs) {
                    assert_eq!(*digest, hash(input), "{kernel}, {} of {len} bytes and more", input.len());
                }
            }
        }
    }
}
