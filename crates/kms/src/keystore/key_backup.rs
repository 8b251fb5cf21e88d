//! The backup of one key, which only a keystore with the same root key restores.
//!
//! ```text
//! envelope of kind 7, whose subject is the tenant. Inside it:
//! record          4 + n  length (big-endian) and JSON of the key's record
//! private keys           for each version that has one:
//!   version       4      big-endian
//!   material      4 + n  length (big-endian) and the bytes
//! ```

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::Keystore;
use super::changes::{Edit, NewKeyPair};
use super::index::LoadedKey;
use super::keys::{check_label, new_uuid};
use super::lifecycle::check_enabled;
use super::observe::Subject;
use crate::audit_log::AuditOperation;
use crate::encryption::EnvelopeKind;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId, Name};
use crate::record::KeyRecord;
use crate::time::Timestamp;

impl Keystore {
    /// A backup of one key with all versions that have private keys. It is encrypted: only this
    /// keystore opens it, or another one with the same root key, such as its restored backup.
    ///
    /// The key must be exportable, and made for backups ([`NewKey::backup_allowed`],
    /// [`KeyChange::AllowBackup`]).
    ///
    /// ```
    /// use bulla_kms::{Algorithm, EncryptionOptions, Keystore, Name, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let tenant: Name = "local".parse()?;
    /// let new = NewKey::new(tenant.clone(), "orders".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new.exportable(true).backup_allowed(true))?;
    /// let options = EncryptionOptions::default();
    /// let old = keystore.encrypt(&key, b"a secret", &options)?;
    ///
    /// let backup = keystore.backup_key(key.key_id())?;
    /// let again = keystore.restore_key(&tenant, Some(&"again".parse()?), &backup)?;
    /// assert_eq!(**keystore.decrypt(again.key_id(), &old.bytes, &options)?.bytes, *b"a secret");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::NotExportable`] if the key is not exportable, may not be backed up, or is in a
    /// device; [`Code::NoPrivateKey`] if it has only public keys; [`Code::KeyNotFound`],
    /// [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`].
    ///
    /// [`NewKey::backup_allowed`]: crate::NewKey::backup_allowed
    /// [`KeyChange::AllowBackup`]: crate::KeyChange::AllowBackup
    pub fn backup_key(&self, key_id: &KeyId) -> Result<Vec<u8>> {
        self.observed(Subject::key(AuditOperation::Export, key_id), || {
            self.check_lease()?;
            let loaded = self.index.load().key(key_id)?.clone();
            check_backup(&loaded.record)?;
            let content = self.backup_content(&loaded)?;
            self.cipher.encrypt(EnvelopeKind::KeyBackup(key_id.tenant().to_string()), &content)
        })
    }

    fn backup_content(&self, loaded: &LoadedKey) -> Result<Zeroizing<Vec<u8>>> {
        let record = loaded.record.to_bytes();
        let mut keys = Vec::new();
        for id in loaded.record.held().filter(|id| loaded.stored(id).is_some()) {
            // This also proves that the private key belongs to the version.
            loaded.any_private_key(&id, &self.cipher, &self.backends)?;
            keys.push((id.version(), loaded.decrypt_material(&id, &self.cipher)?));
        }
        let length = keys.iter().fold(4 + record.len(), |length, (_, key)| length + 8 + key.len());
        // It does not grow: a vector that moves leaves a copy behind.
        let mut content = Zeroizing::new(Vec::with_capacity(length));
        append(&mut content, &record);
        for (version, material) in &keys {
            content.extend_from_slice(&version.to_be_bytes());
            append(&mut content, material);
        }
        Ok(content)
    }

