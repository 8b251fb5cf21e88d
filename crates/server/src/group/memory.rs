//! What this node remembers of the keys, whatever the keystore says.
//!
//! A node that was taken over has the root key, and can write any record into the keystore: one
//! without the rule of approvals, or one that says that a version was never used. It cannot make
//! the other nodes forget.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bulla_kms::approval::{ApprovalId, ApprovalRequest, ApprovalRule, KnownRule};
use bulla_kms::{Code, KeyVersionId, Keystore, KmsError, Result, Timestamp};
use bulla_threshold::SessionId;
use serde::{Deserialize, Serialize};

use super::shares::ShareFolder;

/// A limit of uses is counted on the disk in steps of this share of it: a node that is killed
/// forgets no part, and loses at most one step.
const STEPS: u64 = 1024;
/// The most parts of a step.
const MAX_STEP: u64 = 4096;

/// What a node remembers.
#[derive(Default)]
pub(super) struct NodeMemory {
    /// What is known of the key of each share; none until the files were read.
    keys: Mutex<Option<BTreeMap<SessionId, KnownKey>>>,
    /// The messages for which approved requests were used. They are in memory alone.
    requests: Mutex<HashMap<ApprovalId, UsedRequest>>,
}

/// What is known of the key of a share. It is a file beside the share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownKey {
    version: KeyVersionId,
    /// None if no rule was seen.
    rule: Option<KnownRule>,
    /// How many parts this node has signed, as far as uses of the version are limited. The file may
    /// have more.
    parts: u64,
    /// The number of parts in the file.
    #[serde(skip)]
    reserved: u64,
    /// Whether the log has an error about the key.
    #[serde(skip)]
    is_reported: bool,
}

impl KnownKey {
    fn write(&self, shares: &ShareFolder, group: SessionId, parts: u64) -> Result<()> {
        let written = Self { parts, ..self.clone() };
        let text = serde_json::to_vec(&written).expect("a known key has no values that can fail");
        shares.write_known(group, &text)
    }
}

struct UsedRequest {
    digest: bulla_blake3::Hash,
    expires: Timestamp,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forbidden(message: String) -> KmsError {
    KmsError::new(Code::Forbidden, message)
}

impl NodeMemory {
    /// Runs something with what is known of all keys.
    fn with_keys<T>(
        &self,
        shares: &ShareFolder,
        run: impl FnOnce(&mut BTreeMap<SessionId, KnownKey>) -> Result<T>,
    ) -> Result<T> {
        let mut keys = lock(&self.keys);
        if keys.is_none() {
            let mut read = BTreeMap::new();
            for (group, text) in shares.read_known()? {
                let known: KnownKey = serde_json::from_slice(&text).map_err(|error| {
                    KmsError::new(Code::KeystoreCorrupt, format!("a file of the group's folder: {error}"))
                })?;
                read.insert(group, KnownKey { reserved: known.parts, ..known });
            }
            *keys = Some(read);
        }
        run(keys.get_or_insert_default())
    }

    /// Looks at the key of a share, and remembers its version and its rule of approvals. A key
    /// never loses its rule, and gets another one only with approvals by the rule that is known.
    ///
    /// # Errors
    /// [`Code::Forbidden`]: the keystore says something else than it may; errors of the disk.
    pub(super) fn look(
        &self,
        shares: &ShareFolder,
        keystore: &Keystore,
        group: SessionId,
        version: &KeyVersionId,
    ) -> Result<()> {
        let key_id = version.key_id();
        self.with_keys(shares, |keys| {
            let own = keys.get(&group);
            // A new version of a key has the rule that the others have.
            let mut of_key = keys.values().filter(|known| known.version.key_id() == key_id);
            let known = of_key.find_map(|known| known.rule.clone());
            let looked = match own.filter(|own| own.version != *version) {
                Some(own) => Err(forbidden(format!(
                    "the keystore says that this node's share is one of {version}, and it was one of {}: somebody may have changed the store",
                    own.version
                ))),
                None => keystore.follow_rule(key_id, known.as_ref()),
            };
            let rule = match looked {
                Ok(rule) => rule,
                Err(error) => {
                    if let Some(own) = keys.get_mut(&group)
                        && !std::mem::replace(&mut own.is_reported, true)
                    {
                        tracing::error!(key = %key_id, "this node signs nothing with a key: {error}; if the change is right, remove {group}.known from the group's folder, and start the node anew");
                    }
                    return Err(error);
                }
            };
            if let Entry::Vacant(place) = keys.entry(group) {
                let new =
                    KnownKey { version: version.clone(), rule: rule.clone(), parts: 0, reserved: 0, is_reported: false };
                new.write(shares, group, 0)?;
                place.insert(new);
            }
            for (group, known) in keys.iter_mut().filter(|(_, known)| known.version.key_id() == key_id) {
                known.is_reported = false;
                if known.rule != rule {
                    tracing::info!(key = %key_id, "this node has seen another rule of approvals");
                    let changed = KnownKey { rule: rule.clone(), ..known.clone() };
                    changed.write(shares, *group, changed.reserved)?;
                    *known = changed;
                }
            }
            Ok(())
        })
    }

