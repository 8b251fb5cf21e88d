//! Keys: making them, giving them versions, changing them, and using them one by one.

use std::sync::PoisonError;

use uuid::Uuid;

use super::Keystore;
use super::approvals::check_approvable;
use super::changes::{Edit, NewVersion};
use super::index::Index;
use super::lifecycle::{check_enabled, has_leftovers};
use super::observe::Subject;
use crate::algorithm::{Algorithm, KeyUsage};
use crate::approval::{ApprovalRule, KeyUse};
use crate::attestation::Attestation;
use crate::audit_log::AuditOperation;
use crate::backend::{SOFTWARE, VerifyRequest};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId, Name};
use crate::key_signature::Verdict;
use crate::policy::{KeyChange, KeyDerivation, KeyState, RotationPolicy};
use crate::prehash::{HashFunction, Prehashed, RsaPadding};
use crate::public_key::PublicKey;
use crate::random;
use crate::record::{KeyRecord, VersionRecord};
use crate::time::Timestamp;

/// The key that [`Keystore::create_key`] makes. [`NewKey::new`] fills in the usual values.
///
/// ```
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new.label("releases".parse()?).exportable(true))?;
/// let attestation = keystore.attest(key.key_id())?;
/// assert!(attestation.exportable && attestation.latest_version == 1);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// ```
/// use std::num::NonZeroU64;
///
/// use bulla_kms::{Algorithm, NewKey, RotationPolicy};
///
/// let policy = RotationPolicy::default().max_uses(NonZeroU64::new(1_000_000));
/// let new = NewKey::new("local".parse()?, "invoices".parse()?, Algorithm::Ed25519)
///     .label("invoices".parse()?)
///     .backend("software")
///     .exportable(false)
///     .signs_digests(false)
///     .minimum_signing_version(1)
///     .approval(None)
///     .rotation(policy);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The tenant that owns the key.
    pub tenant: Name,
    /// The key's purpose.
    pub purpose: Name,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// A name by which [`Keystore::find`] finds it; unique within the tenant.
    pub label: Option<Name>,
    /// The name of the backend that makes and keeps the private keys; [`SOFTWARE`] by default.
    pub backend: String,
    /// Whether its private keys may ever be exported. It cannot be changed later.
    pub exportable: bool,
    /// Whether it signs digests that callers hash themselves ([`Keystore::sign_prehashed`]), for
    /// ECDSA and RSA. It cannot be changed later. Such a key signs no statements of the keystore: a
    /// digest could be that of a statement.
    pub signs_digests: bool,
    /// The oldest version that signs, encrypts or makes MACs when a caller names it; 0 and 1 allow
    /// all. None, the usual value, if only the latest version does: then it stays so.
    pub minimum_signing_version: Option<u32>,
    /// The key that encrypts, for algorithms that encrypt. It cannot be changed later.
    pub derivation: KeyDerivation,
    /// When the keystore rotates the key by itself.
    pub rotation: RotationPolicy,
    /// Whether backups of this key alone may be made ([`Keystore::backup_key`]). It may be allowed
    /// later.
    pub backup_allowed: bool,
    /// Who must approve each use of the key; none if it is used without approvals. It may get a
    /// rule later, and never loses it.
    pub approval: Option<ApprovalRule>,
}

impl NewKey {
    /// A key in software, without a label, not exportable, and without a rotation policy.
    pub fn new(tenant: Name, purpose: Name, algorithm: Algorithm) -> Self {
        Self {
            tenant,
            purpose,
            algorithm,
            label: None,
            backend: SOFTWARE.to_owned(),
            exportable: false,
            signs_digests: false,
            minimum_signing_version: None,
            derivation: KeyDerivation::None,
            rotation: RotationPolicy::default(),
            backup_allowed: false,
            approval: None,
        }
    }

    /// Sets the label.
    #[must_use]
    pub fn label(mut self, label: Name) -> Self {
        self.label = Some(label);
        self
    }

    /// Sets the backend that makes and keeps the private keys.
    #[must_use]
    pub fn backend(mut self, backend: impl Into<String>) -> Self {
        self.backend = backend.into();
        self
    }

