//! Files as they are on a real disk: odd names, links, special files, files that change while they
//! are read.

pub mod atomic;
pub(crate) mod outboard;
pub(crate) mod read;
pub mod secret;

use crate::error::{Error, Result};
use bulla_files::escape_path;
use bulla_sums::FileKind;
use std::fs::FileType;
use std::path::{Path, PathBuf};

/// The name of standard input, and of standard output for commands that write.
pub(crate) const STDIN: &str = "-";

/// The kind of a file, for an error message.
pub(crate) fn describe(kind: FileType) -> &'static str {
    FileKind::from(kind).describe()
}

/// PATH with the extension, such as `PATH.bulla` and `PATH.minisig`, beside `path`. Paths such as
/// `.` and `a/..` get the real name of their folder.
pub fn sidecar(path: &Path, extension: &str) -> Result<PathBuf> {
    let resolved;
    let named = if path.file_name().is_some() {
        path
    } else {
        resolved =
            path.canonicalize().map_err(|error| Error::io("cannot find", &error).about(escape_path(path)))?;
        &resolved
    };
    let Some(name) = named.file_name() else {
        return Err(Error::new("no_name", "has no name, so bulla cannot derive the signature file's name")
            .about(escape_path(path))
            .hint("name the signature file: --output FILE to sign, --signature FILE to verify"));
    };
    let mut name = name.to_owned();
    name.push(extension);
    Ok(named.with_file_name(name))
}
