//! Hashes some files on one thread: many small ones are read into one buffer and hashed side by
//! side.

use crate::blocks::{BlockSource, Blocks, MIN_SHARED_LEN};
use crate::folder::{FileKind, Folder, Links, OpenPolicy, Stamp, path_from};
use crate::hashing::{Digest, HashMode, HashParams, Output};
use crate::ordered_pool::{Helpers, SharedWork};
use crate::reading::{BUFFER_LEN, Meter, ReadError, StreamError, with_buffer};
use crate::source::{Source, pieces_in, read};
use crate::walk::FileBatch;
use bulla_blake3::Hash;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of files that are hashed side by side.
const MAX_SIDE_BY_SIDE: usize = 64;

/// Smaller files share the buffer.
const MIN_UNBUFFERED_LEN: u64 = BUFFER_LEN as u64 / 2;

/// The size from which the meter is told every file's name.
const MIN_NAMED_LEN: u64 = 16 << 20;

/// After this many bytes, a thread leaves the rest of its batch to other threads.
const MAX_BATCH_BYTES: u64 = 1 << 20;

/// A file that was hashed.
#[derive(Clone, Debug)]
pub struct HashedFile {
    /// The digest.
    pub output: Output,
    /// The number of bytes.
    pub size: u64,
    /// The file's properties before and after; a stream such as a pipe has none.
    pub stamp: Option<Stamp>,
}

/// The check of a file's name when the file has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamePolicy {
    /// The name may lead to another file by then.
    MayChange,
    /// The name still leads to the file that was read.
    MustStay,
}

/// The meaning of the name `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// A file of this name.
    FileName,
    /// Standard input.
    Stdin,
    /// Standard input, from which the key was read: it cannot be hashed.
    StdinHeldTheKey,
}

/// How files are read.
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// The hash function and its parameters.
    pub hashing: Arc<HashParams>,
    /// Which files are opened.
    pub open_policy: OpenPolicy,
    /// The check of the names afterwards.
    pub name_policy: NamePolicy,
    /// The meaning of `-`.
    pub dash: Dash,
    /// Whether a large file is read in blocks, which all idle threads take, and which are mapped
    /// where that is quicker. Otherwise one thread reads it from start to end.
    pub by_blocks: bool,
    /// Progress and cancellation.
    pub meter: &'a (dyn Meter + 'a),
}

/// Hashes files, and returns their results in order. It leaves the last ones out if the first ones
/// were large, or if the work is to stop: no result is [`ReadError::Stopped`].
pub fn hash_files<'n>(
    reading: &ReadOptions<'_>,
    folder: &Folder,
    names: impl IntoIterator<Item = &'n [u8]>,
    helpers: &dyn Helpers,
) -> Vec<Result<HashedFile, ReadError>> {
    with_buffer(|buffer| {
        let mut batch = BatchHasher {
            reading,
            folder,
            buffer,
            used: 0,
            waiting: Vec::new(),
            results: Vec::new(),
            bytes: 0,
        };
        for name in names {
            if batch.add(name, helpers) == Added::Nothing
                || batch.bytes >= MAX_BATCH_BYTES
                || reading.meter.is_stopped()
            {
                break;
            }
        }
        batch.flush();
        reading.meter.add_files(batch.results.len() as u64);
        batch.results.into_iter().map(|result| result.expect("each file has a result")).collect()
    })
}

/// Whether a file of a batch has a result.
#[derive(PartialEq, Eq)]
enum Added {
    Result,
    /// The work was stopped while the file was read.
    Nothing,
}

struct BatchHasher<'a, 'r> {
    reading: &'a ReadOptions<'r>,
    folder: &'a Folder,
    buffer: &'a mut [u8],
    /// How much of the buffer the waiting files take.
    used: usize,
    waiting: Vec<Waiting>,
    /// `None` for the waiting files.
    results: Vec<Option<Result<HashedFile, ReadError>>>,
    /// The bytes of all files so far.
    bytes: u64,
}

/// A small file that is in the buffer.
struct Waiting {
    index: usize,
    range: Range<usize>,
    stamp: Stamp,
}

impl BatchHasher<'_, '_> {
    fn add(&mut self, name: &[u8], helpers: &dyn Helpers) -> Added {
        let result = self.file(name, helpers).transpose();
        if let Some(Err(ReadError::Stopped)) = result {
            return Added::Nothing;
        }
        if let Some(Ok(hashed)) = &result {
            self.bytes += hashed.size;
        }
        self.results.push(result);
        if self.waiting.len() == MAX_SIDE_BY_SIDE {
            self.flush();
        }
        Added::Result
    }