    /// Sets whether the private keys may ever be exported.
    #[must_use]
    pub fn exportable(mut self, exportable: bool) -> Self {
        self.exportable = exportable;
        self
    }

    /// Sets whether the key signs digests that callers hash themselves.
    #[must_use]
    pub fn signs_digests(mut self, signs_digests: bool) -> Self {
        self.signs_digests = signs_digests;
        self
    }

    /// Sets the oldest version that signs when a caller names it.
    #[must_use]
    pub fn minimum_signing_version(mut self, minimum_signing_version: impl Into<Option<u32>>) -> Self {
        self.minimum_signing_version = minimum_signing_version.into();
        self
    }

    /// Sets the key that encrypts.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, EncryptionOptions, KeyDerivation, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "names".parse()?, Algorithm::Aes256Gcm)
    ///     .derivation(KeyDerivation::Convergent);
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// let options = EncryptionOptions::default().context(b"customers");
    /// let once = keystore.encrypt(&key, b"Ada", &options)?;
    /// assert_eq!(keystore.encrypt(&key, b"Ada", &options)?.bytes, once.bytes);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn derivation(mut self, derivation: KeyDerivation) -> Self {
        self.derivation = derivation;
        self
    }

    /// Sets whether backups of this key alone may be made.
    #[must_use]
    pub fn backup_allowed(mut self, backup_allowed: bool) -> Self {
        self.backup_allowed = backup_allowed;
        self
    }

    /// Lets the key be used only with approvals by this rule: see
    /// [`Keystore::request_approval`].
    #[must_use]
    pub fn approval(mut self, rule: impl Into<Option<ApprovalRule>>) -> Self {
        self.approval = rule.into();
        self
    }

    /// Sets when the keystore rotates the key by itself.
    #[must_use]
    pub fn rotation(mut self, rotation: RotationPolicy) -> Self {
        self.rotation = rotation;
        self
    }
}

impl Keystore {
    /// Makes a key with its version 1.
    ///
    /// # Errors
    /// [`Code::LabelTaken`] if another key of the tenant has the label;
    /// [`Code::UnsupportedAlgorithm`]; [`Code::NotExportable`] if `new` is exportable but its
    /// backend cannot export private keys; [`Code::InvalidArgument`] if the algorithm has no keys
    /// that sign digests or derive keys; errors of the backend; errors of writing.
    pub fn create_key(&self, new: NewKey) -> Result<KeyVersionId> {
        let (backend, algorithm, exportable) = (new.backend.clone(), new.algorithm, new.exportable);
        self.add_key(AuditOperation::Create, new, || {
            if exportable {
                self.check_gives_keys(&backend, algorithm)?;
            }
            Ok(NewVersion::generated(self.generate(&backend, algorithm)?))
        })
    }

    fn check_gives_keys(&self, backend: &str, algorithm: Algorithm) -> Result<()> {
        let capabilities = self.backends.find(backend, algorithm)?.capabilities(algorithm);
        if capabilities.is_some_and(|capabilities| capabilities.material_is_key) {
            return Ok(());
        }
        let message = format!("the backend {backend} never exports private keys");
        Err(KmsError::new(Code::NotExportable, message))
    }

    /// Adds a key whose version 1 `first` makes.
    pub(super) fn add_key(
        &self,
        operation: AuditOperation,
        new: NewKey,
        first: impl Fn() -> Result<NewVersion>,
    ) -> Result<KeyVersionId> {
        check_new(&new)?;
        let now = Timestamp::now()?;
        let key_id = KeyId::new(new.tenant.clone(), new.purpose.clone(), new.algorithm, new_uuid(now)?);
        new.approval.as_ref().map_or(Ok(()), |rule| check_approvable(&key_id, rule))?;
        self.observed(Subject::key(operation, &key_id), || self.add_key_at(&key_id, &new, now, first))
    }

