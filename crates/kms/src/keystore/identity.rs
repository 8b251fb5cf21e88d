//! A keystore as an identity that opens sealed data.

use super::handle::Keystore;
use crate::encryption::{KEYSTORE_METHOD, KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;

/// Opens data that was sealed to any key of a keystore: [`Keystore::decapsulate`]. It cannot seal,
/// because it names no key.
#[derive(Clone, Copy, Debug)]
pub struct KeystoreProvider<'a>(pub &'a Keystore);

impl KeyProvider for KeystoreProvider<'_> {
    fn method(&self) -> &str {
        KEYSTORE_METHOD
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let message = "a keystore as a whole is nothing to seal to; name the public key of one of its keys";
        Err(KmsError::new(Code::KeyUsageMismatch, message))
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        let id: KeyVersionId = params.key_name().parse()?;
        self.0.decapsulate(&id, params.bytes())
    }

    fn matches(&self, params: &WrappingParams) -> bool {
        params.method() == KEYSTORE_METHOD
    }
}
