//! Kinds of files.

use std::fs::FileType;

/// The kind of what has a name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A fifo, a socket or a device; the text names it.
    Special(&'static str),
}

impl Kind {
    /// The kind in a sentence: `a file`, `a folder`.
    pub fn describe(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Special(name) => name,
        }
    }

    /// The kind that the system names.
    #[cfg(unix)]
    pub(crate) fn of(kind: rustix::fs::FileType) -> Self {
        use rustix::fs::FileType as Raw;
        match kind {
            Raw::RegularFile => Self::File,
            Raw::Directory => Self::Folder,
            Raw::Symlink => Self::Link,
            Raw::Fifo => Self::Special("a fifo"),
            Raw::Socket => Self::Special("a socket"),
            Raw::BlockDevice => Self::Special("a block device"),
            Raw::CharacterDevice => Self::Special("a character device"),
            _ => Self::Special("a special file"),
        }
    }
}

#[cfg(unix)]
impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_symlink() {
            Self::Link
        } else if kind.is_fifo() {
            Self::Special("a fifo")
        } else if kind.is_socket() {
            Self::Special("a socket")
        } else if kind.is_block_device() {
            Self::Special("a block device")
        } else if kind.is_char_device() {
            Self::Special("a character device")
        } else {
            Self::Special("a special file")
        }
    }
}

#[cfg(not(unix))]
impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Special("a special file")
        }
    }
}
