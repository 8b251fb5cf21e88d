//! Key encapsulation: public keys to which callers encrypt, and the private keys that decapsulate.

use super::Keystore;
use super::lifecycle::{check_enabled, check_state};
use super::observe::Subject;
use crate::algorithm::KeyUsage;
use crate::approval::KeyUse;
use crate::audit_log::AuditOperation;
use crate::backend::{SharedKey, check_usage};
#[cfg(feature = "soft-seal")]
use crate::encryption::{KEYSTORE_METHOD, KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::policy::VersionState;
use crate::public_key::NamedPublicKey;

impl Keystore {
    /// The public key of a version to which something new can be encrypted: the key is enabled, and
    /// the version may be used. Whether its algorithm encapsulates is found out by
    /// [`PublicKey::encapsulate`](crate::PublicKey::encapsulate).
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::VersionNotUsable`];
    /// [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`], also when
    /// only this version's private key was destroyed; [`Code::KeyUsageMismatch`] if the algorithm
    /// has no public keys.
    pub fn recipient(&self, key: &KeyVersionId) -> Result<NamedPublicKey> {
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        check_state(&loaded.record)?;
        let version = loaded.usable(key)?;
        if version.state == VersionState::Destroyed {
            let message = format!("the private key of {key} was destroyed");
            return Err(KmsError::new(Code::KeyDestroyed, message));
        }
        Ok(NamedPublicKey { key: key.clone(), public_key: version.public_key_of(key.key_id())?.clone() })
    }

    /// Decapsulates a ciphertext that [`PublicKey::encapsulate`](crate::PublicKey::encapsulate)
    /// made for this version of a key. Returns the shared key of 32 bytes.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::VersionNotUsable`];
    /// [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`];
    /// [`Code::KeyUsageMismatch`] if the key does not encapsulate; [`Code::InvalidCiphertext`];
    /// errors of the backend.
    ///
    /// ```
    /// # #[cfg(feature = "mlkem")]
    /// # (|| {
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::XWing);
    /// let key = keystore.create_key(new)?;
    /// let sent = keystore.public_key(&key)?.encapsulate()?;
    /// let received = keystore.decapsulate(&key, &sent.ciphertext)?;
    /// assert_eq!(*received, *sent.shared_key);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    pub fn decapsulate(&self, key: &KeyVersionId, ciphertext: &[u8]) -> Result<SharedKey> {
        self.observed(Subject::message(AuditOperation::Decapsulate, key, ciphertext), || {
            // Before the keys are read: they are then at least as current as the lease says.
            self.check_lease()?;
            let index = self.index.load();
            let loaded = index.key(key.key_id())?;
            check_usage(key.key_id().algorithm(), KeyUsage::KeyEncapsulation)?;
            check_enabled(&loaded.record)?;
            self.check_approval(&loaded.record, key, KeyUse::Ciphertext(ciphertext))?;
            loaded.private_key(key, &self.cipher, &self.backends)?.decapsulate(ciphertext)
        })
    }
}

/// All keys of a keystore as one key provider: it decrypts what was encrypted to any of them
/// ([`Keystore::decapsulate`]). It cannot encrypt, because it names no key.
#[cfg(feature = "soft-seal")]
#[derive(Clone, Copy, Debug)]
pub struct KeystoreProvider<'a>(pub &'a Keystore);

#[cfg(feature = "soft-seal")]
impl KeyProvider for KeystoreProvider<'_> {
    fn method(&self) -> &str {
        KEYSTORE_METHOD
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let message = "nothing can be encrypted to a whole keystore: name the public key of one of its keys";
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