    /// Reads a file; `None` if it waits in the buffer.
    fn file(&mut self, name: &[u8], helpers: &dyn Helpers) -> Result<Option<HashedFile>, ReadError> {
        match self.reading.dash {
            Dash::Stdin if name == b"-" => return self.stdin().map(Some),
            Dash::StdinHeldTheKey if name == b"-" => return Err(ReadError::StdinHeldTheKey),
            _ => {}
        }
        let file = self.folder.open(name, self.reading.open_policy)?;
        let stamp = Stamp::of(&file)?;
        if stamp.kind() != FileKind::File {
            return match self.reading.open_policy {
                OpenPolicy::AnyKind => self.stream(&file, None).map(Some),
                OpenPolicy::RegularFile(_) => Err(ReadError::NotAFile(stamp.kind().describe())),
            };
        }
        let is_first = self.results.is_empty();
        if self.reading.meter.wants_names() && (stamp.size >= MIN_NAMED_LEN || is_first) {
            self.reading.meter.set_current_file(&path_from(&self.folder.path_of(name)));
        }
        if stamp.size < MIN_UNBUFFERED_LEN
            && self.reading.hashing.has_many()
            && let Some(range) = self.small(&file, &stamp)?
        {
            self.check(name, &file, &stamp)?;
            self.wait(range, stamp);
            return Ok(None);
        }
        let file = Arc::new(file);
        let hashed = match self.reading.hashing.by_blocks() {
            Some(mode) if stamp.size >= MIN_SHARED_LEN && self.reading.by_blocks => {
                self.large(&file, stamp, mode, helpers)?
            }
            _ => self.stream(&file, Some(stamp))?,
        };
        self.check(name, &file, &stamp)?;
        Ok(Some(hashed))
    }

    /// Reads a small file to the end of the used part of the buffer; `None` if it is longer than
    /// its size says, as in /proc.
    fn small(&mut self, mut file: &File, stamp: &Stamp) -> Result<Option<Range<usize>>, ReadError> {
        let wanted = stamp.size.max(1) as usize;
        if self.used + wanted > self.buffer.len() {
            self.flush();
        }
        let start = self.used;
        let end = start + wanted;
        let mut at = start;
        while at < end {
            match read(&mut file, &mut self.buffer[at..end])? {
                0 => break,
                len => at += len,
            }
        }
        if stamp.size == 0 && at > start {
            // The byte is read again.
            std::io::Seek::rewind(&mut file)?;
            return Ok(None);
        }
        Ok(Some(start..at))
    }

    fn wait(&mut self, range: Range<usize>, stamp: Stamp) {
        self.reading.meter.add_bytes(range.len() as u64);
        self.bytes += range.len() as u64;
        self.used = range.end;
        self.waiting.push(Waiting { index: self.results.len(), range, stamp });
    }

    /// Hashes what waits.
    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let inputs: Vec<&[u8]> = self.waiting.iter().map(|file| &self.buffer[file.range.clone()]).collect();
        let mut hashes = [Hash::from_bytes([0; 32]); MAX_SIDE_BY_SIDE];
        let hashes = &mut hashes[..inputs.len()];
        self.reading.hashing.many(&inputs, hashes);
        for (file, hash) in self.waiting.drain(..).zip(hashes) {
            let output = Output::Digest(Digest::new(hash.as_bytes()));
            let hashed = HashedFile { output, size: file.range.len() as u64, stamp: Some(file.stamp) };
            self.results[file.index] = Some(Ok(hashed));
        }
        self.used = 0;
    }

    /// Reads from start to end. A file that is longer than its size said is not read to its end: it
    /// may grow for ever. In /proc, files have the size 0.
    fn stream(&mut self, file: &File, stamp: Option<Stamp>) -> Result<HashedFile, ReadError> {
        self.flush();
        let hashing = &self.reading.hashing;
        let mut state = hashing.state();
        let mut left = stamp.map_or(u64::MAX, |stamp| if stamp.size > 0 { stamp.size } else { u64::MAX });
        let take = |bytes: &[u8]| {
            left = left.checked_sub(bytes.len() as u64).ok_or(ReadError::Changed)?;
            state.update(bytes);
            Ok(())
        };
        let size =
            pieces_in(self.buffer, file, self.reading.meter, take).map_err(|stopped| match stopped {
                StreamError::Read(error) | StreamError::Consumer(error) => error,
            })?;
        Ok(HashedFile { output: hashing.finish(state), size, stamp })
    }

    fn stdin(&mut self) -> Result<HashedFile, ReadError> {
        let file = Source::stdin()?.into_file();
        self.stream(&file, None)
    }

    /// Reads blocks, as idle threads do meanwhile.
    fn large(
        &mut self,
        file: &Arc<File>,
        stamp: Stamp,
        mode: &HashMode,
        helpers: &dyn Helpers,
    ) -> Result<HashedFile, ReadError> {
        self.flush();
        let (hashing, meter) = (&self.reading.hashing, self.reading.meter);
        let blocks = Arc::new(Blocks::new(file, stamp.size));
        let large = Large { blocks: blocks.clone(), file: file.clone(), hashing: hashing.clone() };
        helpers.share(Arc::new(large));
        blocks.work(BlockSource { file, mode }, self.buffer, meter);
        let reader = blocks.finish(mode)?;
        Ok(HashedFile { output: hashing.output(reader), size: stamp.size, stamp: Some(stamp) })
    }

    /// Checks that nobody wrote to the file, or gave its name to another one.
    fn check(&self, name: &[u8], file: &File, before: &Stamp) -> Result<(), ReadError> {
        if !Stamp::of(file)?.is_same_content(before) {
            return Err(ReadError::Changed);
        }
        if self.reading.name_policy == NamePolicy::MayChange {
            return Ok(());
        }
        let links = match self.reading.open_policy {
            OpenPolicy::AnyKind => Links::Follow,
            OpenPolicy::RegularFile(links) => links,
        };
        match self.folder.stamp(name, links)?.identity == before.identity {
            true => Ok(()),
            false => Err(ReadError::Replaced),
        }
    }
}