    /// An error unless this is the rule that is known of the key of a share.
    ///
    /// # Errors
    /// [`Code::Conflict`]: the record has changed since the node looked; errors of the disk.
    pub(super) fn check_rule(
        &self,
        shares: &ShareFolder,
        group: SessionId,
        rule: Option<&ApprovalRule>,
    ) -> Result<()> {
        self.with_keys(shares, |keys| match keys.get(&group).and_then(|known| known.rule.as_ref()) {
            None if rule.is_none() => Ok(()),
            Some(known) if known.matches(rule) => Ok(()),
            _ => Err(KmsError::new(Code::Conflict, "the rule of approvals was changed just now: try again")),
        })
    }

    /// Counts a part that is about to be signed.
    ///
    /// # Errors
    /// [`Code::UsesExhausted`]: this node has signed as many as the version may be used; errors of
    /// the disk.
    pub(super) fn count_part(
        &self,
        shares: &ShareFolder,
        group: SessionId,
        max_uses: NonZeroU64,
    ) -> Result<()> {
        self.with_keys(shares, |keys| {
            let known = keys
                .get_mut(&group)
                .ok_or_else(|| KmsError::new(Code::Internal, "a node looks at a key before it signs"))?;
            if known.parts >= max_uses.get() {
                let message = format!(
                    "this node has signed {} parts with {}, which is the limit of its uses: rotate the key",
                    known.parts, known.version
                );
                return Err(KmsError::new(Code::UsesExhausted, message));
            }
            if known.parts >= known.reserved {
                let reserved = known.parts + (max_uses.get() / STEPS).clamp(1, MAX_STEP);
                known.write(shares, group, reserved)?;
                known.reserved = reserved;
            }
            known.parts += 1;
            Ok(())
        })
    }

    /// Notes that a request is used for a message, before the part is signed. The same message may
    /// be asked for again: another node may not have answered.
    ///
    /// # Errors
    /// [`Code::ApprovalRequired`]: it was used for another message.
    pub(super) fn use_request(&self, request: &ApprovalRequest, message: &[u8]) -> Result<()> {
        let (digest, now) = (bulla_blake3::hash(message), Timestamp::now()?);
        let mut requests = lock(&self.requests);
        requests.retain(|_, used| used.expires > now);
        let used = requests.entry(request.id).or_insert(UsedRequest { digest, expires: request.expires });
        if used.digest == digest {
            return Ok(());
        }
        let message =
            format!("the request {} was used for another message already: make another request", request.id);
        Err(KmsError::new(Code::ApprovalRequired, message))
    }

    /// Forgets the key of a share that is destroyed.
    pub(super) fn forget(&self, group: SessionId) {
        if let Some(keys) = lock(&self.keys).as_mut() {
            keys.remove(&group);
        }
    }

    /// Writes the exact numbers: the node ends.
    pub(super) fn end(&self, shares: &ShareFolder) {
        for (group, known) in
            lock(&self.keys).iter().flatten().filter(|(_, known)| known.reserved > known.parts)
        {
            if let Err(error) = known.write(shares, *group, known.parts) {
                tracing::debug!("a part of a limit of uses is lost: {error}");
            }
        }
    }
}
