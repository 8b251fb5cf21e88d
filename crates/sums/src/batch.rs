//! Some files that one thread hashes: many small ones are read into one buffer and hashed side by
//! side.

use crate::algorithm::Digest;
use crate::blocks::{Blocks, Content, LARGE};
use crate::buffer::{BUFFER, with_buffer};
use crate::error::{ReadError, Stopped};
use crate::folder::{Folder, Opening, path_from};
use crate::hashing::{HashMode, Hashing, Output};
use crate::kind::Kind;
use crate::meter::Meter;
use crate::source::{Links, Source, pieces_in, read};
use crate::stamp::Stamp;
use crate::team::{Others, Shared};
use bulla_blake3::Hash;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// The most files that are hashed side by side.
const SIDE_BY_SIDE: usize = 64;

/// Files below this size share the buffer.
const SMALL: u64 = BUFFER as u64 / 2;

/// From this size on, the meter hears of every file.
const SLOW: u64 = 16 << 20;

/// After this many bytes, a thread leaves the rest of its batch to others.
const ENOUGH: u64 = 1 << 20;

/// A file that was hashed.
#[derive(Clone, Debug)]
pub struct Hashed {
    /// The digest.
    pub output: Output,
    /// The number of bytes.
    pub size: u64,
    /// The file's properties before and after; a stream such as a pipe has none.
    pub stamp: Option<Stamp>,
}

/// What must be true of a file's name when the file has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Nothing: a name may lead elsewhere by then.
    Free,
    /// It leads to the file that was read.
    Kept,
}

/// What the name `-` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// A file of this name.
    Name,
    /// Standard input.
    Stdin,
    /// Standard input, which is not free: the key came from there.
    HeldTheKey,
}

/// How files are read.
#[derive(Clone)]
pub struct Reading<'a> {
    /// How to hash.
    pub hashing: Arc<Hashing>,
    /// How to open.
    pub opening: Opening,
    /// What must be true of the name.
    pub naming: Naming,
    /// What `-` means.
    pub dash: Dash,
    /// Who watches.
    pub meter: &'a (dyn Meter + 'a),
}

/// Hashes files, and returns their results in order. It leaves the last ones out if the first ones
/// were large, or if the work is to stop: no result is [`ReadError::Stopped`].
pub fn hash_files<'n>(
    reading: &Reading<'_>,
    folder: &Folder,
    names: impl IntoIterator<Item = &'n [u8]>,
    others: &dyn Others,
) -> Vec<Result<Hashed, ReadError>> {
    with_buffer(|buffer| {
        let mut batch =
            Batch { reading, folder, buffer, used: 0, waiting: Vec::new(), results: Vec::new(), bytes: 0 };
        for name in names {
            if batch.add(name, others) == Added::Nothing
                || batch.bytes >= ENOUGH
                || reading.meter.is_stopped()
            {
                break;
            }
        }
        batch.flush();
        reading.meter.done(batch.results.len() as u64);
        batch.results.into_iter().map(|result| result.expect("each file has a result")).collect()
    })
}

/// What came of a file.
#[derive(PartialEq, Eq)]
enum Added {
    Result,
    /// The work was stopped while the file was read.
    Nothing,
}

struct Batch<'a, 'r> {
    reading: &'a Reading<'r>,
    folder: &'a Folder,
    buffer: &'a mut [u8],
    /// How much of the buffer the waiting files take.
    used: usize,
    waiting: Vec<Waiting>,
    /// `None` for the waiting files.
    results: Vec<Option<Result<Hashed, ReadError>>>,
    /// The bytes of all files so far.
    bytes: u64,
}

/// A small file that is in the buffer.
struct Waiting {
    index: usize,
    range: Range<usize>,
    stamp: Stamp,
}

impl Batch<'_, '_> {
    fn add(&mut self, name: &[u8], others: &dyn Others) -> Added {
        let result = self.file(name, others).transpose();
        if let Some(Err(ReadError::Stopped)) = result {
            return Added::Nothing;
        }
        if let Some(Ok(hashed)) = &result {
            self.bytes += hashed.size;
        }
        self.results.push(result);
        if self.waiting.len() == SIDE_BY_SIDE {
            self.flush();
        }
        Added::Result
    }

