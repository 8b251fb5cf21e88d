//! Signs with the head of a key, and rotates the key when its policy says so.

use std::sync::Arc;

use super::handle::Keystore;
use super::index::{LoadedKey, TOKENS};
use super::lifecycle::check_enabled;
use super::observe::Subject;
use super::writer::Edit;
use crate::algorithm::{Algorithm, Use};
use crate::attestation::{Attestation, SignedAttestation};
use crate::audit_log::{CheckpointSigner, OneCheckpoint, Operation, TreeHead, UnsignedCheckpoint};
use crate::backend::{SOFTWARE, wrong_use};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyFamily, KeyId, KeyRef, Name};
use crate::key_signature::Signature;
use crate::policy::RotationPolicy;
use crate::prehash::{Form, Prehashed, not_prehashed};
use crate::public_key::PublicKey;
use crate::record::KeyRecord;
use crate::reserved::RESERVED_PREFIXES;
use crate::rollback::SignedTime;
use crate::time::Timestamp;

impl Keystore {
    /// Signs `message` with a key's head. If the head has reached a limit of the key's rotation policy, the key is
    /// rotated first.
    ///
    /// The message is signed as it is. Messages that begin with one of [`RESERVED_PREFIXES`] are refused: their
    /// signature would pass for that of a signature file or an attestation.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::NotHead`] for an older version, [`Code::KeyDisabled`],
    /// [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`], [`Code::ReservedMessage`], [`Code::WrongUse`]; errors
    /// of the backend; if the key has a rotation policy, errors of writing.
    pub fn sign<'a>(&self, key: impl Into<KeyRef<'a>>, message: &[u8]) -> Result<Signature> {
        let key = key.into();
        self.observed(Subject::message(Operation::Sign, key, message), || {
            let (id, loaded) = self.head_for_message(key, message)?;
            let bytes = loaded.signer(&self.sealer, &self.backends)?.sign(message)?;
            Ok(Signature { key: id, bytes })
        })
    }

    /// Whether a signature by the key's head takes microseconds: it needs neither the disk nor a device, and the algorithm is fast.
    /// The answer for a key that does not exist means nothing.
    pub fn signs_quickly<'a>(&self, key: impl Into<KeyRef<'a>>) -> bool {
        let family = key.into().family();
        family.algorithm() == Algorithm::Ed25519
            && self
                .index
                .load()
                .key(family)
                .is_ok_and(|key| key.record.backend == SOFTWARE && key.record.rotation.max_uses.is_none())
    }

    /// A key's head, if it may sign this message; counts one use.
    pub(super) fn head_for_message(
        &self,
        key: KeyRef<'_>,
        message: &[u8],
    ) -> Result<(KeyId, Arc<LoadedKey>)> {
        if RESERVED_PREFIXES.iter().any(|reserved| message.starts_with(reserved)) {
            return Err(KmsError::new(
                Code::ReservedMessage,
                "the message begins like the statement of a signature file; sign it as a file or as a message statement",
            ));
        }
        if key.family().algorithm().usage() == Use::KeyEncapsulation {
            return Err(wrong_use(key.family().algorithm()));
        }
        check_purpose(key)?;
        self.check_lease()?;
        self.head_for_one_use(key)
    }

    /// Signs the message that `message` makes from the head's id and public key, once the head is chosen. The message
    /// must begin with one of [`RESERVED_PREFIXES`].
    pub(crate) fn sign_statement(
        &self,
        key: KeyRef<'_>,
        message: impl FnOnce(&KeyId, &PublicKey) -> Vec<u8>,
    ) -> Result<Signature> {
        let signing =
            match check_purpose(key).and_then(|()| self.check_lease()).and_then(|()| self.one_signature(key))
            {
                Ok(signing) => signing,
                Err(error) => return self.observed(Subject::key(Operation::Sign, key), || Err(error)),
            };
        let message = message(&signing.id, signing.public_key());
        self.observed(Subject::message(Operation::Sign, key, &message), || signing.sign(&message))
    }

    /// The right to make one signature with a key's head. Taking it may rotate the key; using it changes nothing.
    fn one_signature(&self, key: KeyRef<'_>) -> Result<OneSignature<'_>> {
        let (id, loaded) = self.head_for_one_use(key)?;
        Ok(OneSignature { keystore: self, id, loaded })
    }

    /// Signs the digest that `message` makes from the head's id and public key, once the head is chosen.
    pub(crate) fn sign_form(
        &self,
        key: KeyRef<'_>,
        message: impl FnOnce(&KeyId, &PublicKey) -> Prehashed,
    ) -> Result<Signature> {
        if key.family().algorithm() != Algorithm::Ed25519 {
            return Err(not_prehashed(key.family().algorithm()));
        }
        self.observed(Subject::key(Operation::Sign, key), || {
            check_purpose(key)?;
            self.check_lease()?;
            let (id, loaded) = self.head_for_one_use(key)?;
            let message = message(&id, &loaded.record.head_version().public_key);
            let signer = loaded.signer(&self.sealer, &self.backends)?;
            let bytes = match message.form() {
                Form::Message(framed) => signer.sign(&framed)?,
                Form::Ed25519ph(digest) => signer.sign_ed25519ph(&digest, message.context())?,
            };
            Ok(Signature { key: id, bytes })
        })
    }

    /// Signs a digest with the head of an Ed25519 key: like [`Keystore::sign`], for a message that is already hashed.
    ///
    /// # Errors
    /// [`Code::WrongUse`] if the key has another algorithm, or its backend does not sign digests of that kind; the errors
    /// of [`Keystore::sign`].
    pub fn sign_prehashed<'a>(&self, key: impl Into<KeyRef<'a>>, message: &Prehashed) -> Result<Signature> {
        self.sign_form(key.into(), |_, _| message.clone())
    }

    /// Signs the system clock's time and a nonce with a key's head, in answer to a
    /// [`TimeGuard`](crate::rollback::TimeGuard) elsewhere.
    ///
    /// # Errors
    /// [`Code::ClockOutOfRange`]; the errors of [`Keystore::sign`].
    pub fn sign_time(&self, family: &KeyFamily, nonce: &[u8; 32]) -> Result<SignedTime> {
        let time = Timestamp::now()?;
        let message = SignedTime::signed_bytes(nonce, time);
        let signature = self.sign_statement(KeyRef::Family(family), |_, _| message)?;
        Ok(SignedTime { time, signature })
    }

    /// A key's attestation, signed by its head.
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`].
    pub fn attest_signed(&self, family: &KeyFamily) -> Result<SignedAttestation> {
        self.observed(Subject::key(Operation::Attest, family), || {
            check_purpose(family.into())?;
            self.check_lease()?;
            let signing = self.one_signature(KeyRef::Family(family))?;
            let attestation = Attestation::from(&signing.loaded.record);
            let signature = signing.sign(&attestation.signed_bytes())?;
            Ok(SignedAttestation { attestation, signature })
        })
    }

    /// A key's head, if it may sign; counts one use.
    pub(super) fn head_for_one_use(&self, key: KeyRef<'_>) -> Result<(KeyId, Arc<LoadedKey>)> {
        loop {
            let (id, loaded) = self.head(key)?;
            let policy = loaded.record.rotation;
            if policy.is_too_old(loaded.record.head_version().created, Timestamp::now)? {
                self.replace(&id, |record| policy.is_too_old(record.head_version().created, Timestamp::now))?;
                continue;
            }
            match policy.max_uses {
                None => return Ok((id, loaded)),
                Some(_) if loaded.head.take_use() => return Ok((id, loaded)),
                Some(max_uses) if loaded.record.head_version().uses < max_uses.get() => self.reserve(&id)?,
                Some(max_uses) => {
                    self.replace(&id, |record| Ok(record.head_version().uses >= max_uses.get()))?;
                }
            }
        }
    }

    /// Rotates a key if its head is still `head` and it is still `due`: of many threads that find it due, only one
    /// rotates it.
    fn replace(&self, head: &KeyId, due: impl Fn(&KeyRecord) -> Result<bool>) -> Result<()> {
        let wanted = |record: &KeyRecord| Ok(record.head().get() == head.version() && due(record)?);
        let _reserved = self.reserve_entry(Operation::Rotate)?;
        match self.rotate_if(head.family(), wanted)? {
            Some(id) => self.note(Subject::key(Operation::Rotate, &id)),
            None => Ok(()),
        }
    }

    /// Reserves further uses of a head: the store counts them before they are made.
    fn reserve(&self, head: &KeyId) -> Result<()> {
        let mut reserved = 0;
        let edited = self.edit(|index| {
            let old = index.key(head.family())?;
            let mut record = old.record.clone();
            let version = record.versions.last_mut().expect("a record has a version");
            reserved =
                record.rotation.max_uses.map_or(0, |max| RotationPolicy::reservation(max, version.uses));
            version.uses += reserved;
            let still_head = old.record.head().get() == head.version();
            Ok((still_head && reserved > 0).then_some(Edit { record, new_head: None }))
        })?;
        if let Some(key) = edited {
            key.head.reserve(reserved);
        }
        Ok(())
    }

    /// A key's head, if it may sign.
    fn head(&self, key: KeyRef<'_>) -> Result<(KeyId, Arc<LoadedKey>)> {
        let index = self.index.load();
        let loaded = index.key(key.family())?;
        let head = loaded.record.head();
        if let KeyRef::Exact(id) = key {
            loaded.version(id)?;
            if id.version() != head.get() {
                return Err(KmsError::new(
                    Code::NotHead,
                    format!("{id} is an older version and does not sign; version {head} signs"),
                ));
            }
        }
        check_enabled(&loaded.record)?;
        Ok((loaded.record.key.version(head), Arc::clone(loaded)))
    }
}

pub(super) fn check_purpose(key: KeyRef<'_>) -> Result<()> {
    if key.family().purpose().as_str() != TOKENS {
        return Ok(());
    }
    let message = format!("the key {} has the purpose {TOKENS}, and signs only tokens", key.family());
    Err(KmsError::new(Code::WrongUse, message))
}

/// The right to make one signature: see [`Keystore::one_signature`].
struct OneSignature<'a> {
    keystore: &'a Keystore,
    id: KeyId,
    loaded: Arc<LoadedKey>,
}

impl OneSignature<'_> {
    /// The public key that verifies the signature.
    fn public_key(&self) -> &PublicKey {
        &self.loaded.record.head_version().public_key
    }

    /// Signs without recording, and without taking a lock of the keystore.
    fn sign(&self, message: &[u8]) -> Result<Signature> {
        let Keystore { sealer, backends, .. } = self.keystore;
        let bytes = self.loaded.signer(sealer, backends)?.sign(message)?;
        Ok(Signature { key: self.id.clone(), bytes })
    }
}

impl CheckpointSigner for Keystore {
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>> {
        self.find(tenant, label)
    }

    fn one_checkpoint(&self, key: KeyRef<'_>) -> Result<Box<dyn OneCheckpoint + '_>> {
        Ok(Box::new(self.one_signature(key)?))
    }
}

impl OneCheckpoint for OneSignature<'_> {
    fn public_key(&self) -> &PublicKey {
        OneSignature::public_key(self)
    }

    fn sign_checkpoint(&self, checkpoint: &UnsignedCheckpoint) -> Result<Signature> {
        self.sign(checkpoint.signed_text().as_bytes())
    }

    fn sign_tree_head(&self, head: &TreeHead) -> Result<Signature> {
        self.sign(head.signed_text().as_bytes())
    }
}
