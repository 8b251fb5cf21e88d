//! Importing keys, and exporting private keys.

use std::num::NonZeroU32;

use super::Keystore;
use super::changes::NewVersion;
use super::keys::NewKey;
use super::lifecycle::{check_enabled, check_state};
use super::observe::Subject;
use crate::algorithm::Algorithm;
#[cfg(feature = "tokens")]
use crate::algorithm::KeyUsage;
use crate::audit_log::AuditOperation;
#[cfg(feature = "tokens")]
use crate::backend::KeyMaterial;
use crate::ciphertext::{CiphertextParts, EncryptionOptions};
use crate::error::{Code, KmsError, Result};
#[cfg(feature = "tokens")]
use crate::id::TOKEN_ROOT_PURPOSE;
use crate::id::{KeyId, KeyVersionId};
use crate::key_identity::KeyIdentity;
use crate::policy::Origin;
use crate::public_key::PublicKey;
use crate::record::{KeyRecord, VersionRecord};
use crate::transfer::{PrivateKeyData, WrappedForRsa, WrappedPrivateKey, does_not_unwrap};

impl Keystore {
    /// Makes a key whose version 1 is an imported private key. The keystore does not wipe the
    /// original.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if `new` has another algorithm; [`Code::UnsupportedAlgorithm`] if
    /// its backend cannot import keys; the errors of [`Keystore::create_key`].
    ///
    /// ```
    /// use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let seed = [7; 32];
    /// let algorithm = Algorithm::Ed25519;
    /// let read = |seed| PrivateKeyData::read(seed, PrivateFormat::Raw, Some(algorithm), None);
    /// let private_key = read(&seed)?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, private_key.algorithm());
    /// let key = keystore.import_key(new.clone(), &private_key)?;
    /// let public_key = private_key.public_key().expect("keys that sign have a public key");
    /// assert_eq!(keystore.public_key(&key)?, *public_key);
    ///
    /// let next = read(&[8; 32])?;
    /// keystore.import_version(key.key_id(), &next)?;
    /// // A key that only verifies:
    /// let verifier = Keystore::in_memory()?;
    /// let key = verifier.import_public_key(new, public_key)?;
    /// let public_key = next.public_key().expect("keys that sign have a public key");
    /// verifier.import_public_version(key.key_id(), public_key)?;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn import_key(&self, new: NewKey, key: &PrivateKeyData) -> Result<KeyVersionId> {
        check_algorithm(new.algorithm, key.algorithm())?;
        let backend = new.backend.clone();
        self.add_key(AuditOperation::Import, new, || self.imported(&backend, key))
    }

    /// Makes an imported private key the next version of a key. It becomes the latest.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the key has another algorithm or already has that public key;
    /// [`Code::NoPrivateKey`] if only its public keys were imported; the errors of
    /// [`Keystore::rotate`].
    pub fn import_version(&self, key_id: &KeyId, key: &PrivateKeyData) -> Result<KeyVersionId> {
        check_algorithm(key_id.algorithm(), key.algorithm())?;
        self.observed(Subject::key(AuditOperation::Import, key_id), || {
            let id = self.add_version(key_id, |record| {
                check_enabled(record)?;
                check_needs_no_approval(record)?;
                check_new(&record.versions, key.identity())?;
                self.imported(&record.backend, key).map(Some)
            })?;
            Ok(id.expect("an import is made or refused"))
        })
    }

    /// Makes a key with only a public key: it verifies signatures, encrypts if it is one of RSA, or
    /// receives exported keys, and does nothing else.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if `new` has another algorithm or is exportable;
    /// [`Code::LabelTaken`]; errors of writing.
    pub fn import_public_key(&self, new: NewKey, key: &PublicKey) -> Result<KeyVersionId> {
        check_algorithm(new.algorithm, key.algorithm())?;
        if new.exportable {
            let message =
                "a key with only a public key has no private key to export: import it without `exportable`";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        self.add_key(AuditOperation::Import, new, || Ok(public_only(key)))
    }

    /// Makes a public key the next version of a key that has only public keys.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the key has another algorithm, has private keys, or already has
    /// that public key; the errors of [`Keystore::rotate`].
    pub fn import_public_version(&self, key_id: &KeyId, key: &PublicKey) -> Result<KeyVersionId> {
        check_algorithm(key_id.algorithm(), key.algorithm())?;
        self.observed(Subject::key(AuditOperation::Import, key_id), || {
            let id = self.add_version(key_id, |record| {
                if !record.is_public_only() {
                    let message =
                        format!("the key {key_id} has private keys: import a private key, or rotate it");
                    return Err(KmsError::new(Code::InvalidArgument, message));
                }
                check_state(record)?;
                check_new(&record.versions, &KeyIdentity::PublicKey(key.clone()))?;
                Ok(Some(public_only(key)))
            })?;
            Ok(id.expect("an import is made or refused"))
        })
    }

    /// Opens a private key that was wrapped for a key of this keystore.
    ///
    /// ```
    /// # #[cfg(all(feature = "mlkem", feature = "tokens"))]
    /// # (|| {
    /// use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
    /// use bulla_kms::transfer::WrappedPrivateKey;
    /// use bulla_kms::{Algorithm, Keystore, Name, NewKey, Timestamp};
    ///
    /// let tenant: Name = "local".parse()?;
    /// let new = |algorithm| NewKey::new(tenant.clone(), "files".parse().unwrap(), algorithm);
    ///
    /// // A key of one keystore, to which others wrap.
    /// let to = Keystore::in_memory()?;
    /// let recipient = to.create_key(new(Algorithm::XWing))?;
    ///
    /// // A token permits the export of an exportable key of another one.
    /// let from = Keystore::in_memory()?;
    /// from.create_token_root(&tenant)?;
    /// let key = from.create_key(new(Algorithm::Ed25519).exportable(true))?;
    /// let soon = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
    /// let keys = GrantedKeys::These(vec![key.key_id().clone()]);
    /// let grant = Grant::new(tenant.clone(), keys, vec![TokenOperation::Export], soon);
    /// let token = from.mint_token(&grant)?;
    /// let wrapped = from.export_key(&key, &to.public_key(&recipient)?, &token, &Revocations::default())?;
    ///
    /// let wrapped: WrappedPrivateKey = wrapped.to_string().parse()?;
    /// let key_data = to.unwrap_key(&recipient, &wrapped)?;
    /// assert_eq!(key_data.public_key(), Some(&from.public_key(&key)?));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if it was wrapped for another recipient; [`Code::MalformedKey`] if
    /// it was changed; the errors of [`Keystore::decapsulate`].
    pub fn unwrap_key(
        &self,
        recipient: &KeyVersionId,
        wrapped: &WrappedPrivateKey,
    ) -> Result<PrivateKeyData> {
        wrapped.check_recipient(&self.public_key(recipient)?)?;
        wrapped.unwrap(&self.decapsulate(recipient, wrapped.encapsulated())?)
    }

    /// Unwraps a private key of this algorithm that was wrapped for an RSA key of this keystore.
    /// One error says that this failed, and not where.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use bulla_kms::transfer::{WrappedForRsa, wrap_aes_kwp};
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "imports".parse()?, Algorithm::Rsa2048);
    /// let recipient = keystore.create_key(new)?;
    /// // What another service does to move an AES key here:
    /// let encrypted = keystore.public_key(&recipient)?.encrypt(&[1; 32], b"")?;
    /// let wrapped = [encrypted, wrap_aes_kwp(&[1; 32], &[7; 32])?].concat();
    /// let wrapped = WrappedForRsa::from_bytes(&wrapped);
    /// let key = keystore.unwrap_for_rsa(&recipient, Algorithm::Aes256Gcm, &wrapped)?;
    /// assert_eq!(key.algorithm(), Algorithm::Aes256Gcm);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] if it does not unwrap; those of [`PrivateKeyData::read`] for
    /// what is then not a key of the algorithm; those of [`Keystore::decrypt`] about the RSA key.
    pub fn unwrap_for_rsa(
        &self,
        recipient: &KeyVersionId,
        algorithm: Algorithm,
        wrapped: &WrappedForRsa,
    ) -> Result<PrivateKeyData> {
        let of = recipient.key_id().algorithm();
        let (encrypted, wrapped) = wrapped.parts(of.output_length())?;
        let version = NonZeroU32::new(recipient.version()).ok_or_else(does_not_unwrap)?;
        let parts = CiphertextParts::new(of, version, encrypted)?;
        let key = self.decrypt(recipient.key_id(), &parts.to_bytes(), &EncryptionOptions::NONE);
        let key = key
            .map_err(|error| if error.code == Code::InvalidCiphertext { does_not_unwrap() } else { error })?;
        WrappedForRsa::unwrap(algorithm, &key.bytes, wrapped)
    }

    fn imported(&self, backend: &str, key: &PrivateKeyData) -> Result<NewVersion> {
        let algorithm = key.algorithm();
        let found = self.backends.find(backend, algorithm)?;
        if !found.capabilities(algorithm).is_some_and(|capabilities| capabilities.material_is_key) {
            let message = format!("the backend {backend} cannot import keys: it only makes its own");
            return Err(KmsError::new(Code::UnsupportedAlgorithm, message));
        }
        let pair = self.key_pair(backend, algorithm, key.material().clone())?;
        Ok(NewVersion { origin: Origin::Imported, ..NewVersion::generated(pair) })
    }

    /// The private key of a version that may be used, wrapped for a recipient.
    #[cfg(feature = "tokens")]
    pub(super) fn wrap_key(&self, key: &KeyVersionId, recipient: &PublicKey) -> Result<WrappedPrivateKey> {
        let (material, public_key) = self.exportable(key)?;
        WrappedPrivateKey::wrap(key, public_key.as_ref(), &material, recipient)
    }

    /// The private key of a version that may be used and exported, with its public key.
    #[cfg(feature = "tokens")]
    pub(super) fn exportable(&self, key: &KeyVersionId) -> Result<(KeyMaterial, Option<PublicKey>)> {
        // Before the keys are read: they are then at least as current as the lease says.
        self.check_lease()?;
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        // A token that took it out could make tokens that permit more than itself.
        if key.key_id().purpose().as_str() == TOKEN_ROOT_PURPOSE {
            let message = format!("the key {} signs tokens, and a token cannot take it out", key.key_id());
            return Err(KmsError::new(Code::NotExportable, message));
        }
        if !loaded.record.exportable {
            let message = format!("the key {} is not exportable, and this cannot be changed", key.key_id());
            return Err(KmsError::new(Code::NotExportable, message));
        }
        check_needs_no_approval(&loaded.record)?;
        check_enabled(&loaded.record)?;
        // A version that still signs for its callers is theirs in the same way.
        if key.version() != loaded.record.latest_number().get()
            && loaded.record.minimum_signing_version.is_none()
            && key.key_id().algorithm().usage() == KeyUsage::Signature
            && !key.key_id().algorithm().is_rsa()
        {
            let message = format!("{key} is an older version: a signing key exports only its latest version");
            return Err(KmsError::new(Code::NotLatestVersion, message));
        }
        let public_key = loaded.usable(key)?.public_key.clone();
        Ok((loaded.material(key, &self.cipher, &self.backends)?, public_key))
    }
}

/// An error for a key that is used only with approvals: whoever has its private key outside, or
/// brought it, needs none.
fn check_needs_no_approval(record: &KeyRecord) -> Result<()> {
    if record.approval.is_none() {
        return Ok(());
    }
    let message = format!(
        "the key {} is used only with approvals: its private keys do not leave the keystore, and none comes in",
        record.key
    );
    Err(KmsError::new(Code::ApprovalRequired, message))
}

fn public_only(key: &PublicKey) -> NewVersion {
    NewVersion { identity: KeyIdentity::PublicKey(key.clone()), origin: Origin::PublicOnly, pair: None }
}

fn check_algorithm(wanted: Algorithm, found: Algorithm) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    let message = format!("the imported key's algorithm is {found}, but must be {wanted}");
    Err(KmsError::new(Code::InvalidArgument, message))
}

/// An error if a former version has this key: repeating it would replace nothing.
fn check_new(versions: &[VersionRecord], identity: &KeyIdentity) -> Result<()> {
    if versions.iter().any(|version| version.has_identity(identity)) {
        let message = match identity {
            KeyIdentity::PublicKey(_) => "the key already has a version with this public key",
            KeyIdentity::CheckValue(_) => "the key already has a version with this secret",
        };
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(())
}
