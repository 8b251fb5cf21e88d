//! Reading and writing files that hold secrets.

use super::STDIN;
use super::name::shown;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// Reads a file of at most `limit` bytes, or standard input for `-`. `what` is for errors, such as `the private key`.
pub(crate) fn read(path: &Path, what: &str, limit: usize) -> Result<Zeroizing<Vec<u8>>> {
    let cannot = |error: &io::Error| Error::io(&format!("cannot read {what}"), error).about(shown(path));
    // The capacity is never exceeded, so that no copy stays behind in a buffer that was too small.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * limit));
    let mut fill = |reader: &mut dyn Read| reader.take(limit as u64 + 1).read_to_end(&mut bytes);
    let read = if path == Path::new(STDIN) {
        fill(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| fill(&mut file))
    };
    read.map_err(|error| cannot(&error))?;
    if bytes.len() > limit {
        let message = format!("{what} has at most {limit} bytes");
        return Err(Error::new("file_too_large", message).about(shown(path)));
    }
    Ok(bytes)
}
