//! Verified streaming, beside the `bao` crate and a slow, obvious encoder.

mod corrupt;
mod encodings;
mod slices;
mod streams;

use crate::support::sample;
use blake3::hazmat::{HasherExt, Mode, left_subtree_len, merge_subtrees_root};
use bulla_blake3::bao::GroupSize;

/// Our digest, for the `bao` crate.
fn official(hash: &bulla_blake3::Hash) -> blake3::Hash {
    blake3::Hash::from_bytes(*hash.as_bytes())
}

fn group(chunk_log: u8) -> GroupSize {
    GroupSize::from_chunk_log(chunk_log).expect("a group size")
}

/// Lengths around all that an implementation could see as a boundary.
fn lengths() -> impl Iterator<Item = usize> {
    let chunks =
        [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 300, 511, 512, 513, 1030];
    let chunks = chunks.into_iter().take_while(|chunks| *chunks <= sample(usize::MAX, 300));
    let around = |chunks: usize| [1024 * chunks - 1, 1024 * chunks, 1024 * chunks + 1];
    [0, 1, 64, 65, 100].into_iter().chain(chunks.flat_map(around))
}

/// What a naive encoder makes of an input: the tree in pre-order with and without leaves, and the
/// digest.
struct Reference {
    combined: Vec<u8>,
    outboard: Vec<u8>,
    hash: [u8; 32],
}

impl Reference {
    fn new(input: &[u8], group: GroupSize) -> Self {
        let header = (input.len() as u64).to_le_bytes().to_vec();
        let mut reference = Reference { combined: header.clone(), outboard: header, hash: [0; 32] };
        let children = reference.node(input, 0, group.bytes());
        reference.hash = match children {
            Some([left, right]) => merge_subtrees_root(&left, &right, Mode::Hash).into(),
            None => blake3::hash(input).into(),
        };
        reference
    }

    /// Adds a subtree; returns the values in its parent if the encoding has one.
    fn node(&mut self, input: &[u8], start: usize, group: usize) -> Option<[[u8; 32]; 2]> {
        if input.len() <= group {
            self.combined.extend_from_slice(input);
            return None;
        }
        let (left, right) = input.split_at(left_subtree_len(input.len() as u64) as usize);
        let parts = [(left, start), (right, start + left.len())];
        let children = parts.map(|(input, start)| {
            blake3::Hasher::new().set_input_offset(start as u64).update(input).finalize_non_root()
        });
        self.combined.extend_from_slice(children.as_flattened());
        self.outboard.extend_from_slice(children.as_flattened());
        for (input, start) in parts {
            self.node(input, start, group);
        }
        Some(children)
    }
}
