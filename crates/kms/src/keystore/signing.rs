//! Signs with the latest version of a key, or with an older version that the caller names and the
//! key's policy permits. Rotates the key when its policy says so.

use std::sync::Arc;

use super::Keystore;
use super::changes::Edit;
use super::index::{LoadedKey, StoredPrivateKey};
use super::keys::check_has_hashes;
use super::lifecycle::{check_enabled, check_state, check_statements};
use super::observe::Subject;
use crate::algorithm::{Algorithm, KeyUsage};
use crate::approval::KeyUse;
use crate::attestation::{Attestation, SignedAttestation};
use crate::audit_log::{
    AuditOperation, CheckpointSigner, CheckpointSigningKey, TreeHead, UnsignedCheckpoint,
};
use crate::backend::{PrivateKey, RsaMessage, SignRequest, check_usage};
use crate::encryption::EnvelopeKind;
use crate::error::{Code, KmsError, Result};
use crate::id::{JWT_PURPOSE, KeyId, KeyRef, KeyVersionId, Name, TOKEN_ROOT_PURPOSE};
use crate::key_signature::Signature;
use crate::prehash::{HashFunction, Prehashed, RsaPadding, SignedForm};
use crate::public_key::PublicKey;
use crate::record::KeyRecord;
use crate::reserved::RESERVED_PREFIXES;
use crate::rollback::SignedTime;
use crate::ssh_authority::SshAuthority;
use crate::store::Rows;
use crate::succession::Succession;
use crate::time::Timestamp;
use crate::x509::X509Authority;

/// The origin of what a key signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedContent {
    /// A message, or a digest, that a caller brought.
    Callers,
    /// A plaintext that a caller brought. A public key is enough to encrypt it.
    Plaintext,
    /// A statement that the keystore composes. Only latest versions sign these.
    Statement,
}

