//! Compares a folder with what was signed.

use super::list::ListMode;
use super::stamps::StampCache;
use super::walk::{reading, root, skip_of};
use crate::commands::report;
use crate::error::{Error, Result};
use crate::files::read::{HashMode, Links, ReadError, ReadMode, Source};
use crate::findings::{EntryFinding, Finding, Problem, Report};
use crate::progress::Progress;
use bulla_blake3::Hash;
use bulla_files::escape_path;
use bulla_kms::signature::manifest::{EntryContent, LinkTarget, ManifestEntry, ManifestPath};
use bulla_sums::{
    FileBatch, FileKind, FolderPolicy, HashedFile, Helpers, Job, JobOutcome, Meter as _, PathFeed,
    PoolOptions, Rules, Stamp, hash_files, path_from, run_in_order,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization as _;

/// From this size on, a file's length is compared before it is read.
const MIN_LEN_CHECKED_FIRST: u64 = 1 << 20;

/// What of a signed folder is compared.
pub(crate) enum Selection<'a> {
    All,
    /// These files and folders, relative to the signed folder. Nothing else is read.
    Only(&'a [ManifestPath]),
}

impl Selection<'_> {
    /// Whether a path is one of them, or below one of them.
    fn covers(&self, path: &[u8]) -> bool {
        let is_below = |wanted: &ManifestPath| {
            let rest = path.strip_prefix(wanted.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        match self {
            Self::All => true,
            Self::Only(paths) => paths.iter().any(is_below),
        }
    }
}

/// What a thread found.
#[derive(Default)]
struct BatchFindings {
    /// The indexes of the signed entries that are there.
    seen: Vec<usize>,
    findings: Vec<EntryFinding>,
    unexpected: Vec<EntryFinding>,
    intact: u64,
    /// How many intact files were not read.
    kept: u64,
}

/// Compares a folder with the signed entries, which are sorted. With the mode
/// [`ListMode::Quick`], files that have the stamps of the time when they were signed are not read.
pub(crate) fn compare(
    folder: &Path,
    rules: &Rules,
    signed: &[ManifestEntry],
    wanted: &Selection<'_>,
    stamps: Option<(&StampCache<'_>, ListMode)>,
    read_mode: ReadMode,
    progress: &Progress,
) -> Result<Report> {
    let quick = stamps.filter(|(_, mode)| *mode == ListMode::Quick).map(|(stamps, _)| stamps);
    let stamps = stamps.map(|(stamps, _)| stamps);
    let comparison = Comparison { signed, stamps, quick, progress, skip: skip_of(folder) };
    let work = |job: Job, helpers: &dyn Helpers| match job {
        Job::Folder(pending) => match pending.list(rules) {
            Err(error) => {
                BatchFindings { findings: vec![unreadable(report(&error))], ..BatchFindings::default() }
                    .into()
            }
            Ok(listed) => {
                let findings = listed.errors.iter().map(|error| unreadable(report(error))).collect();
                JobOutcome {
                    result: BatchFindings { findings, ..BatchFindings::default() },
                    then: Some(listed.jobs),
                }
            }
        },
        Job::Batch(batch) => comparison.batch(&batch, helpers),
    };
    let mut seen = vec![false; signed.len()];
    let (mut entries, mut unexpected, mut intact, mut kept) = (Vec::new(), Vec::new(), 0, 0);
    let each = |found: BatchFindings| -> Result<()> {
        found.seen.into_iter().for_each(|index| seen[index] = true);
        entries.extend(found.findings);
        unexpected.extend(found.unexpected);
        intact += found.intact;
        kept += found.kept;
        Ok(())
    };
    let plan = PoolOptions { threads: read_mode.threads(), meter: progress, on_large: &|| {} };
    run_in_order(&plan, feed(folder, wanted)?, work, each)?;
    let missing =
        signed.iter().zip(seen).filter(|(entry, seen)| !seen && wanted.covers(entry.path.as_bytes()));
    entries.extend(missing.map(|(entry, _)| missing_entry(folder, entry)));
    name_moves(folder, signed, &mut entries, &mut unexpected, |path| digest_of(path, read_mode, progress));
    entries.append(&mut unexpected);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    if let Selection::Only(_) = wanted
        && entries.is_empty()
        && intact == 0
    {
        let error =
            Error::new("nothing_verified", "nothing was signed with a path of --only, or is there now");
        return Err(error.about(escape_path(folder)));
    }
    Ok(Report {
        finding: summary(folder, &entries, intact),
        entries,
        intact: Some(intact),
        kept,
        ..Finding::Ok.into()
    })
}

/// The jobs that lead to everything that is wanted.
fn feed(folder: &Path, wanted: &Selection<'_>) -> Result<Box<dyn bulla_sums::Feed<Job>>> {
    let Selection::Only(paths) = wanted else { return Ok(root(folder)) };
    let mut found = Vec::new();
    for path in *paths {
        let full = folder.join(bytes_path(path));
        // A link on the way would lead to another place than the signed one.
        let is_link = |part: &&Path| part.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let on_the_way =
            full.ancestors().skip(1).take_while(|part| part.starts_with(folder) && *part != folder);
        if let Some(link) = on_the_way.collect::<Vec<_>>().iter().find(|part| is_link(part)) {
            let error = Error::new("link", "is a link now, which is not followed");
            return Err(error.about(escape_path(link)));
        }
        if full.symlink_metadata().is_ok() {
            found.push(full);
        }
    }
    // In the order of paths, a folder comes before what is in it. Nothing is looked at twice.
    found.sort();
    found.dedup_by(|path, earlier| path.starts_with(earlier));
    Ok(Box::new(PathFeed::new(found.into_iter(), FolderPolicy::WalkUnlessLink)))
}

fn unreadable(error: Error) -> EntryFinding {
    EntryFinding { path: PathBuf::new(), finding: Finding::Unchecked(error) }
}

/// The bytes and the number of the signed files that are wanted.
pub(crate) fn total(signed: &[ManifestEntry], wanted: &Selection<'_>) -> (u64, u64) {
    let size = |entry: &ManifestEntry| match entry.content {
        EntryContent::File { size, .. } if wanted.covers(entry.path.as_bytes()) => Some(size),
        _ => None,
    };
    signed
        .iter()
        .filter_map(size)
        .fold((0_u64, 0), |(bytes, files), size| (bytes.saturating_add(size), files + 1))
}

/// The groups of signed files that have one content, sorted by the space that the copies take.
/// Empty files are left out.
pub(crate) fn duplicates(signed: &[ManifestEntry]) -> Vec<(u64, Vec<PathBuf>)> {
    let mut groups: BTreeMap<(u64, [u8; 32]), Vec<PathBuf>> = BTreeMap::new();
    for entry in signed {
        if let EntryContent::File { digest, size: size @ 1.. } = entry.content {
            groups.entry((size, *digest.as_bytes())).or_default().push(bytes_path(&entry.path));
        }
    }
    let mut groups: Vec<_> = groups
        .into_iter()
        .filter(|(_, paths)| paths.len() > 1)
        .map(|((size, _), paths)| (size, paths))
        .collect();
    groups.sort_by_key(|(size, paths)| std::cmp::Reverse(size * (paths.len() as u64 - 1)));
    groups
}

/// What is to be done with an entry of the folder; the numbers are indexes of signed entries.
enum EntryAction {
    /// It is not in the list.
    Unexpected(EntryFinding),
    /// Its kind tells, or its length.
    Kind(usize, Option<FileKind>),
    /// It is read.
    Read(usize),
    /// It is not read: it has not changed since it was signed.
    Unchanged(usize),
}

struct Comparison<'a> {
    signed: &'a [ManifestEntry],
    stamps: Option<&'a StampCache<'a>>,
    /// The same, if files that have not changed are not read.
    quick: Option<&'a StampCache<'a>>,
    progress: &'a Progress,
    skip: usize,
}

impl Comparison<'_> {
    fn batch(&self, batch: &FileBatch, helpers: &dyn Helpers) -> JobOutcome<Job, BatchFindings> {
        let folder = batch.folder();
        let actions: Vec<_> = (0..batch.len()).map(|index| self.action(batch, index)).collect();
        let is_read = |index: &usize| matches!(actions[*index], EntryAction::Read(_));
        let to_read: Vec<usize> = (0..batch.len()).filter(is_read).collect();
        let names = to_read.iter().map(|index| batch.name(*index));
        let results = hash_files(&reading(self.progress), folder, names, helpers);
        let end = to_read.get(results.len()).copied().unwrap_or(batch.len());
        let mut results = results.into_iter();
        let mut found = BatchFindings::default();
        for (index, action) in actions.into_iter().enumerate().take(end) {
            let full = || path_from(&folder.path_of(batch.name(index)));
            match action {
                EntryAction::Unexpected(entry) => found.unexpected.push(entry),
                EntryAction::Kind(at, kind) => {
                    let finding = self.without_reading(at, batch, index, kind);
                    self.take(&mut found, at, finding);
                }
                EntryAction::Unchanged(at) => {
                    found.kept += 1;
                    self.progress.add_files(1);
                    self.take(&mut found, at, Finding::Ok);
                }
                EntryAction::Read(at) => {
                    let result = results.next().expect("each file has a result");
                    self.take(&mut found, at, self.file(at, &full(), result));
                }
            }
        }
        JobOutcome { result: found, then: batch.rest(end) }
    }

    /// What is to be done with an entry of the folder.
    fn action(&self, batch: &FileBatch, index: usize) -> EntryAction {
        let (folder, name) = (batch.folder(), batch.name(index));
        let path = &folder.path_of(name)[self.skip..];
        let look = || folder.stamp(name, Links::Refuse).ok().map(|stamp| stamp.kind());
        let kind = batch.kind(index).or_else(look);
        match (self.signed.binary_search_by(|entry| entry.path.as_bytes().cmp(path)), kind) {
            (Err(_), kind) => {
                let reason = if let Some(FileKind::Special(kind)) = kind { kind } else { "" };
                let finding = Problem::Unexpected.because(reason);
                EntryAction::Unexpected(EntryFinding { path: path_from(path), finding })
            }
            (Ok(at), Some(FileKind::File)) if self.is_unchanged(at, batch, index) => {
                EntryAction::Unchanged(at)
            }
            (Ok(at), Some(FileKind::File)) if self.is_read(at, batch, index) => EntryAction::Read(at),
            (Ok(at), kind) => EntryAction::Kind(at, kind),
        }
    }

    /// Whether a file has the stamp of the time when it was signed, and need not be read.
    fn is_unchanged(&self, at: usize, batch: &FileBatch, index: usize) -> bool {
        let Some(stamps) = self.quick else { return false };
        let entry = &self.signed[at];
        let stamp = batch.folder().stamp(batch.name(index), Links::Refuse).ok();
        let then = stamp.and_then(|stamp| stamps.unchanged(entry.path.as_bytes(), &stamp));
        then.is_some_and(|then| then == entry.content)
    }

    /// Whether a file is to be read. If its length differs, it is not.
    fn is_read(&self, at: usize, batch: &FileBatch, index: usize) -> bool {
        match self.signed[at].content {
            EntryContent::File { size, .. } if size < MIN_LEN_CHECKED_FIRST => true,
            EntryContent::File { size, .. } => {
                let stamp = batch.folder().stamp(batch.name(index), Links::Refuse);
                stamp.map_or(true, |stamp| stamp.size == size)
            }
            EntryContent::Link { .. } => false,
        }
    }

    fn take(&self, found: &mut BatchFindings, at: usize, finding: Finding) {
        found.seen.push(at);
        match finding {
            Finding::Ok => found.intact += 1,
            finding => found.findings.push(EntryFinding { path: bytes_path(&self.signed[at].path), finding }),
        }
    }

    /// The finding about something that is not read.
    fn without_reading(&self, at: usize, batch: &FileBatch, index: usize, kind: Option<FileKind>) -> Finding {
        let (folder, name) = (batch.folder(), batch.name(index));
        let about = |error: Error| error.about(escape_path(&path_from(&folder.path_of(name)))).into();
        match (&self.signed[at].content, kind) {
            (EntryContent::Link { target }, Some(FileKind::Link)) => match link_target(folder, name) {
                Ok(now) if now == *target => Finding::Ok,
                Ok(now) => {
                    Problem::Changed.because(format!("it now points to {now}; it pointed to {target}"))
                }
                Err(error) => about(error),
            },
            (EntryContent::File { size, .. }, Some(FileKind::File)) => {
                match folder.stamp(name, Links::Refuse) {
                    Ok(stamp) => other_size(stamp.size, *size),
                    Err(error) => about(Error::io("cannot read", &error)),
                }
            }
            (signed, Some(kind)) => now_other(signed, kind.describe()),
            (_, None) => Problem::Missing.because(""),
        }
    }

    /// The finding about a file that was read. If a link has replaced it, the link is not followed.
    fn file(&self, at: usize, path: &Path, result: Result<HashedFile, ReadError>) -> Finding {
        let entry = &self.signed[at];
        let EntryContent::File { digest, size } = entry.content else {
            return now_other(&entry.content, "a file");
        };
        match result {
            Ok(hashed) if hashed.size != size => other_size(hashed.size, size),
            Ok(hashed) if hashed.output.hash() != digest => {
                Problem::Changed.because(self.same_size(entry, &hashed))
            }
            Ok(_) => Finding::Ok,
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                Problem::Missing.because("")
            }
            Err(error) => Error::from(error).about(escape_path(path)).into(),
        }
    }

    /// What is said about a file with other content of the same size. If not even its times
    /// changed, no program wrote to it.
    fn same_size(&self, entry: &ManifestEntry, hashed: &HashedFile) -> &'static str {
        let is_damaged = |stamps: &StampCache<'_>, stamp: &Stamp| {
            let content = EntryContent::File { digest: hashed.output.hash(), size: hashed.size };
            stamps.is_damaged(&ManifestEntry { path: entry.path.clone(), content }, stamp)
        };
        match (self.stamps, &hashed.stamp) {
            (Some(stamps), Some(stamp)) if is_damaged(stamps, stamp) => {
                "same size and times, different content: it is damaged, no program wrote to it"
            }
            _ => "same size, different content",
        }
    }
}

