//! The key file beside a keystore. It gets its final name only when there is a keystore that opens
//! with it; until then, it has the name of a next key file. So a key file without a keystore shows
//! that the keystore was lost.
//!
//! A key file gets its name while the keystore is open for writing, so only one process at a time
//! can do this.

use super::place::STORE_FILE;
use crate::error::{Error, Result};
use crate::file_name::shown;
use bulla_kms::{Code, KeyFile, KeystoreOptions, Unlock};
use std::io;
use std::path::{Path, PathBuf};

pub(super) const KEY_FILE: &str = "keystore.key";
/// The next key file, which will replace the one beside the keystore, or become the first one.
const NEXT_KEY_FILE: &str = "keystore.key.new";

/// Whether a keystore has, or had, a key file beside it. Call this before looking for the keystore:
/// another process may create both meanwhile, the keystore first.
pub(super) fn has_key_file(folder: &Path) -> bool {
    folder.join(KEY_FILE).symlink_metadata().is_ok()
}

/// The error for a key file without a keystore. A new keystore in its place would have other keys,
/// and nobody would notice.
pub(super) fn lost(folder: &Path) -> Error {
    let message = format!(
        "the keystore in {} was lost: its key file {KEY_FILE} is there, but {STORE_FILE} is missing",
        shown(folder)
    );
    Error::new("keystore_lost", message).hint(format!(
        "restore {STORE_FILE} from a copy, or run `bulla keys restore --from BACKUP`; to start with new keys, move {KEY_FILE} elsewhere"
    ))
}

/// The key file for a new keystore. If it exists already, an interrupted creation left it.
pub(super) fn new_key_file(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(NEXT_KEY_FILE);
    match KeyFile::create(&path) {
        Ok(()) => Ok(path),
        Err(error) if error.code == Code::AlreadyExists => Ok(path),
        Err(error) => Err(error.into()),
    }
}

/// Gives the key file its final name, if it opens the keystore, which the caller has just created
/// or changed and still has open.
pub(super) fn name_key_file(folder: &Path, unlock: &mut Unlock) -> Result<()> {
    let (now, next) = (folder.join(KEY_FILE), folder.join(NEXT_KEY_FILE));
    if let Unlock::KeyFile(path) = unlock
        && *path == next
    {
        let cannot = |error| Error::io("cannot rename the new key file", &error).about(shown(&next));
        std::fs::rename(&next, &now).map_err(cannot)?;
        *path = now;
    }
    Ok(())
}

/// The key file of a keystore. If the naming of a new key file was interrupted, and the file opens
/// the keystore, it gets its name now. Otherwise it stays where it is: another process may be about
/// to use it.
pub(super) fn settled_key_file(folder: &Path, options: &KeystoreOptions) -> PathBuf {
    let (store, now, next) = (folder.join(STORE_FILE), folder.join(KEY_FILE), folder.join(NEXT_KEY_FILE));
    let Ok(found) = identity(&next) else { return now };
    let unlock = Unlock::KeyFile(next.clone());
    match options.open(&store, &unlock) {
        Ok(_open) => match identity(&next) {
            Ok(still) if still != found => now,
            // If renaming fails, the file is found again under its first name.
            Ok(_) if std::fs::rename(&next, &now).is_err() => next,
            // Or another process named it before this one had the keystore open.
            _ => now,
        },
        Err(error) if error.code == Code::PermissionDenied && options.snapshot(&store, &unlock).is_ok() => {
            next
        }
        Err(_) => now,
    }
}

/// The identity of a file.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    path.symlink_metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Elsewhere the creation time must identify it.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<std::time::SystemTime> {
    path.symlink_metadata()?.created()
}
