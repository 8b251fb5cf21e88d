//! Inputs that end where readable memory ends: a kernel that reads one byte too many stops this
//! process.

use crate::support::{CONTEXT, modes, official};
use bulla_blake3::hazmat::hash_derive_key_context;
use bulla_blake3::{Hash, hash, kernel};
use bulla_kernel_testing::PageBeforeGap;
use std::collections::BTreeMap;

#[test]
fn nothing_behind_an_input_of_any_length_is_read() {
    let page = PageBeforeGap::new();
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
    let page = PageBeforeGap::new();
    let mut digests = [Hash::from_bytes([0; 32]); 21];
    // All inputs of one length are one input.
    let mut hashes = BTreeMap::new();
    for kernel in kernel::runnable() {
        for len in (0..=1024).chain([1025, 2048, 3000, 5000, 9000]) {
            // Inputs of one length, and of as many lengths as lanes.
            for step in [0, 1, 67] {
                let inputs: [&[u8]; 21] = std::array::from_fn(|i| page.end(len + i * step));
                kernel.hash_many(&inputs, &mut digests);
                for (digest, input) in digests.iter().zip(inputs) {
                    let expected = hashes.entry(input.len()).or_insert_with(|| hash(input));
                    assert_eq!(digest, expected, "{kernel}, {} of {len} bytes and more", input.len());
                }
            }
        }
    }
}
