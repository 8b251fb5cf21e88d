//! Constants of the BLAKE3 specification, section 2.

/// Eight words: a chaining value or a key.
pub(crate) type Words = [u32; 8];

/// A chaining value as bytes.
pub(crate) type Value = [u8; OUT_LEN];

pub(crate) const OUT_LEN: usize = 32;
pub(crate) const BLOCK_LEN: usize = 64;
pub(crate) const CHUNK_LEN: usize = 1024;

/// Initialization vector (table 1).
pub(crate) const IV: Words =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Flags (table 3).
pub(crate) const CHUNK_START: u32 = 1;
pub(crate) const CHUNK_END: u32 = 1 << 1;
pub(crate) const PARENT: u32 = 1 << 2;
pub(crate) const ROOT: u32 = 1 << 3;
pub(crate) const KEYED_HASH: u32 = 1 << 4;
pub(crate) const DERIVE_KEY_CONTEXT: u32 = 1 << 5;
pub(crate) const DERIVE_KEY_MATERIAL: u32 = 1 << 6;
