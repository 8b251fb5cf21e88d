//! Messages in parts, framed for SHA-512.

use crate::generic::sha512::{BLOCK, Block};

/// The rest of a message of four parts that is not hashed yet.
#[derive(Clone, Copy)]
pub(crate) struct Framed<'a> {
    parts: [&'a [u8]; 4],
    /// The length of the whole message in bytes.
    total: u64,
    /// The state of the padding.
    padding: Padding,
}

/// The part of the padding that is still missing (FIPS 180-4, section 5.1.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    /// The bit that ends it, and its length.
    Whole,
    /// Only the length.
    Length,
    /// Nothing more.
    Done,
}

impl<'a> Framed<'a> {
    /// The parts, one after the other.
    pub(crate) fn new(parts: [&'a [u8]; 4]) -> Self {
        let total = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, total, padding: Padding::Whole }
    }

    /// Writes the next block, and returns whether there was one.
    pub(crate) fn next_block(&mut self, block: &mut Block) -> bool {
        if self.padding == Padding::Done {
            return false;
        }
        let mut bytes = [0; BLOCK];
        let mut filled = 0;
        for part in &mut self.parts {
            let (now, later) = part.split_at(part.len().min(BLOCK - filled));
            bytes[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            *part = later;
        }
        if filled < BLOCK && self.padding == Padding::Whole {
            bytes[filled] = 0x80;
            filled += 1;
            self.padding = Padding::Length;
        }
        if filled <= BLOCK - 16 && self.padding == Padding::Length {
            bytes[BLOCK - 16..].copy_from_slice(&(u128::from(self.total) * 8).to_be_bytes());
            self.padding = Padding::Done;
        }
        for (pair, bytes) in block.iter_mut().zip(bytes.as_chunks::<16>().0) {
            let word = u128::from_le_bytes(*bytes);
            *pair = [word as u64, (word >> 64) as u64];
        }
        true
    }
}
