//! Streaming and saved states where the buffer is four chunks inside the hasher.

use bulla_blake3::hazmat::Mode;
use bulla_blake3::{Hasher, kernel};

fn input(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

#[test]
fn this_is_the_build_without_the_standard_library() {
    // With it the hasher takes about 3 KiB, and its buffer is elsewhere.
    assert!(size_of::<Hasher>() > 4096, "{} bytes", size_of::<Hasher>());
}

#[test]
fn updates_of_any_size_by_every_kernel() {
    let data = input(400_000);
    let lengths = (0..=20_480).step_by(37).chain((0..=20).map(|chunks| chunks * 1024));
    for len in lengths.chain([70_000, 262_144, 262_145, 399_999]) {
        let digest = *blake3::hash(&data[..len]).as_bytes();
        for kernel in kernel::available() {
            for update in [61, 1000, 1024, 4096, 5000, 16_384, 33_000] {
                let mut hasher = kernel.hasher(Mode::Hash);
                for piece in data[..len].chunks(update) {
                    hasher.update(piece);
                }
                assert_eq!(*hasher.finalize().as_bytes(), digest, "{kernel}: {len} bytes by {update}");
            }
        }
    }
}

#[test]
fn a_restored_state_goes_on() {
    let data = input(30_000);
    for len in [0, 1, 500, 1024, 1025, 2048, 5000, 8192, 16_384, 20_000] {
        let mut saved = Hasher::new();
        saved.update(&data[..len]);
        let mut restored = Hasher::restore(&saved.save()).expect("our own state");
        assert_eq!(restored.save(), saved.save(), "{len} bytes");
        assert_eq!(restored.finalize(), saved.finalize(), "{len} bytes");
        restored.update(&data[len..len + 3000]);
        let digest = blake3::hash(&data[..len + 3000]);
        assert_eq!(restored.finalize().as_bytes(), digest.as_bytes(), "{len} bytes and 3000 more");
    }
}
