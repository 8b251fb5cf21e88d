//! A guard in a separate file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::guard::{RollbackGuard, StoreMark, rolled_back};
use crate::error::{Code, KmsError, Result};
use crate::{encoding, files};

const HEADER: &str = "bulla rollback guard v1\n";
/// Larger than any guard file.
const MAX_FILE_LEN: u64 = 1024;

/// A guard in a small text file. It helps only if somebody who can put back the store cannot put
/// back this file: keep it on another disk, in another account's folder, and outside the store's
/// backups.
///
/// ```text
/// bulla rollback guard v1
/// store: <32 hexadecimal digits>, or nothing before the guard was used
/// counter: <decimal>
/// digest: <64 hexadecimal digits>
/// checksum: <64 hexadecimal digits: BLAKE3 of the lines before>
/// ```
///
/// It belongs to the first store that is opened with it. Each change writes a temporary file, syncs
/// it, and renames it to the guard file. Processes that share the guard take turns with a lock on
/// it.
#[derive(Clone, Debug)]
pub struct FileGuard {
    path: PathBuf,
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GuardRecord {
    store: [u8; 16],
    counter: u64,
    digest: [u8; 32],
}

impl FileGuard {
    /// The guard at `path`. It is read on each use.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Creates a guard that no store has used yet. A missing folder is created with mode 0700.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`; errors of writing.
    pub fn create(path: &Path) -> Result<Self> {
        files::create(path, text(None).as_bytes())?;
        Ok(Self::new(path))
    }

    /// Locks the file, and reads it. Dropping the file releases the lock.
    fn lock(&self) -> Result<(File, Option<GuardRecord>)> {
        let shown = self.path.display();
        let unusable = |error| KmsError::io(format!("cannot use the rollback guard {shown}"), error);
        loop {
            let mut file = File::open(&self.path).map_err(unusable)?;
            file.lock().map_err(unusable)?;
            // Another process may have replaced the file while this one waited for the lock.
            if !files::is_at(&file, &self.path).map_err(unusable)? {
                continue;
            }
            let mut text = String::new();
            let read = (&mut file).take(MAX_FILE_LEN).read_to_string(&mut text);
            let known = match read {
                Ok(_) => parse(&text),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => None,
                Err(error) => return Err(unusable(error)),
            };
            let malformed = || {
                let message = format!("the rollback guard {shown} is damaged; restore it from a copy");
                KmsError::new(Code::GuardMismatch, message)
            };
            return Ok((file, known.ok_or_else(malformed)?));
        }
    }

    fn check_against(&self, known: &GuardRecord, mark: &StoreMark) -> Result<()> {
        let shown = self.path.display();
        if known.store != mark.store {
            let message = format!("the rollback guard {shown} belongs to another keystore");
            return Err(KmsError::new(Code::GuardMismatch, message));
        }
        if mark.counter < known.counter {
            return Err(rolled_back(mark.counter, known.counter));
        }
        if mark.counter == known.counter && mark.digest != known.digest {
            return Err(KmsError::new(
                Code::RolledBack,
                format!(
                    "the keystore is another copy of itself: its change {} is not the one that the rollback guard \
                     {shown} knows",
                    mark.counter
                ),
            ));
        }
        Ok(())
    }
}

impl RollbackGuard for FileGuard {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        match self.lock()? {
            (_, Some(known)) => self.check_against(&known, mark),
            (_, None) => Ok(()),
        }
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        let (_lock, known) = self.lock()?;
        if let Some(known) = known {
            if known.store == mark.store && known.counter >= mark.counter {
                return Ok(());
            }
            self.check_against(&known, mark)?;
        }
        let next = GuardRecord { store: mark.store, counter: mark.counter, digest: mark.digest };
        files::replace(&self.path, text(Some(&next)).as_bytes())
    }
}

fn text(known: Option<&GuardRecord>) -> String {
    let body = match known {
        Some(known) => format!(
            "{HEADER}store: {}\ncounter: {}\ndigest: {}\n",
            encoding::hex(&known.store),
            known.counter,
            encoding::hex(&known.digest)
        ),
        None => format!("{HEADER}store:\ncounter: 0\ndigest:\n"),
    };
    let checksum = bulla_blake3::hash(body.as_bytes());
    format!("{body}checksum: {checksum}\n")
}

