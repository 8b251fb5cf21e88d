//! The content of what is in a folder: files and links.

use crate::batch::{Hashed, Reading, hash_files};
use crate::error::ReadError;
use crate::kind::Kind;
use crate::team::Others;
use crate::walk::Batch;

/// The content of a name in a folder.
#[derive(Clone, Debug)]
pub enum Content {
    /// A regular file.
    File(Hashed),
    /// A link, which is not followed: its text.
    Link(Vec<u8>),
}

impl Content {
    /// The identity of a regular file, where the system tells it.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Self::File(file) => file.stamp.map(|stamp| stamp.identity),
            Self::Link(_) => None,
        }
    }
}

/// Reads what is in a batch of a walk, in order. It leaves the last ones out if the first ones were
/// large, or if the work is to stop.
pub fn read_entries(
    reading: &Reading<'_>,
    batch: &Batch,
    others: &dyn Others,
) -> Vec<Result<Content, ReadError>> {
    let is_file = |index: &usize| batch.kind(*index).is_none_or(|kind| kind == Kind::File);
    let files: Vec<usize> = (0..batch.len()).filter(is_file).collect();
    let names = files.iter().map(|index| batch.name(*index));
    let hashed = hash_files(reading, batch.folder(), names, others);
    // What comes before the first file that was left out is done.
    let end = files.get(hashed.len()).copied().unwrap_or(batch.len());
    let mut hashed = hashed.into_iter();
    let content = |index| match batch.kind(index) {
        None | Some(Kind::File) => hashed.next().expect("each file has a result").map(Content::File),
        Some(Kind::Link) => Ok(Content::Link(batch.folder().link_target(batch.name(index))?)),
        Some(kind) => Err(ReadError::NotAFile(kind.describe())),
    };
    (0..end).map(content).collect()
}
