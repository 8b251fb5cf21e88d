//! Checks what other users may do with files that contain secrets, and with the keystore.

use crate::error::{Error, Result};
use crate::file_name::{shell_word, shown};
use std::fs::Metadata;
use std::path::Path;

/// Refuses a file with a secret that other users may read or write, as ssh does for private keys.
/// Pipes and terminals are accepted, because secrets do not stay in them.
///
/// # Errors
/// `secret_file_mode`, `secret_file_owner`.
pub(crate) fn check_secret(path: &Path, metadata: &Metadata) -> Result<()> {
    if !metadata.is_file() {
        return Ok(());
    }
    if let Some(owner) = another_owner(metadata) {
        let message = format!("contains a secret, but belongs to another user (uid {owner})");
        return Err(Error::new("secret_file_owner", message)
            .about(shown(path))
            .hint("make your own copy that nobody else can read"));
    }
    match bits(metadata) & 0o077 {
        0 => Ok(()),
        _ => Err(Error::new(
            "secret_file_mode",
            format!("contains a secret, but its mode ({:04o}) allows other users to use it", bits(metadata)),
        )
        .about(shown(path))
        .hint(format!("correct the mode with: chmod 600 {}", shell_word(path.as_os_str())))),
    }
}

/// Refuses a keystore that other users may change: a folder in which they can replace files, or a
/// store that they can write to. Missing files are accepted.
///
/// # Errors
/// `keystore_mode`.
pub(crate) fn check_keystore(folder: &Path, store: &Path) -> Result<()> {
    for path in [folder, store] {
        // If the metadata cannot be read, opening fails too, with a better error.
        let Ok(metadata) = path.metadata() else { continue };
        if bits(&metadata) & 0o022 != 0 {
            let message = format!(
                "belongs to the keystore, but its mode ({:04o}) allows other users to change it",
                bits(&metadata)
            );
            return Err(Error::new("keystore_mode", message).about(shown(path)).hint(format!(
                "if you are sure that nobody changed it, correct the mode with: chmod go-w {}",
                shell_word(path.as_os_str())
            )));
        }
    }
    Ok(())
}

/// The owner, if it is neither this user nor root.
#[cfg(unix)]
fn another_owner(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = metadata.uid();
    (owner != 0 && owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

#[cfg(unix)]
fn bits(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o7777
}

/// Elsewhere access control lists decide; there is no mode to check.
#[cfg(not(unix))]
fn another_owner(_metadata: &Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn bits(_metadata: &Metadata) -> u32 {
    0
}
