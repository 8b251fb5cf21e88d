//! The source of the bytes: a file or memory, read in pieces and never mapped.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::Path,
    sync::Mutex,
};

use elsa::FrozenMap;
use object::ReadRef;

/// Bytes at positions. Several threads read at the same time.
pub trait Source: Sync {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// They cannot be read, or there are fewer.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A regular file. Other files have no length, and reading them may never end.
#[derive(Debug)]
pub struct FileSource {
    // All threads share one position. Pieces are large, so waiting for it costs nothing.
    file: Mutex<File>,
    len: u64,
}

impl FileSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Check before opening: opening a fifo waits for a writer.
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Self::new(File::open(path)?)
    }

    /// The content of `file`, from its start.
    ///
    /// # Errors
    /// Its length cannot be determined.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file: Mutex::new(file), len })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

/// The tables of one object file (headers, symbols, names), kept in memory while it is read, up to
/// a limit.
///
/// A header may claim any size; a file with holes may even have it. So a read beyond the limit
/// fails before anything is allocated.
pub(crate) struct Tables<'s> {
    source: &'s (dyn Source + 's),
    part: Range<u64>,
    kept: FrozenMap<(u64, u64), Box<[u8]>>,
    left: Cell<u64>,
    exceeded: Cell<bool>,
}

impl<'s> Tables<'s> {
    /// The tables of the object file at `part` of `source`. They may take `limit` bytes.
    pub(crate) fn new(source: &'s dyn Source, part: Range<u64>, limit: u64) -> Self {
        Self { source, part, kept: FrozenMap::new(), left: Cell::new(limit), exceeded: Cell::new(false) }
    }

    /// Whether a read failed because of the limit, and not because of the file's content.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.get()
    }

    fn size(&self) -> u64 {
        self.part.end - self.part.start
    }

    fn read(&self, offset: u64, size: u64) -> Result<&[u8], ()> {
        if offset.checked_add(size).is_none_or(|end| end > self.size()) {
            return Err(());
        }
        if let Some(bytes) = self.kept.get(&(offset, size)) {
            return Ok(bytes);
        }
        let Some(left) = self.left.get().checked_sub(size) else {
            self.exceeded.set(true);
            return Err(());
        };
        self.left.set(left);
        let mut bytes = vec![0; usize::try_from(size).map_err(drop)?];
        self.source.read_exact_at(&mut bytes, self.part.start + offset).map_err(drop)?;
        Ok(self.kept.insert((offset, size), bytes.into()))
    }
}

/// The number of bytes of a name table that are read at once.
const PAGE_LEN: u64 = 1 << 16;

/// The longest name that is read when it goes beyond its page.
const MAX_STRING_LEN: u64 = 1 << 14;

impl<'a> ReadRef<'a> for &'a Tables<'_> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.size())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 { Ok(&[]) } else { self.read(offset, size) }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(self.size());
        let find = |bytes: &'a [u8]| Some(&bytes[..bytes.iter().position(|byte| *byte == delimiter)?]);
        // Whole pages, so that the many names of a table share the memory of few reads.
        let page = range.start / PAGE_LEN * PAGE_LEN;
        let page_end = (page + PAGE_LEN).min(self.size());
        let within = (range.start - page) as usize..(page_end.min(end).checked_sub(page).ok_or(())?) as usize;
        let bytes = self.read_bytes_at(page, page_end.checked_sub(page).ok_or(())?)?;
        if let Some(found) = bytes.get(within).and_then(find) {
            return Ok(found);
        }
        let size = end.checked_sub(range.start).ok_or(())?.min(MAX_STRING_LEN);
        find(self.read_bytes_at(range.start, size)?).ok_or(())
    }
}

/// Reads a range of a source from start to end through a buffer of bounded size.
pub(crate) struct Window<'s> {
    source: &'s (dyn Source + 's),
    /// The unread part of the source.
    rest: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
}

/// The most bytes in a window, unless [`Window::ahead`] asks for more.
pub(crate) const MAX_WINDOW_LEN: usize = 1 << 20;

impl<'s> Window<'s> {
    pub(crate) fn new(source: &'s dyn Source, range: Range<u64>) -> Self {
        Self { source, rest: range, buffer: Vec::new(), at: 0 }
    }

    /// The next bytes: at least `least`, or all that are left.
    pub(crate) fn ahead(&mut self, least: usize) -> io::Result<&[u8]> {
        if self.buffer.len() - self.at < least && !self.rest.is_empty() {
            self.buffer.drain(..self.at);
            self.at = 0;
            let kept = self.buffer.len();
            let more = (self.rest.end - self.rest.start).min(MAX_WINDOW_LEN as u64);
            self.buffer.resize(kept + more as usize, 0);
            self.source.read_exact_at(&mut self.buffer[kept..], self.rest.start)?;
            self.rest.start += more;
        }
        Ok(&self.buffer[self.at..])
    }

    /// Skips bytes that [`Window::ahead`] returned.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
