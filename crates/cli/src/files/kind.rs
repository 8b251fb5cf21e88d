//! Kinds of files.

use std::fs::FileType;

/// The kind of a file, for an error message.
pub(crate) fn describe(kind: FileType) -> &'static str {
    if kind.is_file() {
        return "a file";
    }
    if kind.is_dir() {
        return "a folder";
    }
    if kind.is_symlink() {
        return "a link";
    }
    describe_special(kind)
}

#[cfg(unix)]
fn describe_special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a fifo"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_char_device() {
        "a character device"
    } else {
        "a special file"
    }
}

#[cfg(not(unix))]
fn describe_special(_kind: FileType) -> &'static str {
    "a special file"
}
