//! What bulla remembers of a signed folder, so that the next signing reads only what changed.
//!
//! For each entry of the manifest, in its order, a file in the user's cache has the identity and
//! the times of the file. The digests are those of the manifest: they count only if the signature
//! of the manifest is one of the user's own keys. So whoever changes the cache can have an old
//! digest signed again, and no other.

use crate::error::Result;
use crate::files::atomic;
use bulla_blake3::Hash;
use bulla_files::folder_of;
use bulla_kms::signature::manifest::{EntryContent, ManifestEntry};
use bulla_sums::Stamp;
use etcetera::{BaseStrategy as _, base_strategy};
use std::fs;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::SpooledTempFile;

const MAGIC: &[u8] = b"bulla stamps v1\n";

/// The bytes of one entry: device, number, and the two times in nanoseconds.
const RECORD_LEN: usize = 32;

/// The most bytes of new stamps that wait in memory.
const MAX_IN_MEMORY: usize = 1 << 20;

/// How long a time stamp may stay the same while a file changes, in nanoseconds: on a file system
/// with fine stamps, and on one with coarse stamps.
const FINE_TIME_STEP: i128 = 20_000_000;
const COARSE_TIME_STEP: i128 = 2_000_000_000;

/// The file with a folder's stamps, named after the folder's real path.
#[derive(Clone, Debug)]
pub(crate) struct StampFile(PathBuf);

impl StampFile {
    /// The file; `None` for a user without a home, or a folder that cannot be found.
    pub(crate) fn for_folder(folder: &Path) -> Option<Self> {
        Self::named(folder, b"")
    }

    /// The file for a model, which may be a folder that is signed in bulla's format as well.
    pub(crate) fn for_model(model: &Path) -> Option<Self> {
        Self::named(model, b"\0model")
    }

    fn named(folder: &Path, suffix: &[u8]) -> Option<Self> {
        let base = base_strategy::choose_native_strategy().ok()?;
        let cache = Some(base.cache_dir()).filter(|cache| cache.is_absolute())?;
        let real = folder.canonicalize().ok()?;
        let name = bulla_blake3::hash(&[real.as_os_str().as_encoded_bytes(), suffix].concat()).to_hex();
        Some(Self(cache.join("bulla/stamps").join(name.as_str())))
    }

    /// Whether there are stamps of this manifest. They may still be damaged.
    pub(crate) fn has(&self, manifest: &Hash) -> bool {
        let mut head = Vec::new();
        let length = MAGIC.len() + bulla_blake3::OUT_LEN;
        let read = fs::File::open(&self.0).and_then(|file| file.take(length as u64).read_to_end(&mut head));
        read.is_ok() && head == [MAGIC, manifest.as_bytes()].concat()
    }

    /// Writes the stamps of a manifest. If that fails, the next signing reads everything: no reason
    /// to stop.
    pub(crate) fn write(&self, stamps: StampWriter, manifest: &Hash) {
        let _ = self.try_write(stamps, manifest);
    }

    fn try_write(&self, stamps: StampWriter, manifest: &Hash) -> Result<()> {
        let Some(records) = stamps.records else { return Ok(()) };
        let _ = bulla_files::create_folder(folder_of(&self.0));
        atomic::write_private(&self.0, |file| {
            let mut records = records.into_inner().map_err(io::IntoInnerError::into_error)?;
            records.rewind()?;
            let mut hasher = bulla_blake3::Hasher::new();
            let mut piece = [0; 1 << 14];
            for part in [MAGIC, manifest.as_bytes()] {
                hasher.update(part);
                file.write_all(part)?;
            }
            loop {
                let len = records.read(&mut piece)?;
                if len == 0 {
                    break;
                }
                hasher.update(&piece[..len]);
                file.write_all(&piece[..len])?;
            }
            file.write_all(hasher.finalize().as_bytes())
        })
    }

