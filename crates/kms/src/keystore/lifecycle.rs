//! What a key's state permits, and how the state changes.

use std::num::NonZeroU32;

use zeroize::Zeroizing;

use super::Keystore;
use super::approvals::check_approvable;
use super::changes::Edit;
use super::index::LoadedKey;
use crate::algorithm::{Algorithm, KeyUsage};
use crate::backend::SOFTWARE;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyId;
use crate::policy::{KeyChange, KeyState, VersionState};
use crate::record::{KeyRecord, VersionRecord};
use crate::ssh_authority::SshAuthority;
use crate::time::Timestamp;
use crate::x509::X509Authority;

/// An error unless a key's private keys may be used and new ones made.
pub(super) fn check_enabled(record: &KeyRecord) -> Result<()> {
    if record.is_public_only() {
        let message = format!("the key {} was imported as a public key: it only verifies", record.key);
        return Err(KmsError::new(Code::NoPrivateKey, message));
    }
    check_state(record)
}

/// An error unless a key may get a new version.
pub(super) fn check_state(record: &KeyRecord) -> Result<()> {
    let key = &record.key;
    let (code, message) = match record.state {
        KeyState::Enabled => return Ok(()),
        KeyState::Disabled => (Code::KeyDisabled, format!("the key {key} is disabled; enable it first")),
        KeyState::PendingDestruction { after } => (
            Code::KeyPendingDestruction,
            format!(
                "the key {key} is scheduled for destruction after {after}; cancel its destruction and enable it first"
            ),
        ),
        KeyState::Destroyed => (Code::KeyDestroyed, format!("the key {key} was destroyed")),
    };
    Err(KmsError::new(code, message))
}

/// An error if a key signs digests that callers hash themselves: one could be the digest of a
/// statement, so no statement of such a key means anything.
pub(super) fn check_statements(record: &KeyRecord) -> Result<()> {
    if !record.signs_digests {
        return Ok(());
    }
    let message = format!(
        "the key {} signs digests, and therefore no files, folders, attestations or other statements: use another key for these",
        record.key
    );
    Err(KmsError::new(Code::KeyUsageMismatch, message))
}

impl VersionRecord {
    /// Removes the private key. A revoked version stays revoked.
    fn destroy(&mut self) {
        if self.state == VersionState::Usable {
            self.state = VersionState::Destroyed;
        }
    }
}

/// Sets the oldest version that is used for anything.
fn set_minimum_version(record: &mut KeyRecord, minimum: NonZeroU32) -> Result<()> {
    let (key, latest) = (&record.key, record.latest_number());
    if minimum > latest {
        let message =
            format!("the minimum version cannot be {minimum}: the latest version of {key} is {latest}");
        return refuse(Code::UnknownVersion, message);
    }
    record.minimum_version = minimum.get();
    Ok(())
}

/// Sets which certificates of OpenSSH the key signs.
fn set_ssh_authority(record: &mut KeyRecord, policy: Option<&SshAuthority>) -> Result<()> {
    if let Some(policy) = policy {
        policy.check()?;
        let algorithm = record.key.algorithm();
        if !matches!(algorithm, Algorithm::Ed25519 | Algorithm::EcdsaP256) || record.signs_digests {
            let message = "an authority of OpenSSH is a key of Ed25519 or P-256 that signs no digests";
            return refuse(Code::KeyUsageMismatch, message.to_owned());
        }
        check_is_no_authority(record.x509_authority.is_some())?;
    }
    record.ssh_authority = policy.cloned().map(Box::new);
    Ok(())
}

/// Sets which X.509 certificates the key signs.
fn set_x509_authority(record: &mut KeyRecord, policy: Option<&X509Authority>) -> Result<()> {
    if let Some(policy) = policy {
        policy.check()?;
        let algorithm = record.key.algorithm();
        let is_known = algorithm == Algorithm::Ed25519 || algorithm.is_ecdsa() || algorithm.is_rsa();
        if !is_known || record.signs_digests {
            let message = "an authority of X.509 is a key of Ed25519, ECDSA or RSA that signs no digests";
            return refuse(Code::KeyUsageMismatch, message.to_owned());
        }
        check_is_no_authority(record.ssh_authority.is_some())?;
    }
    record.x509_authority = policy.cloned().map(Box::new);
    Ok(())
}

