//! The shared code of the format's parts.

use bulla_blake3 as blake3;
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::{Code, KmsError};
use crate::seal::provider::KeyEncryptionKey;

pub(super) const MAGIC: &[u8; 4] = b"BSEA";
pub(super) const FORMAT: u8 = 1;

/// Derives a key for one purpose from the data key.
pub(super) fn derive(context: &str, data_key: &KeyEncryptionKey, salt: &[u8; 32]) -> KeyEncryptionKey {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    let mut hash = hasher.update(&**data_key).update(salt).finalize();
    let key = Zeroizing::new(*hash.as_bytes());
    hash.zeroize();
    hasher.zeroize();
    key
}

pub(super) fn damaged(why: &str) -> KmsError {
    let message = format!("the sealed data was damaged or edited, or is for another purpose: {why}");
    KmsError::new(Code::EncryptedFileCorrupt, message)
}

pub(super) fn cannot_read(error: std::io::Error) -> KmsError {
    KmsError::io("cannot read the sealed data", error)
}

pub(super) fn cannot_write(error: std::io::Error) -> KmsError {
    KmsError::io("cannot write the sealed data", error)
}
