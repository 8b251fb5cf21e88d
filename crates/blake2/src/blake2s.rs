//! BLAKE2s: words of 32 bits, digests of up to 32 bytes, and its parallel mode BLAKE2sp. The names
//! are those of the crate `blake2s_simd`.
//!
//! ```
//! use bulla_blake2::blake2s::{Params, blake2s};
//!
//! assert_eq!(blake2s(b"abc"), Params::new().hash(b"abc"));
//! ```

use crate::job::Finalization;
use crate::kernel;
use crate::params::compress;
use crate::variant::{Blake2s, Variant};

/// The maximum length of a digest in bytes.
pub const OUTBYTES: usize = 32;
/// The maximum length of a key in bytes.
pub const KEYBYTES: usize = 32;
/// The maximum length of a salt in bytes.
pub const SALTBYTES: usize = 8;
/// The maximum length of a personalization in bytes.
pub const PERSONALBYTES: usize = 8;
/// The length of a block, the input of one compression, in bytes.
pub const BLOCKBYTES: usize = 64;

/// Parameters of a hash: a builder.
pub type Params = crate::Params<Blake2s>;
/// A hasher that takes its input in pieces.
pub type State = crate::State<Blake2s>;
/// A digest.
pub type Hash = crate::Hash<Blake2s>;

/// The BLAKE2s digest of `input`, with the default parameters.
pub fn blake2s(input: &[u8]) -> Hash {
    let mut words = Blake2s::PLAIN;
    compress(Blake2s::functions(kernel::active()), &mut words, input, 0, Finalization::LastBlock);
    Hash::new(&words, OUTBYTES as u8)
}

/// Many inputs at once.
pub mod many {
    use super::Blake2s;

    pub use crate::many::{hash_many, update_many};

    /// The largest value that [`degree`] returns on any machine.
    pub const MAX_DEGREE: usize = 16;

    /// How many inputs the kernel in use hashes at once: a multiple of it keeps all lanes busy.
    ///
    /// ```
    /// use bulla_blake2::blake2s::many::{MAX_DEGREE, degree};
    ///
    /// assert!((1..=MAX_DEGREE).contains(&degree()));
    /// ```
    pub fn degree() -> usize {
        crate::many::degree_of::<Blake2s>()
    }

    /// One of the inputs of [`hash_many`], and afterwards its digest.
    pub type HashManyJob<'a> = crate::many::HashManyJob<'a, Blake2s>;
}

/// BLAKE2sp: eight leaves side by side. Its digests are not those of BLAKE2s.
pub mod blake2sp {
    use super::{Blake2s, Hash};

    /// Parameters of a hash: a builder.
    pub type Params = crate::parallel::Params<Blake2s>;
    /// A hasher that takes its input in pieces.
    pub type State = crate::parallel::State<Blake2s>;

    /// The BLAKE2sp digest of `input`, with the default parameters.
    ///
    /// ```
    /// use bulla_blake2::blake2s::{blake2s, blake2sp::blake2sp};
    ///
    /// assert_eq!(blake2sp(b"input").as_bytes().len(), 32);
    /// assert_ne!(blake2sp(b"input"), blake2s(b"input"));
    /// ```
    pub fn blake2sp(input: &[u8]) -> Hash {
        crate::parallel::plain(input)
    }
}
