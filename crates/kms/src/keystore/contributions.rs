//! Parts of signatures that are put together elsewhere: a node that has one share of a key signs
//! its part only if its own view of the keystore permits it, and records that.

use std::num::NonZeroU64;

use base64ct::{Base64UrlUnpadded, Encoding as _};

use super::Keystore;
use super::batch::KeyMessage;
use super::index::LoadedKey;
use super::lifecycle::check_enabled;
use super::observe::Subject;
use super::signing::{
    SignedContent, check_authority, check_older, check_purpose, check_signs_messages, numbered,
    unsigned_succession,
};
use crate::algorithm::KeyUsage;
use crate::approval::{ApprovalRule, KeyUse};
use crate::attestation::Attestation;
use crate::audit_log::AuditOperation;
use crate::backend::check_usage;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeyVersionId};
use crate::prehash::Prehash;
use crate::public_key::PublicKey;
use crate::record::VersionRecord;
use crate::reserved::{self, RESERVED_PREFIXES};
use crate::rollback::SignedTime;
use crate::signature::{SignatureFile, Statement};
use crate::time::Timestamp;

/// What a keystore permits: see [`Keystore::contribute_batch`].
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct PermittedContribution {
    /// The most uses of the version, if the item is one of them and there is a limit.
    pub max_uses: Option<NonZeroU64>,
    /// The rule of approvals by which the item is permitted; none if the key has none.
    pub rule: Option<ApprovalRule>,
    /// The later version that the item names, if it is a statement of succession.
    pub successor: Option<KeyVersionId>,
}

