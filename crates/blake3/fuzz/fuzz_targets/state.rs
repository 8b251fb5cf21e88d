//! A hasher has exactly one saved state, and no bytes make restoring panic.
#![no_main]

use arbitrary::Arbitrary;
use bulla_blake3::Hasher;
use bulla_blake3::hazmat::{HasherExt, max_subtree_len};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input {
    Bytes(Vec<u8>),
    /// A real state with some bytes changed, perhaps cut off or longer.
    Changed {
        offset: u32,
        len: u16,
        changes: Vec<(u16, u8)>,
        new_len: Option<u16>,
    },
}

impl Input {
    fn bytes(self) -> Vec<u8> {
        match self {
            Input::Bytes(bytes) => bytes,
            Input::Changed { offset, len, changes, new_len } => {
                let offset = u64::from(offset) * 1024;
                let most = max_subtree_len(offset).unwrap_or(u64::MAX);
                let mut hasher = Hasher::new();
                hasher.set_input_offset(offset).update(&vec![7; most.min(len.into()) as usize]);
                let mut bytes = hasher.save().to_vec();
                for (at, change) in changes {
                    // Mostly in the header: the rest has no structure.
                    let at = usize::from(at) % bytes.len().min(72);
                    bytes[at] ^= change;
                }
                if let Some(len) = new_len {
                    bytes.resize(usize::from(len % 4096), 0);
                }
                bytes
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let bytes = input.bytes();
    let Ok(hasher) = Hasher::restore(&bytes) else { return };
    assert_eq!(hasher.save()[..], bytes);
    hasher.finalize();
    let offset = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
    let most = max_subtree_len(offset).unwrap_or(u64::MAX);
    if most - hasher.count() > 20_000 {
        // In pieces, and at once.
        let (mut pieces, mut whole) = (hasher.clone(), hasher);
        pieces.update(&[1; 100]).update(&[1; 18_900]);
        whole.update(&[1; 19_000]);
        assert_eq!(pieces.save()[..], whole.save()[..]);
        assert_eq!(pieces.finalize(), whole.finalize());
    }
});
