//! Key-encryption keys from a key file.

use std::path::{Path, PathBuf};

use bulla_blake3 as blake3;
use zeroize::{Zeroize as _, Zeroizing};

use super::provider::{Capsule, KeyEncryptionKey, KeyProvider};
use super::random;
use crate::error::{Code, KmsError, Result};
use crate::key_file::KeyFile;

/// The context of BLAKE3's key derivation.
const CONTEXT: &str = "bulla keystore v1 key encryption key from key file";

/// A key file ([`KeyFile`]) as a provider of key-encryption keys. The file is read when a key is needed, and refused then
/// when it is not well kept. The capsule has 12 zero bytes and a salt of 32 random bytes.
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

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut salt = [0; 32];
        random(&mut salt)?;
        Ok((self.derive(&salt)?, [&[0; 12][..], &salt].concat()))
    }

    fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey> {
        let malformed = || KmsError::damaged("what belongs to a key file is damaged: its salt is missing");
        let (zeros, salt) = capsule.bytes().split_first_chunk::<12>().ok_or_else(malformed)?;
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