/// Parses a guard file's text, if this module could have written it; `Some(None)` for a guard that
/// no store has used yet.
fn parse(read: &str) -> Option<Option<GuardRecord>> {
    if read == text(None) {
        return Some(None);
    }
    let mut lines = read.strip_prefix(HEADER)?.lines();
    let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(": ");
    let store = encoding::from_hex(value("store")?)?.try_into().ok()?;
    let counter = value("counter")?.parse().ok()?;
    let digest = encoding::from_hex(value("digest")?)?.try_into().ok()?;
    let known = GuardRecord { store, counter, digest };
    (text(Some(&known)) == read).then_some(Some(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn mark(counter: u64, digest: u8) -> StoreMark {
        StoreMark { store: [1; 16], counter, changed: Timestamp::now().unwrap(), digest: [digest; 32] }
    }

    #[test]
    fn a_guard_belongs_to_the_first_store_and_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let guard = FileGuard::create(&folder.path().join("guard")).unwrap();
        guard.check(&mark(7, 0)).unwrap();
        guard.advance(&mark(7, 0)).unwrap();
        guard.check(&mark(7, 0)).unwrap();
        guard.check(&mark(8, 0)).unwrap();
        assert_eq!(guard.check(&mark(6, 0)).unwrap_err().code, Code::RolledBack);
        assert_eq!(guard.check(&mark(7, 1)).unwrap_err().code, Code::RolledBack, "another seventh change");
        guard.advance(&mark(9, 0)).unwrap();
        guard.advance(&mark(8, 0)).unwrap();
        assert_eq!(guard.check(&mark(8, 0)).unwrap_err().code, Code::RolledBack);
        let other = StoreMark { store: [2; 16], ..mark(10, 0) };
        assert_eq!(guard.check(&other).unwrap_err().code, Code::GuardMismatch);
        assert_eq!(guard.advance(&other).unwrap_err().code, Code::GuardMismatch);
    }

    #[test]
    fn a_guard_is_made_once_and_is_missed_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guard");
        assert_eq!(FileGuard::new(&path).check(&mark(1, 0)).unwrap_err().code, Code::NotFound);
        assert_eq!(FileGuard::new(&path).advance(&mark(1, 0)).unwrap_err().code, Code::NotFound);
        FileGuard::create(&path).unwrap();
        assert_eq!(FileGuard::create(&path).unwrap_err().code, Code::AlreadyExists);
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "no temporary file is left");
    }

    #[test]
    fn bytes_that_are_no_text_are_damage_and_what_cannot_be_read_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guard");
        std::fs::write(&path, b"\xff\n").unwrap();
        assert_eq!(FileGuard::new(&path).check(&mark(1, 0)).unwrap_err().code, Code::GuardMismatch);
        let is_folder = FileGuard::new(folder.path()).check(&mark(1, 0)).unwrap_err();
        assert_ne!(is_folder.code, Code::GuardMismatch, "{is_folder}");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_damage() {
        let known = GuardRecord { store: [1; 16], counter: 12, digest: [3; 32] };
        let bytes = text(Some(&known)).into_bytes();
        assert_eq!(parse(std::str::from_utf8(&bytes).unwrap()), Some(Some(known)));
        for at in 0..bytes.len() {
            assert_eq!(std::str::from_utf8(&bytes[..at]).ok().and_then(parse), None);
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert_eq!(std::str::from_utf8(&flipped).ok().and_then(parse), None, "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn many_threads_leave_the_greatest_counter() {
        let folder = tempfile::tempdir().unwrap();
        let guard = FileGuard::create(&folder.path().join("guard")).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let guard = &guard;
                scope.spawn(move || {
                    (0..10).for_each(|round| guard.advance(&mark(round * 4 + thread, 0)).unwrap());
                });
            }
        });
        assert_eq!(guard.check(&mark(38, 0)).unwrap_err().code, Code::RolledBack);
        guard.check(&mark(39, 0)).unwrap();
    }
}
