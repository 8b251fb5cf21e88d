//! Helpers that the tests share.

pub(crate) use bulla_kernel_testing::input;

/// A key of the tests, of up to 64 bytes.
pub(crate) fn key(len: usize) -> Vec<u8> {
    (0..len as u8).map(|i| i.wrapping_mul(7).wrapping_add(1)).collect()
}

/// Makes a module of the same tests for each hash function: ours beside the peer that has the same
/// names.
macro_rules! for_both {
    ($($item:item)*) => {
        mod b {
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use bulla_blake2::blake2b::{self as ours, blake2b as ours_hash, blake2bp as ours_p, blake2bp::blake2bp as ours_p_hash};
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use blake2b_simd::{self as peer, blake2bp as peer_p};
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use super::*;
            #[allow(dead_code, reason = "not every file has a test of every item")]
            const MANY: usize = 8;
            $($item)*
        }
        mod s {
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use bulla_blake2::blake2s::{self as ours, blake2s as ours_hash, blake2sp as ours_p, blake2sp::blake2sp as ours_p_hash};
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use blake2s_simd::{self as peer, blake2sp as peer_p};
            #[allow(unused_imports, reason = "not every file has a test of every item")]
            use super::*;
            #[allow(dead_code, reason = "not every file has a test of every item")]
            const MANY: usize = 16;
            $($item)*
        }
    };
}
pub(crate) use for_both;
