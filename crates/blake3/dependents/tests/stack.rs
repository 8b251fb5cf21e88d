//! A program without optimization, as a user's tests are, hashes on a small stack: there, every
//! operation of a kernel has a place of its own.
#![forbid(unsafe_code)]

use std::thread;

use bulla_blake2::{Blake2b, Blake2s, Params, Variant, many, parallel};

/// As much as the first thread of a program has on Windows. A thread of Rust has twice as much.
const STACK: usize = 1 << 20;

/// Runs `hash` on a stack of that size. One that is too small ends the program.
fn on_a_small_stack(hash: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, hash).expect("there is memory for a thread").join().expect("it hashes");
    });
}

fn blake2<V: Variant>() {
    let input = vec![7; 1 << 12];
    for kernel in bulla_blake2::kernel::available() {
        let (mut params, mut lanes) = (Params::<V>::new(), parallel::Params::<V>::new());
        params.kernel(kernel);
        lanes.kernel(kernel);
        for count in 1..=16 {
            let mut jobs: Vec<_> = (0..count).map(|_| many::HashManyJob::new(&params, &input)).collect();
            many::hash_many(&mut jobs);
            assert!(jobs.iter().all(|job| job.to_hash() == params.hash(&input)), "{kernel}, {count} inputs");
        }
        assert_eq!(lanes.hash(&input), lanes.to_state().update(&input).finalize(), "{kernel}");
    }
}

#[test]
fn blake2b_hashes_on_a_small_stack() {
    on_a_small_stack(blake2::<Blake2b>);
}

#[test]
fn blake2s_hashes_on_a_small_stack() {
    on_a_small_stack(blake2::<Blake2s>);
}

#[test]
fn blake3_hashes_on_a_small_stack() {
    on_a_small_stack(|| {
        let input = vec![7; 1 << 17];
        for kernel in bulla_blake3::kernel::available() {
            for len in [0, 64, 1024, 2048, 4096, 8192, 16384, 20000, 1 << 15, 1 << 17] {
                let hash = kernel.hash(&input[..len]);
                let mut hasher = kernel.hasher(bulla_blake3::hazmat::Mode::Hash);
                assert_eq!(hasher.update(&input[..len]).finalize(), hash, "{kernel}, {len} bytes");
                let (inputs, mut out) = ([&input[..len]; 16], [hash; 16]);
                kernel.hash_many(&inputs, &mut out);
                assert_eq!(out, [hash; 16], "{kernel}, inputs of {len} bytes");
            }
        }
    });
}
