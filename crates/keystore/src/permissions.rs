//! Checks what other users may do with a keystore, and with files that contain secrets.

use crate::error::{Error, ErrorCode, Result};
use bulla_files::quote_for_shell;
use std::fs::Metadata;
use std::path::Path;

/// Refuses a file with a secret that other users may read or write, as ssh does for private keys.
/// Pipes and terminals are accepted, because secrets do not stay in them.
///
/// ```
/// # #[cfg(unix)]
/// # (|| {
/// use bulla_keystore::{ErrorCode, check_secret_file};
/// use std::os::unix::fs::PermissionsExt as _;
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("pin");
/// std::fs::write(&path, "1234")?;
/// for (mode, expected) in [(0o600, None), (0o644, Some(ErrorCode::SecretFileMode))] {
///     std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
///     let checked = check_secret_file(&path, &path.metadata()?);
///     assert_eq!(checked.err().map(|error| error.code), expected);
/// }
/// # std::io::Result::Ok(())
/// # })().unwrap();
/// ```
///
/// # Errors
/// [`ErrorCode::SecretFileMode`], [`ErrorCode::SecretFileOwner`].
pub fn check_secret_file(path: &Path, metadata: &Metadata) -> Result<()> {
    if !metadata.is_file() {
        return Ok(());
    }
    if let Some(owner) = another_owner(metadata) {
        let message = format!("contains a secret, but belongs to another user (uid {owner})");
        return Err(Error::new(ErrorCode::SecretFileOwner, message)
            .about_path(path)
            .hint("make your own copy that nobody else can read"));
    }
    let mode = mode_of(metadata);
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("contains a secret, but its mode ({mode:04o}) allows other users to use it");
    Err(Error::new(ErrorCode::SecretFileMode, message)
        .about_path(path)
        .hint(format!("correct the mode with: chmod 600 {}", quote_for_shell(path.as_os_str()))))
}

/// Refuses a keystore that other users may change: a folder in which they can replace files, or a
/// file of the keystore that they can write to. Missing files are accepted.
pub(crate) fn check_keystore(folder: &Path, file: &Path) -> Result<()> {
    for path in [folder, file] {
        // If the metadata cannot be read, opening fails too, with a better error.
        let Ok(metadata) = path.metadata() else { continue };
        let mode = mode_of(&metadata);
        if mode & 0o022 != 0 {
            let message =
                format!("belongs to the keystore, but its mode ({mode:04o}) allows other users to change it");
            let hint = format!(
                "if you are sure that nobody changed it, correct the mode with: chmod go-w {}",
                quote_for_shell(path.as_os_str())
            );
            return Err(Error::new(ErrorCode::KeystoreMode, message).about_path(path).hint(hint));
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
fn mode_of(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o7777
}

/// Elsewhere access control lists decide; there is no mode to check.
#[cfg(not(unix))]
fn another_owner(_metadata: &Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn mode_of(_metadata: &Metadata) -> u32 {
    0
}
