//! Folders: their content as the entries of a manifest, and the differences from the signed entries.

use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::files::order::{Threads, in_order};
use crate::files::read::{HashMode, LARGE, Links, Pace, ReadError, Source};
use crate::files::walk::{Found, Kind, walk};
use crate::findings::{EntryFinding, Finding, Problem, Report};
use crate::progress::Progress;
use bulla_blake3::Hash;
use bulla_kms::signature::manifest::{Content, Entry, LinkTarget, ManifestPath};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Lists a folder: an entry for each file and each link in it, sorted.
///
/// # Errors
/// One for each thing in the folder that cannot be read, or is not a file, folder or link.
pub(crate) fn list(folder: &Path) -> Result<Vec<Entry>, Vec<Error>> {
    let (found, mut errors) = walk(folder);
    let (found, more) = sorted(folder, found);
    errors.extend(more);
    for item in &found {
        if let Kind::Special(kind) = item.kind {
            let error =
                Error::new("not_a_file", format!("is {kind}: bulla signs only files, folders and links"));
            errors.push(error.about(shown(&folder.join(&item.file))));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let progress = Progress::new(total_size(folder, &found));
    let mut entries = Vec::with_capacity(found.len());
    let work = |item: &Item, pace| content(folder, item, pace, &progress);
    in_order(
        &found,
        Threads::AtMost(0),
        |item| is_large(folder, item),
        work,
        |item, result| {
            match result {
                Ok(content) => entries.push(Entry { path: item.path.clone(), content }),
                Err(error) => errors.push(error),
            }
            Ok(())
        },
    )
    .map_err(|error| vec![error])?;
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

/// Compares a folder with the signed entries, which are sorted.
pub(crate) fn compare(folder: &Path, signed: &[Entry]) -> Result<Report> {
    let (found, errors) = walk(folder);
    let (found, more) = sorted(folder, found);
    let (both, mut entries, mut unexpected) = join(folder, signed, &found);
    let unreadable = |error| EntryFinding { path: PathBuf::new(), finding: Finding::Unchecked(error) };
    entries.extend(errors.into_iter().chain(more).map(unreadable));

    let progress = Progress::new(total_size(folder, &found));
    let mut intact = 0;
    let work = |pair: &Pair<'_>, pace| compare_entry(folder, pair, pace, &progress);
    in_order(
        &both,
        Threads::AtMost(0),
        |pair| is_large(folder, pair.item),
        work,
        |pair, finding| {
            match finding {
                Finding::Ok => intact += 1,
                finding => entries.push(EntryFinding { path: pair.item.file.clone(), finding }),
            }
            Ok(())
        },
    )?;
    name_moves(folder, signed, &mut entries, &mut unexpected, &progress);
    entries.append(&mut unexpected);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Report { finding: summary(folder, &entries, intact), signed: None, entries, intact: Some(intact) })
}

/// Something in a folder, with its path as in a manifest.
struct Item {
    path: ManifestPath,
    file: PathBuf,
    kind: Kind,
}

/// Converts all paths to those of a manifest, and sorts by them. A name that no manifest may contain is an error.
fn sorted(folder: &Path, found: Vec<Found>) -> (Vec<Item>, Vec<Error>) {
    let mut errors = Vec::new();
    let mut items = Vec::with_capacity(found.len());
    for Found { path: file, kind } in found {
        match ManifestPath::from_bytes(path_bytes(&file)) {
            Ok(path) => items.push(Item { path, file, kind }),
            Err(error) => errors.push(Error::from(error).about(shown(&folder.join(file)))),
        }
    }
    items.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (items, errors)
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

fn is_large(folder: &Path, item: &Item) -> bool {
    item.kind == Kind::File
        && folder.join(&item.file).symlink_metadata().is_ok_and(|metadata| metadata.len() >= LARGE)
}

/// The total size of the files, if progress is shown.
fn total_size(folder: &Path, found: &[Item]) -> Option<u64> {
    let size = |item: &Item| folder.join(&item.file).symlink_metadata().map_or(0, |metadata| metadata.len());
    Progress::is_wanted().then(|| found.iter().filter(|item| item.kind == Kind::File).map(size).sum())
}

/// The content of one entry that the signature covers.
fn content(folder: &Path, item: &Item, pace: Pace, progress: &Progress) -> Result<Content> {
    let path = folder.join(&item.file);
    let about = |error: Error| error.about(shown(&path));
    match item.kind {
        Kind::File => {
            let (digest, size) = digest_of(&path, pace, progress).map_err(|error| about(error.into()))?;
            Ok(Content::File { digest, size })
        }
        Kind::Link => Ok(Content::Link { target: target_of(&path).map_err(about)? }),
        Kind::Special(kind) => Err(about(ReadError::NotAFile(kind).into())),
    }
}

fn digest_of(path: &Path, pace: Pace, progress: &Progress) -> Result<(Hash, u64), ReadError> {
    let source = Source::open_file(path, Links::Refuse)?;
    let digested = source.digest(&HashMode::Plain, pace, progress)?;
    Ok((digested.hash(), digested.size))
}

fn target_of(path: &Path) -> Result<LinkTarget> {
    let target = std::fs::read_link(path).map_err(|error| Error::io("cannot read the link", &error))?;
    Ok(LinkTarget::from_bytes(target.into_os_string().into_encoded_bytes())?)
}

/// A signed entry, and the current content at its path.
struct Pair<'a> {
    entry: &'a Entry,
    item: &'a Item,
}

/// Walks both sorted lists at once, and finds common, missing and unexpected entries.
fn join<'a>(
    folder: &Path,
    signed: &'a [Entry],
    found: &'a [Item],
) -> (Vec<Pair<'a>>, Vec<EntryFinding>, Vec<EntryFinding>) {
    let (mut both, mut missing, mut unexpected) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = found.iter().peekable();
    let mut add_unexpected = |item: &Item| {
        let reason = match item.kind {
            Kind::Special(kind) => kind.to_owned(),
            Kind::File | Kind::Link => String::new(),
        };
        unexpected
            .push(EntryFinding { path: item.file.clone(), finding: Problem::Unexpected.because(reason) });
    };
    for entry in signed {
        while let Some(item) = found.next_if(|item| item.path < entry.path) {
            add_unexpected(item);
        }
        match found.next_if(|item| item.path == entry.path) {
            Some(item) => both.push(Pair { entry, item }),
            None => missing.push(missing_entry(folder, entry)),
        }
    }
    found.for_each(&mut add_unexpected);
    (both, missing, unexpected)
}

/// A signed entry that was not found: it is missing, or this user may not read its folder.
fn missing_entry(folder: &Path, entry: &Entry) -> EntryFinding {
    let path = bytes_path(&entry.path);
    let finding = match folder.join(&path).symlink_metadata() {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Error::io("cannot read its metadata", &error).about(shown(&folder.join(&path))).into()
        }
        Ok(metadata) if metadata.is_dir() => {
            Problem::Changed.because(format!("it was {}, now it is a folder", kind_of(&entry.content)))
        }
        Ok(_) | Err(_) => Problem::Missing.because(""),
    };
    EntryFinding { path, finding }
}

