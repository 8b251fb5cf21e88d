//! Files in the page cache: the speed that remains after opening, reading and mapping.

use std::{cell::LazyCell, io::Write as _, path::Path, rc::Rc};

use tempfile::NamedTempFile;

use super::{
    KIB, MIB, case,
    operations::{official, ours},
    peer,
};
use crate::suites::suite::{Case, THREADS};

/// How the hasher gets the bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    /// By `read`, into a buffer.
    Read,
    /// As memory.
    Mapped,
    /// As memory, on all threads of the pool.
    MappedByThreads,
}

impl Access {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Mapped, Self::MappedByThreads];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Mapped => "mapped",
            Self::MappedByThreads => "mapped-two",
        }
    }
}

/// A file of random bytes that is written on first use, and removed with the case.
pub(super) struct TestFile(LazyCell<NamedTempFile, Box<dyn FnOnce() -> NamedTempFile>>);

impl TestFile {
    pub(super) fn new(bytes: usize) -> Self {
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

/// The lengths of files.
const SIZES: [usize; 6] = [KIB, 16 * KIB, 128 * KIB, MIB, 16 * MIB, 64 * MIB];

/// Every contender of a case hashes the same file.
pub(super) fn cases() -> Vec<Case> {
    let of = |(access, bytes): (Access, usize)| {
        let file = Rc::new(TestFile::new(bytes));
        let same = Rc::clone(&file);
        let peers = vec![peer(move || official::file(access, &same))];
        let threads = if matches!(access, Access::MappedByThreads) { THREADS } else { 1 };
        Case { input: 0, threads, ..case(access.name(), bytes, move || ours::file(access, &file), peers) }
    };
    Access::ALL.into_iter().flat_map(|access| SIZES.map(|bytes| (access, bytes))).map(of).collect()
}
