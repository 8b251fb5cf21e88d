//! Reading files: `bulla-sums` does it.

use crate::error::Error;

pub(crate) use bulla_sums::{HashMode, LARGE, Links, Pace, ReadError, Source, Stopped};

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::of_reading(&error)
    }
}

impl Error {
    /// The error for a file that could not be read.
    pub(crate) fn of_reading(error: &ReadError) -> Self {
        match error {
            ReadError::Io(error) => Error::io("cannot read", error),
            ReadError::Changed => Error::new("changed_while_read", "changed while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::Replaced => Error::new("changed_while_read", "was replaced while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::NotAFile(kind) => Error::new("not_a_file", format!("is {kind}, not a file")),
            ReadError::StdinHeldTheKey => {
                Error::new("io", "cannot read: in keyed mode, standard input contains the key")
            }
            ReadError::Stopped => Error::new("interrupted", "was not read: the command was interrupted"),
        }
    }
}
