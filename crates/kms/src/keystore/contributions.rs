//! Parts of signatures that are put together elsewhere: a node that has one share of a key signs
//! its part only if its own view of the keystore permits it, and records that.

use super::Keystore;
use super::batch::KeyMessage;
use super::lifecycle::check_enabled;
use super::observe::Subject;
use super::signing::{check_authority, is_reserved};
use crate::algorithm::KeyUsage;
use crate::audit_log::AuditOperation;
use crate::backend::check_usage;
use crate::error::Result;
use crate::id::{KeyRef, KeyVersionId};
use crate::public_key::PublicKey;
use crate::record::VersionRecord;

impl Keystore {
    /// Finds the version that a backend holds by its public key.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let public_key = keystore.public_key(&key)?;
    /// assert_eq!(keystore.find_version("software", &public_key), Some(key));
    /// assert_eq!(keystore.find_version("device", &public_key), None);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn find_version(&self, backend: &str, public_key: &PublicKey) -> Option<KeyVersionId> {
        let index = self.index.load();
        index.keys().filter(|key| key.record.backend == backend).find_map(|key| {
            let has_it =
                |number: &usize| key.record.versions[*number].public_key.as_ref() == Some(public_key);
            let place = (0..key.record.versions.len()).find(has_it)?;
            let version = u32::try_from(place + 1).ok().and_then(std::num::NonZeroU32::new)?;
            Some(key.record.key.version(version))
        })
    }

    /// Whether the keystore still holds the private key of a version, or what its backend finds it
    /// by. A version that does not exist has none.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyChange, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let old = keystore.create_key(new)?;
    /// keystore.rotate(old.key_id())?;
    /// assert!(keystore.holds_private_key(&old));
    /// let change = KeyChange::DestroyVersion(std::num::NonZeroU32::MIN);
    /// keystore.update(old.key_id(), None, &change)?;
    /// assert!(!keystore.holds_private_key(&old));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn holds_private_key(&self, id: &KeyVersionId) -> bool {
        let index = self.index.load();
        index.key(id.key_id()).is_ok_and(|key| key.version(id).is_ok_and(VersionRecord::is_held))
    }

    /// Lets the caller contribute to signatures that are put together elsewhere: `contribute` makes
    /// the part for the item with this number. It is called only if the key is enabled, the version
    /// usable, and the message one that the key may sign: an authority contributes to permitted
    /// certificates alone. The audit log has an entry for each item, as for a signature, and a part
    /// that cannot be recorded must not leave: its result is an error.
    ///
    /// No rotation policy counts these signatures, and no approval is asked for: the node that puts
    /// them together does both.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, KeyMessage, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let item = KeyMessage { key: (&key).into(), message: b"a message" };
    /// let mut parts = Vec::new();
    /// let results = keystore.contribute_batch(&[item], |place| {
    ///     parts.push(place);
    ///     Ok(())
    /// });
    /// assert!(results[0].is_ok());
    /// assert_eq!(parts, [0]);
    ///
    /// keystore.disable(key.key_id())?;
    /// let results = keystore.contribute_batch(&[item], |_| unreachable!());
    /// assert_eq!(results[0].as_ref().unwrap_err().code, Code::KeyDisabled);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn contribute_batch(
        &self,
        items: &[KeyMessage<'_>],
        mut contribute: impl FnMut(usize) -> Result<()>,
    ) -> Vec<Result<()>> {
        self.observed_each(
            AuditOperation::Sign,
            |place| Subject::message(AuditOperation::Sign, items[place].key, items[place].message),
            || {
                let one = |(place, item): (usize, &KeyMessage<'_>)| {
                    self.check_contributes(item)?;
                    contribute(place)
                };
                items.iter().enumerate().map(one).collect()
            },
        )
    }

    fn check_contributes(&self, item: &KeyMessage<'_>) -> Result<()> {
        let key = item.key;
        check_usage(key.key_id().algorithm(), KeyUsage::Signature)?;
        self.check_lease()?;
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        check_enabled(&loaded.record)?;
        let id = match key {
            KeyRef::Version(id) => {
                loaded.usable(id)?;
                id.clone()
            }
            KeyRef::Key(id) => id.version(loaded.record.latest_number()),
        };
        // The statements of a keystore are no certificates, so an authority signs these too.
        if is_reserved(item.message) { Ok(()) } else { check_authority(loaded, &id, item.message) }
    }
}