impl Keystore {
    /// Signs `message` with a key's latest version, or with the older version that is named, if the
    /// key was made for that
    /// ([`NewKey::minimum_signing_version`](crate::NewKey::minimum_signing_version)). If the latest
    /// version has reached a limit of the key's rotation policy, the key is rotated first.
    ///
    /// The message is signed as it is. Messages that begin with one of [`RESERVED_PREFIXES`] are
    /// refused: their signature would pass for that of a signature file or an attestation.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let signature = keystore.sign(key.key_id(), b"a message")?;
    /// assert!(keystore.public_key(&key)?.verify(b"a message", &signature.bytes).is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::NotLatestVersion`] for an older
    /// version that does not sign, [`Code::VersionNotUsable`] for one that was revoked or is below
    /// the minimum version, [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`], [`Code::ReservedMessage`], [`Code::KeyUsageMismatch`]; errors of the
    /// backend; if the key has a rotation policy, errors of writing.
    pub fn sign<'a>(&self, key: impl Into<KeyRef<'a>>, message: &[u8]) -> Result<Signature> {
        let key = key.into();
        self.observed(Subject::message(AuditOperation::Sign, key, message), || {
            let (id, loaded) = self.version_for_message(key, message)?;
            let bytes = self.sign_by(&**loaded.private_key(&id, &self.cipher, &self.backends)?, message)?;
            Ok(Signature { key: id, bytes })
        })
    }

    /// The signature of a private key, which sees what permits this handle to use it.
    fn sign_by(&self, key: &(dyn PrivateKey + 'static), message: &[u8]) -> Result<Vec<u8>> {
        SignRequest::new(key, message).approved(self.approved.as_deref()).sign()
    }

    /// The version that signs this message, if the key may sign it; counts one use.
    pub(super) fn version_for_message(
        &self,
        key: KeyRef<'_>,
        message: &[u8],
    ) -> Result<(KeyVersionId, Arc<LoadedKey>)> {
        if is_reserved(message) {
            return Err(KmsError::new(
                Code::ReservedMessage,
                "the message begins like the statement of a signature file; sign it as a file or as a message statement",
            ));
        }
        check_usage(key.key_id().algorithm(), KeyUsage::Signature)?;
        check_purpose(key)?;
        check_signs_messages(key)?;
        self.check_lease()?;
        let (id, loaded) = self.version_for_one_use(key, SignedContent::Callers, KeyUse::Message(message))?;
        check_authority(&loaded, &id, message)?;
        Ok((id, loaded))
    }

    /// Which X.509 certificates a key signs; none if it is no authority.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    ///
    /// use bulla_kms::{
    ///     Algorithm, Code, KeyChange, Keystore, NewKey, X509Authority, X509CertificateKind, X509Usage,
    /// };
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "ca".parse()?, Algorithm::Ed25519))?;
    /// let mut policy = X509Authority::new(vec![X509CertificateKind::Leaf], NonZeroU64::MIN);
    /// policy.dns_names = vec!["www.example.org".to_owned()];
    /// policy.usages = vec![X509Usage::ServerAuth];
    /// keystore.update(key.key_id(), None, &KeyChange::X509Authority(Some(policy.clone())))?;
    /// assert_eq!(keystore.x509_authority(key.key_id())?, Some(policy));
    /// // It signs nothing else from now on.
    /// let refused = keystore.sign(&key, b"a message").unwrap_err();
    /// assert_eq!(refused.code, Code::KeyUsageMismatch);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn x509_authority(&self, key_id: &KeyId) -> Result<Option<X509Authority>> {
        Ok(self.index.load().key(key_id)?.record.x509_authority.as_deref().cloned())
    }

    /// Which certificates of OpenSSH a key signs; none if it is no authority.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    ///
    /// use bulla_kms::{Algorithm, Code, KeyChange, Keystore, NewKey, SshAuthority, SshCertificateKind};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "ca".parse()?, Algorithm::Ed25519))?;
    /// let mut policy = SshAuthority::new(vec![SshCertificateKind::User], NonZeroU64::MIN);
    /// policy.principals = vec!["ann".to_owned()];
    /// keystore.update(key.key_id(), None, &KeyChange::SshAuthority(Some(policy.clone())))?;
    /// assert_eq!(keystore.ssh_authority(key.key_id())?, Some(policy));
    /// // It signs nothing else from now on.
    /// let refused = keystore.sign(&key, b"a message").unwrap_err();
    /// assert_eq!(refused.code, Code::KeyUsageMismatch);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn ssh_authority(&self, key_id: &KeyId) -> Result<Option<SshAuthority>> {
        Ok(self.index.load().key(key_id)?.record.ssh_authority.as_deref().cloned())
    }

    /// Signs the message that `message` makes from the latest version's id and public key, once the
    /// latest version is chosen. The message must begin with one of [`RESERVED_PREFIXES`], or be
    /// one that the key signs for no caller.
    pub(crate) fn sign_statement(
        &self,
        key: KeyRef<'_>,
        used: KeyUse<'_>,
        message: impl FnOnce(&KeyVersionId, &PublicKey) -> Vec<u8>,
    ) -> Result<Signature> {
        let signing = match check_purpose(key)
            .and_then(|()| self.check_lease())
            .and_then(|()| self.one_signature(key, used))
        {
            Ok(signing) => signing,
            Err(error) => return self.observed(Subject::key(AuditOperation::Sign, key), || Err(error)),
        };
        let message = message(&signing.id, &signing.public_key);
        self.observed(Subject::message(AuditOperation::Sign, key, &message), || signing.sign(&message))
    }

    /// Signs the JSON Web Token that `message` makes from the latest version's id and public key,
    /// once the latest version is chosen: its header and its claims in base64url, with a full stop
    /// between them (RFC 7515, section 5.1). Whoever calls this has checked the claims: only keys
    /// of the purpose [`JWT_PURPOSE`] sign tokens, and they sign no other message of a caller.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, JWT_PURPOSE, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, JWT_PURPOSE.parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// // {"alg":"EdDSA"} and {"sub":"me"}
    /// let token = b"eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJtZSJ9";
    /// let signature = keystore.sign_jwt(key.key_id(), |_, _| token.to_vec())?;
    /// assert!(keystore.public_key(&key)?.verify(token, &signature.bytes).is_valid());
    /// assert!(keystore.sign(key.key_id(), token).is_err());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for a key of another purpose; the errors of [`Keystore::sign`].
    pub fn sign_jwt<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        message: impl FnOnce(&KeyVersionId, &PublicKey) -> Vec<u8>,
    ) -> Result<Signature> {
        let key = key.into();
        if key.key_id().purpose().as_str() != JWT_PURPOSE {
            let message = format!(
                "the key {} does not sign JSON Web Tokens: only keys of the purpose {JWT_PURPOSE} do",
                key.key_id()
            );
            let error = KmsError::new(Code::KeyUsageMismatch, message);
            return self.observed(Subject::key(AuditOperation::Sign, key), || Err(error));
        }
        self.sign_statement(key, KeyUse::Opaque, message)
    }

    /// The right to make one signature with a key's latest version. Taking it may rotate the key;
    /// using it changes nothing.
    fn one_signature(&self, key: KeyRef<'_>, used: KeyUse<'_>) -> Result<OneSignature<'_>> {
        check_usage(key.key_id().algorithm(), KeyUsage::Signature)?;
        self.signature_of(self.version_for_one_use(key, SignedContent::Statement, used)?)
    }

    /// The right to make one signature with a version that signs.
    fn signature_of(&self, (id, loaded): (KeyVersionId, Arc<LoadedKey>)) -> Result<OneSignature<'_>> {
        let public_key = loaded.version(&id)?.public_key_of(id.key_id())?.clone();
        Ok(OneSignature { keystore: self, id, loaded, public_key })
    }

    /// Signs the digest that `message` makes from the version's id and public key, once the version
    /// is chosen.
    pub(crate) fn sign_form(
        &self,
        key: KeyRef<'_>,
        content: SignedContent,
        used: KeyUse<'_>,
        message: impl FnOnce(&KeyVersionId, &PublicKey) -> Prehashed,
    ) -> Result<Signature> {
        let algorithm = key.key_id().algorithm();
        if content == SignedContent::Statement && algorithm != Algorithm::Ed25519 {
            let message = format!("only ed25519 keys sign statements by their digest, not {algorithm} keys");
            return Err(KmsError::new(Code::KeyUsageMismatch, message));
        }
        self.observed(Subject::key(AuditOperation::Sign, key), || {
            check_usage(algorithm, KeyUsage::Signature)?;
            check_purpose(key)?;
            if content == SignedContent::Callers {
                check_signs_messages(key)?;
            }
            self.check_lease()?;
            let (id, loaded) = self.version_for_one_use(key, content, used)?;
            if loaded.record.ssh_authority.is_some() || loaded.record.x509_authority.is_some() {
                let message = format!("the key {} signs certificates, and no digests", id.key_id());
                return Err(KmsError::new(Code::KeyUsageMismatch, message));
            }
            let message = message(&id, loaded.version(&id)?.public_key_of(id.key_id())?);
            let signer = || loaded.private_key(&id, &self.cipher, &self.backends);
            let bytes = match message.form(algorithm)? {
                SignedForm::Message(framed) => self.sign_by(&**signer()?, &framed)?,
                SignedForm::Ed25519ph(digest) => signer()?.sign_ed25519ph(&digest, message.context())?,
                SignedForm::Ecdsa(_) | SignedForm::Rsa { .. } if !loaded.record.signs_digests => {
                    return Err(signs_no_digests(key.key_id()));
                }
                form => sign_digest(&**signer()?, form)?,
            };
            Ok(Signature { key: id, bytes })
        })
    }

    /// Signs `message` like [`Keystore::sign`], with this hash function and, for RSA, this padding.
    /// Only for keys of ECDSA and RSA, whose algorithms leave these open.
    /// [`Keystore::verify_hashed`] verifies the signature.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use bulla_kms::prehash::{HashFunction, RsaPadding};
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "documents".parse()?, Algorithm::Rsa2048);
    /// let key = keystore.create_key(new)?;
    /// let (hash, padding) = (HashFunction::Sha256, RsaPadding::Pkcs1v15);
    /// let signature = keystore.sign_hashed(&key, b"a message", hash, padding)?;
    /// let digest = hash.of(b"a message").rsa_padding(padding);
    /// assert!(keystore.public_key(&key)?.verify_prehashed(&digest, &signature.bytes).is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for other algorithms; [`Code::InvalidArgument`] for a length of
    /// the salt that is neither that of a digest nor the longest one; the errors of
    /// [`Keystore::sign`].
    pub fn sign_hashed<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        message: &[u8],
        hash: HashFunction,
        padding: RsaPadding,
    ) -> Result<Signature> {
        let key = key.into();
        let algorithm = key.key_id().algorithm();
        self.observed(Subject::message(AuditOperation::Sign, key, message), || {
            check_has_hashes(algorithm)?;
            let form = hash.of(message).rsa_padding(padding).form(algorithm)?;
            let (id, loaded) = self.version_for_message(key, message)?;
            let bytes = sign_digest(&**loaded.private_key(&id, &self.cipher, &self.backends)?, form)?;
            Ok(Signature { key: id, bytes })
        })
    }

    /// Signs a digest with an Ed25519 key, or with an ECDSA or RSA key that was made for that
    /// ([`NewKey::signs_digests`](crate::NewKey::signs_digests)): like [`Keystore::sign`], for a
    /// message that is already hashed.
    ///
    /// ```
    /// use bulla_kms::prehash::Prehash;
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let digest = Prehash::Ed25519ph.of(b"a message", b"")?;
    /// let made = keystore.sign_prehashed(&key, &digest)?;
    /// assert!(keystore.verify_prehashed(&key, &digest, &made.bytes)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the key does not sign such digests, or its backend does not;
    /// the errors of [`Keystore::sign`].
    pub fn sign_prehashed<'a>(&self, key: impl Into<KeyRef<'a>>, message: &Prehashed) -> Result<Signature> {
        let key = key.into();
        // Before a use is counted.
        message.form(key.key_id().algorithm())?;
        self.sign_form(key, SignedContent::Callers, KeyUse::Opaque, |_, _| message.clone())
    }

    /// Signs the system clock's time and a nonce with a key's latest version, in answer to a
    /// [`TimeGuard`](crate::rollback::TimeGuard) elsewhere.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NamedPublicKey, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "time".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// // For a guard elsewhere, which chose the nonce and trusts this key.
    /// let signed = keystore.sign_time(key.key_id(), &[7; 32])?;
    /// let public_key = keystore.public_key(&key)?;
    /// let trusted = NamedPublicKey { key, public_key };
    /// assert_eq!(signed.verify(&trusted, &[7; 32])?, signed.time);
    /// assert!(signed.verify(&trusted, &[8; 32]).is_err());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::ClockOutOfRange`]; the errors of [`Keystore::sign`].
    pub fn sign_time(&self, key_id: &KeyId, nonce: &[u8; 32]) -> Result<SignedTime> {
        let time = Timestamp::now()?;
        let message = SignedTime::signed_bytes(nonce, time);
        let signature = self.sign_statement(KeyRef::Key(key_id), KeyUse::Opaque, |_, _| message)?;
        Ok(SignedTime { time, signature })
    }

    /// A key's attestation, signed by its latest version. That is no use of the key: no rotation
    /// policy counts it, and a version makes it at any age. Whoever may read a key may ask for it
    /// as often as they like, and must not rotate the key by that.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let signed = keystore.attest_signed(key.key_id())?;
    /// assert_eq!(signed.attestation, keystore.attest(key.key_id())?);
    /// assert_eq!(signed.signature.key, key);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`].
    pub fn attest_signed(&self, key_id: &KeyId) -> Result<SignedAttestation> {
        self.observed(Subject::key(AuditOperation::Attest, key_id), || {
            check_purpose(key_id.into())?;
            self.check_lease()?;
            check_usage(key_id.algorithm(), KeyUsage::Signature)?;
            let latest =
                self.version_that_signs(KeyRef::Key(key_id), SignedContent::Statement, KeyUse::Free)?;
            let signing = self.signature_of(latest)?;
            let mut attestation = Attestation::from(&signing.loaded.record);
            self.add_shares(&self.index.load(), &mut attestation);
            let signature = signing.sign(&attestation.signed_bytes())?;
            Ok(SignedAttestation { attestation, signature })
        })
    }

    /// The version that signs, encrypts or makes MACs, if one may; counts one use if the key's
    /// policy or its algorithm limits the uses.
    pub(super) fn version_for_one_use(
        &self,
        key: KeyRef<'_>,
        content: SignedContent,
        used: KeyUse<'_>,
    ) -> Result<(KeyVersionId, Arc<LoadedKey>)> {
        loop {
            // Also after a rotation: an approval is about one version.
            let (id, loaded) = self.version_that_signs(key, content, used)?;
            let record = &loaded.record;
            if record.is_public_only() {
                // Others encrypt with it, too: there is nothing to count.
                return Ok((id, loaded));
            }
            let is_latest = id.version() == record.latest_number().get();
            let policy = record.rotation;
            // The policy says when a latest version is replaced; an older one was.
            if is_latest && policy.is_too_old(record.latest_version().created, Timestamp::now)? {
                self.replace(&id, |record| {
                    policy.is_too_old(record.latest_version().created, Timestamp::now)
                })?;
                continue;
            }
            let Some(limit) = record.use_limit() else { return Ok((id, loaded)) };
            let max_uses = limit.max_uses.get();
            // A version whose private key was destroyed has no uses to count.
            if loaded.stored(&id).is_none_or(StoredPrivateKey::take_use) {
                return Ok((id, loaded));
            }
            if loaded.version(&id)?.uses < max_uses {
                self.reserve(&id, is_latest)?;
            } else if is_latest && limit.rotates {
                self.replace(&id, |record| Ok(record.latest_version().uses >= max_uses))?;
            } else {
                return Err(uses_exhausted(&id, max_uses));
            }
        }
    }

    /// Rotates a key if its latest version is still `latest` and it is still `due`: of many threads
    /// that find it due, only one rotates it.
    fn replace(&self, latest: &KeyVersionId, due: impl Fn(&KeyRecord) -> Result<bool>) -> Result<()> {
        let wanted =
            |record: &KeyRecord| Ok(record.latest_number().get() == latest.version() && due(record)?);
        let _reserved = self.reserve_entry(AuditOperation::Rotate)?;
        match self.rotate_if(latest.key_id(), wanted)? {
            Some(id) => self.note(Subject::key(AuditOperation::Rotate, &id)),
            None => Ok(()),
        }
    }

    /// Reserves further uses of a version: the store counts them before they are made. If the
    /// version was the latest one, `is_latest`, it must still be.
    fn reserve(&self, id: &KeyVersionId, is_latest: bool) -> Result<()> {
        let mut reserved = 0;
        let edited = self.edit(|index| {
            let old = index.key(id.key_id())?;
            let is_still_latest = old.record.latest_number().get() == id.version();
            let mut record = old.record.clone();
            let limit = record.use_limit();
            let Some(version) = record.versions.get_mut(id.version() as usize - 1) else { return Ok(None) };
            reserved = limit.map_or(0, |limit| limit.reservation(version.uses));
            version.uses += reserved;
            let applies = version.is_held() && is_still_latest == is_latest && reserved > 0;
            Ok(applies.then_some(Edit::new(record, None)))
        })?;
        if let Some(stored) = edited.as_ref().and_then(|key| key.stored(id)) {
            stored.reserve(reserved);
        }
        Ok(())
    }

    /// The version that signs, if one may: a key's latest version, or the older version that the
    /// caller names.
    pub(super) fn version_that_signs(
        &self,
        key: KeyRef<'_>,
        content: SignedContent,
        used: KeyUse<'_>,
    ) -> Result<(KeyVersionId, Arc<LoadedKey>)> {
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        let latest = loaded.record.latest_number();
        let mut signs = loaded.record.key.version(latest);
        if let KeyRef::Version(id) = key {
            loaded.version(id)?;
            if id.version() != latest.get() {
                check_older(loaded, id, content)?;
                signs = id.clone();
            }
        }
        match content {
            SignedContent::Plaintext => check_state(&loaded.record)?,
            SignedContent::Callers => check_enabled(&loaded.record)?,
            SignedContent::Statement => {
                check_enabled(&loaded.record)?;
                check_statements(&loaded.record)?;
            }
        }
        self.check_approval(&loaded.record, &signs, used)?;
        Ok((signs, Arc::clone(loaded)))
    }
}

