//! The errors about binaries, rules files and projects.

use std::{fmt, io};

/// The reason why there is no report.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read; the error of the operating system.
    Io(io::Error),
    /// This crate does not read files of this kind. The value names the kind.
    Format(String),
    /// The file is of a supported kind, but malformed.
    Malformed(String),
    /// The code is for a machine that this crate does not decode.
    Architecture(String),
    /// The tables of the file need more memory than [`crate::Limits::tables`].
    Limit(String),
    /// A rules file, a configuration or a baseline has invalid content.
    Config(String),
    /// A project's metadata or sources cannot be read.
    Project(String),
}

impl Error {
    /// A stable name, in snake_case.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::Format(_) => "format",
            Self::Malformed(_) => "malformed",
            Self::Architecture(_) => "architecture",
            Self::Limit(_) => "limit",
            Self::Config(_) => "config",
            Self::Project(_) => "project",
        }
    }

    /// A hint on what to do next, if something can be done.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Format(_) => Some(
                "give an ELF, Mach-O or PE executable, library, object file, or an archive of object files",
            ),
            Self::Malformed(_) => Some("the file may be cut off: compare its size with the original's size"),
            Self::Architecture(_) => Some("this program reads code for x86-64 and AArch64"),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read: {error}"),
            Self::Format(what) => write!(f, "not a compiled binary: {what}"),
            Self::Malformed(what) => write!(f, "malformed: {what}"),
            Self::Architecture(what) => {
                write!(f, "its code is for a processor that this program does not decode: {what}")
            }
            Self::Limit(what) | Self::Config(what) | Self::Project(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
