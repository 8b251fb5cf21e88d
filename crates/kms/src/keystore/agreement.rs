//! Key agreement: secrets that a key and the public key of a peer share.

use super::Keystore;
use super::lifecycle::check_enabled;
use super::observe::Subject;
use crate::algorithm::KeyUsage;
use crate::approval::KeyUse;
use crate::audit_log::AuditOperation;
use crate::backend::check_usage;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::public_key::PublicKey;
use crate::secret_bytes::SecretBytes;

impl Keystore {
    /// Derives the secret that this version of a key shares with the holder of a peer's private
    /// key, by elliptic-curve Diffie-Hellman. It is the x of a point, as NIST SP 800-56A has it in
    /// section 5.7.1.2, or the 32 bytes of X25519 (RFC 7748).
    ///
    /// A shared secret is no key: derive one from it, for example by HKDF or by the Concat KDF of
    /// JWE. The audit log has the digest of the peer's public key.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::VersionNotUsable`];
    /// [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`];
    /// [`Code::KeyUsageMismatch`] if the key does not agree on secrets; [`Code::InvalidPublicKey`]
    /// if the peer's key is of another algorithm; errors of the backend.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let [ours, theirs] = [Keystore::in_memory()?, Keystore::in_memory()?];
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::EcdhP256);
    /// let our_key = ours.create_key(new.clone())?;
    /// let their_key = theirs.create_key(new)?;
    ///
    /// let secret = ours.derive_shared_secret(&our_key, &theirs.public_key(&their_key)?)?;
    /// assert!(secret == theirs.derive_shared_secret(&their_key, &ours.public_key(&our_key)?)?);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    pub fn derive_shared_secret(&self, key: &KeyVersionId, peer: &PublicKey) -> Result<SecretBytes> {
        let operation = AuditOperation::DeriveSharedSecret;
        self.observed(Subject::message(operation, key, peer.as_bytes()), || {
            // Before the keys are read: they are then at least as current as the lease says.
            self.check_lease()?;
            let index = self.index.load();
            let loaded = index.key(key.key_id())?;
            let algorithm = key.key_id().algorithm();
            check_usage(algorithm, KeyUsage::KeyAgreement)?;
            if peer.algorithm() != algorithm {
                let message = format!(
                    "the peer's public key is one of {}, and one of {algorithm} is wanted",
                    peer.algorithm()
                );
                return Err(KmsError::new(Code::InvalidPublicKey, message));
            }
            check_enabled(&loaded.record)?;
            self.check_approval(&loaded.record, key, KeyUse::Opaque)?;
            loaded.private_key(key, &self.cipher, &self.backends)?.derive_shared_secret(peer.encoded())
        })
    }
}