fn link_target(folder: &bulla_sums::Folder, name: &[u8]) -> Result<LinkTarget> {
    let target = folder.link_target(name).map_err(|error| Error::io("cannot read the link", &error))?;
    Ok(LinkTarget::from_bytes(target)?)
}

fn digest_of(path: &Path, read_mode: ReadMode, progress: &Progress) -> Result<(Hash, u64), ReadError> {
    let source = Source::open_file(path, Links::Refuse)?;
    let digested = source.digest(&HashMode::Plain, read_mode, progress)?;
    Ok((digested.hash(), digested.size))
}

/// A relative path with `/` between its components.
fn path_bytes(path: &Path) -> Vec<u8> {
    let components: Vec<&[u8]> = path.iter().map(|component| component.as_encoded_bytes()).collect();
    components.join(&b'/')
}

/// The inverse of [`path_bytes`].
#[cfg(unix)]
fn bytes_path(path: &ManifestPath) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(path.as_bytes()).into()
}

/// The inverse of [`path_bytes`]; a name that is not Unicode cannot be on this system.
#[cfg(not(unix))]
fn bytes_path(path: &ManifestPath) -> PathBuf {
    String::from_utf8_lossy(path.as_bytes()).into_owned().into()
}

/// A signed entry that was not found: it is missing, or this user may not read its folder.
fn missing_entry(folder: &Path, entry: &ManifestEntry) -> EntryFinding {
    let path = bytes_path(&entry.path);
    let finding = match folder.join(&path).symlink_metadata() {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Error::io("cannot read its metadata", &error).about(escape_path(&folder.join(&path))).into()
        }
        Ok(metadata) if metadata.is_dir() => {
            Problem::Changed.because(format!("it was {}, now it is a folder", kind_of(&entry.content)))
        }
        Ok(_) | Err(_) => Problem::Missing.because(""),
    };
    EntryFinding { path, finding }
}

