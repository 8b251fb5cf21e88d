//! What a signature covers of a file: a digest, or all of it.

use bulla_blake2::blake2b;
use sha2::{Digest as _, Sha256, Sha512};

use crate::error::FormatError;

/// The most bytes of a file that a signature covers without hashing it first, because all of them
/// must be in memory: 1 GiB. minisign has the same limit.
pub const MAX_WHOLE_LEN: usize = 1 << 30;

/// What a signature covers of a file.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Its BLAKE2b-512 digest.
    Blake2b512,
    /// Its SHA-256 digest.
    Sha256,
    /// Its SHA-512 digest.
    Sha512,
    /// Its bytes.
    Whole,
}

impl Coverage {
    /// Refuses a file that is too long to be covered whole.
    ///
    /// # Errors
    /// The signature covers the file's bytes, and there are more than [`MAX_WHOLE_LEN`].
    ///
    /// ```
    /// use bulla_formats::{Coverage, MAX_WHOLE_LEN};
    ///
    /// assert!(Coverage::Whole.check_len(MAX_WHOLE_LEN as u64).is_ok());
    /// assert!(Coverage::Whole.check_len(MAX_WHOLE_LEN as u64 + 1).is_err());
    /// assert!(Coverage::Sha512.check_len(u64::MAX).is_ok());
    /// ```
    pub fn check_len(self, len: u64) -> Result<(), FormatError> {
        let is_possible = self != Self::Whole || len <= MAX_WHOLE_LEN as u64;
        if is_possible { Ok(()) } else { Err(too_long()) }
    }
}

fn too_long() -> FormatError {
    FormatError::new("such a signature covers the file itself, which bulla does only for files up to 1 GiB")
}

/// Turns the bytes of a file into what a signature covers.
///
/// ```
/// use bulla_formats::{ContentHasher, Coverage};
///
/// let mut hasher = ContentHasher::new(Coverage::Sha512);
/// hasher.update(b"a file");
/// assert_eq!(hasher.finish()?.len(), 64);
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ContentHasher(Progress);

#[derive(Clone, Debug)]
enum Progress {
    Blake2b512(Box<blake2b::State>),
    Sha256(Sha256),
    Sha512(Box<Sha512>),
    Whole(Vec<u8>),
    TooLong,
}

impl ContentHasher {
    /// Starts with an empty file.
    pub fn new(coverage: Coverage) -> Self {
        Self(match coverage {
            Coverage::Blake2b512 => Progress::Blake2b512(Box::new(blake2b::State::new())),
            Coverage::Sha256 => Progress::Sha256(Sha256::new()),
            Coverage::Sha512 => Progress::Sha512(Box::default()),
            Coverage::Whole => Progress::Whole(Vec::new()),
        })
    }

    /// Adds the next bytes. Of a file that is too long to be covered whole, nothing is kept.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Progress::Blake2b512(hasher) => {
                hasher.update(bytes);
            }
            Progress::Sha256(hasher) => hasher.update(bytes),
            Progress::Sha512(hasher) => hasher.update(bytes),
            Progress::Whole(content) if content.len() + bytes.len() <= MAX_WHOLE_LEN => {
                content.extend_from_slice(bytes);
            }
            Progress::Whole(_) => self.0 = Progress::TooLong,
            Progress::TooLong => {}
        }
    }

    /// What the signature covers: the digest or the bytes.
    ///
    /// # Errors
    /// The signature covers the file's bytes, and there are more than [`MAX_WHOLE_LEN`].
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        match self.0 {
            Progress::Blake2b512(hasher) => Ok(blake2b::State::finalize(&hasher).as_bytes().to_vec()),
            Progress::Sha256(hasher) => Ok(hasher.finalize().to_vec()),
            Progress::Sha512(hasher) => Ok(hasher.finalize().to_vec()),
            Progress::Whole(content) => Ok(content),
            Progress::TooLong => Err(too_long()),
        }
    }
}
