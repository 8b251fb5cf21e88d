//! Reads files that contain secrets.

use super::STDIN;
use crate::error::{Error, Result};
use bulla_files::escape_path;
use bulla_keystore::check_secret_file;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// Whether a file contains its secret unprotected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Anyone who can read the file has the secret: files that other users may read are refused.
    Secret,
    /// The content is public, or encrypted.
    NotSecret,
}

/// Reads a file of at most `limit` bytes, or standard input for `-`. `what` is for errors, such as
/// `the private key`.
pub fn read(path: &Path, what: &str, limit: usize, secrecy: Secrecy) -> Result<Zeroizing<Vec<u8>>> {
    let cannot =
        |error: &io::Error| Error::io(&format!("cannot read {what}"), error).about(escape_path(path));
    // The capacity is never exceeded: growing the buffer would leave a copy of the secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * limit));
    let mut fill = |reader: &mut dyn Read| reader.take(limit as u64 + 1).read_to_end(&mut bytes);
    let read = if path == Path::new(STDIN) {
        fill(&mut io::stdin().lock())
    } else {
        let mut file = File::open(path).map_err(|error| cannot(&error))?;
        if secrecy == Secrecy::Secret {
            check_secret_file(path, &file.metadata().map_err(|error| cannot(&error))?)?;
        }
        fill(&mut file)
    };
    read.map_err(|error| cannot(&error))?;
    if bytes.len() > limit {
        let message = format!("is too long: {what} has at most {limit} bytes");
        return Err(Error::new("file_too_large", message).about(escape_path(path)));
    }
    Ok(bytes)
}