/// An error for a key that is an authority of the other kind already.
fn check_is_no_authority(is_other: bool) -> Result<()> {
    if !is_other {
        return Ok(());
    }
    let message = "a key is an authority of OpenSSH or of X.509, and not of both: use another key";
    refuse(Code::KeyUsageMismatch, message.to_owned())
}

fn refuse<T>(code: Code, message: String) -> Result<T> {
    Err(KmsError::new(code, message))
}

impl KeyChange {
    /// The record after the change. The caller deletes the ids that it no longer holds
    /// ([`KeyRecord::held`]).
    pub(super) fn apply(&self, record: &mut KeyRecord, now: Timestamp) -> Result<()> {
        let key = record.key.clone();
        if record.state == KeyState::Destroyed && !matches!(self, Self::Label(_)) {
            return refuse(Code::KeyDestroyed, format!("the key {key} was destroyed"));
        }
        match (self, record.state) {
            (Self::Label(label), _) => record.label.clone_from(label),
            (Self::MinimumVersion(minimum), _) => set_minimum_version(record, *minimum)?,
            (Self::MinimumSigningVersion(minimum), _) => set_minimum_signing_version(record, *minimum)?,
            (Self::Rotation(policy), _) => record.rotation = *policy,
            (Self::DeletionAllowed(allowed), _) => record.deletion_allowed = *allowed,
            (Self::AllowBackup, _) => record.backup_allowed = true,
            (Self::Certificates { version, chain }, _) => set_certificates(record, *version, chain)?,
            (Self::SshAuthority(policy), _) => set_ssh_authority(record, policy.as_ref())?,
            (Self::X509Authority(policy), _) => set_x509_authority(record, policy.as_ref())?,
            (Self::Approval(rule), _) => {
                check_approvable(&key, rule)?;
                record.approval = Some(rule.clone());
            }
            (Self::Revoke(number), _) => older(record, *number)?.state = VersionState::Revoked,
            (Self::DestroyVersion(number), _) => older(record, *number)?.destroy(),
            (Self::Disable, KeyState::Enabled | KeyState::Disabled) => record.state = KeyState::Disabled,
            (Self::Enable, KeyState::Enabled | KeyState::Disabled) => record.state = KeyState::Enabled,
            (Self::Disable | Self::Enable, _) => {
                return refuse(
                    Code::KeyPendingDestruction,
                    format!("the key {key} is scheduled for destruction; cancel that first"),
                );
            }
            (Self::ScheduleDestruction(after), _) => {
                record.state = KeyState::PendingDestruction { after: *after };
            }
            (Self::CancelDestruction, KeyState::PendingDestruction { .. }) => {
                record.state = KeyState::Disabled
            }
            (Self::CancelDestruction, _) => {
                return refuse(
                    Code::InvalidArgument,
                    format!("the key {key} is not scheduled for destruction"),
                );
            }
            (Self::Destroy, KeyState::PendingDestruction { after }) if after <= now => {
                record.state = KeyState::Destroyed;
                record.versions.iter_mut().for_each(VersionRecord::destroy);
            }
            (Self::Destroy, KeyState::PendingDestruction { after }) => {
                return refuse(
                    Code::DestructionNotDue,
                    format!("the key {key} may be destroyed from {after} on, not before"),
                );
            }
            (Self::Destroy, _) => {
                return refuse(
                    Code::DestructionNotDue,
                    format!("schedule the destruction of the key {key} first"),
                );
            }
        }
        Ok(())
    }
}

/// The most bytes of a version's certificates: a record is read as a whole with each key.
const MAX_CERTIFICATES_LEN: usize = 64 << 10;

fn set_certificates(record: &mut KeyRecord, number: NonZeroU32, chain: &[Vec<u8>]) -> Result<()> {
    if chain.iter().map(Vec::len).sum::<usize>() > MAX_CERTIFICATES_LEN {
        let message =
            format!("the certificates of a version have at most {MAX_CERTIFICATES_LEN} bytes together");
        return refuse(Code::InvalidArgument, message);
    }
    let (key, latest) = (record.key.clone(), record.latest_number());
    match record.versions.get_mut(number.get() as usize - 1) {
        Some(version) => version.certificates = chain.iter().map(|one| encoding::base64(one)).collect(),
        None => return refuse(Code::UnknownVersion, format!("the latest version of {key} is {latest}")),
    }
    Ok(())
}