fn uses_exhausted(id: &KeyVersionId, max_uses: u64) -> KmsError {
    let message = format!(
        "{id} was used {max_uses} times, which is its limit, and nothing says that the keystore rotates the key by itself: rotate it, or give it a rotation policy"
    );
    KmsError::new(Code::UsesExhausted, message)
}

/// An error unless this older version signs for a caller who names it.
pub(super) fn check_older(key: &LoadedKey, id: &KeyVersionId, content: SignedContent) -> Result<()> {
    let latest = key.record.latest_number();
    let refuse = |why: String| Err(KmsError::new(Code::NotLatestVersion, why));
    match key.record.minimum_signing_version.filter(|_| content != SignedContent::Statement) {
        None => refuse(format!("{id} is an older version and does not sign; version {latest} signs")),
        Some(least) if id.version() < least => {
            refuse(format!("{id} is too old to sign: the oldest version that signs is {least}"))
        }
        Some(_) if key.record.rotation.max_uses.is_some() => refuse(format!(
            "{id} does not sign: its signatures are counted, and then only version {latest} signs"
        )),
        Some(_) => key.usable(id).map(drop),
    }
}

/// The signature of what a key of ECDSA or RSA signs.
fn sign_digest(key: &dyn PrivateKey, form: SignedForm) -> Result<Vec<u8>> {
    match form {
        SignedForm::Message(message) => key.sign(&message),
        SignedForm::Ed25519ph(digest) => key.sign_ed25519ph(&digest, &[]),
        SignedForm::Ecdsa(digest) => key.sign_digest(&digest),
        SignedForm::Rsa { hash, padding, digest } => key.sign_rsa(RsaMessage::new(hash, padding, &digest)),
    }
}

