//! The files of a folder and their digests, for the formats that list files by name.

use crate::error::{Error, Result};
use crate::files::describe;
use crate::files::read::{HashMode, Links, MIN_SHARED_LEN, ReadError, ReadMode, Source, Threads};
use crate::progress::Progress;
use bulla_files::escape_path;
use bulla_formats::{DigestAlgorithm, MultiHasher};
use bulla_sums::Meter as _;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// The digests of one content.
pub(super) type Digests = Vec<(DigestAlgorithm, Vec<u8>)>;

/// A file in a folder.
pub(super) struct ListedFile {
    /// Its path in the folder, with `/` between the parts.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

/// What is in a folder.
#[derive(Default)]
pub(super) struct Listing {
    /// The files, sorted by their names.
    pub(super) files: Vec<ListedFile>,
    /// What cannot be listed, because it is neither a file nor a folder, or has no name in UTF-8:
    /// its name, and what it is.
    pub(super) others: Vec<(String, &'static str)>,
}

impl Listing {
    /// Lists a folder. `keeps` says which files and folders count, by their names in it. A link
    /// that is followed to a folder counts as nothing.
    pub(super) fn of(folder: &Path, links: Links, keeps: &dyn Fn(&str) -> bool) -> Result<Self> {
        let mut listing = Self::default();
        let mut pending = vec![(folder.to_owned(), String::new())];
        while let Some((path, prefix)) = pending.pop() {
            let unreadable =
                |error: &std::io::Error| Error::io("cannot read the folder", error).about(escape_path(&path));
            for entry in path.read_dir().map_err(|error| unreadable(&error))? {
                let entry = entry.map_err(|error| unreadable(&error))?;
                let path = entry.path();
                let about = |error: Error| error.about(escape_path(&path));
                let found = entry.file_name();
                let name = format!("{prefix}{}", found.to_string_lossy());
                if !keeps(&name) {
                    continue;
                }
                if found.to_str().is_none() {
                    listing.others.push((name, "a name that is not UTF-8"));
                    continue;
                }
                let cannot = |error: std::io::Error| about(Error::io("cannot read its metadata", &error));
                let mut metadata = path.symlink_metadata().map_err(cannot)?;
                let is_link = metadata.is_symlink();
                // A link to nothing stays a link, so that what else is wrong is found, too.
                if is_link && links == Links::Follow {
                    metadata = path.metadata().unwrap_or(metadata);
                }
                if metadata.is_file() {
                    listing.files.push(ListedFile { name, len: metadata.len(), path });
                } else if !metadata.is_dir() {
                    listing.others.push((name, describe(metadata.file_type())));
                } else if !is_link {
                    pending.push((path, format!("{name}/")));
                }
            }
        }
        listing.files.sort_by(|left, right| left.name.split('/').cmp(right.name.split('/')));
        listing.others.sort();
        Ok(listing)
    }

    /// The files, if there is nothing else.
    pub(super) fn only_files(self, folder: &Path) -> Result<Vec<ListedFile>> {
        match self.others.first() {
            None => Ok(self.files),
            Some((name, kind)) => {
                let message = format!("is {kind}, and this format lists only files");
                let error = Error::new("not_a_file", message).about(escape_path(&folder.join(name)));
                Err(error.hint("leave it out with --exclude"))
            }
        }
    }
}

/// A file to hash, or a part of one.
pub(super) struct HashJob<'a> {
    pub(super) path: &'a Path,
    /// The bytes to hash; None for the whole file.
    pub(super) range: Option<Range<u64>>,
    pub(super) len: u64,
    pub(super) links: Links,
}

impl HashJob<'_> {
    fn bytes(&self) -> u64 {
        self.range.as_ref().map_or(self.len, |range| range.end - range.start)
    }

    /// Whether all threads hash it together, which only BLAKE3 can.
    fn is_shared(&self, algorithms: &[DigestAlgorithm]) -> bool {
        algorithms == [DigestAlgorithm::Blake3] && self.range.is_none() && self.len >= MIN_SHARED_LEN
    }

