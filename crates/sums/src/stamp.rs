//! The properties of a file that must not change while it is read.

use crate::kind::Kind;
use std::fs::File;
use std::io;

/// A file's identity, size and times. A file that has the same ones later has, as far as the system
/// tells, the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The device and the number of the file on it; zeros where the system does not tell them.
    pub identity: (u64, u64),
    /// The length in bytes.
    pub size: u64,
    /// When the content changed last, in nanoseconds since 1970.
    pub modified: i128,
    /// When anything about the file changed last, also its mode or its times: programs cannot
    /// choose it. In nanoseconds since 1970.
    pub changed: i128,
    /// The kind, and who may do what with it, as in `st_mode`; 0 where the system has no such bits.
    pub mode: u32,
}

impl Stamp {
    /// Whether the content was not touched between two stamps of one open file.
    pub fn is_same_content(&self, other: &Self) -> bool {
        (self.identity, self.size, self.modified) == (other.identity, other.size, other.modified)
    }

    /// The kind of the file.
    #[cfg(unix)]
    pub fn kind(&self) -> Kind {
        Kind::of(rustix::fs::FileType::from_raw_mode(self.mode))
    }

    /// The kind of the file, of which this system keeps no stamps but of regular files.
    #[cfg(not(unix))]
    pub fn kind(&self) -> Kind {
        Kind::File
    }

    /// Whether its owner may run the file.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// The stamp of an open file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(unix)]
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_stat(&rustix::fs::fstat(file)?))
    }

    /// The stamp of an open file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    /// The stamp in the system's answer.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn of_stat(stat: &rustix::fs::Stat) -> Self {
        let time =
            |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Self {
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
        }
    }

    /// The stamp in the system's answer.
    #[cfg(not(unix))]
    pub(crate) fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| time.as_nanos() as i128);
        Self { identity: (0, 0), size: metadata.len(), modified, changed: modified, mode: 0 }
    }
}
