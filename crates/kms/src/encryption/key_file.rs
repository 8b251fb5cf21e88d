//! Key files: a random secret in a file, for keystores that must open without a person.

use std::path::{Path, PathBuf};

use bulla_blake3 as blake3;
use zeroize::{Zeroize as _, Zeroizing};

use super::provider::{KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::{encoding, files, random, secret_file};

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
        let text = secret_file::read(path, 128)?;
        text.strip_prefix(HEADER)
            .and_then(|rest| rest.strip_suffix('\n'))
            .and_then(encoding::from_base64)
            .map(Zeroizing::new)
            .and_then(|bytes| bytes.as_slice().try_into().ok().map(Zeroizing::new))
            .ok_or_else(|| secret_file::malformed(path))
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
