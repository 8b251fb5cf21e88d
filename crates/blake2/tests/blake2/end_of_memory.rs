//! Inputs that end where readable memory ends: a kernel that reads one byte too many stops this
//! process.

use crate::support::{for_both, input};
use bulla_blake2::kernel;
use memmap2::{MmapOptions, MmapRaw};
use std::io::Write as _;

/// The largest pages of today's systems.
const PAGE: usize = 64 * 1024;

/// A page with input and, behind it, memory that cannot be read: it belongs to the map of a file,
/// but is behind the file's end.
struct Page(MmapRaw);

impl Page {
    fn new() -> Self {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&input(PAGE)).expect("room for a page");
        Page(MmapOptions::new().len(2 * PAGE).map_raw_read_only(&file).expect("a map of the file"))
    }

    /// The last `len` bytes that can be read.
    fn end(&self, len: usize) -> &[u8] {
        assert!(len <= PAGE);
        // SAFETY: they are in the file, which nobody else knows.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(PAGE - len), len) }
    }
}

for_both! {
    use ours::many::{HashManyJob, hash_many};

    #[test]
    fn nothing_behind_an_input_is_read() {
        let page = Page::new();
        for kernel in kernel::runnable() {
            let mut params = ours::Params::new();
            params.kernel(kernel);
            let mut parallel = ours_p::Params::new();
            parallel.kernel(kernel);
            for len in (0..=20 * ours::BLOCKBYTES).chain([9000, 40 * 1024]) {
                let data = page.end(len);
                let theirs = peer::Params::new().hash(data);
                assert_eq!(params.hash(data).as_bytes(), theirs.as_bytes(), "{kernel}, {len} bytes");
                let theirs = peer_p::Params::new().hash(data);
                assert_eq!(parallel.hash(data).as_bytes(), theirs.as_bytes(), "{kernel}, {len} bytes in lanes");
            }
        }
    }

    #[test]
    fn nothing_behind_one_of_many_inputs_is_read() {
        let page = Page::new();
        for kernel in kernel::runnable() {
            let mut params = ours::Params::new();
            params.kernel(kernel);
            for len in (0..=9 * ours::BLOCKBYTES).chain([3000, 9000]) {
                // Inputs of one length, and of as many lengths as lanes.
                for step in [0, 1, 67] {
                    let inputs: Vec<_> = (0..MANY + 3).map(|i| page.end(len + i * step)).collect();
                    let mut jobs: Vec<_> = inputs.iter().map(|input| HashManyJob::new(&params, input)).collect();
                    hash_many(&mut jobs);
                    for (job, input) in jobs.iter().zip(inputs) {
                        let len = input.len();
                        assert_eq!(job.to_hash(), params.hash(input), "{kernel}, {len} bytes");
                    }
                }
            }
        }
    }
}
