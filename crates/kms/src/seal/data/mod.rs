//! Seals data of any size to passphrases, key files, recipients, or the keys of a keystore.
//! `spec/sealed.md` describes the format.
//!
//! The data is sealed once, under its own key. The header contains that key, encrypted under each
//! of the keys that open it. So the keys can change without encrypting the data again: [`reseal`].

mod format;
mod header;
mod stream;

use std::io::{Read, Write};

use zeroize::Zeroizing;

use self::format::cannot_write;
pub use self::header::{Header, Keep};
pub use self::stream::{Opening, Sealing};
use super::provider::KeyProvider;
use crate::error::Result;

/// Seals bytes in memory to each of the keys of `to`: see [`Sealing::new`].
///
/// # Errors
/// The errors of [`Sealing::new`].
pub fn seal(bytes: &[u8], to: &[&dyn KeyProvider], associated: &[u8]) -> Result<Vec<u8>> {
    let mut sealing = Sealing::new(Vec::new(), to, associated)?;
    sealing.write(bytes)?;
    sealing.finish()
}

/// Opens sealed bytes in memory. The result is returned only after all of it is authenticated, and
/// is wiped on drop.
///
/// # Errors
/// The errors of [`Opening::new`] and [`Opening::next_piece`].
pub fn open(sealed: &[u8], with: &[&dyn KeyProvider], associated: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let mut opening = Opening::new(sealed, with, associated)?;
    // The capacity is never exceeded: growing the buffer would leave a copy of the data behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(sealed.len()));
    while let Some(piece) = opening.next_piece()? {
        bytes.extend_from_slice(piece);
    }
    Ok(bytes)
}

/// Seals the same data to other keys: it writes a new header and copies the payload, without
/// opening or authenticating it. The data's own key stays the same. So anyone who could open the
/// old form, and kept it or that key, still has the data.
///
/// To disturb no reader, write to a new file that then replaces the old one. To lock nobody out,
/// use [`Keep::Former`] first, and [`Keep::Nothing`] once everybody has the new key.
///
/// Returns the number of bytes of the payload.
///
/// # Errors
/// The errors of [`Opening::new`] and [`Sealing::new`].
pub fn reseal(
    mut source: impl Read,
    mut sink: impl Write,
    with: &[&dyn KeyProvider],
    keep: Keep,
    to: &[&dyn KeyProvider],
) -> Result<u64> {
    let header = Header::read(&mut source)?;
    let data_key = header.open(with)?;
    let header = header.reseal(&data_key, keep, to)?;
    sink.write_all(&header.to_bytes()).map_err(cannot_write)?;
    let copied = std::io::copy(&mut source, &mut sink).map_err(cannot_write)?;
    sink.flush().map_err(cannot_write)?;
    Ok(copied)
}