/// By how many milliseconds the clocks of two machines may differ, and how long something that was
/// asked for may be on its way.
const MAX_DELAY: u64 = 60_000;

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
    /// the part for the item with this number. It is called only if this keystore's own view
    /// permits it, as if it signed the item itself: the key is enabled, the version signs, and the
    /// message is one that the key may sign.
    ///
    /// - An authority contributes to permitted certificates alone, and a key of JWTs to JWTs alone.
    /// - A key with a rule of approvals contributes to what this handle may make of it:
    ///   [`Keystore::with_approval`].
    /// - What a keystore says of its own keys is what this one says, too: attestations, and
    ///   statements of succession. A signed time is that of this clock, to a minute.
    /// - A version that was the latest one contributes for a minute after the rotation.
    ///
    /// If something is not permitted, the keystore catches up once and looks again: the other
    /// machine's view may be newer.
    ///
    /// No rotation policy counts these signatures: `contribute` gets the limit of uses, and the
    /// rule by which the item is permitted. The audit log has an entry for each item, as for a
    /// signature, and a part that cannot be recorded must not leave: its result is an error.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, KeyMessage, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let item = KeyMessage { key: (&key).into(), message: b"a message" };
    /// let mut parts = Vec::new();
    /// let results = keystore.contribute_batch(&[item], |place, permitted| {
    ///     assert!(permitted.max_uses.is_none() && permitted.rule.is_none());
    ///     parts.push(place);
    ///     Ok(())
    /// });
    /// assert!(results[0].is_ok());
    /// assert_eq!(parts, [0]);
    ///
    /// keystore.disable(key.key_id())?;
    /// let results = keystore.contribute_batch(&[item], |_, _| unreachable!());
    /// assert_eq!(results[0].as_ref().unwrap_err().code, Code::KeyDisabled);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn contribute_batch(
        &self,
        items: &[KeyMessage<'_>],
        mut contribute: impl FnMut(usize, PermittedContribution) -> Result<()>,
    ) -> Vec<Result<()>> {
        let mut is_current = false;
        let mut check = |item: &KeyMessage<'_>| match self.check_contribution(item) {
            Err(_) if !std::mem::replace(&mut is_current, true) && self.catch_up().is_ok() => {
                self.check_contribution(item)
            }
            checked => checked,
        };
        self.observed_each(
            AuditOperation::Sign,
            |place| Subject::message(AuditOperation::Sign, items[place].key, items[place].message),
            || {
                let one = |(place, item): (usize, &KeyMessage<'_>)| contribute(place, check(item)?);
                items.iter().enumerate().map(one).collect()
            },
        )
    }

    /// What this keystore says of one item: see [`Keystore::contribute_batch`]. Nothing is
    /// recorded.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyMessage, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let item = KeyMessage { key: (&key).into(), message: b"a message" };
    /// assert!(keystore.check_contribution(&item)?.rule.is_none());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`]; [`Code::Forbidden`] for a statement that this keystore
    /// would not make.
    pub fn check_contribution(&self, item: &KeyMessage<'_>) -> Result<PermittedContribution> {
        let KeyMessage { key, message } = *item;
        check_usage(key.key_id().algorithm(), KeyUsage::Signature)?;
        check_purpose(key)?;
        self.check_lease()?;
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        check_enabled(&loaded.record)?;
        let id = match key {
            KeyRef::Version(id) => id.clone(),
            KeyRef::Key(id) => id.version(loaded.record.latest_number()),
        };
        loaded.usable(&id)?;
        let now = Timestamp::now()?;
        let prefix = RESERVED_PREFIXES.into_iter().find(|prefix| message.starts_with(prefix));
        if prefix == Some(reserved::SUCCESSION) {
            // Older versions sign these, and no limit counts them.
            let successor = Some(check_succession(loaded, &id, message)?);
            let rule = loaded.record.approval.clone();
            return Ok(PermittedContribution { max_uses: None, rule, successor });
        }
        let content = if prefix.is_some() { SignedContent::Statement } else { SignedContent::Callers };
        check_version(loaded, &id, content, now)?;
        let is_use = prefix != Some(reserved::ATTESTATION);
        if is_use {
            check_age(loaded, &id, now)?;
        }
        let statement;
        let used = match prefix {
            None => {
                check_authority(loaded, &id, message)?;
                match check_signs_messages(key) {
                    Ok(()) => KeyUse::Message(message),
                    Err(error) if !is_jwt(message) => return Err(error),
                    Err(_) => KeyUse::Opaque,
                }
            }
            Some(reserved::ATTESTATION) => {
                self.check_attestation(loaded, message)?;
                KeyUse::Free
            }
            // Each machine has a log of its own, and knows nothing of the others'.
            Some(reserved::CHECKPOINT | reserved::WITNESSED) => KeyUse::Free,
            Some(reserved::TIME) => {
                let time = SignedTime::time_in(message).unwrap_or_default();
                check_is_now(time, now)?;
                KeyUse::Opaque
            }
            Some(reserved::APPROVAL) => KeyUse::Opaque,
            Some(_) => {
                check_signs_digest(loaded, message)?;
                statement = self.approved_statement(loaded, &id, message, now)?;
                match &statement {
                    Some((statement, prehash)) => KeyUse::Statement(statement, *prehash),
                    None if self.approved.is_none() => KeyUse::Message(message),
                    // An approved message is not one that could be taken for a statement.
                    None => KeyUse::Opaque,
                }
            }
        };
        self.check_approval(&loaded.record, &id, used)?;
        let limit = loaded.record.use_limit().filter(|_| is_use);
        let max_uses = limit.map(|limit| limit.max_uses);
        Ok(PermittedContribution { max_uses, rule: loaded.record.approval.clone(), successor: None })
    }

    /// The statement that this handle may sign, if the message is exactly that one, and its time is
    /// now. None for a key that needs no approvals.
    fn approved_statement(
        &self,
        key: &LoadedKey,
        id: &KeyVersionId,
        message: &[u8],
        now: Timestamp,
    ) -> Result<Option<(Statement, Option<Prehash>)>> {
        let Some(approved) = self.approved.as_deref().filter(|_| key.record.approval.is_some()) else {
            return Ok(None);
        };
        let (Some((statement, prehash)), Some(signed_at)) = (approved.statement(), approved.signed_at())
        else {
            return Ok(None);
        };
        let public_key = key.version(id)?.public_key_of(id.key_id())?;
        let expected = SignatureFile::message(&statement, prehash, id, public_key, signed_at);
        if expected.as_deref() != Some(message) {
            return Ok(None);
        }
        check_is_now(signed_at, now)?;
        Ok(Some((statement, prehash)))
    }

    /// An error unless this keystore says the same of its key. Who has shares of versions of which
    /// this machine has none, it does not know; and backups leave that out.
    fn check_attestation(&self, key: &LoadedKey, message: &[u8]) -> Result<()> {
        let refused = || {
            let message =
                format!("the attestation is not what this machine says of the key {}", key.record.key);
            KmsError::new(Code::Forbidden, message)
        };
        let json = message.strip_prefix(reserved::ATTESTATION).and_then(|rest| rest.strip_prefix(b"v1\0"));
        let said: Attestation = serde_json::from_slice(json.unwrap_or_default()).map_err(|_| refused())?;
        let mut own = Attestation::from(&key.record);
        if said.versions.iter().any(|version| version.shares.is_some()) {
            self.add_shares(&self.index.load(), &mut own);
            for (own, said) in own.versions.iter_mut().zip(&said.versions) {
                own.shares = own.shares.take().or_else(|| said.shares.clone());
            }
        }
        if own.signed_bytes() == message { Ok(()) } else { Err(refused()) }
    }
}

