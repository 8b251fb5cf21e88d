//! Verified streaming: the Bao format over the BLAKE3 tree.
//!
//! An *encoding* contains the input and the chaining values of the tree. A reader that knows the 32
//! bytes of the digest can read it from an untrusted source, from any position, and can rely on
//! every byte: it does not have to wait for the end of the input. The modules, the names and the
//! bytes are those of the `bao` crate.
//!
//! ```
//! use bulla_blake3::bao;
//! use std::io::Read;
//!
//! let (encoded, hash) = bao::encode::encode(b"some input");
//! assert_eq!(hash, bulla_blake3::hash(b"some input"));
//!
//! let mut output = Vec::new();
//! bao::decode::Decoder::new(&encoded[..], &hash).read_to_end(&mut output)?;
//! assert_eq!(output, b"some input");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Format
//!
//! An encoding starts with the length of the input (8 bytes, little-endian). Then comes the tree in
//! pre-order: a parent, its whole left subtree, its whole right subtree. A parent consists of its
//! two children's chaining values (64 bytes), a leaf of the input's bytes. An *outboard* encoding
//! leaves out the leaves: they are read from the input itself. A *slice* leaves out every subtree
//! without a byte of the wanted range. (Bao specification, `docs/spec.md` of the `bao` repository.)
//!
//! The length is not trusted: the decoder reports the end of the input only after it has verified
//! the last leaf. It does not read the bytes after the encoding.
//!
//! # Groups
//!
//! With [`GroupSize`] a leaf has several chunks, which makes the tree smaller: with 16 chunks, an
//! outboard encoding is 0.4 % of the input instead of 6.25 %. The digest is the same. The encoding
//! differs, and the decoder must use the same size.

pub mod decode;
pub mod encode;
mod slice;
mod source;
mod subtree;
mod walk;

use crate::{BLOCK_LEN, CHUNK_LEN};

/// Bytes of the length at the front of an encoding.
const HEADER_LEN: usize = 8;

/// Bytes of a parent.
const PARENT_LEN: usize = BLOCK_LEN;

/// The number of chunks in a leaf of an encoding: a power of two from 1, which is the Bao format,
/// to 256.
///
/// ```
/// use std::io::Read;
///
/// use bulla_blake3::bao::{GroupSize, decode::Decoder, encode};
///
/// let group = GroupSize::from_chunk_log(4).unwrap();
/// assert_eq!(group.bytes(), 16 * 1024);
/// let input = vec![7; 100_000];
/// let (outboard, hash) = encode::outboard_with_group_size(&input, group);
/// assert_eq!(outboard.len() as u128, group.outboard_size(100_000));
///
/// let mut output = Vec::new();
/// let decoder = Decoder::new_outboard(&input[..], &outboard[..], &hash);
/// decoder.with_group_size(group).read_to_end(&mut output)?;
/// assert_eq!(output, input);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSize {
    chunk_log: u8,
}

impl GroupSize {
    /// One chunk, 1024 bytes: the Bao format.
    pub const CHUNK: GroupSize = GroupSize { chunk_log: 0 };

    /// The largest: 256 chunks, 256 KiB.
    pub const MAX: GroupSize = GroupSize { chunk_log: 8 };

    /// 2^`chunk_log` chunks; `None` above 8.
    pub const fn from_chunk_log(chunk_log: u8) -> Option<GroupSize> {
        if chunk_log <= GroupSize::MAX.chunk_log { Some(GroupSize { chunk_log }) } else { None }
    }

    /// Bytes in a group.
    pub const fn bytes(self) -> usize {
        CHUNK_LEN << self.chunk_log
    }

    /// The length of the combined encoding of `content_len` bytes, in bytes.
    pub const fn encoded_size(self, content_len: u64) -> u128 {
        content_len as u128 + self.outboard_size(content_len)
    }

    /// The length of the outboard encoding of `content_len` bytes, in bytes.
    pub const fn outboard_size(self, content_len: u64) -> u128 {
        HEADER_LEN as u128 + PARENT_LEN as u128 * (self.leaves(content_len) - 1) as u128
    }

    /// The number of leaves of the tree over `content_len` bytes. An empty input has one.
    const fn leaves(self, content_len: u64) -> u64 {
        let leaves = content_len.div_ceil(self.bytes() as u64);
        if leaves == 0 { 1 } else { leaves }
    }
}

/// Where the leaves of an encoding are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodingLayout {
    /// Between the parents.
    Combined,
    /// Elsewhere.
    Outboard,
}
