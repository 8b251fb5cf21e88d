//! The signature file beside the signed file.

use crate::error::{Error, Result};
use crate::files::kind::describe;
use crate::files::name::shown;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// PATH with the extension, such as `PATH.bulla` and `PATH.minisig`, beside `path`. Paths such as `.` and `a/..` get the real name of their folder.
pub(crate) fn sidecar(path: &Path, extension: &str) -> Result<PathBuf> {
    let resolved;
    let named = if path.file_name().is_some() {
        path
    } else {
        resolved =
            path.canonicalize().map_err(|error| Error::io("cannot find", &error).about(shown(path)))?;
        &resolved
    };
    let Some(name) = named.file_name() else {
        return Err(Error::new("no_name", "has no name, so bulla cannot derive the signature file's name")
            .about(shown(path))
            .hint("name the signature file: --output FILE to sign, --signature FILE to verify"));
    };
    let mut name = name.to_owned();
    name.push(extension);
    Ok(named.with_file_name(name))
}

/// Checks that writing a signature to `path` would lose nothing: it may replace an older signature or an empty file.
pub(crate) fn check_replaceable(path: &Path) -> Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    let in_the_way = |what: &str| {
        Error::new("already_exists", format!("is {what}; bulla does not overwrite it"))
            .about(shown(path))
            .hint("move it away, or name another signature file with --output FILE")
    };
    if !metadata.is_file() {
        return Err(in_the_way(describe(metadata.file_type())));
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.map_err(|error| Error::io("cannot read the existing file", &error).about(shown(path)))?;
    let known = [&b"bulla signature v"[..], b"untrusted comment: "];
    if start.is_empty() || known.iter().any(|known| start.starts_with(known)) {
        Ok(())
    } else {
        Err(in_the_way("not a signature file"))
    }
}