fn set_minimum_signing_version(record: &mut KeyRecord, minimum: u32) -> Result<()> {
    let (key, latest) = (&record.key, record.latest_number());
    if record.minimum_signing_version.is_none() {
        let message =
            format!("only the latest version of {key} signs, and this was fixed when the key was made");
        return refuse(Code::InvalidArgument, message);
    }
    if minimum > latest.get() {
        let message = format!(
            "the oldest version that signs cannot be {minimum}: the latest version of {key} is {latest}"
        );
        return refuse(Code::UnknownVersion, message);
    }
    record.minimum_signing_version = Some(minimum);
    Ok(())
}

/// A version that may be withdrawn: it exists and is not the latest version.
fn older(record: &mut KeyRecord, number: NonZeroU32) -> Result<&mut VersionRecord> {
    let (key, latest) = (record.key.clone(), record.latest_number());
    if number == latest {
        return refuse(
            Code::InvalidArgument,
            format!("{number} is the latest version of {key}; rotate the key first"),
        );
    }
    match record.versions.get_mut(number.get() as usize - 1) {
        Some(version) => Ok(version),
        None => refuse(Code::UnknownVersion, format!("the latest version of {key} is {latest}")),
    }
}

/// Whether the private keys of older versions are still needed: to decapsulate, to agree on
/// secrets, to decrypt, to verify MACs, to sign for callers who name them, or because a device
/// still has to delete them.
pub(super) fn keeps_older(record: &KeyRecord) -> bool {
    match record.key.algorithm().usage() {
        // They decrypt.
        KeyUsage::Signature if record.key.algorithm().is_rsa() => true,
        KeyUsage::Signature => record.backend != SOFTWARE || record.minimum_signing_version.is_some(),
        KeyUsage::KeyEncapsulation
        | KeyUsage::KeyAgreement
        | KeyUsage::Encryption
        | KeyUsage::Authentication => true,
    }
}

/// Whether the device still has to delete private keys of this key.
pub(super) fn has_leftovers(record: &KeyRecord) -> bool {
    record.versions.iter().any(|version| version.leftover.is_some())
}

impl Keystore {
    /// Notes in a key's next record which private keys this change gives up.
    pub(super) fn note_leftovers(&self, old: &LoadedKey, new: &mut KeyRecord) -> Result<()> {
        if new.backend == SOFTWARE {
            return Ok(());
        }
        let given_up: Vec<_> = old
            .record
            .held()
            .filter(|id| new.version(id.version()).is_some_and(|version| !version.is_held()))
            .collect();
        for id in given_up {
            let material = old.decrypt_material(&id, &self.cipher)?;
            if let Some(version) = new.versions.get_mut(id.version() as usize - 1) {
                version.leftover = Some(encoding::base64(&material));
            }
        }
        Ok(())
    }

    /// Deletes the noted private keys from the device, and then the notes.
    ///
    /// # Errors
    /// Errors of the device; errors of writing. The notes stay, and the next call tries again.
    pub(super) fn delete_leftovers(&self, key_id: &KeyId) -> Result<()> {
        let key = self.index.load().key(key_id)?.clone();
        let record = &key.record;
        if !has_leftovers(record) {
            return Ok(());
        }
        let algorithm = key_id.algorithm();
        let backend = self.backends.find(&record.backend, algorithm)?;
        for leftover in record.versions.iter().filter_map(|version| version.leftover.as_deref()) {
            let material = encoding::from_base64(leftover)
                .ok_or_else(|| KmsError::corrupt(format!("the record of {key_id} is malformed")))?;
            backend.destroy(algorithm, &Zeroizing::new(material))?;
        }
        let done: Vec<_> = record.versions.iter().map(|version| version.leftover.clone()).collect();
        self.edit(|index| {
            let mut record = index.key(key_id)?.record.clone();
            for (version, done) in record.versions.iter_mut().zip(&done) {
                forget(version, done.as_deref());
            }
            let changed = record != index.key(key_id)?.record;
            Ok(changed.then_some(Edit::new(record, None)))
        })?;
        Ok(())
    }
}

fn forget(version: &mut VersionRecord, done: Option<&str>) {
    if done.is_some() && version.leftover.as_deref() == done {
        version.leftover = None;
    }
}
