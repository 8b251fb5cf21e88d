//! The key file beside a keystore.
//!
//! It gets its final name only when there is a keystore that opens with it; until then, it has the
//! name of a next key file. So a key file without a keystore shows that the keystore was lost.
//!
//! A key file gets its name while the keystore is open for writing, so only one process at a time
//! can do this.

use crate::error::{Error, ErrorCode, Result};
use crate::folder::{KeystoreFolder, STORE_FILE};
use bulla_files::escape_path;
use bulla_kms::{Code, KeyFile, KeystoreOptions, Unlock};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const KEY_FILE: &str = "keystore.key";
/// The next key file, which will replace the one beside the keystore, or become the first one.
const NEXT_KEY_FILE: &str = "keystore.key.new";

impl KeystoreFolder {
    /// Returns the path of the key file, if a key file opens the keystore.
    pub fn key_file(&self) -> PathBuf {
        self.path().join(KEY_FILE)
    }

    fn next_key_file(&self) -> PathBuf {
        self.path().join(NEXT_KEY_FILE)
    }

    /// Returns whether a keystore has, or had, a key file beside it. Call this before looking for
    /// the keystore: another process may create both meanwhile, the keystore first.
    pub fn has_key_file(&self) -> bool {
        self.key_file().symlink_metadata().is_ok()
    }

    /// The error for a key file without a keystore. A new keystore in its place would have other
    /// keys, and nobody would notice.
    pub(crate) fn lost_error(&self) -> Error {
        let folder = escape_path(self.path());
        let message = format!(
            "the keystore in {folder} was lost: its key file {KEY_FILE} is there, but {STORE_FILE} is missing"
        );
        Error::new(ErrorCode::KeystoreLost, message)
    }

    /// Creates the key file for a new keystore, under the name of a next key file. If that exists
    /// already, an interrupted creation left it, and it is used.
    ///
    /// # Errors
    /// Those of [`KeyFile::create`].
    pub fn create_key_file(&self) -> Result<PathBuf> {
        let path = self.next_key_file();
        match KeyFile::create(&path) {
            Err(error) if error.code != Code::AlreadyExists => Err(error.into()),
            _ => Ok(path),
        }
    }

    /// Gives a new key file its final name, if it is the one that opens the keystore, which the
    /// caller has just created or changed and still has open.
    ///
    /// ```
    /// use bulla_keystore::KeystoreFolder;
    /// use bulla_kms::{Keystore, Unlock};
    ///
    /// # let temporary = tempfile::tempdir()?;
    /// # let path = temporary.path().join("keystore");
    /// let folder = KeystoreFolder::at(path);
    /// assert!(!folder.has_key_file());
    /// let mut unlock = Unlock::KeyFile(folder.create_key_file()?);
    /// // A keystore in the folder, or one in a cluster that this key file opens.
    /// let keystore = Keystore::create(&folder.store_file(), &unlock)?;
    /// folder.name_key_file(&mut unlock)?;
    /// drop(keystore);
    /// assert!(folder.has_key_file());
    /// Keystore::open(&folder.store_file(), &Unlock::KeyFile(folder.key_file()))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of renaming it.
    pub fn name_key_file(&self, unlock: &mut Unlock) -> Result<()> {
        let (now, next) = (self.key_file(), self.next_key_file());
        if let Unlock::KeyFile(path) = unlock
            && *path == next
        {
            let cannot = |error| Error::io("cannot rename the new key file", error).about_path(&next);
            std::fs::rename(&next, &now).map_err(cannot)?;
            *path = now;
        }
        Ok(())
    }

    /// Finds the key file of the keystore. If the naming of a new key file was interrupted, and the
    /// file opens the keystore, it gets its name now. Otherwise it stays where it is: another
    /// process may be about to use it.
    pub(crate) fn settle_key_file(&self, options: &KeystoreOptions) -> PathBuf {
        let (store, now, next) = (self.store_file(), self.key_file(), self.next_key_file());
        let Ok(found) = file_identity(&next) else { return now };
        let unlock = Unlock::KeyFile(next.clone());
        match options.open(&store, &unlock) {
            Ok(_open) => match file_identity(&next) {
                Ok(still) if still != found => now,
                // If renaming fails, the file is found again under its first name.
                Ok(_) if std::fs::rename(&next, &now).is_err() => next,
                // Or another process named it before this one had the keystore open.
                _ => now,
            },
            Err(error)
                if error.code == Code::PermissionDenied && options.snapshot(&store, &unlock).is_ok() =>
            {
                next
            }
            Err(_) => now,
        }
    }
}

/// What tells a file from another one of the same name.
#[cfg(unix)]
fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    path.symlink_metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Elsewhere the creation time must tell them apart.
#[cfg(not(unix))]
fn file_identity(path: &Path) -> io::Result<std::time::SystemTime> {
    path.symlink_metadata()?.created()
}
