//! The content of a folder, as a manifest to sign. What was signed before and has not changed since
//! is not read again.

use super::stamps::{StampCache, StampWriter};
use super::walk::{below, entry, reading, root, rules, skip_of};
use crate::commands::report;
use crate::error::{Error, Result};
use crate::files::read::ReadMode;
use crate::progress::Progress;
use bulla_files::escape_path;
use bulla_kms::signature::manifest::{
    Exclusion, ManifestEntry, ManifestPath, ManifestSummary, ManifestWriter,
};
use bulla_sums::{
    EntryContent as Read, FileBatch, FileKind, Helpers, Job, JobOutcome, Links, Meter as _, PoolOptions,
    ReadError, Stamp, hash_files, path_from, run_in_order,
};
use serde::Serialize;
use std::io::BufWriter;
use std::path::Path;
use tempfile::SpooledTempFile;

/// How a folder was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListMode {
    /// Every file was read.
    Full,
    /// Files were read that are new, or whose size, times or identity changed since they were
    /// signed.
    Quick,
}

/// A folder's list, ready to be signed.
pub(crate) struct FolderList {
    /// The manifest, until it is taken.
    pub(crate) body: Option<SpooledTempFile>,
    pub(crate) summary: ManifestSummary,
    pub(crate) mode: ListMode,
    /// The number of files that were read.
    pub(crate) read: u64,
    /// The number of files that were not read: they have not changed.
    pub(crate) kept: u64,
    /// What the next signing has to know.
    pub(crate) recorder: StampWriter,
    /// What the older list has and this one has not.
    pub(crate) gone: RemovedPaths,
    /// Files that changed without a change of their times: see [`StampCache::is_damaged`].
    pub(crate) damaged: Vec<Vec<u8>>,
}

/// Where a folder's list is written while the folder is read.
pub(crate) struct ListJob<'a> {
    /// The manifest.
    pub(crate) body: SpooledTempFile,
    /// What the next signing has to know.
    pub(crate) recorder: StampWriter,
    /// What is left out of the list.
    pub(crate) exclusions: &'a [Exclusion],
    /// The older list, which the new one is compared with.
    pub(crate) earlier: EarlierPaths,
}

/// What a thread found.
#[derive(Default)]
struct BatchEntries {
    entries: Vec<(ManifestEntry, Option<Stamp>)>,
    errors: Vec<Error>,
    read: u64,
    kept: u64,
    damaged: Vec<Vec<u8>>,
}

/// Lists a folder: an entry for each file and each link in it, sorted.
///
/// # Errors
/// One for each thing in the folder that cannot be read, or is not a file, folder or link.
pub(crate) fn list(
    folder: &Path,
    stamps: Option<&StampCache<'_>>,
    mode: ListMode,
    read_mode: ReadMode,
    progress: &Progress,
    ListJob { body, mut recorder, exclusions, mut earlier }: ListJob<'_>,
) -> Result<FolderList, Vec<Error>> {
    let rules = rules(folder, exclusions.iter()).map_err(|error| vec![error])?;
    let lister = Lister { stamps, mode, progress, skip: skip_of(folder) };
    let work = |job: Job, helpers: &dyn Helpers| match job {
        Job::Folder(pending) => match pending.list(&rules) {
            Err(error) => BatchEntries { errors: vec![report(&error)], ..BatchEntries::default() }.into(),
            Ok(listed) => {
                let errors = listed.errors.iter().map(report).collect();
                JobOutcome {
                    result: BatchEntries { errors, ..BatchEntries::default() },
                    then: Some(listed.jobs),
                }
            }
        },
        Job::Batch(batch) => lister.batch(&batch, helpers),
    };
    let mut writer = ManifestWriter::new(BufWriter::with_capacity(1 << 16, body));
    let excluded = exclusions.iter().try_for_each(|exclusion| writer.exclude(exclusion));
    excluded.map_err(|error| vec![error.into()])?;
    let (mut errors, mut read, mut kept, mut damaged) = (Vec::new(), 0, 0, Vec::new());
    let each = |found: BatchEntries| -> Result<()> {
        read += found.read;
        kept += found.kept;
        errors.extend(found.errors);
        damaged.extend(found.damaged);
        for (entry, stamp) in found.entries {
            writer.push(&entry)?;
            earlier.compare(&entry.path);
            recorder.push(stamp);
        }
        Ok(())
    };
    let plan = PoolOptions { threads: read_mode.threads(), meter: progress, on_large: &|| {} };
    run_in_order(&plan, root(folder), work, each).map_err(|error| vec![error])?;
    if !errors.is_empty() {
        return Err(errors);
    }
    let (body, summary) = writer.finish();
    let body = body.into_inner().map_err(|error| vec![Error::io("cannot write the list", error.error())])?;
    let mode = if stamps.is_some() { mode } else { ListMode::Full };
    Ok(FolderList { body: Some(body), summary, mode, read, kept, recorder, gone: earlier.finish(), damaged })
}

struct Lister<'a> {
    stamps: Option<&'a StampCache<'a>>,
    mode: ListMode,
    progress: &'a Progress,
    skip: usize,
}

