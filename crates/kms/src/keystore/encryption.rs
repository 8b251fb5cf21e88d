//! Encryption with symmetric keys and with RSA keys, and keys for data.

use std::num::NonZeroU32;

use zeroize::Zeroizing;

use super::Keystore;
use super::index::LoadedKey;
use super::lifecycle::check_enabled;
use super::observe::Subject;
use super::signing::{SignedContent, check_purpose};
use crate::algorithm::KeyUsage;
use crate::approval::KeyUse;
use crate::audit_log::AuditOperation;
use crate::backend::{DecryptRequest, EncryptRequest, EncryptionMode, check_usage, invalid_ciphertext};
use crate::ciphertext::{
    Ciphertext, CiphertextParts, DataKey, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions,
    MAX_PLAINTEXT_LEN, Plaintext, header,
};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyRef};
use crate::policy::KeyDerivation;
use crate::random;
use crate::record::KeyRecord;

impl Keystore {
    /// Encrypts `plaintext` with a key's latest version, or with the older version that is named,
    /// if the key was made for that
    /// ([`NewKey::minimum_signing_version`](crate::NewKey::minimum_signing_version)). If the latest
    /// version has reached a limit of the key's rotation policy, the key is rotated first.
    ///
    /// A version of AES-GCM or ChaCha20-Poly1305 encrypts at most 2^32 times
    /// ([`Algorithm::max_encryptions`](crate::Algorithm::max_encryptions)). Then a key with a
    /// rotation policy is rotated, and a key without one is refused.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, EncryptionOptions, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "orders".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// let options = EncryptionOptions::default();
    /// let old = keystore.encrypt(&key, b"a secret", &options)?;
    /// keystore.rotate(&key)?;
    /// let new = keystore.rewrap(&key, &old.bytes, &options)?;
    /// assert_eq!((old.key.version(), new.key.version()), (1, 2));
    /// for ciphertext in [old, new] {
    ///     assert_eq!(**keystore.decrypt(&key, &ciphertext.bytes, &options)?.bytes, *b"a secret");
    /// }
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::NotLatestVersion`] for an older
    /// version that does not encrypt, [`Code::VersionNotUsable`] for one that was revoked or is
    /// below the minimum version, [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`], [`Code::KeyUsageMismatch`], [`Code::UsesExhausted`];
    /// [`Code::InvalidArgument`] for a plaintext of more than [`MAX_PLAINTEXT_LEN`] bytes, or too
    /// long for an RSA key ([`PublicKey::encrypt`](crate::PublicKey::encrypt)), for
    /// options of more than [`EncryptionOptions::MAX_LEN`], and for a context that the key does not
    /// take or that is missing; errors of the backend; errors of writing.
    pub fn encrypt<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        plaintext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        let key = key.into();
        self.observed(Subject::key(AuditOperation::Encrypt, key), || {
            self.make_ciphertext(key, plaintext, options)
        })
    }

    /// Decrypts what [`Keystore::encrypt`] made with any version of a key that may be used.
    ///
    /// # Errors
    /// [`Code::InvalidCiphertext`] with one text if the ciphertext was cut or changed, or was made
    /// with another key, another version, another context or other associated data. It does not say
    /// which. [`Code::KeyNotFound`], [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyUsageMismatch`]; [`Code::KeyDestroyed`], also when only this version's key was
    /// destroyed; [`Code::VersionNotUsable`] if this version was revoked or is below the minimum
    /// version; [`Code::InvalidArgument`] for a context that the key does not take or that is
    /// missing; errors of the backend.
    pub fn decrypt(
        &self,
        key_id: &KeyId,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Plaintext> {
        self.observed(Subject::message(AuditOperation::Decrypt, key_id, ciphertext), || {
            self.find_plaintext(key_id, ciphertext, options, KeyUse::Ciphertext(ciphertext))
        })
    }

    /// Decrypts a ciphertext and encrypts it again with the key's latest version, or with the older
    /// version that is named, as [`Keystore::encrypt`] does. The plaintext does not leave the
    /// keystore.
    ///
    /// # Errors
    /// Those of [`Keystore::decrypt`] and of [`Keystore::encrypt`].
    pub fn rewrap<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        let key = key.into();
        self.observed(Subject::key(AuditOperation::Rewrap, key), || {
            self.make_rewrapped(key, ciphertext, options)
        })
    }

    /// Makes a random key for data, and encrypts it as [`Keystore::encrypt`] does.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, DataKeyLength, EncryptionOptions, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "disks".parse()?, Algorithm::XChaCha20Poly1305);
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// let options = EncryptionOptions::default().associated_data(b"disk 3");
    /// let data_key = keystore.generate_data_key(&key, DataKeyLength::Bits256, &options)?;
    /// let same = keystore.decrypt(&key, &data_key.wrapped.bytes, &options)?;
    /// assert_eq!((same.bytes.len(), &**same.bytes), (32, &**data_key.plaintext));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`]; those of [`Keystore::encrypt`].
    pub fn generate_data_key<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        length: DataKeyLength,
        options: &EncryptionOptions<'_>,
    ) -> Result<DataKey> {
        let key = key.into();
        self.observed(Subject::key(AuditOperation::GenerateDataKey, key), || {
            let mut plaintext = Zeroizing::new(vec![0; length.bytes()]);
            random::fill(&mut plaintext)?;
            let wrapped = self.make_ciphertext(key, &plaintext, options)?;
            Ok(DataKey { plaintext, wrapped })
        })
    }

    /// The result of [`Keystore::encrypt`] for each item, in their order.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, DecryptItem, EncryptItem, EncryptionOptions, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "rows".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// let options = EncryptionOptions::default().associated_data(b"table 7");
    /// let rows = [b"first", b"again"]
    ///     .map(|plaintext| EncryptItem { key: (&key).into(), plaintext, options });
    /// let ciphertexts = keystore.encrypt_batch(&rows).into_iter().collect::<Result<Vec<_>, _>>()?;
    ///
    /// keystore.rotate(&key)?;
    /// let old = [DecryptItem { key: &key, ciphertext: &ciphertexts[0].bytes, options }];
    /// let rewrapped = keystore.rewrap_batch(&old).remove(0)?;
    /// assert_eq!(rewrapped.key.version(), 2);
    /// let new = [DecryptItem { key: &key, ciphertext: &rewrapped.bytes, options }];
    /// assert_eq!(*keystore.decrypt_batch(&new).remove(0)?.bytes, b"first");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn encrypt_batch(&self, items: &[EncryptItem<'_>]) -> Vec<Result<Ciphertext>> {
        let run = |item: &EncryptItem<'_>| self.make_ciphertext(item.key, item.plaintext, &item.options);
        self.observed_each(
            AuditOperation::Encrypt,
            |place| Subject::key(AuditOperation::Encrypt, items[place].key),
            || items.iter().map(run).collect(),
        )
    }

    /// The result of [`Keystore::decrypt`] for each item, in their order.
    pub fn decrypt_batch(&self, items: &[DecryptItem<'_>]) -> Vec<Result<Plaintext>> {
        let run = |item: &DecryptItem<'_>| {
            let used = KeyUse::Ciphertext(item.ciphertext);
            self.find_plaintext(item.key, item.ciphertext, &item.options, used)
        };
        self.observed_each(
            AuditOperation::Decrypt,
            |place| Subject::message(AuditOperation::Decrypt, items[place].key, items[place].ciphertext),
            || items.iter().map(run).collect(),
        )
    }

    /// The result of [`Keystore::rewrap`] for each item, in their order.
    pub fn rewrap_batch(&self, items: &[DecryptItem<'_>]) -> Vec<Result<Ciphertext>> {
        let run =
            |item: &DecryptItem<'_>| self.make_rewrapped(item.key.into(), item.ciphertext, &item.options);
        self.observed_each(
            AuditOperation::Rewrap,
            |place| Subject::key(AuditOperation::Rewrap, items[place].key),
            || items.iter().map(run).collect(),
        )
    }

    fn make_ciphertext(
        &self,
        key: KeyRef<'_>,
        plaintext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        if plaintext.len() > MAX_PLAINTEXT_LEN {
            let message = format!(
                "the plaintext has more than {MAX_PLAINTEXT_LEN} bytes: encrypt it with a data key, or as a file"
            );
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        // Before a use is counted.
        mode(&self.key_for(key, KeyUsage::Encryption)?.record, options)?;
        let (id, loaded) = self.version_for_one_use(key, SignedContent::Plaintext, KeyUse::Free)?;
        let mode = mode(&loaded.record, options)?;
        let version = NonZeroU32::new(id.version()).expect("versions are numbered from 1");
        let length = key.key_id().algorithm().output_length() + plaintext.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&header(version));
        if id.key_id().algorithm().is_symmetric() {
            let cipher = loaded.private_key(&id, &self.cipher, &self.backends)?;
            cipher.encrypt(EncryptRequest::new(mode, options.associated_data, plaintext), &mut bytes)?;
        } else {
            let public_key = loaded.version(&id)?.public_key_of(id.key_id())?;
            let backend = self.backends.verifier(id.key_id().algorithm())?;
            let ciphertext = backend.encrypt(public_key.encoded(), options.associated_data, plaintext)?;
            bytes.extend_from_slice(&ciphertext);
        }
        Ok(Ciphertext::new(id, bytes))
    }

    fn find_plaintext(
        &self,
        key_id: &KeyId,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
        used: KeyUse<'_>,
    ) -> Result<Plaintext> {
        let loaded = self.key_for(key_id.into(), KeyUsage::Encryption)?;
        check_enabled(&loaded.record)?;
        let mode = mode(&loaded.record, options)?;
        let parts = CiphertextParts::parse(key_id.algorithm(), ciphertext)?;
        let id = key_id.version(parts.key_version);
        if loaded.record.version(id.version()).is_none() {
            return Err(invalid_ciphertext());
        }
        self.check_approval(&loaded.record, &id, used)?;
        let cipher = loaded.private_key(&id, &self.cipher, &self.backends)?;
        let request = DecryptRequest::new(mode, options.associated_data, parts.nonce(), parts.ciphertext());
        cipher.decrypt(request).map(|bytes| Plaintext::new(id, bytes))
    }

    fn make_rewrapped(
        &self,
        key: KeyRef<'_>,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        // The plaintext does not leave the keystore.
        let plaintext = self.find_plaintext(key.key_id(), ciphertext, options, KeyUse::Free)?;
        self.make_ciphertext(key, &plaintext.bytes, options)
    }

    /// The key, if it has this usage and its secrets may be used now.
    pub(super) fn key_for(&self, key: KeyRef<'_>, usage: KeyUsage) -> Result<std::sync::Arc<LoadedKey>> {
        // Before the keys are read: they are then at least as current as the lease says.
        self.check_lease()?;
        let loaded = self.index.load().key(key.key_id())?.clone();
        check_usage(key.key_id().algorithm(), usage)?;
        check_purpose(key)?;
        Ok(loaded)
    }
}