fn kind_of(content: &Content) -> &'static str {
    match content {
        Content::File { .. } => "a file",
        Content::Link { .. } => "a link",
    }
}

/// Compares the current content of an entry with the signed one.
fn compare_entry(folder: &Path, pair: &Pair<'_>, pace: Pace, progress: &Progress) -> Finding {
    let path = folder.join(&pair.item.file);
    match (&pair.entry.content, pair.item.kind) {
        (Content::File { digest, size }, Kind::File) => compare_file(&path, *digest, *size, pace, progress),
        (Content::Link { target }, Kind::Link) => match target_of(&path) {
            Ok(now) if now == *target => Finding::Ok,
            Ok(now) => Problem::Changed.because(format!("it now points to {now}; it pointed to {target}")),
            Err(error) => error.about(shown(&path)).into(),
        },
        (signed, Kind::Special(kind)) => now_other(signed, kind),
        (signed @ Content::File { .. }, Kind::Link) => now_other(signed, "a link"),
        (signed @ Content::Link { .. }, Kind::File) => now_other(signed, "a file"),
    }
}

fn now_other(signed: &Content, now: &str) -> Finding {
    Problem::Changed.because(format!("it was {}, now it is {now}", kind_of(signed)))
}

/// Compares a file in a folder with the signed one. If a link has replaced it, the link is not followed.
fn compare_file(path: &Path, digest: Hash, size: u64, pace: Pace, progress: &Progress) -> Finding {
    let source = match Source::open_file(path, Links::Refuse) {
        Ok(source) => source,
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Problem::Missing.because("");
        }
        Err(error) => return Error::from(error).about(shown(path)).into(),
    };
    compare_source(&source, digest, size, pace, progress)
        .unwrap_or_else(|error| Error::from(error).about(shown(path)).into())
}

