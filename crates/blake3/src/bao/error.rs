//! The errors of decoding.

use std::fmt;
use std::io;

/// A problem of an encoding.
///
/// The readers of this module return it inside an [`io::Error`]: use
/// [`get_ref`](io::Error::get_ref) and `downcast_ref`. They return all bytes that could be verified
/// before the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes do not match the digest. [`io::ErrorKind::InvalidData`].
    HashMismatch,
    /// It ends too early. [`io::ErrorKind::UnexpectedEof`].
    Truncated,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::HashMismatch => "the encoding is corrupt, or not of this digest",
            Error::Truncated => "the encoding is truncated",
        })
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::HashMismatch => io::ErrorKind::InvalidData,
            Error::Truncated => io::ErrorKind::UnexpectedEof,
        };
        io::Error::new(kind, error)
    }
}
