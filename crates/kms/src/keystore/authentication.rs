//! Message authentication codes.

use super::Keystore;
use super::batch::KeyMessage;
use super::lifecycle::check_enabled;
use super::observe::{AuditedResult, Subject};
use super::signing::{SignedContent, check_purpose};
use crate::algorithm::KeyUsage;
use crate::approval::KeyUse;
use crate::audit_log::AuditOperation;
use crate::backend::HmacHash;
use crate::error::Result;
use crate::id::{KeyRef, KeyVersionId};
use crate::key_signature::{Mac, Verdict};

/// A MAC to verify: see [`Keystore::verify_mac_batch`].
#[derive(Clone, Copy, Debug)]
pub struct VerifyMacItem<'a> {
    /// The key version that supposedly made it.
    pub key: &'a KeyVersionId,
    /// The message.
    pub message: &'a [u8],
    /// The MAC.
    pub mac: &'a [u8],
}

impl Keystore {
    /// Makes the MAC of a message with a key's latest version, or with the older version that is
    /// named, if the key was made for that
    /// ([`NewKey::minimum_signing_version`](crate::NewKey::minimum_signing_version)). The key's
    /// rotation policy applies as for signatures.
    ///
    /// The audit log has no digest of the message: a reader of the log could find a short message
    /// by guessing.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "cookies".parse()?, Algorithm::HmacSha256);
    /// let key = keystore.create_key(new)?;
    /// let mac = keystore.mac(key.key_id(), b"user 7")?;
    /// assert!(keystore.verify_mac(&mac.key, b"user 7", &mac.bytes)?.is_valid());
    /// assert!(!keystore.verify_mac(&mac.key, b"user 8", &mac.bytes)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Keystore::sign`], with [`Code::KeyUsageMismatch`](crate::Code::KeyUsageMismatch)
    /// if the key makes no MACs.
    pub fn mac<'a>(&self, key: impl Into<KeyRef<'a>>, message: &[u8]) -> Result<Mac> {
        let key = key.into();
        self.observed(Subject::key(AuditOperation::Mac, key), || self.make_mac(key, message))
    }

    /// Whether `mac` is the whole MAC of `message` by exactly this version of a key. A shorter one
    /// is invalid.
    ///
    /// Unlike a signature, a MAC cannot be verified without the secret: a disabled key does not
    /// verify.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`](crate::Code::KeyNotFound),
    /// [`Code::UnknownVersion`](crate::Code::UnknownVersion),
    /// [`Code::VersionNotUsable`](crate::Code::VersionNotUsable),
    /// [`Code::KeyDisabled`](crate::Code::KeyDisabled),
    /// [`Code::KeyPendingDestruction`](crate::Code::KeyPendingDestruction),
    /// [`Code::KeyDestroyed`](crate::Code::KeyDestroyed),
    /// [`Code::KeyUsageMismatch`](crate::Code::KeyUsageMismatch); errors of the backend.
    pub fn verify_mac(&self, key: &KeyVersionId, message: &[u8], mac: &[u8]) -> Result<Verdict> {
        self.observed(Subject::key(AuditOperation::VerifyMac, key), || self.check_mac(key, message, mac))
    }

    /// The result of [`Keystore::mac`] for each item, in their order.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyMessage, Keystore, NewKey, VerifyMacItem};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "cookies".parse()?, Algorithm::HmacSha256);
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// let users = [b"user 7", b"user 8"].map(|message| KeyMessage { key: (&key).into(), message });
    /// let macs = keystore.mac_batch(&users).into_iter().collect::<Result<Vec<_>, _>>()?;
    /// let items = [VerifyMacItem { key: &macs[0].key, message: b"user 7", mac: &macs[0].bytes }];
    /// assert!(keystore.verify_mac_batch(&items).remove(0)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn mac_batch(&self, items: &[KeyMessage<'_>]) -> Vec<Result<Mac>> {
        self.observed_each(
            AuditOperation::Mac,
            |place| Subject::key(AuditOperation::Mac, items[place].key),
            || items.iter().map(|item| self.make_mac(item.key, item.message)).collect(),
        )
    }

    /// The result of [`Keystore::verify_mac`] for each item, in their order.
    pub fn verify_mac_batch(&self, items: &[VerifyMacItem<'_>]) -> Vec<Result<Verdict>> {
        self.observed_each(
            AuditOperation::VerifyMac,
            |place| Subject::key(AuditOperation::VerifyMac, items[place].key),
            || items.iter().map(|item| self.check_mac(item.key, item.message, item.mac)).collect(),
        )
    }

    /// The HMAC of a message with a hash function that the caller chooses. A key of HMAC makes it
    /// with its own secret. Every other key has a key for that, which is derived from its secret
    /// and which nothing else uses.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, HmacHash, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "orders".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let mac = keystore.hmac(key.key_id(), HmacHash::Sha512, b"order 7")?;
    /// assert!(keystore.verify_hmac(&key, HmacHash::Sha512, b"order 7", &mac.bytes)?.is_valid());
    /// assert!(!keystore.verify_hmac(&key, HmacHash::Sha256, b"order 7", &mac.bytes)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Keystore::sign`]; [`Code::NotExportable`](crate::Code::NotExportable) if the
    /// secret is in a device.
    pub fn hmac<'a>(&self, key: impl Into<KeyRef<'a>>, hash: HmacHash, message: &[u8]) -> Result<Mac> {
        let key = key.into();
        self.observed(Subject::key(AuditOperation::Mac, key), || {
            self.check_lease()?;
            check_purpose(key)?;
            // A MAC is no ciphertext and no signature: it does not count as a use of such a key.
            let (id, loaded) = match key.key_id().algorithm().usage() {
                KeyUsage::Authentication => {
                    self.version_for_one_use(key, SignedContent::Callers, KeyUse::Opaque)?
                }
                _ => self.version_that_signs(key, SignedContent::Callers, KeyUse::Opaque)?,
            };
            let bytes = hash.hmac(loaded.hmac_key(&id, &self.cipher, &self.backends)?, message);
            Ok(Mac { key: id, bytes })
        })
    }

    /// Whether `mac` is the whole MAC that [`Keystore::hmac`] makes of `message` with this version
    /// of a key. It compares in constant time.
    ///
    /// # Errors
    /// Those of [`Keystore::verify_mac`] and of [`Keystore::hmac`].
    pub fn verify_hmac(
        &self,
        key: &KeyVersionId,
        hash: HmacHash,
        message: &[u8],
        mac: &[u8],
    ) -> Result<Verdict> {
        self.observed(Subject::key(AuditOperation::VerifyMac, key), || {
            self.check_lease()?;
            check_purpose(key.into())?;
            let loaded = self.index.load().key(key.key_id())?.clone();
            loaded.version(key)?;
            check_enabled(&loaded.record)?;
            Ok(hash.verify(loaded.hmac_key(key, &self.cipher, &self.backends)?, message, mac))
        })
    }

    fn make_mac(&self, key: KeyRef<'_>, message: &[u8]) -> Result<Mac> {
        self.key_for(key, KeyUsage::Authentication)?;
        let (id, loaded) = self.version_for_one_use(key, SignedContent::Callers, KeyUse::Opaque)?;
        let bytes = loaded.private_key(&id, &self.cipher, &self.backends)?.mac(message)?;
        Ok(Mac { key: id, bytes })
    }

    fn check_mac(&self, key: &KeyVersionId, message: &[u8], mac: &[u8]) -> Result<Verdict> {
        let loaded = self.key_for(key.into(), KeyUsage::Authentication)?;
        loaded.version(key)?;
        check_enabled(&loaded.record)?;
        loaded.private_key(key, &self.cipher, &self.backends)?.verify_mac(message, mac)
    }
}

impl AuditedResult for Mac {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.key).into())
    }
}