    /// The stamps of a manifest, if they are of this one.
    fn read(&self, manifest: &Hash) -> Option<Vec<u8>> {
        let mut bytes = fs::read(&self.0).ok()?;
        let end = bytes.len().checked_sub(bulla_blake3::OUT_LEN)?;
        let is_whole = bulla_blake3::hash(&bytes[..end]).as_bytes()[..] == bytes[end..];
        bytes.truncate(end);
        let head = [MAGIC, manifest.as_bytes()].concat();
        let is_ours = is_whole && bytes.starts_with(&head);
        bytes.drain(..head.len().min(bytes.len()));
        is_ours.then_some(bytes)
    }
}

/// The stamps of a model's files, in the order of their paths.
#[derive(Default)]
pub(crate) struct ModelStamps(Option<Vec<u8>>);

impl ModelStamps {
    /// The stamps of the model with this list, if there are any.
    pub(crate) fn load(file: &StampFile, list: &Hash) -> Self {
        Self(file.read(list))
    }

    /// Whether the file at this place has not changed.
    pub(crate) fn has(&self, index: usize, stamp: &Stamp) -> bool {
        let records = self.0.as_deref().unwrap_or_default();
        records.get(index * RECORD_LEN..(index + 1) * RECORD_LEN) == Some(&record(stamp))
    }
}

/// Collects stamps while a folder is read.
pub(crate) struct StampWriter {
    start: i128,
    /// None if they cannot be kept.
    records: Option<BufWriter<SpooledTempFile>>,
}

impl StampWriter {
    /// Starts to collect. Many stamps wait in a file without a name, in the folder of `target`.
    pub(crate) fn start(target: Option<&StampFile>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let file = |target: &StampFile| {
            let _ = bulla_files::create_folder(folder_of(&target.0));
            BufWriter::with_capacity(1 << 14, SpooledTempFile::new_in(MAX_IN_MEMORY, folder_of(&target.0)))
        };
        Self { start: now.map_or(0, |now| now.as_nanos() as i128), records: target.map(file) }
    }

    /// Adds the stamp of the next entry. A file that was written just now may be written again
    /// without a change of its times: its stamp is not kept.
    pub(crate) fn push(&mut self, stamp: Option<Stamp>) {
        let stamp = stamp.filter(|stamp| {
            let last = stamp.modified.max(stamp.changed);
            last + if last % 1_000_000_000 == 0 { COARSE_TIME_STEP } else { FINE_TIME_STEP } < self.start
        });
        let record = stamp.map_or([0; RECORD_LEN], |stamp| record(&stamp));
        if self.records.as_mut().is_some_and(|records| records.write_all(&record).is_err()) {
            self.records = None;
        }
    }
}

fn record(stamp: &Stamp) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    let parts =
        [stamp.identity.0, stamp.identity.1, stamp.modified as i64 as u64, stamp.changed as i64 as u64];
    record.chunks_exact_mut(8).zip(parts).for_each(|(to, part)| to.copy_from_slice(&part.to_le_bytes()));
    record
}

/// What is known of a folder since it was signed last.
pub(crate) struct StampCache<'a> {
    entries: EntryTable<'a>,
    file: StampFile,
    manifest: Hash,
    /// None if there are none, or others.
    records: OnceLock<Option<Vec<u8>>>,
}

impl<'a> StampCache<'a> {
    /// What is known of a folder with this manifest, whose signature was checked; `None` if nothing
    /// is.
    pub(crate) fn load(file: &StampFile, manifest: &Hash, entries: EntryTable<'a>) -> Option<Self> {
        let cache = Self::lazy(file, manifest, entries);
        cache.records().is_some().then_some(cache)
    }

    /// Like [`StampCache::load`], for a caller that rarely asks: the stamps are read when one is
    /// needed.
    pub(crate) fn lazy(file: &StampFile, manifest: &Hash, entries: EntryTable<'a>) -> Self {
        Self { entries, file: file.clone(), manifest: *manifest, records: OnceLock::new() }
    }

    fn records(&self) -> Option<&[u8]> {
        let read = || self.file.read(&self.manifest);
        let records = self.records.get_or_init(read).as_deref()?;
        (records.len() == self.entries.len() * RECORD_LEN).then_some(records)
    }

