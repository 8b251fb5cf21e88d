//! The reasons why a file has no digest.

use std::io;

/// The reason why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// An error of the system.
    Io(io::Error),
    /// Its length or its time of change differs from before.
    Changed,
    /// The path now leads to another file.
    Replaced,
    /// It is not a file that can be read. The text names the kind: a folder, a fifo, ...
    NotAFile(&'static str),
    /// Standard input is not free for a file's content: the key came from there.
    StdinHeldTheKey,
    /// The work was stopped before the whole file was read.
    Stopped,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The reason why reading ended early.
#[derive(Debug)]
pub enum Stopped<E> {
    /// The file could not be read.
    Reading(ReadError),
    /// The receiver of the pieces returned this error.
    By(E),
}

impl<E> From<ReadError> for Stopped<E> {
    fn from(error: ReadError) -> Self {
        Self::Reading(error)
    }
}