    fn hash(
        &self,
        algorithms: &[DigestAlgorithm],
        read_mode: ReadMode,
        progress: &Progress,
    ) -> Result<Digests, ReadError> {
        let source = Source::open_file(self.path, self.links)?;
        if algorithms == [DigestAlgorithm::Blake3] && self.range.is_none() {
            let digested = source.digest(&HashMode::Plain, read_mode, progress)?;
            return Ok(vec![(DigestAlgorithm::Blake3, digested.hash().as_bytes().to_vec())]);
        }
        let mut hasher = MultiHasher::new(algorithms);
        match &self.range {
            None => {
                source.for_each(progress, |bytes| hasher.update(bytes))?;
            }
            Some(range) => hash_range(source, range, self.len, &mut hasher, progress)?,
        }
        Ok(hasher.finish())
    }
}

/// How many bytes of a range are read at once.
const PIECE_LEN: usize = 256 << 10;

fn hash_range(
    source: Source,
    range: &Range<u64>,
    len: u64,
    hasher: &mut MultiHasher,
    progress: &Progress,
) -> Result<(), ReadError> {
    let mut file = source.into_file();
    let before = file.metadata()?;
    file.seek(SeekFrom::Start(range.start))?;
    let mut rest = range.end - range.start;
    let mut buffer = vec![0; PIECE_LEN];
    while rest > 0 {
        if progress.is_stopped() {
            return Err(ReadError::Stopped);
        }
        let wanted = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        let read = file.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(ReadError::Changed);
        }
        hasher.update(&buffer[..read]);
        progress.add_bytes(read as u64);
        rest -= read as u64;
    }
    let after = file.metadata()?;
    let is_unchanged = after.len() == len && before.modified().ok() == after.modified().ok();
    if is_unchanged { Ok(()) } else { Err(ReadError::Changed) }
}

/// Hashes all jobs, on several threads. The results are in the order of the jobs.
pub(super) fn hash_all(
    jobs: &[HashJob<'_>],
    algorithms: &[DigestAlgorithm],
    threads: Threads,
    progress: &Progress,
) -> Vec<Result<Digests, ReadError>> {
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let put = |index: usize, result| {
        *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    };
    // Large jobs first, so that no thread is left with one at the end.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(jobs[*index].bytes()));
    let (shared, single): (Vec<_>, Vec<_>) =
        order.into_iter().partition(|index| jobs[*index].is_shared(algorithms));
    for index in shared {
        put(index, jobs[index].hash(algorithms, ReadMode::Parallel(threads), progress));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(index) = single.get(next.fetch_add(1, Ordering::Relaxed)) {
            put(*index, jobs[*index].hash(algorithms, ReadMode::Sequential, progress));
        }
    };
    std::thread::scope(|scope| {
        // The system may have no room for more threads. Those that are there do all the work.
        for _ in 1..threads.number().min(single.len()) {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let taken = |result: Mutex<Option<_>>| result.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|result| taken(result).expect("every job was done")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_of_hashing_agree() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [0, 1, 300_000, 3 << 20];
        let content = |size: usize| (0..size).map(|at| (at * 7 + size) as u8).collect::<Vec<_>>();
        for size in sizes {
            std::fs::write(folder.path().join(size.to_string()), content(size)).unwrap();
        }
        let files = Listing::of(folder.path(), Links::Refuse, &|_| true).unwrap().files;
        let jobs: Vec<_> = files
            .iter()
            .flat_map(|file| {
                let job = |range| HashJob { path: &file.path, range, len: file.len, links: Links::Refuse };
                [job(None), job(Some(0..file.len))]
            })
            .collect();
        for algorithms in [&DigestAlgorithm::ALL[..], &[DigestAlgorithm::Blake3]] {
            for threads in [Threads::One, Threads::AtMost(3)] {
                let found = hash_all(&jobs, algorithms, threads, &Progress::hidden());
                for (pair, file) in found.chunks(2).zip(&files) {
                    let mut hasher = MultiHasher::new(algorithms);
                    hasher.update(&content(file.len as usize));
                    let expected = hasher.finish();
                    assert!(pair.iter().all(|found| *found.as_ref().unwrap() == expected), "{}", file.name);
                }
            }
        }
    }
}