    /// Reads a file; `None` if it waits in the buffer.
    fn file(&mut self, name: &[u8], others: &dyn Others) -> Result<Option<Hashed>, ReadError> {
        match self.reading.dash {
            Dash::Stdin if name == b"-" => return self.stdin().map(Some),
            Dash::HeldTheKey if name == b"-" => return Err(ReadError::StdinHeldTheKey),
            _ => {}
        }
        let file = self.folder.open(name, self.reading.opening)?;
        let stamp = Stamp::of(&file)?;
        if stamp.kind() != Kind::File {
            return match self.reading.opening {
                Opening::Anything => self.stream(&file, None).map(Some),
                Opening::File(_) => Err(ReadError::NotAFile(stamp.kind().describe())),
            };
        }
        let is_first = self.results.is_empty();
        if self.reading.meter.wants_names() && (stamp.size >= SLOW || is_first) {
            self.reading.meter.now(&path_from(&self.folder.path_of(name)));
        }
        if stamp.size < SMALL
            && self.reading.hashing.has_many()
            && let Some(range) = self.small(&file, &stamp)?
        {
            self.check(name, &file, &stamp)?;
            self.wait(range, stamp);
            return Ok(None);
        }
        let file = Arc::new(file);
        let hashed = match self.reading.hashing.by_blocks() {
            Some(mode) if stamp.size >= LARGE && others.may_help() => {
                self.large(&file, stamp, mode, others)?
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
        self.reading.meter.add(range.len() as u64);
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
        let mut hashes = [Hash::from_bytes([0; 32]); SIDE_BY_SIDE];
        let hashes = &mut hashes[..inputs.len()];
        self.reading.hashing.many(&inputs, hashes);
        for (file, hash) in self.waiting.drain(..).zip(hashes) {
            let output = Output::Digest(Digest::new(hash.as_bytes()));
            let hashed = Hashed { output, size: file.range.len() as u64, stamp: Some(file.stamp) };
            self.results[file.index] = Some(Ok(hashed));
        }
        self.used = 0;
    }

    /// Reads from start to end. A file that is longer than its size said is not read to its end: it
    /// may grow for ever. In /proc, files have the size 0.
    fn stream(&mut self, file: &File, stamp: Option<Stamp>) -> Result<Hashed, ReadError> {
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
                Stopped::Reading(error) | Stopped::By(error) => error,
            })?;
        Ok(Hashed { output: hashing.finish(state), size, stamp })
    }

    fn stdin(&mut self) -> Result<Hashed, ReadError> {
        let file = Source::stdin()?.into_file();
        self.stream(&file, None)
    }

    /// Reads blocks, as idle threads do meanwhile.
    fn large(
        &mut self,
        file: &Arc<File>,
        stamp: Stamp,
        mode: &HashMode,
        others: &dyn Others,
    ) -> Result<Hashed, ReadError> {
        self.flush();
        let (hashing, meter) = (&self.reading.hashing, self.reading.meter);
        let blocks = Arc::new(Blocks::new(stamp.size));
        let large = Large { blocks: blocks.clone(), file: file.clone(), hashing: hashing.clone() };
        others.share(Arc::new(large));
        blocks.work(Content { file, mode }, self.buffer, meter);
        let reader = blocks.finish(mode)?;
        Ok(Hashed { output: hashing.output(reader), size: stamp.size, stamp: Some(stamp) })
    }

    /// Checks that nobody wrote to the file, or gave its name to another one.
    fn check(&self, name: &[u8], file: &File, before: &Stamp) -> Result<(), ReadError> {
        if !Stamp::of(file)?.is_same_content(before) {
            return Err(ReadError::Changed);
        }
        if self.reading.naming == Naming::Free {
            return Ok(());
        }
        let links = match self.reading.opening {
            Opening::Anything => Links::Follow,
            Opening::File(links) => links,
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
    hashing: Arc<Hashing>,
}

impl Shared for Large {
    fn has_more(&self) -> bool {
        self.blocks.has_more()
    }

    fn help(&self, meter: &dyn Meter) {
        let mode = self.hashing.by_blocks().expect("only BLAKE3 has blocks");
        with_buffer(|buffer| self.blocks.work(Content { file: &self.file, mode }, buffer, meter));
    }
}