/// The error for a key of ECDSA or RSA that was not made to sign digests.
fn signs_no_digests(key: &KeyId) -> KmsError {
    let message = format!(
        "the key {key} signs messages, not digests: send the message, or make a key that signs digests (and no statements of bulla)"
    );
    KmsError::new(Code::KeyUsageMismatch, message)
}

/// Whether a message is, or could be taken for, a statement of the keystore itself.
fn is_reserved(message: &[u8]) -> bool {
    RESERVED_PREFIXES.iter().any(|reserved| message.starts_with(reserved))
}

/// Refuses a message that the policy of an authority, of OpenSSH or X.509, does not permit.
pub(super) fn check_authority(key: &LoadedKey, id: &KeyVersionId, message: &[u8]) -> Result<()> {
    if let Some(policy) = &key.record.ssh_authority {
        policy.permit(message, Timestamp::now()?)?;
    }
    if let Some(policy) = &key.record.x509_authority {
        policy.permit(message, Timestamp::now()?, key.version(id)?.public_key_of(id.key_id())?)?;
    }
    Ok(())
}

pub(super) fn check_purpose(key: KeyRef<'_>) -> Result<()> {
    if key.key_id().purpose().as_str() != TOKEN_ROOT_PURPOSE {
        return Ok(());
    }
    let message =
        format!("the key {} has the purpose {TOKEN_ROOT_PURPOSE}, and signs only tokens", key.key_id());
    Err(KmsError::new(Code::KeyUsageMismatch, message))
}

