//! What takes microseconds, so that a server may do it on the thread that reads the network.

use super::Keystore;
use super::index::StoredPrivateKey;
use crate::algorithm::Algorithm;
use crate::backend::SOFTWARE;
use crate::id::{KeyId, KeyRef};
use crate::time::Timestamp;

impl Keystore {
    /// Whether a signature by the key takes microseconds: it needs neither the disk nor a device,
    /// and the algorithm is fast.
    /// The answer for a key that does not exist means nothing.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// // A server may do it on the thread that reads the network.
    /// assert!(keystore.signs_quickly(&key));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn signs_quickly<'a>(&self, key: impl Into<KeyRef<'a>>) -> bool {
        let key_id = key.into().key_id();
        key_id.algorithm() == Algorithm::Ed25519 && self.signs_in_memory(key_id)
    }

    /// Whether one signature by the key takes some tens of microseconds at most: as for
    /// [`Keystore::signs_quickly`], and also for ECDSA on P-256 in a build that signs so by
    /// `aws-lc-rs`. A server may make one such signature on the thread that reads the network, but
    /// not many of them.
    /// The answer for a key that does not exist means nothing.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// # const HAS_NIST: bool = cfg!(any(feature = "fast", feature = "nist"));
    /// # if !HAS_NIST || cfg!(not(feature = "p256")) { return Ok(()) }
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::EcdsaP256);
    /// let key = keystore.create_key(new)?;
    /// assert!(keystore.signs_one_quickly(&key));
    /// assert!(!keystore.signs_quickly(&key));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn signs_one_quickly<'a>(&self, key: impl Into<KeyRef<'a>>) -> bool {
        const HAS_QUICK_P256: bool = cfg!(all(feature = "p256", any(feature = "fast", feature = "nist")));
        let key_id = key.into().key_id();
        match key_id.algorithm() {
            Algorithm::Ed25519 => self.signs_in_memory(key_id),
            Algorithm::EcdsaP256 => HAS_QUICK_P256 && self.signs_in_memory(key_id),
            _ => false,
        }
    }

    /// Whether a signature by the key needs neither the disk nor a device.
    fn signs_in_memory(&self, key_id: &KeyId) -> bool {
        self.index
            .load()
            .key(key_id)
            .is_ok_and(|key| key.record.backend == SOFTWARE && key.record.rotation.max_uses.is_none())
    }

    /// Whether encryptions, decryptions and MACs with the key take microseconds: they need neither
    /// the disk nor a device. So many of them, `uses`, count as uses of the key: encryptions, and
    /// MACs of a key that makes nothing else. Other threads may use the key at the same time; then
    /// one of them may still wait for the disk, once in thousands of uses.
    ///
    /// The answer for a key that does not exist means nothing.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "orders".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new)?;
    /// assert!(keystore.computes_quickly(&key, 0));
    /// // The store counts encryptions before they are made: the first one writes to it.
    /// assert!(!keystore.computes_quickly(&key, 1));
    /// keystore.encrypt(&key, b"a secret", &Default::default())?;
    /// assert!(keystore.computes_quickly(&key, 1));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn computes_quickly<'a>(&self, key: impl Into<KeyRef<'a>>, uses: u64) -> bool {
        /// The uses that other threads may take meanwhile.
        const MAX_CONCURRENT_USES: u64 = 256;
        let key = key.into();
        if !key.key_id().algorithm().is_symmetric() {
            return false;
        }
        let index = self.index.load();
        let Ok(loaded) = index.key(key.key_id()) else { return false };
        let record = &loaded.record;
        if record.backend != SOFTWARE {
            return false;
        }
        if uses == 0 {
            return true;
        }
        let created = record.latest_version().created;
        let is_due = record.rotation.is_too_old(created, Timestamp::now).unwrap_or(true);
        let stored = match key {
            KeyRef::Key(_) => Some(&*loaded.latest_key),
            KeyRef::Version(id) => loaded.stored(id),
        };
        let has_uses =
            |stored: &StoredPrivateKey| stored.has_reserved(uses.saturating_add(MAX_CONCURRENT_USES));
        !is_due && (record.use_limit().is_none() || stored.is_some_and(has_uses))
    }
}