    fn add_key_at(
        &self,
        key_id: &KeyId,
        new: &NewKey,
        now: Timestamp,
        first: impl Fn() -> Result<NewVersion>,
    ) -> Result<KeyVersionId> {
        let made_before = match takes_long_to_make(key_id) {
            true => {
                check_label(&self.index.load(), key_id, new.label.as_ref())?;
                Some(first()?)
            }
            false => None,
        };
        let key = self.edit(|index| {
            check_label(index, key_id, new.label.as_ref())?;
            let NewVersion { identity, origin, pair } = made_before.clone().map_or_else(&first, Ok)?;
            let record = KeyRecord {
                key: key_id.clone(),
                label: new.label.clone(),
                state: KeyState::Enabled,
                revision: 0,
                backend: new.backend.clone(),
                exportable: new.exportable,
                deletion_allowed: false,
                backup_allowed: new.backup_allowed,
                signs_digests: new.signs_digests,
                minimum_version: 0,
                minimum_signing_version: new.minimum_signing_version,
                rotation: new.rotation,
                derivation: new.derivation,
                ssh_authority: None,
                x509_authority: None,
                approval: new.approval.clone(),
                rule_changes: Vec::new(),
                versions: vec![VersionRecord::new(now, identity, origin)],
            };
            Ok(Some(Edit::new(record, pair)))
        })?;
        let key = key.expect("a new key is a change");
        Ok(key_id.version(key.record.latest_number()))
    }

    /// Whether `signature` is a signature of `message` under exactly this version of a key: see
    /// [`PublicKey::verify`].
    ///
    /// A disabled key verifies like an enabled one: its signatures remain valid.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`]; [`Code::VersionNotUsable`] for a version
    /// that was revoked or is below the key's minimum version; [`Code::KeyUsageMismatch`] if the
    /// algorithm is symmetric.
    pub fn verify(&self, key: &KeyVersionId, message: &[u8], signature: &[u8]) -> Result<Verdict> {
        self.observed(Subject::message(AuditOperation::Verify, key, message), || {
            let index = self.index.load();
            let public_key = index.key(key.key_id())?.usable(key)?.public_key_of(key.key_id())?;
            let backend = self.backends.verifier(public_key.algorithm())?;
            Ok(backend.verify(VerifyRequest { public_key: public_key.encoded(), message, signature }))
        })
    }

