//! Reading files safely and fast.
//!
//! Files are never mapped into memory: if another process shortens a mapped file, SIGBUS ends the reader. Besides,
//! reading blocks at their offsets on several threads is faster: docs/decisions/0020.

use crate::error::Error;
use crate::files::kind::describe;
use crate::progress::Progress;
use bulla_blake3::hazmat::{
    self, ChainingValue, ContextKey, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root_xof,
};
use bulla_blake3::{Hasher, OutputReader};
use std::cell::RefCell;
use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use zeroize::Zeroizing;

/// The bytes that one thread takes at a time in a parallel read: a whole subtree of BLAKE3.
const BLOCK: u64 = 512 << 10;

/// From this size on, starting threads costs less than it gains.
pub(crate) const LARGE: u64 = 2 << 20;

/// The bytes that one system call reads. They stay in the cache of the core that hashes them.
const BUFFER: usize = 128 << 10;

/// How this process's threads share the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Only this thread reads, from start to end.
    InOrder,
    /// All threads read, if the file is large.
    Parallel,
}

/// Whether a path that is a link may be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// The three modes of BLAKE3, with their parameters.
pub(crate) enum HashMode {
    Plain,
    Keyed(Zeroizing<[u8; bulla_blake3::KEY_LEN]>),
    DeriveKey(ContextKey),
}

impl HashMode {
    /// The mode that derives keys in `context`.
    pub(crate) fn derive_key(context: &str) -> Self {
        Self::DeriveKey(hazmat::hash_derive_key_context(context))
    }

    fn hasher(&self) -> Hasher {
        match self {
            Self::Plain => Hasher::new(),
            Self::Keyed(key) => Hasher::new_keyed(key),
            Self::DeriveKey(context_key) => Hasher::new_from_context_key(context_key),
        }
    }

    fn tree(&self) -> Mode<'_> {
        match self {
            Self::Plain => Mode::Hash,
            Self::Keyed(key) => Mode::KeyedHash(key),
            Self::DeriveKey(context_key) => Mode::DeriveKeyMaterial(context_key),
        }
    }
}

