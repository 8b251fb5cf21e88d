//! Whether the file that a store has open is still the one at its path.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::{Code, KmsError, Result};
use crate::files;

/// How long the answer of the file system counts for the use of a private key, in milliseconds.
const COUNTS_FOR: u64 = 1000;

/// The file that a store has open. Somebody may put another one in its place: the process would go
/// on with the former one, whose changes nobody finds again.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    file: files::Identity,
    opened: Instant,
    /// When the file system was last asked, with success: milliseconds since `opened`, plus
    /// [`COUNTS_FOR`]; 0 for never.
    asked: AtomicU64,
}

impl FileIdentity {
    /// The file that is at `path` now. Call it before the file is opened.
    ///
    /// # Errors
    /// Errors of reading, also [`Code::NotFound`].
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let file = files::identity(path)
            .map_err(|error| KmsError::io(format!("cannot look at {}", path.display()), error))?;
        Ok(Self { path: path.to_owned(), file, opened: Instant::now(), asked: AtomicU64::new(0) })
    }

    /// # Errors
    /// [`Code::KeystoreChanged`] if another file is at the path, or none; errors of reading.
    pub(crate) fn check(&self) -> Result<()> {
        match files::identity(&self.path) {
            Ok(there) if there == self.file => Ok(()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(KmsError::io(format!("cannot look at the keystore {}", self.path.display()), error))
            }
            _ => Err(KmsError::new(
                Code::KeystoreChanged,
                format!(
                    "the keystore {} was replaced or removed while it was open, so its keys may be others now; \
                     open it again",
                    self.path.display()
                ),
            )),
        }
    }

    /// Like [`FileIdentity::check`], but asks the file system only if its last answer is older than
    /// a second.
    ///
    /// # Errors
    /// Those of [`FileIdentity::check`].
    pub(crate) fn check_now_and_then(&self) -> Result<()> {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now = now.saturating_add(COUNTS_FOR);
        // No thread waits for another one. At worst, several of them ask.
        if now - self.asked.load(Ordering::Relaxed).min(now) >= COUNTS_FOR {
            self.check()?;
            self.asked.fetch_max(now, Ordering::Relaxed);
        }
        Ok(())
    }
}
