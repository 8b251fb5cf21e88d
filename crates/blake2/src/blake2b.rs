//! BLAKE2b: words of 64 bits, digests of up to 64 bytes, and its parallel mode BLAKE2bp. The names
//! are those of the crate `blake2b_simd`.
//!
//! ```
//! use bulla_blake2::blake2b::{Params, blake2b};
//!
//! assert_eq!(blake2b(b"abc"), Params::new().hash(b"abc"));
//! ```

use crate::job::Finalization;
use crate::kernel;
use crate::params::compress;
use crate::variant::{Blake2b, Variant};

/// The maximum length of a digest in bytes.
pub const OUTBYTES: usize = 64;
/// The maximum length of a key in bytes.
pub const KEYBYTES: usize = 64;
/// The maximum length of a salt in bytes.
pub const SALTBYTES: usize = 16;
/// The maximum length of a personalization in bytes.
pub const PERSONALBYTES: usize = 16;
/// The length of a block, the input of one compression, in bytes.
pub const BLOCKBYTES: usize = 128;

/// Parameters of a hash: a builder.
pub type Params = crate::Params<Blake2b>;
/// A hasher that takes its input in pieces.
pub type State = crate::State<Blake2b>;
/// A digest.
pub type Hash = crate::Hash<Blake2b>;

/// The BLAKE2b digest of `input`, with the default parameters.
pub fn blake2b(input: &[u8]) -> Hash {
    let mut words = Blake2b::PLAIN;
    compress(Blake2b::functions(kernel::active()), &mut words, input, 0, Finalization::LastBlock);
    Hash::new(&words, OUTBYTES as u8)
}

/// Many inputs at once.
pub mod many {
    use super::Blake2b;

    pub use crate::many::{hash_many, update_many};

    /// The largest value that [`degree`] returns on any machine.
    pub const MAX_DEGREE: usize = 8;

    /// How many inputs the kernel in use hashes at once: a multiple of it keeps all lanes busy.
    ///
    /// ```
    /// use bulla_blake2::blake2b::many::{MAX_DEGREE, degree};
    ///
    /// assert!((1..=MAX_DEGREE).contains(&degree()));
    /// ```
    pub fn degree() -> usize {
        crate::many::degree_of::<Blake2b>()
    }

    /// One of the inputs of [`hash_many`], and afterwards its digest.
    pub type HashManyJob<'a> = crate::many::HashManyJob<'a, Blake2b>;
}

/// BLAKE2bp: four leaves side by side. Its digests are not those of BLAKE2b.
pub mod blake2bp {
    use super::{Blake2b, Hash};

    /// Parameters of a hash: a builder.
    pub type Params = crate::parallel::Params<Blake2b>;
    /// A hasher that takes its input in pieces.
    pub type State = crate::parallel::State<Blake2b>;

    /// The BLAKE2bp digest of `input`, with the default parameters.
    ///
    /// ```
    /// use bulla_blake2::blake2b::{blake2b, blake2bp::blake2bp};
    ///
    /// assert_eq!(blake2bp(b"input").as_bytes().len(), 64);
    /// assert_ne!(blake2bp(b"input"), blake2b(b"input"));
    /// ```
    pub fn blake2bp(input: &[u8]) -> Hash {
        crate::parallel::plain(input)
    }
}
