//! What the tests share: input, modes, and the official crate beside ours.

use bulla_blake3::hazmat::Mode;

/// A key of the tests.
pub(crate) const KEY: [u8; 32] = *b"whats the Elvish word for friend";

/// A context of the tests.
pub(crate) const CONTEXT: &str = "bulla 2026-11-20 tests of every length";

/// `len` bytes without a period that a kernel could hide behind.
pub(crate) fn input(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// The three modes, as both implementations name them.
pub(crate) fn modes(context_key: &[u8; 32]) -> [(&'static str, Mode<'_>); 3] {
    [("hash", Mode::Hash), ("keyed", Mode::KeyedHash(&KEY)), ("derive", Mode::DeriveKeyMaterial(context_key))]
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
