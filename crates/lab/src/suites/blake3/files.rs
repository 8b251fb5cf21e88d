//! Files that the page cache holds: what opening, reading and mapping leave of the speed.

use std::{cell::LazyCell, io::Write as _, path::Path, rc::Rc};

use tempfile::NamedTempFile;

use super::{KIB, MIB, case, official, operations::ours};
use crate::suites::Case;

/// The lengths of files.
const SIZES: [usize; 6] = [KIB, 16 * KIB, 128 * KIB, MIB, 16 * MIB, 64 * MIB];

/// How the bytes of a file get into the hasher.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// By `read`, into a buffer.
    Read,
    /// As memory.
    Mapped,
    /// As memory, on all threads of the pool.
    MappedByThreads,
}

impl Way {
    const ALL: [Self; 3] = [Self::Read, Self::Mapped, Self::MappedByThreads];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Mapped => "mapped",
            Self::MappedByThreads => "mapped-two",
        }
    }
}

/// A file of random bytes that is written when it is first wanted, and gone with the case.
pub(super) struct TestFile(LazyCell<NamedTempFile, Box<dyn FnOnce() -> NamedTempFile>>);

impl TestFile {
    fn new(bytes: usize) -> Self {
        Self(LazyCell::new(Box::new(move || {
            let mut content = vec![0; bytes];
            fastrand::fill(&mut content);
            let write = || {
                let mut file = NamedTempFile::new()?;
                file.write_all(&content)?;
                std::io::Result::Ok(file)
            };
            write().expect("the folder for temporary files takes the file of the benchmark")
        })))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Every contender of a case hashes the same file.
pub(super) fn cases() -> Vec<Case> {
    let of = |(way, bytes): (Way, usize)| {
        let file = Rc::new(TestFile::new(bytes));
        let same = Rc::clone(&file);
        let peers = vec![official(move || official::file(way, &same))];
        Case { input: 0, ..case(way.name(), bytes, move || ours::file(way, &file), peers) }
    };
    Way::ALL.into_iter().flat_map(|way| SIZES.map(|bytes| (way, bytes))).map(of).collect()
}
