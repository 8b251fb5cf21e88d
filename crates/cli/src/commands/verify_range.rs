//! `bulla verify --range`: a part of a huge file, without the rest of it.

use crate::args::{ByteRange, VerifyArgs};
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::files::outboard::{self, Verdict};
use crate::files::read::Source;
use crate::files::sidecar;
use crate::findings::{Finding, Problem, Report};
use crate::progress::Progress;
use bulla_blake3::Hash;
use bulla_kms::signature::manifest::{EntryContent, ManifestEntry, ManifestPath};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A signed file, of which a part is verified.
pub(super) struct Part<'a> {
    pub(super) path: PathBuf,
    pub(super) digest: Hash,
    pub(super) size: u64,
    pub(super) range: ByteRange,
    pub(super) outboard: Option<&'a Path>,
}

/// The file of a signed folder that `--only` names.
///
/// # Errors
/// It does not name one file, or the file was not signed.
pub(super) fn of_folder<'a>(
    folder: &Path,
    entries: &[ManifestEntry],
    only: &[ManifestPath],
    range: ByteRange,
    args: &'a VerifyArgs,
) -> Result<Part<'a>> {
    let usage = |message: &str| Err(Error::new("usage", message).about(shown(folder)));
    let ([file], Some(outboard)) = (only, &args.outboard) else {
        return usage(
            "this is a signed folder: --range needs one file's path with --only, and its tree with --outboard",
        );
    };
    let path = folder.join(&args.only[0]);
    let at = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(file.as_bytes()));
    match at.map(|at| &entries[at].content) {
        Ok(EntryContent::File { digest, size }) => {
            Ok(Part { path, digest: *digest, size: *size, range, outboard: Some(outboard) })
        }
        Ok(EntryContent::Link { .. }) => usage("--range verifies a part of a file, and --only names a link"),
        Err(_) => Err(Error::new("not_signed", "no file of this name was signed").about(shown(&path))),
    }
}

impl Part<'_> {
    /// Whether the bytes are those that were signed. `source` is the file.
    pub(super) fn compare(&self, source: Source, progress: &Progress) -> Result<Report, Finding> {
        if let Some(len) = source.len().filter(|len| *len != self.size) {
            let reason = format!("it has {len} bytes now, and had {} when it was signed", self.size);
            return Err(Problem::Changed.because(reason));
        }
        let range = self.bytes()?;
        let tree = match self.outboard {
            Some(outboard) => outboard.to_owned(),
            None => sidecar(&self.path, outboard::EXTENSION)?,
        };
        if !tree.exists() {
            let message = format!("there is no tree of its hashes {}", shown(&tree));
            let error = Error::new("no_outboard", message).about(shown(&self.path));
            return Err(error.hint("make it with `bulla sum --outboard`, or name it with --outboard").into());
        }
        match outboard::verify(source, &tree, &self.digest, range.clone(), progress)? {
            Verdict::Intact => Ok(Report { range: Some(range), ..Finding::Ok.into() }),
            Verdict::Differs(at) => Err(Problem::Changed.because(format!(
                "what follows byte {at} is not what was signed, or {} is not its tree",
                shown(&tree)
            ))),
        }
    }

    /// The bytes that are verified.
    fn bytes(&self) -> Result<Range<u64>> {
        let ByteRange { start, end } = self.range;
        let end = end.unwrap_or(self.size);
        if start >= end || end > self.size {
            let message = format!("--range: the file has {} bytes", self.size);
            return Err(Error::new("usage", message).about(shown(&self.path)));
        }
        Ok(start..end)
    }
}
