//! Reads one file safely and fast.
//!
//! A large file is hashed in blocks, which several threads read, or map where that is quicker:
//! docs/decisions/0313.

use crate::blocks::{BlockSource, Blocks, MIN_SHARED_LEN};
use crate::folder::{FileKind, Links, Stamp};
#[cfg(unix)]
use crate::folder::{Folder, OpenPolicy};
use crate::hashing::HashMode;
use crate::reading::{Meter, ReadError, StreamError, Threads, with_buffer};
use bulla_blake3::OutputReader;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread::Builder;

/// How threads share the reading of one file.
///
/// ```
/// use bulla_sums::{ReadMode, Threads};
///
/// assert_eq!(ReadMode::Sequential.threads(), Threads::One);
/// assert_eq!(ReadMode::Parallel(Threads::AtMost(2)).threads(), Threads::AtMost(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Only this thread reads, from start to end.
    Sequential,
    /// If the file is large, all threads read its blocks, or map them where that is quicker.
    Parallel(Threads),
}

impl ReadMode {
    /// The threads that read.
    pub fn threads(self) -> Threads {
        match self {
            Self::Sequential => Threads::One,
            Self::Parallel(threads) => threads,
        }
    }
}

/// A file that is open for reading.
///
/// ```
/// use bulla_sums::{HashMode, Links, NoProgress, ReadError, ReadMode, Source, StreamError};
/// use std::io::Read as _;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a");
/// std::fs::write(&path, "one two")?;
/// let source = Source::open_file(&path, Links::Refuse).unwrap();
/// assert!(!source.is_empty());
/// let digest = source.digest(&HashMode::Plain, ReadMode::Sequential, &NoProgress).unwrap();
/// assert_eq!((digest.hash(), digest.size), (bulla_blake3::hash(b"one two"), 7));
/// assert!(matches!(Source::open_file(folder.path(), Links::Refuse), Err(ReadError::NotAFile("a folder"))));
///
/// // The content in pieces, until a piece is refused.
/// let mut content = Vec::new();
/// let pieces = Source::open_any(&path).unwrap();
/// assert_eq!(pieces.for_each(&NoProgress, |piece| content.extend_from_slice(piece)).unwrap(), 7);
/// assert_eq!(content, b"one two");
/// let refused = Source::open_any(&path).unwrap().try_for_each(&NoProgress, |_| Err("too long"));
/// assert!(matches!(refused, Err(StreamError::Consumer("too long"))));
///
/// // A part of the file.
/// let mut beginning = [0; 3];
/// Source::open_any(&path).unwrap().into_file().read_exact(&mut beginning)?;
/// assert_eq!(&beginning, b"one");
///
/// // Standard input has no length.
/// # #[cfg(unix)]
/// assert_eq!(Source::stdin()?.len(), None);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Source {
    file: File,
    /// The file's properties when it was opened; a stream such as a pipe has none.
    stamp: Option<Stamp>,
    /// The path where it must still be afterwards, if that matters.
    path: Option<PathBuf>,
}

/// A digest, and the number of hashed bytes.
pub struct SourceDigest {
    /// The output from its beginning.
    pub output: OutputReader,
    /// The number of bytes.
    pub size: u64,
}

impl SourceDigest {
    /// 32 bytes of the output from its current position: at the start, the hash.
    pub fn hash(&self) -> bulla_blake3::Hash {
        let mut bytes = [0; bulla_blake3::OUT_LEN];
        self.output.clone().fill(&mut bytes);
        bytes.into()
    }
}