    /// The content of a file that has not changed, as far as its size, its times and its identity
    /// tell.
    pub(super) fn unchanged(&self, path: &[u8], stamp: &Stamp) -> Option<EntryContent> {
        let (index, digest, size) = self.entries.file(path).filter(|(.., size)| *size == stamp.size)?;
        let is_same = self.records()?[index * RECORD_LEN..][..RECORD_LEN] == record(stamp);
        is_same.then_some(EntryContent::File { digest, size })
    }

    /// Whether a file has another content than it had when it was signed, although nobody wrote to
    /// it: its size and its times are the same. Then its disk, or what is between it and us, has
    /// failed.
    pub(super) fn is_damaged(&self, now: &ManifestEntry, stamp: &Stamp) -> bool {
        self.unchanged(now.path.as_bytes(), stamp).is_some_and(|then| then != now.content)
    }
}

/// The entries of a manifest without an allocation for each. A million of them with paths of 45
/// bytes take 100 MB.
#[derive(Default)]
pub(crate) struct PackedEntries {
    /// All paths, one after another.
    paths: Vec<u8>,
    /// Where each path ends.
    ends: Vec<usize>,
    /// The digest and the size of each file. Links have none.
    files: Vec<Option<(Hash, u64)>>,
}

impl PackedEntries {
    pub(crate) fn push(&mut self, entry: &ManifestEntry) {
        self.paths.extend_from_slice(entry.path.as_bytes());
        self.ends.push(self.paths.len());
        self.files.push(file_of(entry));
    }

    fn path(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.paths[start..self.ends[index]]
    }

    /// The index of a path.
    fn find(&self, path: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.path(middle).cmp(path) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// The entries of a manifest, sorted by path.
pub(crate) enum EntryTable<'a> {
    /// Entries that somebody needs as they are.
    Whole(&'a [ManifestEntry]),
    /// Entries that are only looked up.
    Packed(PackedEntries),
}

impl EntryTable<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Whole(entries) => entries.len(),
            Self::Packed(packed) => packed.ends.len(),
        }
    }

    /// The index, the digest and the size of a file.
    fn file(&self, path: &[u8]) -> Option<(usize, Hash, u64)> {
        let (index, file) = match self {
            Self::Whole(entries) => {
                let index = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(path)).ok()?;
                (index, file_of(&entries[index]))
            }
            Self::Packed(packed) => packed.find(path).map(|index| (index, packed.files[index]))?,
        };
        file.map(|(digest, size)| (index, digest, size))
    }
}

fn file_of(entry: &ManifestEntry) -> Option<(Hash, u64)> {
    match entry.content {
        EntryContent::File { digest, size } => Some((digest, size)),
        EntryContent::Link { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_kms::signature::manifest::{LinkTarget, ManifestPath};

    #[test]
    fn packed_entries_are_found_like_whole_ones() {
        let path = |text: &str| ManifestPath::from_bytes(text.as_bytes()).unwrap();
        let names = ["a", "a/b", "a0", "aa", "b", "link", "z/y/x"];
        let entry = |(index, name): (usize, &&str)| {
            let content = match *name {
                "link" => EntryContent::Link { target: LinkTarget::from_bytes(b"a".as_slice()).unwrap() },
                _ => EntryContent::File { digest: bulla_blake3::hash(name.as_bytes()), size: index as u64 },
            };
            ManifestEntry { path: path(name), content }
        };
        for count in 0..=names.len() {
            let entries: Vec<ManifestEntry> = names[..count].iter().enumerate().map(entry).collect();
            let mut packed = PackedEntries::default();
            entries.iter().for_each(|entry| packed.push(entry));
            let (whole, packed) = (EntryTable::Whole(&entries), EntryTable::Packed(packed));
            assert_eq!((whole.len(), packed.len()), (count, count));
            for name in names.iter().chain(&["", "0", "a/", "az", "zz"]) {
                let found = packed.file(name.as_bytes());
                assert_eq!(found, whole.file(name.as_bytes()), "{name}");
                let index = names[..count].iter().position(|other| other == name && *name != "link");
                assert_eq!(found.map(|(index, ..)| index), index, "{name}");
            }
        }
    }
}
