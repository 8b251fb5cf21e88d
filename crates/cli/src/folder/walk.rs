//! How a folder is walked and read, to be signed or compared.

use crate::error::{Error, Result};
use crate::files::read::ReadError;
use bulla_kms::signature::manifest::{EntryContent, Exclusion, LinkTarget, ManifestEntry, ManifestPath};
use bulla_sums::{
    Dash, EntryContent as Read, EntryFilter, Folder, HashParams, Job, Links, Meter, NamePolicy, OpenPolicy,
    PendingFolder, ReadOptions, Rules,
};
use std::path::Path;
use std::sync::Arc;

/// What a manifest lists: everything but folders and what the patterns leave out, and no link is
/// followed.
///
/// # Errors
/// A pattern is malformed.
pub(crate) fn rules<'a>(folder: &Path, exclusions: impl Iterator<Item = &'a Exclusion>) -> Result<Rules> {
    let mut rules = Rules::default();
    rules.entries = EntryFilter::Everything;
    rules
        .exclude(skip_of(folder), exclusions.map(Exclusion::as_str))
        .map_err(|reason| Error::new("usage", format!("a pattern of what to leave out: {reason}")))?;
    Ok(rules)
}

/// How the files of a folder are read.
pub(super) fn reading<'a>(meter: &'a (dyn Meter + 'a)) -> ReadOptions<'a> {
    ReadOptions {
        hashing: Arc::new(HashParams::plain_blake3()),
        open_policy: OpenPolicy::RegularFile(Links::Refuse),
        name_policy: NamePolicy::MustStay,
        dash: Dash::FileName,
        by_blocks: true,
        meter,
    }
}

/// The job of walking a folder, as a feed.
pub(super) fn root(folder: &Path) -> Box<dyn bulla_sums::Feed<Job>> {
    struct Root(Option<PendingFolder>);
    impl bulla_sums::Feed<Job> for Root {
        fn next(&mut self) -> Option<Job> {
            self.0.take().map(Job::Folder)
        }
        fn has_more(&self) -> bool {
            self.0.is_some()
        }
    }
    Box::new(Root(Some(PendingFolder::root(folder.as_os_str().as_encoded_bytes()))))
}

/// The bytes of a path below the walked folder, whose own path with a `/` at its end has `skip`
/// bytes.
pub(super) fn below(folder: &Folder, name: &[u8], skip: usize) -> Vec<u8> {
    [&folder.prefix()[skip..], name].concat()
}

/// How many bytes of a path in the folder are the folder's own.
pub(super) fn skip_of(folder: &Path) -> usize {
    let path = folder.as_os_str().as_encoded_bytes();
    path.len() + usize::from(path.last() != Some(&b'/'))
}

/// An entry of a manifest, from what was read.
pub(super) fn entry(path: Vec<u8>, content: Result<Read, ReadError>) -> Result<ManifestEntry> {
    let path = ManifestPath::from_bytes(path)?;
    let content = match content {
        Ok(Read::File(file)) => EntryContent::File { digest: file.output.hash(), size: file.size },
        Ok(Read::Link(target)) => EntryContent::Link { target: LinkTarget::from_bytes(target)? },
        Err(ReadError::NotAFile(kind)) => {
            let message = format!("is {kind}: bulla signs only files, folders and links");
            return Err(Error::new("not_a_file", message));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(ManifestEntry { path, content })
}
