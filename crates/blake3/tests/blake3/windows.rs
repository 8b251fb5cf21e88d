//! The registers that Microsoft's calling convention keeps.

use crate::support::{CONTEXT, input, modes};
use bulla_blake3::hazmat::hash_derive_key_context;
use bulla_blake3::{Hash, kernel};
use bulla_kernel_testing::registers;
use std::hint::black_box;

#[test]
fn every_kernel_keeps_registers() {
    let data = input(40_000);
    let context_key = hash_derive_key_context(CONTEXT);
    let inputs: Vec<_> = (0..40).map(|i| &data[i..][..500 + 700 * (i % 3)]).collect();
    for kernel in kernel::runnable() {
        for (name, mode) in modes(&context_key) {
            for len in [0, 64, 65, 1024, 2048, 3000, 4096, 8192, 9000, 16 * 1024, 40_000] {
                let changed = registers::changed(|| _ = black_box(kernel.hash_in(mode, &data[..len])));
                assert_eq!(changed, [0; 0], "{kernel}, {name}, {len} bytes");
            }
            let mut output = [0; 5000];
            let mut hasher = kernel.hasher(mode);
            let changed = registers::changed(|| hasher.update(&data).finalize_xof().fill(&mut output));
            assert_eq!(changed, [0; 0], "{kernel}, {name}, output");
        }
        let mut digests = [Hash::from_bytes([0; 32]); 40];
        let changed = registers::changed(|| kernel.hash_many(&inputs, &mut digests));
        assert_eq!(changed, [0; 0], "{kernel}, many inputs");
    }
}