    /// Whether `signature` is a signature of `message` with this hash function and, for RSA, this
    /// padding: see [`Keystore::sign_hashed`].
    ///
    /// ```
    /// # #[cfg(feature = "p256")]
    /// # (|| {
    /// use bulla_kms::prehash::{HashFunction, RsaPadding};
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::EcdsaP256);
    /// let key = keystore.create_key(new)?;
    /// let (hash, padding) = (HashFunction::Sha512, RsaPadding::default());
    /// let made = keystore.sign_hashed(&key, b"a message", hash, padding)?;
    /// assert!(keystore.verify_hashed(&key, b"a message", hash, padding, &made.bytes)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for algorithms other than ECDSA and RSA; those of
    /// [`Keystore::verify`].
    pub fn verify_hashed(
        &self,
        key: &KeyVersionId,
        message: &[u8],
        hash: HashFunction,
        padding: RsaPadding,
        signature: &[u8],
    ) -> Result<Verdict> {
        self.observed(Subject::message(AuditOperation::Verify, key, message), || {
            let index = self.index.load();
            let version = index.key(key.key_id())?.usable(key)?;
            check_has_hashes(key.key_id().algorithm())?;
            let digest = hash.of(message).rsa_padding(padding);
            Ok(version.public_key_of(key.key_id())?.verify_prehashed(&digest, signature))
        })
    }

    /// Whether `signature` is a signature of a digest: see [`PublicKey::verify_prehashed`].
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] when keys of the algorithm do not sign such digests; those of
    /// [`Keystore::verify`].
    pub fn verify_prehashed(
        &self,
        key: &KeyVersionId,
        message: &Prehashed,
        signature: &[u8],
    ) -> Result<Verdict> {
        self.observed(Subject::key(AuditOperation::Verify, key), || {
            let index = self.index.load();
            let version = index.key(key.key_id())?.usable(key)?;
            message.form(key.key_id().algorithm())?;
            Ok(version.public_key_of(key.key_id())?.verify_prehashed(message, signature))
        })
    }

    /// The public key of one version, whether or not it may be used.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`]; [`Code::KeyUsageMismatch`] if the algorithm
    /// is symmetric.
    pub fn public_key(&self, key: &KeyVersionId) -> Result<PublicKey> {
        let index = self.index.load();
        index.key(key.key_id())?.version(key)?.public_key_of(key.key_id()).cloned()
    }

    /// Makes a key's next version, which becomes the latest. It is on the disk when this returns.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// assert_eq!(keystore.rotate(key.key_id())?.version(), 2);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`], [`Code::VersionsExhausted`]; errors of the backend; errors of
    /// writing.
    pub fn rotate(&self, key_id: &KeyId) -> Result<KeyVersionId> {
        self.observed(Subject::key(AuditOperation::Rotate, key_id), || {
            self.rotate_if(key_id, |_| Ok(true)).map(|id| id.expect("the rotation is unconditional"))
        })
    }

    /// Rotates a key if this version is its latest version.
    ///
    /// # Errors
    /// [`Code::Conflict`] if it is not; the errors of [`Keystore::rotate`].
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let second = keystore.rotate_from(&key)?;
    /// assert_eq!(keystore.latest_version_id(key.key_id())?, second);
    /// // Somebody else may have rotated the key.
    /// assert_eq!(keystore.rotate_from(&key).unwrap_err().code, Code::Conflict);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn rotate_from(&self, latest: &KeyVersionId) -> Result<KeyVersionId> {
        self.observed(Subject::key(AuditOperation::Rotate, latest.key_id()), || {
            let rotated = self.rotate_if(latest.key_id(), |record| {
                if record.latest_number().get() == latest.version() {
                    return Ok(true);
                }
                let newest = record.latest_number();
                Err(KmsError::new(
                    Code::Conflict,
                    format!("{latest} is no longer the latest version: version {newest} is"),
                ))
            });
            rotated.map(|id| id.expect("a rotation is made or refused"))
        })
    }

    /// Rotates a key if `wanted` returns true for its record.
    pub(super) fn rotate_if(
        &self,
        key_id: &KeyId,
        wanted: impl Fn(&KeyRecord) -> Result<bool>,
    ) -> Result<Option<KeyVersionId>> {
        let next = |record: &KeyRecord| {
            if !wanted(record)? {
                return Ok(None);
            }
            check_enabled(record)?;
            Ok(Some(NewVersion::generated(self.generate(&record.backend, key_id.algorithm())?)))
        };
        if !takes_long_to_make(key_id) {
            return self.add_version(key_id, next);
        }
        let _one = self.long_rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(made) = next(&self.index.load().key(key_id)?.record)? else { return Ok(None) };
        self.add_version(key_id, |record| {
            if !wanted(record)? {
                return Ok(None);
            }
            check_enabled(record)?;
            Ok(Some(made.clone()))
        })
    }

    /// Adds the version that `next` makes from a key's record, if it makes one.
    pub(super) fn add_version(
        &self,
        key_id: &KeyId,
        next: impl Fn(&KeyRecord) -> Result<Option<NewVersion>>,
    ) -> Result<Option<KeyVersionId>> {
        let key = self.edit(|index| {
            let old = index.key(key_id)?;
            let mut record = old.record.clone();
            if record.versions.len() >= u32::MAX as usize {
                let message = format!("the key {key_id} has no version number left");
                return Err(KmsError::new(Code::VersionsExhausted, message));
            }
            let Some(NewVersion { identity, origin, pair }) = next(&record)? else { return Ok(None) };
            // If the clock was set back, the new version must still not be older than the previous
            // one.
            let created = Timestamp::now()?.max(record.latest_version().created);
            record.versions.push(VersionRecord::new(created, identity, origin));
            record.revision += 1;
            Ok(Some(Edit::new(record, pair)))
        })?;
        Ok(key.map(|key| key_id.version(key.record.latest_number())))
    }

    /// Changes a key if it is at `revision` ([`Attestation::revision`]), or at any revision for
    /// `None`. Returns the changed key's attestation.
    ///
    /// Private keys on a device are deleted there when the change is in the store. If the device
    /// cannot be reached then, the change is made, and the same call deletes them later.
    ///
    /// # Errors
    /// [`Code::Conflict`] if the key is at another revision; [`Code::KeyNotFound`],
    /// [`Code::UnknownVersion`], [`Code::LabelTaken`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`], [`Code::DestructionNotDue`]; [`Code::InvalidArgument`] for a change
    /// that makes no sense for the key as it is; errors of writing; errors of the backend, after a
    /// change that is made.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyChange, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let before = keystore.attest(key.key_id())?;
    /// let change = KeyChange::Disable;
    /// let after = keystore.update(key.key_id(), Some(before.revision), &change)?;
    /// assert!(after.revision > before.revision);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn update(&self, key_id: &KeyId, revision: Option<u64>, change: &KeyChange) -> Result<Attestation> {
        self.observed(Subject::key(change.into(), key_id), || self.change(key_id, revision, change))
    }

    fn change(&self, key_id: &KeyId, revision: Option<u64>, change: &KeyChange) -> Result<Attestation> {
        let now = Timestamp::now()?;
        let changed = self.edit(|index| {
            let old = index.key(key_id)?;
            let at = old.record.revision;
            if revision.is_some_and(|revision| revision != at) {
                let message =
                    format!("somebody changed the key {key_id} meanwhile: it is now at revision {at}");
                return Err(KmsError::new(Code::Conflict, message));
            }
            if let KeyChange::Label(label) = change {
                check_label(index, key_id, label.as_ref())?;
            }
            if let KeyChange::Approval(rule) = change {
                let latest = key_id.version(old.record.latest_number());
                self.check_approval(&old.record, &latest, KeyUse::Rule(rule))?;
            }
            let is_destroyed = old.record.state == KeyState::Destroyed;
            if *change == KeyChange::Destroy && is_destroyed && has_leftovers(&old.record) {
                return Ok(None);
            }
            let mut record = old.record.clone();
            change.apply(&mut record, now)?;
            if record == old.record {
                return Ok(None);
            }
            if matches!(change, KeyChange::Approval(_)) && old.record.approval.is_some() {
                self.note_rule_change(&mut record);
            }
            record.revision += 1;
            self.note_leftovers(old, &mut record)?;
            Ok(Some(Edit::new(record, None)))
        })?;
        self.delete_leftovers(key_id)?;
        match changed {
            Some(key) => Ok(Attestation::from(&key.record)),
            None => self.attest(key_id),
        }
    }

    /// Everything about a key except its private keys.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn attest(&self, key_id: &KeyId) -> Result<Attestation> {
        let index = self.index.load();
        let mut attestation = index.attest(key_id)?;
        self.add_shares(&index, &mut attestation);
        Ok(attestation)
    }

    /// The key's latest version, the one that signs or encrypts.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn latest_version_id(&self, key_id: &KeyId) -> Result<KeyVersionId> {
        let index = self.index.load();
        Ok(key_id.version(index.key(key_id)?.record.latest_number()))
    }

    /// How the key that encrypts is derived from a key's secret.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyDerivation, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "rows".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new.derivation(KeyDerivation::PerContext))?;
    /// assert_eq!(keystore.derivation(key.key_id())?, KeyDerivation::PerContext);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn derivation(&self, key_id: &KeyId) -> Result<KeyDerivation> {
        Ok(self.index.load().key(key_id)?.record.derivation)
    }

    /// All keys at one moment, sorted by their names.
    ///
    /// # Errors
    /// None today; a store on another machine may fail.
    pub fn list(&self) -> Result<Vec<Attestation>> {
        let index = self.index.load_full();
        let mut keys = index.list();
        keys.iter_mut().for_each(|key| self.add_shares(&index, key));
        Ok(keys)
    }

    /// The first `most` keys of a tenant after `after` that are wanted, sorted by their names.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let tenant = "local".parse()?;
    /// let mut after = None;
    /// loop {
    ///     let page = keystore.list_page(&tenant, after.as_ref(), 100, &|_| true);
    ///     let Some(last) = page.last() else { break };
    ///     after = Some(last.key.clone());
    ///     for key in &page {
    ///         println!("{} has {} versions", key.key, key.versions.len());
    ///     }
    /// }
    /// # let _ = key;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn list_page(
        &self,
        tenant: &Name,
        after: Option<&KeyId>,
        most: usize,
        wanted: &dyn Fn(&KeyId) -> bool,
    ) -> Vec<Attestation> {
        let index = self.index.load_full();
        let page = index.of_tenant(tenant, after).filter(|key| wanted(key)).take(most);
        let mut keys: Vec<_> = page.filter_map(|key| index.attest(key).ok()).collect();
        keys.iter_mut().for_each(|key| self.add_shares(&index, key));
        keys
    }

    /// How many keys a tenant has, without the destroyed ones and the root keys of its tokens.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// assert_eq!(keystore.count_keys(&"local".parse()?), 1);
    /// assert_eq!(keystore.count_keys(&"other".parse()?), 0);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn count_keys(&self, tenant: &Name) -> usize {
        self.index.load().count_keys(tenant)
    }

    /// The key of a tenant that has the label.
    ///
    /// # Errors
    /// None today; a store on another machine may fail.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519)
    ///     .label("default".parse()?);
    /// let key = keystore.create_key(new)?;
    /// let (tenant, label) = ("local".parse()?, "default".parse()?);
    /// assert_eq!(keystore.find(&tenant, &label)?.as_ref(), Some(key.key_id()));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn find(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>> {
        Ok(self.index.load().find(tenant, label).cloned())
    }

    /// Disables a key: it does not sign until it is enabled. Its signatures still verify. Does
    /// nothing to a disabled key.
    ///
    /// # Errors
    /// The errors of [`Keystore::update`].
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// keystore.disable(key.key_id())?;
    /// assert_eq!(keystore.sign(key.key_id(), b"a message").unwrap_err().code, Code::KeyDisabled);
    /// keystore.enable(key.key_id())?;
    /// assert!(keystore.sign(key.key_id(), b"a message").is_ok());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn disable(&self, key_id: &KeyId) -> Result<()> {
        self.update(key_id, None, &KeyChange::Disable).map(drop)
    }

    /// Enables a disabled key: it signs again. Does nothing to an enabled key.
    ///
    /// # Errors
    /// The errors of [`Keystore::update`].
    pub fn enable(&self, key_id: &KeyId) -> Result<()> {
        self.update(key_id, None, &KeyChange::Enable).map(drop)
    }
}

