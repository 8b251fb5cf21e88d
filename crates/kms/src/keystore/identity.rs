//! A keystore as an identity that opens sealed data.

use super::handle::Keystore;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::seal::{Capsule, KEYSTORE, KeyEncryptionKey, KeyProvider};

/// Opens data that was sealed to any key of a keystore: [`Keystore::decapsulate`]. It cannot seal,
/// because it names no key.
#[derive(Clone, Copy, Debug)]
pub struct KeystoreIdentity<'a>(pub &'a Keystore);

impl KeyProvider for KeystoreIdentity<'_> {
    fn method(&self) -> &str {
        KEYSTORE
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let message = "a keystore as a whole is nothing to seal to; name the public key of one of its keys";
        Err(KmsError::new(Code::KeyUsageMismatch, message))
    }

    fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey> {
        let id: KeyVersionId = capsule.key_name().parse()?;
        self.0.decapsulate(&id, capsule.bytes())
    }

    fn fits(&self, capsule: &Capsule) -> bool {
        capsule.method() == KEYSTORE
    }
}