/// A large file that threads share.
struct Large {
    blocks: Arc<Blocks>,
    file: Arc<File>,
    hashing: Arc<HashParams>,
}

impl SharedWork for Large {
    fn has_more(&self) -> bool {
        self.blocks.has_more()
    }

    fn help(&self, meter: &dyn Meter) {
        let mode = self.hashing.by_blocks().expect("only BLAKE3 has blocks");
        with_buffer(|buffer| self.blocks.work(BlockSource { file: &self.file, mode }, buffer, meter));
    }

    fn max_helpers(&self) -> usize {
        self.blocks.max_threads() - 1
    }
}

/// The content of an entry of a folder.
#[derive(Clone, Debug)]
pub enum EntryContent {
    /// A regular file.
    File(HashedFile),
    /// The text of a link, which is not followed.
    Link(Vec<u8>),
}

impl EntryContent {
    /// The identity of a regular file, where the system tells it.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Self::File(file) => file.stamp.map(|stamp| stamp.identity),
            Self::Link(_) => None,
        }
    }
}

/// Reads the files and links of a batch, in order. It leaves the last ones out if the first ones
/// were large, or if the work is to stop.
///
/// ```
/// use bulla_sums::{
///     Dash, EntryContent, FileBatch, HashParams, Helpers, Links, NamePolicy, NoProgress, OpenPolicy,
///     ReadOptions, SharedWork, read_entries,
/// };
/// use std::sync::Arc;
///
/// /// No other thread reads.
/// struct Alone;
/// impl Helpers for Alone {
///     fn share(&self, _work: Arc<dyn SharedWork>) {}
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a");
/// std::fs::write(&path, "one")?;
/// let reading = ReadOptions {
///     hashing: Arc::new(HashParams::plain_blake3()),
///     open_policy: OpenPolicy::RegularFile(Links::Refuse),
///     name_policy: NamePolicy::MustStay,
///     dash: Dash::FileName,
///     by_blocks: false,
///     meter: &NoProgress,
/// };
/// let entries = read_entries(&reading, &FileBatch::given(vec![path]), &Alone);
/// let Ok(EntryContent::File(file)) = &entries[0] else { panic!("{entries:?}") };
/// assert_eq!(file.size, 3);
/// assert!(file.output.is(bulla_blake3::hash(b"one").as_bytes()));
/// # std::io::Result::Ok(())
/// ```
pub fn read_entries(
    reading: &ReadOptions<'_>,
    batch: &FileBatch,
    helpers: &dyn Helpers,
) -> Vec<Result<EntryContent, ReadError>> {
    let is_file = |index: &usize| batch.kind(*index).is_none_or(|kind| kind == FileKind::File);
    let files: Vec<usize> = (0..batch.len()).filter(is_file).collect();
    let names = files.iter().map(|index| batch.name(*index));
    let hashed = hash_files(reading, batch.folder(), names, helpers);
    // What comes before the first file that was left out is done.
    let end = files.get(hashed.len()).copied().unwrap_or(batch.len());
    let mut hashed = hashed.into_iter();
    let content = |index| match batch.kind(index) {
        None | Some(FileKind::File) => hashed.next().expect("each file has a result").map(EntryContent::File),
        Some(FileKind::Link) => Ok(EntryContent::Link(batch.folder().link_target(batch.name(index))?)),
        Some(kind) => Err(ReadError::NotAFile(kind.describe())),
    };
    (0..end).map(content).collect()
}
