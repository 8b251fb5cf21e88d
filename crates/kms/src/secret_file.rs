//! Reading files that hold secrets, which nobody but their owner may read.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::{Code, KmsError, Result};

/// Reads a file with a secret in it, up to `most` bytes, if it is well kept.
///
/// # Errors
/// [`Code::NotFound`], [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`];
/// [`Code::MalformedKeyFile`] when it is not UTF-8; those of reading.
pub(crate) fn read(path: &Path, most: usize) -> Result<Zeroizing<String>> {
    let file = open(path)?;
    check(path, &file)?;
    // The capacity is never exceeded, so that no copy of the secret is left behind by a growing buffer.
    let mut text = Zeroizing::new(String::with_capacity(2 * most));
    file.take(most as u64).read_to_string(&mut text).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => malformed(path),
        _ => KmsError::io(format!("cannot read the key file {}", path.display()), error),
    })?;
    Ok(text)
}

pub(crate) fn malformed(path: &Path) -> KmsError {
    let message = format!("{} is not a key file: its content is malformed", path.display());
    KmsError::new(Code::MalformedKeyFile, message)
}

#[cfg(unix)]
fn open(path: &Path) -> Result<File> {
    use rustix::fs::{Mode, OFlags};
    // Not blocking: a named pipe in the place of the file must give an error, not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(rustix::io::Errno::LOOP) => Err(KmsError::new(
            Code::KeyFileType,
            format!("the key file {} is a symbolic link; name the file itself", path.display()),
        )),
        Err(error) => Err(KmsError::io(format!("cannot open the key file {}", path.display()), error.into())),
    }
}

#[cfg(unix)]
fn check(path: &Path, file: &File) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let shown = path.display();
    let metadata = file
        .metadata()
        .map_err(|error| KmsError::io(format!("cannot look at the key file {shown}"), error))?;
    if !metadata.is_file() {
        let message = format!("the key file {shown} is not a regular file");
        return Err(KmsError::new(Code::KeyFileType, message));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("the key file {shown} belongs to another user (uid {})", metadata.uid());
        return Err(KmsError::new(Code::KeyFileOwner, message));
    }
    if metadata.mode() & 0o077 != 0 {
        let message = format!(
            "others may use the key file {shown} (mode {:04o}); put it right with: chmod 600 {shown}",
            metadata.mode() & 0o7777
        );
        return Err(KmsError::new(Code::KeyFileMode, message));
    }
    Ok(())
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<File> {
    File::open(path)
        .map_err(|error| KmsError::io(format!("cannot open the key file {}", path.display()), error))
}

/// Elsewhere the folder's access control list decides; there is no mode to check.
#[cfg(not(unix))]
fn check(_path: &Path, _file: &File) -> Result<()> {
    Ok(())
}