/// An error for keys that sign only what was checked.
pub(super) fn check_signs_messages(key: KeyRef<'_>) -> Result<()> {
    if key.key_id().purpose().as_str() != JWT_PURPOSE {
        return Ok(());
    }
    let message = format!(
        "the key {} has the purpose {JWT_PURPOSE}, and signs only JSON Web Tokens whose claims a service has checked",
        key.key_id()
    );
    Err(KmsError::new(Code::KeyUsageMismatch, message))
}

/// The right to make one signature: see [`Keystore::one_signature`].
struct OneSignature<'a> {
    keystore: &'a Keystore,
    id: KeyVersionId,
    loaded: Arc<LoadedKey>,
    /// The public key that verifies the signature.
    public_key: PublicKey,
}

impl OneSignature<'_> {
    /// Signs without recording, and without taking a lock of the keystore.
    fn sign(&self, message: &[u8]) -> Result<Signature> {
        let Keystore { cipher, backends, .. } = self.keystore;
        let bytes = self.keystore.sign_by(&**self.loaded.signer(cipher, backends)?, message)?;
        Ok(Signature { key: self.id.clone(), bytes })
    }
}

impl CheckpointSigner for Keystore {
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>> {
        self.find(tenant, label)
    }

    fn checkpoint_signing_key(&self, key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>> {
        Ok(Box::new(self.one_signature(key, KeyUse::Free)?))
    }
}

impl CheckpointSigningKey for OneSignature<'_> {
    fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    fn sign_checkpoint(&self, checkpoint: &UnsignedCheckpoint) -> Result<Signature> {
        self.sign(checkpoint.signed_text().as_bytes())
    }