/// Compares an open file with the signed one. If its length differs, it is not read.
pub(crate) fn compare_source(
    source: &Source,
    digest: Hash,
    size: u64,
    pace: Pace,
    progress: &Progress,
) -> Result<Finding, ReadError> {
    if let Some(len) = source.len().filter(|len| *len != size) {
        return Ok(other_size(len, size));
    }
    let digested = source.digest(&HashMode::Plain, pace, progress)?;
    Ok(match (digested.size, digested.hash()) {
        (len, _) if len != size => other_size(len, size),
        (_, hash) if hash != digest => Problem::Changed.because("same size, different content"),
        _ => Finding::Ok,
    })
}

fn other_size(size: u64, signed: u64) -> Finding {
    Problem::Changed.because(format!("it has {size} bytes now, and had {signed} when it was signed"))
}

/// Adds to missing files where their content is now, and to unexpected files where their content was.
///
/// Empty files are skipped: their content does not show where they came from.
fn name_moves(
    folder: &Path,
    signed: &[Entry],
    entries: &mut [EntryFinding],
    unexpected: &mut [EntryFinding],
    progress: &Progress,
) {
    let mut gone: HashMap<(u64, [u8; 32]), Vec<usize>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = path_bytes(&entry.path);
        let content =
            signed.binary_search_by(|signed| signed.path.as_bytes().cmp(&path)).map(|at| &signed[at].content);
        if let (Finding::Problem(Problem::Missing, _), Ok(Content::File { digest, size: size @ 1.. })) =
            (&entry.finding, content)
        {
            gone.entry((*size, *digest.as_bytes())).or_default().push(index);
        }
    }
    for new in unexpected {
        let path = folder.join(&new.path);
        // Read only files with the size of a missing one.
        let len =
            path.symlink_metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len());
        if !gone.keys().any(|(size, _)| Some(*size) == len) {
            continue;
        }
        let Ok((digest, size)) = digest_of(&path, Pace::Parallel, progress) else { continue };
        if let Some(index) = gone.get_mut(&(size, *digest.as_bytes())).and_then(Vec::pop) {
            let old = &mut entries[index];
            old.finding = Problem::Missing.because(format!("its content is now in {}", shown(&path)));
            new.finding =
                Problem::Unexpected.because(format!("it was signed as {}", shown(&folder.join(&old.path))));
        }
    }
}

/// The finding about the folder as a whole.
fn summary(folder: &Path, entries: &[EntryFinding], intact: u64) -> Finding {
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
        Error::new("unchecked", message).about(shown(folder)).into()
    } else {
        Finding::Ok
    }
}