/// An error unless this version signs now, at any age.
fn check_version(key: &LoadedKey, id: &KeyVersionId, content: SignedContent, now: Timestamp) -> Result<()> {
    let latest = key.record.latest_number().get();
    let was_latest = id.version() + 1 == latest && before(now)? < key.record.latest_version().created;
    if id.version() == latest || was_latest { Ok(()) } else { check_older(key, id, content) }
}

/// An error if the key should have been rotated before this use of its latest version.
fn check_age(key: &LoadedKey, id: &KeyVersionId, now: Timestamp) -> Result<()> {
    let (record, latest) = (&key.record, key.record.latest_version());
    if id.version() != record.latest_number().get()
        || !record.rotation.is_too_old(latest.created, || before(now))?
    {
        return Ok(());
    }
    let message = format!("{id} is older than the key's rotation policy permits: rotate the key");
    Err(KmsError::new(Code::NotLatestVersion, message))
}

/// The earliest time at which a signature that arrives now was begun.
fn before(now: Timestamp) -> Result<Timestamp> {
    Timestamp::from_unix_millis(now.unix_millis().saturating_sub(MAX_DELAY))
}

/// The later version about which this keystore would make the same statement.
fn check_succession(key: &LoadedKey, id: &KeyVersionId, message: &[u8]) -> Result<KeyVersionId> {
    let later = numbered(key).filter(|later| later.version() > id.version() && key.usable(later).is_ok());
    for successor in later {
        if unsigned_succession(key, id, &successor)?.signed_bytes() == message {
            return Ok(successor);
        }
    }
    let message = format!("the statement names a successor of {id} that this machine does not know");
    Err(KmsError::new(Code::Forbidden, message))
}

/// An error if the message is a digest, and the key signs certificates alone.
fn check_signs_digest(key: &LoadedKey, message: &[u8]) -> Result<()> {
    let is_authority = key.record.ssh_authority.is_some() || key.record.x509_authority.is_some();
    if !is_authority || !message.starts_with(reserved::BLAKE3_DIGEST) {
        return Ok(());
    }
    let message = format!("the key {} signs certificates, and no digests", key.record.key);
    Err(KmsError::new(Code::KeyUsageMismatch, message))
}

fn check_is_now(time: Timestamp, now: Timestamp) -> Result<()> {
    if time.unix_millis().abs_diff(now.unix_millis()) <= MAX_DELAY {
        return Ok(());
    }
    let message = format!(
        "the time to be signed is {time}, and this machine's clock says {now}: the clocks of all machines must agree to a minute"
    );
    Err(KmsError::new(Code::Forbidden, message))
}

/// Whether a message is one that a JWT signs: a header and claims, both JSON objects in base64url
/// (RFC 7515, section 5.1).
fn is_jwt(message: &[u8]) -> bool {
    let is_object = |part: &str| {
        let json = Base64UrlUnpadded::decode_vec(part).unwrap_or_default();
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&json).is_ok()
    };
    let parts = std::str::from_utf8(message).ok().and_then(|text| text.split_once('.'));
    parts.is_some_and(|(header, claims)| is_object(header) && is_object(claims))
}