    fn sign_tree_head(&self, head: &TreeHead) -> Result<Signature> {
        self.sign(head.signed_text().as_bytes())
    }
}

impl Keystore {
    /// The statements that lead holders of any older public key of a key to the newest one. Each
    /// usable version with a private key names the later ones, up to the next one that can also
    /// sign. Revoked versions, and versions below the minimum version, do not sign statements, and
    /// no statement names them. A key with one version has no statements.
    ///
    /// No rotation policy counts these signatures.
    ///
    /// ```
    /// use bulla_kms::succession::follow;
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let trusted = keystore.public_key(&key)?;
    /// assert!(keystore.successions(key.key_id())?.is_empty());
    /// let latest = keystore.rotate(key.key_id())?;
    ///
    /// let statements = keystore.successions(key.key_id())?;
    /// assert_eq!(follow(&trusted, Some(&key), &statements)[0].key, latest);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyNotFound`],
    /// [`Code::KeyDisabled`],
    /// [`Code::KeyPendingDestruction`],
    /// [`Code::KeyDestroyed`],
    /// [`Code::NoPrivateKey`],
    /// [`Code::KeyUsageMismatch`]; errors of reading the store, of
    /// the backend, and of recording.
    pub fn successions(&self, key_id: &KeyId) -> Result<Vec<Succession>> {
        check_usage(key_id.algorithm(), KeyUsage::Signature)?;
        check_purpose(key_id.into())?;
        // The private keys of older versions stay encrypted in the store until now.
        let (key, rows) = self.stored_key(key_id)?;
        check_enabled(&key.record)?;
        check_statements(&key.record)?;
        let usable: Vec<KeyVersionId> = numbered(&key).filter(|id| key.usable(id).is_ok()).collect();
        let mut statements = Vec::new();
        for (place, id) in usable.iter().enumerate() {
            if !key.version(id)?.is_held() {
                continue;
            }
            for successor in &usable[place + 1..] {
                statements.push(self.succession(&rows, &key, id, successor)?);
                if key.version(successor)?.is_held() {
                    break;
                }
            }
        }
        Ok(statements)
    }

