//! Decrypting data that was encrypted to a key of a service: the ciphertext of the data's key travels,
//! and the data stays here.

use super::connection::Remote;
use bulla_kms::encryption::{KeyEncryptionKey, KeyProvider, WrappingParams};
use bulla_kms::{Code, KmsError};
use zeroize::Zeroizing;

/// The method of data that is encrypted to a keystore's key.
const KEYSTORE: &str = "keystore";

/// The keys of a service with which the user may decapsulate.
#[derive(Debug)]
pub(super) struct Decrypter<'a>(pub(super) &'a Remote);

impl KeyProvider for Decrypter<'_> {
    fn method(&self) -> &str {
        KEYSTORE
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> bulla_kms::Result<(KeyEncryptionKey, Vec<u8>)> {
        let message = "nothing is encrypted to a service as a whole; name the public key of one of its keys";
        Err(KmsError::new(Code::KeyUsageMismatch, message))
    }

    fn recover_kek(&self, params: &WrappingParams) -> bulla_kms::Result<KeyEncryptionKey> {
        let decapsulate =
            async |client: &bulla_client::Client| client.decapsulate(params.key_name(), params.bytes()).await;
        let shared = self.0.wait_coded(decapsulate)?;
        let key: [u8; 32] = shared.as_slice().try_into().map_err(|_| self.wrong_key())?;
        Ok(Zeroizing::new(key))
    }

    fn matches(&self, params: &WrappingParams) -> bool {
        params.method() == KEYSTORE
    }
}