/// The key that encrypts with these options.
fn mode<'a>(record: &KeyRecord, options: &EncryptionOptions<'a>) -> Result<EncryptionMode<'a>> {
    let refuse = |message: String| Err(KmsError::new(Code::InvalidArgument, message));
    let (key, context) = (&record.key, options.context);
    if context.len().max(options.associated_data.len()) > EncryptionOptions::MAX_LEN {
        let most = EncryptionOptions::MAX_LEN;
        return refuse(format!("a context and associated data have at most {most} bytes each"));
    }
    match record.derivation {
        KeyDerivation::None if context.is_empty() => Ok(EncryptionMode::Direct),
        KeyDerivation::None => refuse(format!("the key {key} was not made to derive keys: give no context")),
        _ if context.is_empty() => {
            refuse(format!("the key {key} derives a key from a context: give the context"))
        }
        KeyDerivation::PerContext => Ok(EncryptionMode::PerContext(context)),
        KeyDerivation::Convergent if options.associated_data.is_empty() => {
            Ok(EncryptionMode::Convergent(context))
        }
        KeyDerivation::Convergent => {
            refuse(format!("the key {key} encrypts convergently: give no associated data"))
        }
    }
}

/// The versions that made and found something are in the audit log.
impl super::observe::AuditedResult for Ciphertext {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.key).into())
    }

    fn message(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}

impl super::observe::AuditedResult for Plaintext {
    fn key(&self) -> Option<KeyRef<'_>> {
        Some((&self.key).into())
    }
}

impl super::observe::AuditedResult for DataKey {
    fn key(&self) -> Option<KeyRef<'_>> {
        self.wrapped.key()
    }

    fn message(&self) -> Option<&[u8]> {
        self.wrapped.message()
    }
}