    /// Makes a key from a backup of one of this tenant's keys, with its versions and their numbers,
    /// its settings and its certificates. It is another key: its id is new. So it may be restored
    /// beside the original, or after that was destroyed. Without `label`, it gets the label that it
    /// had.
    ///
    /// What the original did after the backup is not known: limits of uses count from the backup.
    /// But if the original has a rule of approvals now, so has the key.
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] if the backup was cut or changed, or is of another keystore or
    /// tenant; [`Code::LabelTaken`]; errors of writing.
    pub fn restore_key(&self, tenant: &Name, label: Option<&Name>, backup: &[u8]) -> Result<KeyVersionId> {
        let content = self.decrypt_backup(tenant, backup)?;
        let (mut record, keys) = read(&content)?;
        if record.key.tenant() != tenant {
            return Err(invalid_backup());
        }
        let now = Timestamp::now()?;
        let (old, uuid) = (record.key.clone(), new_uuid(now)?);
        record.key = KeyId::new(old.tenant().clone(), old.purpose().clone(), old.algorithm(), uuid);
        record.revision = 0;
        record.label = label.cloned().or(record.label);
        let key_id = record.key.clone();
        self.observed(Subject::key(AuditOperation::Import, &key_id), || {
            // Before the lock is taken: it may take long.
            let mut pairs = self.pairs(&record, keys)?;
            let latest = pairs.remove(&record.latest_number().get()).ok_or_else(invalid_backup)?;
            self.edit(|index| {
                check_label(index, &record.key, record.label.as_ref())?;
                let (mut record, older_private_keys) = (record.clone(), pairs.clone());
                // The original may have got a rule of approvals after the backup.
                if let Ok(original) = index.key(&old)
                    && let Some(rule) = &original.record.approval
                {
                    record.approval = Some(rule.clone());
                }
                Ok(Some(Edit { record, new_private_key: Some(latest.clone()), older_private_keys }))
            })?;
            Ok(key_id.version(record.latest_number()))
        })
    }

    /// The label of the key in a backup: that under which [`Keystore::restore_key`] restores it.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, Name, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let (tenant, label): (Name, Name) = ("local".parse()?, "orders".parse()?);
    /// let new = NewKey::new(tenant.clone(), "rows".parse()?, Algorithm::Aes256Gcm).label(label.clone());
    /// let key = keystore.create_key(new.exportable(true).backup_allowed(true))?;
    /// let backup = keystore.backup_key(key.key_id())?;
    /// assert_eq!(keystore.backed_up_label(&tenant, &backup)?, Some(label));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] as for [`Keystore::restore_key`].
    pub fn backed_up_label(&self, tenant: &Name, backup: &[u8]) -> Result<Option<Name>> {
        let content = self.decrypt_backup(tenant, backup)?;
        Ok(read(&content)?.0.label)
    }

    fn decrypt_backup(&self, tenant: &Name, backup: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let kind = EnvelopeKind::KeyBackup(tenant.to_string());
        self.cipher.decrypt(&kind, backup).map_err(|_| invalid_backup())
    }

    /// The key pairs of a record's versions.
    fn pairs(&self, record: &KeyRecord, keys: MaterialByVersion<'_>) -> Result<BTreeMap<u32, NewKeyPair>> {
        let pair = |(number, material): (u32, &[u8])| {
            let material = Zeroizing::new(material.to_vec());
            let pair = self.key_pair(&record.backend, record.key.algorithm(), material)?;
            let version = record.version(number).filter(|version| version.is_held());
            match version.map(|version| version.is_of(&*pair.private_key)) {
                Some(Ok(true)) => Ok((number, pair)),
                _ => Err(invalid_backup()),
            }
        };
        keys.into_iter().map(pair).collect()
    }

    /// Whether backups of the key may be made.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn backup_allowed(&self, key_id: &KeyId) -> Result<bool> {
        Ok(self.index.load().key(key_id)?.record.backup_allowed)
    }

    /// The certificates of a version, which [`KeyChange::Certificates`] set: DER, that of the
    /// version's public key first. Empty if there are none.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    ///
    /// use bulla_kms::{Algorithm, KeyChange, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "tls".parse()?, Algorithm::Ed25519))?;
    /// // The keystore keeps the bytes, and does not read them.
    /// let chain = vec![vec![0x30, 0], vec![0x30, 0]];
    /// let change = KeyChange::Certificates { version: NonZeroU32::MIN, chain: chain.clone() };
    /// keystore.update(key.key_id(), None, &change)?;
    /// assert_eq!(keystore.certificates(&key)?, chain);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`].
    ///
    /// [`KeyChange::Certificates`]: crate::KeyChange::Certificates
    pub fn certificates(&self, key: &KeyVersionId) -> Result<Vec<Vec<u8>>> {
        let index = self.index.load();
        let version = index.key(key.key_id())?.version(key)?;
        let chain = version.certificates.iter().map(|text| crate::encoding::from_base64(text));
        chain
            .collect::<Option<_>>()
            .ok_or_else(|| KmsError::corrupt("a certificate in a record is malformed"))
    }
}

/// The backend's material of the versions, by their numbers.
type MaterialByVersion<'a> = BTreeMap<u32, &'a [u8]>;

fn check_backup(record: &KeyRecord) -> Result<()> {
    let key = &record.key;
    let refuse = |message| Err(KmsError::new(Code::NotExportable, message));
    if !record.exportable {
        return refuse(format!("the key {key} is not exportable, and this cannot be changed"));
    }
    if !record.backup_allowed {
        return refuse(format!(
            "backups of the key {key} are not allowed: its settings must allow them first"
        ));
    }
    if record.is_public_only() {
        let message = format!("the key {key} has only public keys, and nothing to back up");
        return Err(KmsError::new(Code::NoPrivateKey, message));
    }
    check_enabled(record)
}

fn append(content: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("records and private keys are shorter than 4 GiB");
    content.extend_from_slice(&length.to_be_bytes());
    content.extend_from_slice(bytes);
}

/// Reads the content of a backup.
fn read(content: &[u8]) -> Result<(KeyRecord, MaterialByVersion<'_>)> {
    let (record, mut rest) = take(content).ok_or_else(invalid_backup)?;
    let record = KeyRecord::parse(record)?;
    let mut keys = BTreeMap::new();
    while !rest.is_empty() {
        let (version, after) = rest.split_first_chunk().ok_or_else(invalid_backup)?;
        let (material, after) = take(after).ok_or_else(invalid_backup)?;
        keys.insert(u32::from_be_bytes(*version), material);
        rest = after;
    }
    Ok((record, keys))
}

/// The bytes after their length, and what follows them.
fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// One error for a backup that is not one: it does not say what is wrong with it.
fn invalid_backup() -> KmsError {
    let message = "the backup was cut or changed, or is of another keystore or another tenant: \
                   restore it, whole, where it was made";
    KmsError::new(Code::InvalidCiphertext, message)
}
