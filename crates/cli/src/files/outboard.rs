//! A file's tree of hashes, in a file beside it: with the digest and this tree, any part of the
//! file can be verified alone.
//!
//! `spec/outboard.md` describes it.

use super::atomic;
use super::read::{Links, Source, StreamError};
use crate::error::{Error, Result};
use crate::progress::Progress;
use bulla_blake3::Hash;
use bulla_blake3::bao::GroupSize;
use bulla_blake3::bao::decode::Decoder;
use bulla_blake3::bao::encode::Encoder;
use bulla_files::escape_path;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;

/// 16 chunks, 16 KiB: the tree has 0.4 % of the file's size.
const GROUP: GroupSize = GroupSize::from_chunk_log(4).expect("it is at most 8");

/// What a file's name gets at its end.
pub(crate) const EXTENSION: &str = ".obao";

/// Reads all of `source`, whose path is shown as `name`, and writes its tree to `path`. It returns
/// the digest and the size.
///
/// # Errors
/// Those of reading and of writing. Then `path` is unchanged.
pub(crate) fn write(source: &Source, name: &Path, path: &Path, progress: &Progress) -> Result<(Hash, u64)> {
    check_replaceable(path)?;
    let cannot_write = |error: &io::Error| atomic::cannot_write(path, error);
    atomic::write_by(path, |file| {
        let mut encoder = Encoder::new_outboard(file).with_group_size(GROUP);
        let size =
            source.try_for_each(progress, |bytes| encoder.write_all(bytes)).map_err(
                |stopped| match stopped {
                    StreamError::Read(error) => Error::from(error).about(escape_path(name)),
                    StreamError::Consumer(error) => cannot_write(&error),
                },
            )?;
        let digest = encoder.finalize().map_err(|error| cannot_write(&error))?;
        Ok((digest, size))
    })
}

/// Refuses to replace anything that is not the tree of some file.
fn check_replaceable(path: &Path) -> Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    let length = || {
        let mut length = [0; 8];
        let mut file = Source::open_file(path, Links::Refuse).ok()?.into_file();
        file.read_exact(&mut length).ok()?;
        Some(u64::from_le_bytes(length))
    };
    match length() {
        Some(length) if GROUP.outboard_size(length) == u128::from(metadata.len()) => Ok(()),
        _ => Err(Error::new(
            "already_exists",
            "exists already and is not a tree of hashes; bulla does not replace it",
        )
        .about(escape_path(path))
        .hint("move it away, or name another file")),
    }
}

/// The result of verifying a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Intact,
    /// Up to this byte, everything is intact. There, the file or the tree is not that of the
    /// digest.
    Differs(u64),
}

/// Verifies a range of a file's bytes by its digest and its tree.
///
/// # Errors
/// The tree ends too early; errors of reading.
pub(crate) fn verify(
    source: Source,
    outboard: &Path,
    digest: &Hash,
    range: Range<u64>,
    progress: &Progress,
) -> Result<Verdict> {
    let about = |error: Error| error.about(escape_path(outboard));
    let tree = Source::open_file(outboard, Links::Follow).map_err(|error| about(error.into()))?;
    let tree = io::BufReader::with_capacity(1 << 12, tree.into_file());
    let mut decoder = Decoder::new_outboard(source.into_file(), tree, digest).with_group_size(GROUP);
    let mut at = range.start;
    let mut read = || -> io::Result<()> {
        decoder.seek(SeekFrom::Start(at))?;
        let mut buffer = vec![0; 1 << 18];
        while at < range.end {
            let most = buffer.len().min((range.end - at) as usize);
            match decoder.read(&mut buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => at += len as u64,
            }
            progress.add(most as u64);
        }
        Ok(())
    };
    match read() {
        Ok(()) => Ok(Verdict::Intact),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Verdict::Differs(at)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let message = "ends too early: it is cut, or the tree of another file";
            Err(about(Error::new("malformed_outboard", message))
                .hint("make it again with `bulla sum --outboard`"))
        }
        Err(error) => Err(Error::io("cannot read the file or its tree", &error)),
    }
}
