//! Every kernel of this machine, at every length, in every mode, against a slow reference and the
//! official crate.

use crate::reference;
use crate::support::{Beginnings, CONTEXT, input, modes, official, sample};
use bulla_blake3::hazmat::hash_derive_key_context;
use bulla_blake3::kernel::{self, Kernel};
use bulla_kernel_testing::{expected_best_kernel, report_untested};

/// Four chunks past two groups of the narrowest kernels: each length is quick to check, also in an
/// emulator.
const MAX_NEAR_LEN: usize = 12 * 1024;

/// Four chunks past two groups of the widest kernel.
const MAX_LEN: usize = 36 * 1024;

/// Longer inputs: around group and superblock boundaries, and odd ones.
fn long_lengths() -> Vec<usize> {
    let mut lengths = vec![];
    for chunks in [48, 64, 96, 128, 255, 256, 257, 511, 512, 513, 528, 1023, 1024, 1025, 2047] {
        for odd in [-1025, -1, 0, 1, 63, 64, 700] {
            lengths.push((chunks * 1024 + odd) as usize);
        }
    }
    lengths.extend([3 << 20, (3 << 20) + 1, 4_567_891]);
    lengths
}

/// The official crate is fast enough to check every length; the reference proves it, and us, at a
/// sample.
#[test]
fn the_reference_agrees_with_the_official_crate() {
    let data = input(70_000);
    for len in (0..=2100).chain([3072, 4095, 5000, 8192, 9217, 16384, 16385, 33000, 65537, 70_000]) {
        for mode in ["hash", "keyed", "derive"] {
            let mut theirs = [0; 100];
            official(mode).update(&data[..len]).finalize_xof().fill(&mut theirs);
            assert_eq!(reference::output(mode, &data[..len], 100), theirs, "{mode}, {len} bytes");
        }
    }
}

fn check(kernel: Kernel, lengths: impl Iterator<Item = usize>) {
    let context_key = hash_derive_key_context(CONTEXT);
    let lengths: Vec<_> = lengths.collect();
    let all = input(*lengths.iter().max().expect("lengths"));
    let (mut official, mut room) = (Beginnings::of(&all), vec![0; all.len() + 61]);
    let every_mode = sample(true, false);
    for len in lengths {
        // Another alignment at every length.
        let data = &mut room[len % 61..][..len];
        data.copy_from_slice(&all[..len]);
        let data = &*data;
        // One mode at each length, and all of them around the end of a block.
        let is_wanted = |place: usize| every_mode || place == len % 3 || (len + 1) % 64 <= 2;
        let modes = modes(&context_key).into_iter().enumerate().filter(|(place, _)| is_wanted(*place));
        for (_, (name, mode)) in modes {
            let theirs = official.hasher(name, len).finalize();
            let ours = kernel.hash_in(mode, data);
            assert_eq!(ours.as_bytes(), theirs.as_bytes(), "{kernel}, {name}, {len} bytes at once");
            let mut hasher = kernel.hasher(mode);
            let cut = len * (len % 7) / 7;
            hasher.update(&data[..cut]).update(&data[cut..]);
            assert_eq!(hasher.finalize(), ours, "{kernel}, {name}, {len} bytes in two updates");
            assert_eq!(hasher.count(), len as u64);
        }
    }
}

/// The kernels of that name. Without any, the test says so.
fn kernels(name: &str) -> Vec<Kernel> {
    let kernels: Vec<_> = kernel::runnable().filter(|kernel| kernel.name() == name).collect();
    if kernels.is_empty() {
        report_untested(name);
    }
    kernels
}

macro_rules! every_length {
    ($($test:ident: $name:literal,)*) => { $(
        mod $test {
            use super::*;

            #[test]
            fn near() {
                for kernel in kernels($name) {
                    check(kernel, 0..=MAX_NEAR_LEN);
                }
            }

            #[test]
            fn far() {
                for kernel in kernels($name) {
                    check(kernel, (MAX_NEAR_LEN + 1..=MAX_LEN).chain(long_lengths()));
                }
            }
        }
    )* };
}

every_length! {
    portable: "portable",
}

#[cfg(target_arch = "x86_64")]
every_length! {
    sse41: "x86_64/sse4.1",
    avx2: "x86_64/avx2",
    avx512: "x86_64/avx512",
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
every_length! {
    neon: "aarch64/neon",
}

#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
every_length! {
    vsx: "powerpc64/vsx",
}

#[cfg(target_arch = "s390x")]
every_length! {
    vector: "s390x/vector",
}

#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
every_length! {
    simd128: "wasm32/simd128",
}

#[test]
fn the_best_kernel_is_in_use() {
    if let Some(best) = expected_best_kernel() {
        assert_eq!(kernel::active().name(), best);
    }
    let forced = kernel::forced().expect("a kernel of this machine");
    let best = forced.or_else(|| kernel::available().next()).expect("there is always one");
    assert_eq!(kernel::active(), best);
}
