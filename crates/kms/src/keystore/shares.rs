//! Keys that several machines have together: who holds the shares, how they get new ones, and how
//! a lost one is repaired.

use super::Keystore;
use super::index::Index;
use super::lifecycle::check_enabled;
use super::observe::Subject;
use crate::attestation::Attestation;
use crate::audit_log::AuditOperation;
use crate::backend::{Backend, GROUP, KeyMaterial, no_shares};
use crate::error::{Code, Result};
use crate::id::{KeyId, KeyVersionId};

impl Keystore {
    /// Gives the machines that have a key together new shares of each of its versions, as many of
    /// them and for those machines that the settings name now. The public keys stay, and the old
    /// shares are worth nothing afterwards. Each version has moved on all machines or on none.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// // A key in software has no shares.
    /// let refused = keystore.refresh_shares(key.key_id());
    /// assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`]; [`Code::InvalidArgument`] if the key has no shares;
    /// [`Code::DeviceUnavailable`] if a machine does not answer; [`Code::DeviceFailed`] if one
    /// refuses.
    pub fn refresh_shares(&self, key_id: &KeyId) -> Result<()> {
        self.with_share_backend(AuditOperation::RefreshShares, key_id, |backend, material| {
            backend.refresh_shares(key_id.algorithm(), material)
        })
    }

    /// Lets the other machines repair this machine's lost shares of a key, one for each version
    /// whose share it does not have.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let refused = keystore.repair_shares(key.key_id());
    /// assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Keystore::refresh_shares`]; [`Code::Conflict`] if no share is lost.
    pub fn repair_shares(&self, key_id: &KeyId) -> Result<()> {
        let mut repaired = 0;
        let mut whole = None;
        self.with_share_backend(AuditOperation::RepairShares, key_id, |backend, material| {
            match backend.repair_share(key_id.algorithm(), material) {
                Err(error) if error.code == Code::Conflict => whole = Some(error),
                made => {
                    made?;
                    repaired += 1;
                }
            }
            Ok(())
        })?;
        whole.filter(|_| repaired == 0).map_or(Ok(()), Err)
    }

    /// Records what this machine does with its share of a version for another one. The entry has
    /// the digest of `message`, which says what that is.
    ///
    /// ```
    /// use bulla_kms::audit_log::AuditOperation;
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// keystore.record_shares(AuditOperation::RefreshShares, &key, b"a message", || Ok(()))?;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Those of `run`; errors of recording.
    pub fn record_shares(
        &self,
        operation: AuditOperation,
        version: &KeyVersionId,
        message: &[u8],
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.observed(Subject::message(operation, version, message), run)
    }

    /// Runs a step for each version whose private key the backend has.
    fn with_share_backend(
        &self,
        operation: AuditOperation,
        key_id: &KeyId,
        mut run: impl FnMut(&dyn Backend, &KeyMaterial) -> Result<()>,
    ) -> Result<()> {
        self.observed(Subject::key(operation, key_id), || {
            self.check_lease()?;
            let key = self.index.load().key(key_id)?.clone();
            check_enabled(&key.record)?;
            if key.record.backend != GROUP {
                return Err(no_shares(&key.record.backend));
            }
            let backend = self.backends.find(&key.record.backend, key_id.algorithm())?;
            for id in key.record.held() {
                run(&**backend, &key.decrypt_material(&id, &self.cipher)?)?;
            }
            Ok(())
        })
    }

    /// Adds who holds the shares, as this machine knows it.
    pub(super) fn add_shares(&self, index: &Index, attestation: &mut Attestation) {
        if attestation.backend != GROUP {
            return;
        }
        let Ok(key) = index.key(&attestation.key) else { return };
        for version in &mut attestation.versions {
            let private_key = key.any_private_key(&version.id, &self.cipher, &self.backends);
            version.shares = private_key.ok().and_then(|key| key.shares());
        }
    }
}