impl Lister<'_> {
    fn batch(&self, batch: &FileBatch, helpers: &dyn Helpers) -> JobOutcome<Job, BatchEntries> {
        let folder = batch.folder();
        let mut found = BatchEntries::default();
        let unchanged = self.unchanged(batch);
        let is_read =
            |index: &usize| batch.kind(*index) == Some(FileKind::File) && unchanged[*index].is_none();
        let files: Vec<usize> = (0..batch.len()).filter(is_read).collect();
        let names = files.iter().map(|index| batch.name(*index));
        let hashed = hash_files(&reading(self.progress), folder, names, helpers);
        let end = files.get(hashed.len()).copied().unwrap_or(batch.len());
        let mut hashed = hashed.into_iter();
        for (index, unchanged) in unchanged.into_iter().enumerate().take(end) {
            let path = below(folder, batch.name(index), self.skip);
            if let Some(kept) = unchanged {
                found.kept += 1;
                found.entries.push(kept);
                continue;
            }
            let content = match batch.kind(index) {
                Some(FileKind::File) => hashed.next().expect("each file has a result").map(Read::File),
                Some(FileKind::Link) => {
                    folder.link_target(batch.name(index)).map(Read::Link).map_err(ReadError::Io)
                }
                kind => Err(ReadError::NotAFile(kind.map_or("nothing", FileKind::describe))),
            };
            self.take(&mut found, path, folder.path_of(batch.name(index)), content);
        }
        JobOutcome { result: found, then: batch.rest(end) }
    }

    /// The entries of files that were signed before and have not changed since.
    fn unchanged(&self, batch: &FileBatch) -> Vec<Option<(ManifestEntry, Option<Stamp>)>> {
        let Some(stamps) = self.stamps.filter(|_| self.mode == ListMode::Quick) else {
            return (0..batch.len()).map(|_| None).collect();
        };
        let find = |index| {
            let name = batch.name(index);
            if batch.kind(index) != Some(FileKind::File) {
                return None;
            }
            let stamp = batch.folder().stamp(name, Links::Refuse).ok()?;
            let path = below(batch.folder(), name, self.skip);
            let content = stamps.unchanged(&path, &stamp)?;
            Some((ManifestEntry { path: ManifestPath::from_bytes(path).ok()?, content }, Some(stamp)))
        };
        let unchanged: Vec<_> = (0..batch.len()).map(find).collect();
        self.progress.add_files(unchanged.iter().flatten().count() as u64);
        unchanged
    }

    fn take(&self, found: &mut BatchEntries, path: Vec<u8>, full: Vec<u8>, content: Result<Read, ReadError>) {
        let stamp = match &content {
            Ok(Read::File(file)) => file.stamp,
            _ => None,
        };
        found.read += u64::from(stamp.is_some());
        match entry(path, content) {
            Ok(entry) => {
                let is_damaged =
                    |stamps: &StampCache<'_>| stamp.is_some_and(|stamp| stamps.is_damaged(&entry, &stamp));
                if self.stamps.is_some_and(is_damaged) {
                    found.damaged.push(full);
                }
                found.entries.push((entry, stamp));
            }
            Err(error) => found.errors.push(error.about(escape_path(&path_from(&full)))),
        }
    }
}

/// How many paths are kept, to be named.
const MAX_NAMED_PATHS: usize = 10;

/// The paths that an older list has and the new one has not.
#[derive(Default)]
pub(crate) struct RemovedPaths {
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) first: Vec<ManifestPath>,
}

/// An older list, compared with a new one while that is made. Both are sorted, so neither is kept.
pub(crate) struct EarlierPaths {
    paths: Box<dyn Iterator<Item = ManifestPath> + Send>,
    next: Option<ManifestPath>,
    gone: RemovedPaths,
}

impl EarlierPaths {
    /// The paths of the older list, sorted.
    pub(crate) fn new(paths: impl Iterator<Item = ManifestPath> + Send + 'static) -> Self {
        let mut earlier = Self { paths: Box::new(paths), next: None, gone: RemovedPaths::default() };
        earlier.next = earlier.paths.next();
        earlier
    }

    /// No older list.
    pub(crate) fn none() -> Self {
        Self::new(std::iter::empty())
    }

    /// Compares as far as the next entry of the new list.
    fn compare(&mut self, entry: &ManifestPath) {
        self.lose_while(|earlier| earlier < entry);
        if self.next.as_ref() == Some(entry) {
            self.next = self.paths.next();
        }
    }

    /// Ends the comparison at the end of the new list.
    fn finish(mut self) -> RemovedPaths {
        self.lose_while(|_| true);
        self.gone
    }

    fn lose_while(&mut self, is_gone: impl Fn(&ManifestPath) -> bool) {
        while let Some(path) = self.next.take_if(|path| is_gone(path)) {
            self.gone.count += 1;
            if self.gone.first.len() < MAX_NAMED_PATHS {
                self.gone.first.push(path);
            }
            self.next = self.paths.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> ManifestPath {
        ManifestPath::from_bytes(name.as_bytes()).unwrap()
    }

    #[test]
    fn what_only_the_older_list_has_is_gone() {
        let gone = |older: &[&str], newer: &[&str]| {
            let older: Vec<_> = older.iter().map(|name| path(name)).collect();
            let mut earlier = EarlierPaths::new(older.into_iter());
            newer.iter().for_each(|name| earlier.compare(&path(name)));
            let RemovedPaths { count, first } = earlier.finish();
            assert_eq!(count, first.len() as u64);
            first.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(gone(&["a", "b", "c"], &["a", "b", "c"]), [""; 0]);
        assert_eq!(gone(&["a", "b", "c"], &[]), ["a", "b", "c"]);
        assert_eq!(gone(&["a", "b", "c"], &["b"]), ["a", "c"]);
        assert_eq!(gone(&["b", "d"], &["a", "c", "d", "e"]), ["b"]);
        assert_eq!(gone(&[], &["a"]), [""; 0]);
    }

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let older: Vec<_> = (100..200).map(|number| path(&number.to_string())).collect();
        let RemovedPaths { count, first } = EarlierPaths::new(older.into_iter()).finish();
        assert_eq!((count, first.len(), first[0].to_string()), (100, MAX_NAMED_PATHS, "100".into()));
    }
}
