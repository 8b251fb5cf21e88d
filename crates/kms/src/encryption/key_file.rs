//! Key files: a random secret in a file, for keystores that must open without a person. Only their
//! owner may be able to read them, as is so for all files with secrets.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bulla_blake3 as blake3;
use zeroize::{Zeroize as _, Zeroizing};

use super::provider::{KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::{encoding, files, random};

const HEADER: &str = "bulla key file v1\n";
const SECRET: usize = 32;

/// A file with 32 random bytes that opens a keystore:
///
/// ```text
/// bulla key file v1
/// <base64 of the bytes>
/// ```
///
/// Anyone who can read it can open the keystore. It is created with mode 0600, and refused if its
/// mode is wider, if it belongs to another user, or if it is a symbolic link.
#[derive(Debug)]
pub struct KeyFile;

impl KeyFile {
    /// Creates a key file with a new secret. When this returns, the file is complete and on the
    /// disk. A missing folder is created with mode 0700.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`: a key file is never replaced.
    pub fn create(path: &Path) -> Result<()> {
        let mut secret = Zeroizing::new([0; SECRET]);
        random::fill(&mut *secret)?;
        let encoded = Zeroizing::new(encoding::base64(&*secret));
        files::create(path, Zeroizing::new([HEADER, &encoded, "\n"].concat()).as_bytes())
    }

    /// Reads the secret, if the file's mode, owner and type are safe.
    fn read(path: &Path) -> Result<Zeroizing<[u8; SECRET]>> {
        let text = read_secret_file(path, 128)?;
        text.strip_prefix(HEADER)
            .and_then(|rest| rest.strip_suffix('\n'))
            .and_then(encoding::from_base64)
            .map(Zeroizing::new)
            .and_then(|bytes| bytes.as_slice().try_into().ok().map(Zeroizing::new))
            .ok_or_else(|| malformed_key_file(path))
    }
}

/// The context of BLAKE3's key derivation.
const CONTEXT: &str = "bulla keystore v1 key encryption key from key file";

/// A key file ([`KeyFile`]) as a provider of key-encryption keys. The file is read each time a key
/// is needed, and refused if its mode, owner or type is not safe. The wrapping parameters have 12
/// zero bytes and a salt of 32 random bytes.
#[derive(Clone, Debug)]
pub struct KeyFileProvider {
    path: PathBuf,
}

impl KeyFileProvider {
    pub(crate) const METHOD: &str = "key-file";

    /// The key file at `path`; it is not read yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn derive(&self, salt: &[u8; 32]) -> Result<KeyEncryptionKey> {
        let secret = KeyFile::read(&self.path)?;
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        let mut hash = hasher.update(&*secret).update(salt).finalize();
        let key = Zeroizing::new(*hash.as_bytes());
        hash.zeroize();
        hasher.zeroize();
        Ok(key)
    }
}

impl KeyProvider for KeyFileProvider {
    fn method(&self) -> &str {
        Self::METHOD
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut salt = [0; 32];
        random::fill(&mut salt)?;
        Ok((self.derive(&salt)?, [&[0; 12][..], &salt].concat()))
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        let malformed = || KmsError::corrupt("what belongs to a key file is damaged: its salt is missing");
        let (zeros, salt) = params.bytes().split_first_chunk::<12>().ok_or_else(malformed)?;
        if *zeros != [0; 12] {
            return Err(malformed());
        }
        self.derive(salt.try_into().map_err(|_| malformed())?)
    }

    fn wrong_key(&self) -> KmsError {
        let message = format!("the key file {} does not open it", self.path.display());
        KmsError::new(Code::WrongKeyFile, message)
    }
}

/// Reads a file with a secret, up to `most` bytes, if the file's mode, owner and type are safe.
///
/// # Errors
/// [`Code::NotFound`], [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`];
/// [`Code::MalformedKeyFile`] if it is not UTF-8; errors of reading.
pub(super) fn read_secret_file(path: &Path, most: usize) -> Result<Zeroizing<String>> {
    let file = open_secret_file(path)?;
    check_secret_file(path, &file)?;
    // The capacity is never exceeded: growing the buffer would leave a copy of the secret behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * most));
    file.take(most as u64).read_to_string(&mut text).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => malformed_key_file(path),
        _ => KmsError::io(format!("cannot read the key file {}", path.display()), error),
    })?;
    Ok(text)
}

fn malformed_key_file(path: &Path) -> KmsError {
    let message = format!("{} is not a key file: its content is malformed", path.display());
    KmsError::new(Code::MalformedKeyFile, message)
}

#[cfg(unix)]
fn open_secret_file(path: &Path) -> Result<File> {
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
fn check_secret_file(path: &Path, file: &File) -> Result<()> {
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
fn open_secret_file(path: &Path) -> Result<File> {
    File::open(path)
        .map_err(|error| KmsError::io(format!("cannot open the key file {}", path.display()), error))
}

/// Elsewhere the folder's access control list decides; there is no mode to check.
#[cfg(not(unix))]
fn check_secret_file(_path: &Path, _file: &File) -> Result<()> {
    Ok(())
}