impl Source {
    /// Opens anything that can be read: files, and streams such as pipes and terminals.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn open_any(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let stamp = if file.metadata()?.is_file() { Some(Stamp::of(&file)?) } else { None };
        Ok(Self { file, stamp, path: None })
    }

    /// Standard input, from its current position to its end.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn stdin() -> io::Result<Self> {
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?;
        Ok(Self { file: handle.into(), stamp: None, path: None })
    }

    /// Opens only a regular file, and never waits for the writer of a fifo. After reading, `path`
    /// must still lead to the same file.
    ///
    /// # Errors
    /// [`ReadError::NotAFile`], [`ReadError::Replaced`]; errors of the system.
    pub fn open_file(path: &Path, links: Links) -> Result<Self, ReadError> {
        let before = match links {
            Links::Follow => std::fs::metadata(path)?,
            Links::Refuse => std::fs::symlink_metadata(path)?,
        };
        if !before.is_file() {
            return Err(ReadError::NotAFile(FileKind::from(before.file_type()).describe()));
        }
        let file = open_without_waiting(path, links)?;
        if !file.metadata()?.is_file() {
            return Err(ReadError::Replaced);
        }
        let stamp = Some(Stamp::of(&file)?);
        Ok(Self { file, stamp, path: Some(path.to_owned()) })
    }

    /// The file itself, for callers that read only a part of it.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The length at the time of opening; a stream has none.
    pub fn len(&self) -> Option<u64> {
        self.stamp.map(|stamp| stamp.size)
    }

    /// Whether the source is a file that had no bytes at the time of opening.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Hashes the whole content.
    ///
    /// # Errors
    /// [`ReadError::Changed`] and [`ReadError::Replaced`] if the file is not the same afterwards;
    /// errors of reading.
    pub fn digest(
        &self,
        mode: &HashMode,
        read_mode: ReadMode,
        meter: &dyn Meter,
    ) -> Result<SourceDigest, ReadError> {
        let digested = match (self.len(), read_mode) {
            (Some(size), ReadMode::Parallel(threads)) if size >= MIN_SHARED_LEN => {
                let content = BlockSource { file: &self.file, mode };
                SourceDigest { output: digest_blocks(content, size, threads, meter)?, size }
            }
            _ => digest_stream(&self.file, mode, meter)?,
        };
        self.check_unchanged()?;
        meter.add_files(1);
        Ok(digested)
    }

    /// Passes the whole content to `each`, piece by piece, and returns its size.
    ///
    /// # Errors
    /// The errors of [`Source::digest`].
    pub fn for_each(&self, meter: &dyn Meter, mut each: impl FnMut(&[u8])) -> Result<u64, ReadError> {
        let take = |bytes: &[u8]| -> Result<(), Infallible> {
            each(bytes);
            Ok(())
        };
        self.try_for_each(meter, take).map_err(|StreamError::Read(error)| error)
    }

    /// Like [`Source::for_each`], but stops at the first error of `each`.
    ///
    /// # Errors
    /// The errors of [`Source::digest`], and the error of `each`.
    pub fn try_for_each<E>(
        &self,
        meter: &dyn Meter,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, StreamError<E>> {
        let size = pieces(&self.file, meter, each)?;
        self.check_unchanged()?;
        Ok(size)
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        let Some(before) = self.stamp else { return Ok(()) };
        if !Stamp::of(&self.file)?.is_same_content(&before) {
            return Err(ReadError::Changed);
        }
        match &self.path {
            Some(path) if identity(path)? != before.identity => Err(ReadError::Replaced),
            _ => Ok(()),
        }
    }
}

/// The file that a path leads to.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    Ok(Stamp::of_stat(&rustix::fs::stat(path)?).identity)
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|_| (0, 0))
}

