//! Helpers that the tests share: input, modes, random shapes, and the official crate beside ours.

use bulla_blake3::hazmat::Mode;

pub(crate) use bulla_kernel_testing::{input, sample};

/// A key of the tests.
pub(crate) const KEY: [u8; 32] = *b"whats the Elvish word for friend";

/// A context of the tests.
pub(crate) const CONTEXT: &str = "bulla 2026-11-20 tests of every length";

/// The three modes, as both implementations name them.
pub(crate) fn modes(context_key: &[u8; 32]) -> [(&'static str, Mode<'_>); 3] {
    [("hash", Mode::Hash), ("keyed", Mode::KeyedHash(&KEY)), ("derive", Mode::DeriveKeyMaterial(context_key))]
}

/// Whether there is a multiple of 1024 within this distance of `len`.
pub(crate) fn is_near_chunk(len: usize, distance: usize) -> bool {
    (len + distance) % 1024 <= 2 * distance
}

/// The official crate's hasher of a mode.
pub(crate) fn official(name: &str) -> blake3::Hasher {
    match name {
        "hash" => blake3::Hasher::new(),
        "keyed" => blake3::Hasher::new_keyed(&KEY),
        _ => blake3::Hasher::new_derive_key(CONTEXT),
    }
}

/// The official crate's hashers of the beginnings of one input. For lengths that grow, none hashes
/// a byte twice.
pub(crate) struct Beginnings<'d> {
    data: &'d [u8],
    /// One of each mode, after this many bytes.
    hashers: Vec<(&'static str, blake3::Hasher, usize)>,
}

impl<'d> Beginnings<'d> {
    pub(crate) fn of(data: &'d [u8]) -> Self {
        Self { data, hashers: ["hash", "keyed", "derive"].map(|name| (name, official(name), 0)).into() }
    }

    /// The hasher of that mode after `len` bytes.
    pub(crate) fn hasher(&mut self, name: &str, len: usize) -> &blake3::Hasher {
        let hasher = self.hashers.iter_mut().find(|hasher| hasher.0 == name).expect("a mode");
        if len < hasher.2 {
            (hasher.1, hasher.2) = (official(name), 0);
        }
        hasher.1.update(&self.data[hasher.2..len]);
        hasher.2 = len;
        &hasher.1
    }
}

/// A small generator of shapes: the same ones in every run.
pub(crate) struct Random(u64);

impl Random {
    /// A generator of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A length up to `most`, short ones as likely as long ones, often a multiple of a block or a
    /// chunk.
    pub(crate) fn length(&mut self, most: usize) -> usize {
        let scale = 1 + (most as u64 >> self.below(20));
        let len = self.below(scale) as usize;
        match self.below(4) {
            0 => len / 1024 * 1024,
            1 => len / 64 * 64,
            _ => len,
        }
        .min(most)
    }
}
