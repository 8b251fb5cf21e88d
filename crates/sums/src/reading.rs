//! What all readers of files share: errors, progress, the number of threads, and a buffer for each
//! thread.

use std::cell::RefCell;
use std::io;
use std::path::Path;

/// The reason why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// An error of the system.
    Io(io::Error),
    /// The file's length or its time of change differs from before.
    Changed,
    /// The path now leads to another file.
    Replaced,
    /// The path leads to no file that can be read. The text names the kind: a folder, a fifo, ...
    NotAFile(&'static str),
    /// Standard input is not free for a file's content: the key came from there.
    StdinHeldTheKey,
    /// The work was stopped before the whole file was read.
    Stopped,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The reason why a stream was not read to its end.
#[derive(Debug)]
pub enum StreamError<E> {
    /// The file could not be read.
    Read(ReadError),
    /// The function that takes the pieces returned this error.
    Consumer(E),
}

impl<E> From<ReadError> for StreamError<E> {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Counts what was read, and may stop the work. Threads share one.
pub trait Meter: Sync {
    /// Counts `bytes` more that were read.
    fn add_bytes(&self, bytes: u64);

    /// Whether [`Meter::set_current_file`] is wanted.
    fn wants_names(&self) -> bool {
        false
    }

    /// Names the file that is read next. Small files may be left out.
    fn set_current_file(&self, path: &Path) {
        let _ = path;
    }

    /// Counts `files` more that are done, whether they could be read or not.
    fn add_files(&self, files: u64) {
        let _ = files;
    }

    /// Whether the work has to stop. Files that are not read yet stay unread.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// A meter that counts nothing and never stops.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Meter for NoProgress {
    fn add_bytes(&self, _bytes: u64) {}
}

/// How many threads read files.
///
/// ```
/// use bulla_sums::Threads;
///
/// assert_eq!((Threads::AtMost(4).number(), Threads::One.number()), (4, 1));
/// // 0 leaves the choice to the machine: it may be one thread or many.
/// assert!(Threads::AtMost(0).may_be_many() && Threads::AtMost(0).number() >= 1);
/// assert!(!Threads::AtMost(1).may_be_many());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One file after the other, each from start to end.
    One,
    /// At most this many; 0 leaves the number to the environment and the machine.
    AtMost(usize),
}

impl Threads {
    /// The number of threads: for `AtMost(0)`, that in the variable `RAYON_NUM_THREADS`, or else
    /// the number of processors.
    pub fn number(self) -> usize {
        match self {
            Self::One => 1,
            Self::AtMost(0) => {
                let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
                named.filter(|number| *number > 0).unwrap_or_else(|| {
                    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
                })
            }
            Self::AtMost(threads) => threads,
        }
    }

    /// Whether there may be more than one thread.
    pub fn may_be_many(self) -> bool {
        !matches!(self, Self::One | Self::AtMost(1))
    }
}

/// The bytes of a buffer: many small files, or a piece of a large one. Half of a core's second
/// cache on most machines.
pub(crate) const BUFFER_LEN: usize = 256 << 10;

/// Lends this thread's buffer, which is allocated once: for a small file, allocating it would be
/// most of the work.
///
/// # Panics
/// If `work` asks for it again.
pub(crate) fn with_buffer<R>(work: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER_LEN]);
    }
    BYTES.with_borrow_mut(|buffer| work(buffer))
}