fn digest_blocks(
    content: BlockSource<'_>,
    size: u64,
    threads: Threads,
    meter: &dyn Meter,
) -> Result<OutputReader, ReadError> {
    let blocks = Blocks::new(content.file, size);
    let work = || with_buffer(|buffer| blocks.work(content, buffer, meter));
    std::thread::scope(|scope| {
        // The system may have no room for more threads. Those that are there do all the work.
        for _ in 1..threads.number().min(blocks.max_threads()) {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    blocks.finish(content.mode)
}

/// Hashes `reader` to its end.
fn digest_stream(reader: impl Read, mode: &HashMode, meter: &dyn Meter) -> Result<SourceDigest, ReadError> {
    let mut hasher = mode.hasher();
    let take = |bytes: &[u8]| -> Result<(), Infallible> {
        hasher.update(bytes);
        Ok(())
    };
    let size = pieces(reader, meter, take).map_err(|StreamError::Read(error)| error)?;
    Ok(SourceDigest { output: hasher.finalize_xof(), size })
}

/// Reads to the end through this thread's buffer.
fn pieces<E>(
    reader: impl Read,
    meter: &dyn Meter,
    each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, StreamError<E>> {
    with_buffer(|buffer| pieces_in(buffer, reader, meter, each))
}

/// Reads to the end through a buffer.
pub(crate) fn pieces_in<E>(
    buffer: &mut [u8],
    mut reader: impl Read,
    meter: &dyn Meter,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, StreamError<E>> {
    let mut size = 0;
    loop {
        if meter.is_stopped() {
            return Err(StreamError::Read(ReadError::Stopped));
        }
        let len = read(&mut reader, buffer).map_err(StreamError::Read)?;
        if len == 0 {
            return Ok(size);
        }
        each(&buffer[..len]).map_err(StreamError::Consumer)?;
        size += len as u64;
        meter.add_bytes(len as u64);
    }
}

/// Reads once, and again after an interrupt.
pub(crate) fn read(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, ReadError> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(unix)]
fn open_without_waiting(path: &Path, links: Links) -> io::Result<File> {
    Folder::here().open(path.as_os_str().as_encoded_bytes(), OpenPolicy::RegularFile(links))
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path, _links: Links) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::MIN_MAPPED_LEN;
    use crate::reading::NoProgress;
    use std::io::{Seek, SeekFrom, Write};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;
    use zeroize::Zeroizing;

    const BLOCK_LEN: u64 = 512 << 10;
    const ALL: ReadMode = ReadMode::Parallel(Threads::AtMost(3));

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
        // Around the size from which threads are used, and every shape of an incomplete tree after
        // it.
        for len in [
            MIN_SHARED_LEN - 1,
            MIN_SHARED_LEN,
            MIN_SHARED_LEN + 1,
            MIN_SHARED_LEN + BLOCK_LEN,
            MIN_SHARED_LEN + 3 * BLOCK_LEN - 1,
            4 * MIN_SHARED_LEN + 1025,
        ] {
            let bytes = content(len);
            let file = file_of(&bytes);
            for mode in &modes {
                let source = Source::open_any(file.path()).unwrap();
                let digested = source.digest(mode, ALL, &NoProgress).unwrap();
                assert_eq!(digested.size, len);
                let mut expected = mode.hasher();
                expected.update(&bytes);
                assert_eq!(digested.hash(), expected.finalize(), "{len} bytes");
            }
        }
    }

    #[test]
    fn a_file_that_grows_or_shrinks_is_reported() {
        for (before, after) in [
            (1000, 1001),
            (1000, 999),
            (MIN_SHARED_LEN, MIN_SHARED_LEN + 1),
            (MIN_SHARED_LEN, MIN_SHARED_LEN - 1),
            (MIN_SHARED_LEN, 0),
        ] {
            let file = file_of(&content(before));
            let source = Source::open_any(file.path()).unwrap();
            file.as_file().set_len(after).unwrap();
            let result = source.digest(&HashMode::Plain, ALL, &NoProgress);
            assert!(matches!(result, Err(ReadError::Changed)), "{before} to {after}");
        }
    }

    /// A sparse file that may be mapped, and an incomplete block after its whole ones.
    fn sparse_file(whole_blocks: u64) -> (tempfile::NamedTempFile, u64) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let len = whole_blocks + BLOCK_LEN + 1025;
        file.as_file().set_len(len).unwrap();
        (file, len)
    }

    #[test]
    fn a_file_that_may_be_mapped_has_the_digest_of_one_read() {
        // Blocks of half a MiB, of one MiB and of four.
        for whole_blocks in [MIN_MAPPED_LEN, 40 << 20, 128 << 20] {
            let (mut file, len) = sparse_file(whole_blocks);
            for at in [0, len / 3, len - 5] {
                file.seek(SeekFrom::Start(at)).unwrap();
                file.write_all(b"bytes").unwrap();
            }
            let source = Source::open_any(file.path()).unwrap();
            let expected = source.digest(&HashMode::Plain, ReadMode::Sequential, &NoProgress).unwrap().hash();
            for threads in [1, 2, 3] {
                let source = Source::open_any(file.path()).unwrap();
                let read_mode = ReadMode::Parallel(Threads::AtMost(threads));
                let digested = source.digest(&HashMode::Plain, read_mode, &NoProgress).unwrap();
                assert_eq!((digested.hash(), digested.size), (expected, len), "{threads} threads");
            }
        }
    }

    /// Makes the file shorter after some steps of reading.
    struct Shrink<'a> {
        file: &'a File,
        to: u64,
        after: AtomicU64,
    }

    impl Meter for Shrink<'_> {
        fn add_bytes(&self, _bytes: u64) {
            if self.after.fetch_sub(1, Ordering::Relaxed) == 0 {
                self.file.set_len(self.to).unwrap();
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_while_it_may_be_mapped_is_reported() {
        for (after, to) in [(0, 0), (1, 4096), (2, 100 << 20), (3, 1), (10, 64 << 20), (20, 1000), (25, 0)] {
            let (file, _) = sparse_file(128 << 20);
            let source = Source::open_any(file.path()).unwrap();
            let meter = Shrink { file: file.as_file(), to, after: AtomicU64::new(after) };
            let result = source.digest(&HashMode::Plain, ALL, &meter);
            assert!(matches!(result, Err(ReadError::Changed)), "to {to} after {after} steps");
        }
    }

    #[test]
    fn a_file_that_is_written_in_place_is_reported() {
        let file = file_of(&content(1000));
        let source = Source::open_any(file.path()).unwrap();
        file.as_file().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let result = source.digest(&HashMode::Plain, ReadMode::Sequential, &NoProgress);
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
        let result = source.digest(&HashMode::Plain, ReadMode::Sequential, &NoProgress);
        assert!(matches!(result, Err(ReadError::Replaced)));
    }
}
