//! Reads files with secrets. Only their owner may be able to read them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::{Code, KmsError, Result};

/// Reads a file with a secret, up to `most` bytes, if the file's mode, owner and type are safe.
///
/// # Errors
/// [`Code::NotFound`], [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`];
/// [`Code::MalformedKeyFile`] if it is not UTF-8; errors of reading.
pub(crate) fn read(path: &Path, most: usize) -> Result<Zeroizing<String>> {
    let file = open(path)?;
    check(path, &file)?;
    // The capacity is never exceeded: growing the buffer would leave a copy of the secret behind.
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
    // Without blocking: a named pipe at this path must give an error, not wait for a writer.
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