    /// The statement of one version about a later one.
    fn succession(
        &self,
        rows: &Rows,
        key: &LoadedKey,
        id: &KeyVersionId,
        successor: &KeyVersionId,
    ) -> Result<Succession> {
        let unsigned = unsigned_succession(key, id, successor)?;
        let message = unsigned.signed_bytes();
        let signature = self.observed(Subject::message(AuditOperation::Sign, id, &message), || {
            let bytes = self.sign_as_older(rows, key, id, &message)?;
            Ok(Signature { key: id.clone(), bytes })
        })?;
        Ok(Succession { signature: signature.bytes, ..unsigned })
    }

    fn sign_as_older(
        &self,
        rows: &Rows,
        key: &LoadedKey,
        id: &KeyVersionId,
        message: &[u8],
    ) -> Result<Vec<u8>> {
        let name = id.to_string();
        let encrypted = rows
            .private_keys
            .get(&name)
            .ok_or_else(|| KmsError::corrupt(format!("the private key of {id} is missing from the store")))?;
        let material = self.cipher.decrypt(&EnvelopeKind::PrivateKey(name), encrypted)?;
        let algorithm = id.key_id().algorithm();
        let private_key = self.backends.find(&key.record.backend, algorithm)?.load(algorithm, &material)?;
        if !key.version(id)?.is_of(&*private_key)? {
            return Err(KmsError::corrupt(format!("the private key of {id} does not match its record")));
        }
        private_key.sign(message)
    }
}

/// The statement of one version about a later one, before it is signed.
pub(super) fn unsigned_succession(
    key: &LoadedKey,
    id: &KeyVersionId,
    successor: &KeyVersionId,
) -> Result<Succession> {
    let later = key.version(successor)?;
    Ok(Succession {
        key: id.clone(),
        public_key: key.version(id)?.public_key_of(id.key_id())?.clone(),
        successor: successor.clone(),
        successor_public_key: later.public_key_of(successor.key_id())?.clone(),
        time: later.created,
        signature: Vec::new(),
    })
}

/// The ids of all versions, version 1 first.
pub(super) fn numbered(key: &LoadedKey) -> impl Iterator<Item = KeyVersionId> {
    (1..=key.record.latest_number().get())
        .filter_map(std::num::NonZeroU32::new)
        .map(|version| key.record.key.version(version))
}