fn kind_of(content: &EntryContent) -> &'static str {
    match content {
        EntryContent::File { .. } => "a file",
        EntryContent::Link { .. } => "a link",
    }
}

fn now_other(signed: &EntryContent, now: &str) -> Finding {
    Problem::Changed.because(format!("it was {}, now it is {now}", kind_of(signed)))
}

/// Compares an open file with the signed one. If its length differs, it is not read.
pub(crate) fn compare_source(
    source: &Source,
    digest: Hash,
    size: u64,
    read_mode: ReadMode,
    progress: &Progress,
) -> Result<Finding, ReadError> {
    if let Some(len) = source.len().filter(|len| *len != size) {
        return Ok(other_size(len, size));
    }
    let digested = source.digest(&HashMode::Plain, read_mode, progress)?;
    Ok(match (digested.size, digested.hash()) {
        (len, _) if len != size => other_size(len, size),
        (_, hash) if hash != digest => Problem::Changed.because("same size, different content"),
        _ => Finding::Ok,
    })
}

fn other_size(size: u64, signed: u64) -> Finding {
    Problem::Changed.because(format!("it has {size} bytes now, and had {signed} when it was signed"))
}

/// Adds to missing files where their content is now, and to unexpected files where their content
/// was.
///
/// Empty files are skipped: their content does not show where they came from.
fn name_moves(
    folder: &Path,
    signed: &[ManifestEntry],
    entries: &mut [EntryFinding],
    unexpected: &mut [EntryFinding],
    digest_of: impl Fn(&Path) -> Result<(Hash, u64), ReadError>,
) {
    let mut gone: HashMap<(u64, [u8; 32]), Vec<usize>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = path_bytes(&entry.path);
        let content =
            signed.binary_search_by(|signed| signed.path.as_bytes().cmp(&path)).map(|at| &signed[at].content);
        if let (Finding::Problem(Problem::Missing, _), Ok(EntryContent::File { digest, size: size @ 1.. })) =
            (&entry.finding, content)
        {
            gone.entry((*size, *digest.as_bytes())).or_default().push(index);
        }
    }
    let sizes: HashSet<u64> = gone.keys().map(|(size, _)| *size).collect();
    for new in unexpected {
        let path = folder.join(&new.path);
        // Read only files with the size of a missing one.
        let len =
            path.symlink_metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len());
        if !len.is_some_and(|len| sizes.contains(&len)) {
            continue;
        }
        let Ok((digest, size)) = digest_of(&path) else { continue };
        if let Some(index) = gone.get_mut(&(size, *digest.as_bytes())).and_then(Vec::pop) {
            let old = &mut entries[index];
            let (is_now, was) = if differs_in_unicode_form(&old.path, &new.path) {
                let reason = "the names differ only in their Unicode form (NFC, NFD)";
                (reason.to_owned(), reason.to_owned())
            } else {
                let was = format!("it was signed as {}", escape_path(&folder.join(&old.path)));
                (format!("its content is now in {}", escape_path(&path)), was)
            };
            old.finding = Problem::Missing.because(is_now);
            new.finding = Problem::Unexpected.because(was);
        }
    }
}