/// An error unless the algorithm leaves it open how a key hashes messages.
pub(super) fn check_has_hashes(algorithm: Algorithm) -> Result<()> {
    if algorithm.can_sign_digests() {
        return Ok(());
    }
    let message =
        format!("{algorithm} says how its keys hash messages: name no hash function and no padding");
    Err(KmsError::new(Code::KeyUsageMismatch, message))
}

/// Whether it takes up to seconds to make a private key. Then it is made before the lock on the
/// store is taken, so that other changes need not wait for it.
fn takes_long_to_make(key_id: &KeyId) -> bool {
    key_id.algorithm().is_rsa()
}

fn check_new(new: &NewKey) -> Result<()> {
    if new.signs_digests && !new.algorithm.can_sign_digests() {
        let message = format!(
            "only keys of ECDSA and RSA are made to sign digests, not {} keys; every ed25519 key signs digests apart from messages",
            new.algorithm
        );
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    if new.derivation != KeyDerivation::None && new.algorithm.usage() != KeyUsage::Encryption {
        let message =
            format!("a key of {} does not encrypt, and derives no keys from contexts", new.algorithm);
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    if new.minimum_signing_version.is_some_and(|minimum| minimum > 1) {
        let message = "a new key has one version: the oldest version that signs is 0 or 1";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(())
}

pub(super) fn check_label(index: &Index, key_id: &KeyId, label: Option<&Name>) -> Result<()> {
    let tenant = key_id.tenant();
    match label.and_then(|label| Some((label, index.find(tenant, label)?))) {
        Some((label, other)) if other != key_id => Err(KmsError::new(
            Code::LabelTaken,
            format!("the tenant {tenant} already has a key with the label {label}"),
        )),
        _ => Ok(()),
    }
}

/// A version 7 UUID (RFC 9562, section 5.7).
pub(super) fn new_uuid(now: Timestamp) -> Result<Uuid> {
    let mut bytes = [0; 10];
    random::fill(&mut bytes)?;
    Ok(uuid::Builder::from_unix_timestamp_millis(now.unix_millis(), &bytes).into_uuid())
}
