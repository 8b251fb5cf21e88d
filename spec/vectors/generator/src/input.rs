//! The input of the vectors, and their key and context.

/// The key of the official test vectors.
pub(crate) const KEY: &[u8; 32] = b"whats the Elvish word for friend";
/// The context string of the official test vectors.
pub(crate) const CONTEXT: &str = "BLAKE3 2019-12-27 16:29:52 test vectors context";

/// The input of n bytes that all vectors use.
pub(crate) fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}