/// Whether two paths look the same, and have other bytes: some systems write accents as characters
/// of their own.
fn differs_in_unicode_form(one: &Path, other: &Path) -> bool {
    match (one.to_str(), other.to_str()) {
        (Some(one), Some(other)) => one != other && one.nfc().eq(other.nfc()),
        _ => false,
    }
}

/// The finding about the folder as a whole.
pub(crate) fn summary(folder: &Path, entries: &[EntryFinding], intact: u64) -> Finding {
    let count = |wanted: Problem| {
        entries
            .iter()
            .filter(|entry| matches!(entry.finding, Finding::Problem(problem, _) if problem == wanted))
            .count()
    };
    let (changed, missing, unexpected) =
        (count(Problem::Changed), count(Problem::Missing), count(Problem::Unexpected));
    let unchecked = entries.iter().filter(|entry| matches!(entry.finding, Finding::Unchecked(_))).count();
    let counts = format!("{changed} changed, {missing} missing, {unexpected} unexpected, {intact} unchanged");
    if changed + missing + unexpected > 0 {
        Problem::Changed.because(counts)
    } else if unchecked > 0 {
        let message = format!("{unchecked} could not be checked, {intact} unchanged");
        Error::new("unchecked", message).about(escape_path(folder)).into()
    } else {
        Finding::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn the_status_of_a_folder_is_that_of_the_worst_in_it() {
        let status = |findings: Vec<Finding>| {
            let entry = |finding| EntryFinding { path: PathBuf::new(), finding };
            let entries: Vec<_> = findings.into_iter().map(entry).collect();
            summary(Path::new("tree"), &entries, 1).exit()
        };
        let unchecked = || Error::new("io", "cannot read").into();
        assert_eq!(status(vec![]), Exit::Ok);
        assert_eq!(status(vec![unchecked()]), Exit::Error);
        for problem in [Problem::Changed, Problem::Missing, Problem::Unexpected] {
            assert_eq!(status(vec![problem.because("")]), Exit::Mismatch);
            assert_eq!(status(vec![unchecked(), problem.because(""), unchecked()]), Exit::Mismatch);
        }
    }
}