/// The reason why a file could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    /// Its length or its change time differs from before.
    Changed,
    /// The path now leads to another file.
    Replaced,
    /// It is not a file that can be read. The text names the kind: a folder, a fifo, ...
    NotAFile(&'static str),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The reason why reading ended early.
pub(crate) enum Stopped<E> {
    Reading(ReadError),
    /// The receiver of the pieces returned this error.
    By(E),
}

impl<E> From<ReadError> for Stopped<E> {
    fn from(error: ReadError) -> Self {
        Self::Reading(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => Error::io("cannot read", &error),
            ReadError::Changed => Error::new("changed_while_read", "changed while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::Replaced => Error::new("changed_while_read", "was replaced while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::NotAFile(kind) => Error::new("not_a_file", format!("is {kind}, not a file")),
        }
    }
}

/// The properties that must not change while a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    identity: Option<(u64, u64)>,
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Self { identity, len: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// A file that is open for reading.
pub(crate) struct Source {
    file: File,
    /// The file's properties when it was opened; a stream such as a pipe has none.
    stamp: Option<Stamp>,
    /// The path where it must still be afterwards, if that matters.
    path: Option<PathBuf>,
}

/// A digest, and the number of hashed bytes.
pub(crate) struct Digested {
    pub(crate) output: OutputReader,
    pub(crate) size: u64,
}

impl Digested {
    /// 32 bytes of the output from its current position: at the start, the hash.
    pub(crate) fn hash(&self) -> bulla_blake3::Hash {
        let mut bytes = [0; bulla_blake3::OUT_LEN];
        self.output.clone().fill(&mut bytes);
        bytes.into()
    }
}

impl Source {
    /// Opens anything that can be read: files, and streams such as pipes and terminals.
    pub(crate) fn open_any(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let stamp = metadata.is_file().then(|| Stamp::of(&metadata));
        Ok(Self { file, stamp, path: None })
    }

    /// Standard input, from its current position to its end.
    pub(crate) fn stdin() -> io::Result<Self> {
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?;
        Ok(Self { file: handle.into(), stamp: None, path: None })
    }

    /// Opens only a regular file, and never waits for the writer of a fifo. After reading, `path` must still lead to the same
    /// file.
    pub(crate) fn open_file(path: &Path, links: Links) -> Result<Self, ReadError> {
        let before = match links {
            Links::Follow => std::fs::metadata(path)?,
            Links::Refuse => std::fs::symlink_metadata(path)?,
        };
        if !before.is_file() {
            return Err(ReadError::NotAFile(describe(before.file_type())));
        }
        let file = open_without_waiting(path, links)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ReadError::Replaced);
        }
        Ok(Self { file, stamp: Some(Stamp::of(&metadata)), path: Some(path.to_owned()) })
    }

    /// The file itself, for callers that read only a part of it.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The length at the time of opening; a stream has none.
    pub(crate) fn len(&self) -> Option<u64> {
        self.stamp.map(|stamp| stamp.len)
    }

    /// Hashes the whole content.
    ///
    /// # Errors
    /// [`ReadError::Changed`] and [`ReadError::Replaced`] if the file is not the same afterwards; errors of reading.
    pub(crate) fn digest(
        &self,
        mode: &HashMode,
        pace: Pace,
        progress: &Progress,
    ) -> Result<Digested, ReadError> {
        let digested = match self.len() {
            Some(len) if pace == Pace::Parallel && len >= LARGE => {
                Digested { output: self.digest_blocks(len, mode, progress)?, size: len }
            }
            _ => digest_stream(&self.file, mode, progress)?,
        };
        self.check_unchanged()?;
        Ok(digested)
    }

    /// Passes the whole content to `each`, piece by piece, and returns its size.
    ///
    /// # Errors
    /// The errors of [`Source::digest`].
    pub(crate) fn for_each(
        &self,
        progress: &Progress,
        mut each: impl FnMut(&[u8]),
    ) -> Result<u64, ReadError> {
        let take = |bytes: &[u8]| -> Result<(), Infallible> {
            each(bytes);
            Ok(())
        };
        self.try_for_each(progress, take).map_err(|Stopped::Reading(error)| error)
    }

    /// Like [`Source::for_each`], but stops at the first error of `each`.
    ///
    /// # Errors
    /// Like [`Source::digest`], and what `each` says.
    pub(crate) fn try_for_each<E>(
        &self,
        progress: &Progress,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, Stopped<E>> {
        let size = pieces(&self.file, progress, each)?;
        self.check_unchanged()?;
        Ok(size)
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        let Some(before) = self.stamp else { return Ok(()) };
        if Stamp::of(&self.file.metadata()?) != before {
            return Err(ReadError::Changed);
        }
        match &self.path {
            Some(path) if Stamp::of(&std::fs::metadata(path)?).identity != before.identity => {
                Err(ReadError::Replaced)
            }
            _ => Ok(()),
        }
    }

    /// Threads take one block after another, so that a disk sees one nearly sequential read. The tree is assembled at
    /// the end.
    fn digest_blocks(
        &self,
        len: u64,
        mode: &HashMode,
        progress: &Progress,
    ) -> Result<OutputReader, ReadError> {
        let blocks = len.div_ceil(BLOCK);
        let next = AtomicU64::new(0);
        let values = Mutex::new(vec![ChainingValue::default(); blocks as usize]);
        let failure = Mutex::new(None);
        let work = || match self.digest_some_blocks(len, &next, mode, progress) {
            Ok(mine) => {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                mine.into_iter().for_each(|(block, value)| values[block as usize] = value);
            }
            Err(error) => {
                next.store(blocks, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| work())));
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (left, right) = values.split_at(left_blocks(values.len()));
        Ok(merge_subtrees_root_xof(&merge(left, mode), &merge(right, mode), mode.tree()))
    }

    /// One thread's share: blocks are taken from `next` until none is left.
    fn digest_some_blocks(
        &self,
        len: u64,
        next: &AtomicU64,
        mode: &HashMode,
        progress: &Progress,
    ) -> Result<Vec<(u64, ChainingValue)>, ReadError> {
        let mut mine = Vec::new();
        with_buffer(|buffer| {
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                let (mut at, end) = (block * BLOCK, len.min((block + 1) * BLOCK));
                if at >= end {
                    return Ok(mine);
                }
                let mut hasher = mode.hasher();
                hasher.set_input_offset(at);
                while at < end {
                    let bytes = &mut buffer[..(end - at).min(BUFFER as u64) as usize];
                    read_exact_at(&self.file, bytes, at)?;
                    hasher.update(bytes);
                    progress.add(bytes.len() as u64);
                    at += bytes.len() as u64;
                }
                mine.push((block, hasher.finalize_non_root()));
            }
        })
    }
}

/// Hashes `reader` to its end.
fn digest_stream(reader: impl Read, mode: &HashMode, progress: &Progress) -> Result<Digested, ReadError> {
    let mut hasher = mode.hasher();
    let take = |bytes: &[u8]| -> Result<(), Infallible> {
        hasher.update(bytes);
        Ok(())
    };
    let size = pieces(reader, progress, take).map_err(|Stopped::Reading(error)| error)?;
    Ok(Digested { output: hasher.finalize_xof(), size })
}

/// Reads to the end through this thread's buffer.
fn pieces<E>(
    mut reader: impl Read,
    progress: &Progress,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, Stopped<E>> {
    let mut size = 0;
    with_buffer(|buffer| {
        loop {
            match reader.read(buffer) {
                Ok(0) => return Ok(size),
                Ok(len) => {
                    each(&buffer[..len]).map_err(Stopped::By)?;
                    size += len as u64;
                    progress.add(len as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stopped::Reading(error.into())),
            }
        }
    })
}

/// Lends this thread's buffer, which is allocated once: for a small file, allocating it would be most of the work.
fn with_buffer<R>(work: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
    }
    BYTES.with_borrow_mut(|buffer| work(buffer))
}

/// How many of `blocks` blocks, at least two, are under the left child of their parent: the largest power of two that
/// leaves at least one block for the right child (BLAKE3 specification, section 2.1).
fn left_blocks(blocks: usize) -> usize {
    blocks.next_power_of_two() / 2
}

/// A subtree's chaining value from those of its blocks.
fn merge(values: &[ChainingValue], mode: &HashMode) -> ChainingValue {
    if let [value] = values {
        return *value;
    }
    let (left, right) = values.split_at(left_blocks(values.len()));
    merge_subtrees_non_root(&merge(left, mode), &merge(right, mode), mode.tree())
}

/// Fills `bytes` from `offset`; an earlier end means that the file became shorter.
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
    #[cfg(unix)]
    let read_at = |bytes: &mut [u8], offset| std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    let read_at = |bytes: &mut [u8], offset| std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
    let mut done = 0;
    while done < bytes.len() {
        match read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err(ReadError::Changed),
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn open_without_waiting(path: &Path, links: Links) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = match links {
        Links::Follow => OFlags::NONBLOCK,
        Links::Refuse => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path, _links: Links) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn content(len: u64) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn blocks_in_parallel_give_the_digest_of_one_read() {
        let modes = [
            HashMode::Plain,
            HashMode::Keyed(Zeroizing::new([7; 32])),
            HashMode::derive_key("bulla 2026-01-01 test of blocks"),
        ];
        // Around the size from which threads are used, and every shape of an incomplete tree after it.
        for len in [LARGE - 1, LARGE, LARGE + 1, LARGE + BLOCK, LARGE + 3 * BLOCK - 1, 4 * LARGE + 1025] {
            let bytes = content(len);
            let file = file_of(&bytes);
            for mode in &modes {
                let source = Source::open_any(file.path()).unwrap();
                let digested = source.digest(mode, Pace::Parallel, &Progress::new(None)).unwrap();
                assert_eq!(digested.size, len);
                let mut expected = mode.hasher();
                expected.update(&bytes);
                assert_eq!(digested.hash(), expected.finalize(), "{len} bytes");
            }
        }
    }

    #[test]
    fn a_file_that_grows_or_shrinks_is_reported() {
        for (before, after) in [(1000, 1001), (1000, 999), (LARGE, LARGE + 1), (LARGE, LARGE - 1), (LARGE, 0)]
        {
            let file = file_of(&content(before));
            let source = Source::open_any(file.path()).unwrap();
            file.as_file().set_len(after).unwrap();
            let result = source.digest(&HashMode::Plain, Pace::Parallel, &Progress::new(None));
            assert!(matches!(result, Err(ReadError::Changed)), "{before} to {after}");
        }
    }

    #[test]
    fn a_file_that_is_written_in_place_is_reported() {
        let file = file_of(&content(1000));
        let source = Source::open_any(file.path()).unwrap();
        file.as_file().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let result = source.digest(&HashMode::Plain, Pace::InOrder, &Progress::new(None));
        assert!(matches!(result, Err(ReadError::Changed)));
    }

    #[test]
    fn a_file_that_is_replaced_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&path, "one").unwrap();
        std::fs::write(&other, "two").unwrap();
        let source = Source::open_file(&path, Links::Follow).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let result = source.digest(&HashMode::Plain, Pace::InOrder, &Progress::new(None));
        assert!(matches!(result, Err(ReadError::Replaced)));
    }
}
