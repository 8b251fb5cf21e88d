//! Which existing files a command may replace.

use super::atomic::cannot_write;
use super::kind::describe;
use crate::error::{Error, Result};
use crate::file_name::shown;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of an existing file is read to see what it is.
const MOST: u64 = 1 << 20;

/// Checks that writing `what` to `path` would lose nothing: there is no file, or an empty one, or
/// one that is `what` already, as `is_one` sees from its beginning.
///
/// # Errors
/// `already_exists`; any error of the system, also one that writing would have, such as a name that
/// is too long.
pub(crate) fn check_replaceable(path: &Path, what: &str, is_one: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot_write(path, &error)),
        Ok(metadata) => metadata,
    };
    let in_the_way = |found: &str| {
        Error::new("already_exists", format!("is {found}; bulla does not overwrite it"))
            .about(shown(path))
            .hint("move it away, or name another file with --output FILE")
    };
    if !metadata.is_file() {
        return Err(in_the_way(describe(metadata.file_type())));
    }
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut content));
    read.map_err(|error| Error::io("cannot read the existing file", &error).about(shown(path)))?;
    if content.is_empty() || is_one(&content) { Ok(()) } else { Err(in_the_way(&format!("not {what}"))) }
}
