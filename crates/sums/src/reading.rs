//! What all readers of files share: errors, progress, the number of threads, and a buffer for each
//! thread.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::{fmt, io};

/// The reason why a file could not be read.
///
/// ```
/// use std::error::Error as _;
///
/// let error = bulla_sums::Source::open_any("no such file".as_ref()).unwrap_err();
/// assert_eq!(error.to_string(), "cannot read the file");
/// assert!(error.source().is_some_and(|system| system.is::<std::io::Error>()));
/// ```
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

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("cannot read the file"),
            Self::Changed => f.write_str("the file changed while it was read"),
            Self::Replaced => f.write_str("the file was replaced while it was read"),
            Self::NotAFile(kind) => write!(f, "it is {kind}, not a file"),
            Self::StdinHeldTheKey => {
                f.write_str("the key came from standard input, which has no content then")
            }
            Self::Stopped => f.write_str("the work was stopped before the file was read"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
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

impl<E> fmt::Display for StreamError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Consumer(_) => f.write_str("a piece of the content was refused"),
        }
    }
}

impl<E: Error + 'static> Error for StreamError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Consumer(error) => Some(error),
        }
    }
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
