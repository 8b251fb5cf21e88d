//! Callers whose credentials were verified, and the cache of their sessions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bulla_kms::audit_log::Actor;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, Keystore, Name, Timestamp};

use super::authority::Authority;
use super::quota::{KeyRoom, TenantQuota};
use super::rate_limit::RateLimiter;
use crate::error::{ApiError, Result};
use crate::policy::Acl;

/// A caller whose credential was verified, what it may do, and how much of its rate it has used.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) authority: Authority,
    /// The tenant of the credential, where the authority is about the keys of a mount.
    pub(crate) home: Option<Name>,
    /// The name of the caller in the audit log.
    pub(crate) actor: Actor,
    /// None for a caller without a limit. Tokens that were made from each other share one.
    pub(crate) limiter: Option<Arc<RateLimiter>>,
    /// What the tenant may use; none without a bound.
    pub(crate) quota: Option<Arc<TenantQuota>>,
    /// The revocation ids of a token's blocks.
    pub(crate) revocation_ids: Vec<String>,
    /// What each set of the authority's policies permits.
    pub(crate) acls: Vec<Arc<Acl>>,
}

impl Session {
    /// The tenant of the credential.
    pub(crate) fn home(&self) -> &Name {
        self.home.as_ref().unwrap_or(&self.authority.tenant)
    }

    /// The same caller at a mount, where the keys are those of another tenant.
    pub(crate) fn at_mount(&self, keys_tenant: &Name) -> Self {
        Self {
            authority: Authority { tenant: keys_tenant.clone(), ..self.authority.clone() },
            home: Some(self.home().clone()),
            actor: self.actor.clone(),
            limiter: self.limiter.clone(),
            quota: self.quota.clone(),
            revocation_ids: self.revocation_ids.clone(),
            acls: self.acls.clone(),
        }
    }

    /// The name under which slow work of the caller waits, and how much of it is done at once, if
    /// that has a bound. All tokens that were made from each other have one name, and so have all
    /// callers of a tenant with such a quota.
    pub(crate) fn slow_jobs(&self) -> (&str, Option<usize>) {
        if let Some((queue, most)) = self.quota.as_ref().and_then(|quota| quota.slow_jobs()) {
            return (queue, Some(most));
        }
        (self.revocation_ids.first().map_or(self.actor.as_str(), String::as_str), None)
    }

    /// Room for one more key of the tenant, until it is dropped.
    ///
    /// # Errors
    /// The tenant has as many keys as it may have.
    pub(crate) fn room_for_key(&self, keystore: &Keystore) -> Result<KeyRoom> {
        KeyRoom::hold(self.quota.as_ref(), keystore, &self.authority.tenant)
    }

    /// The name of the person or program: that of the settings, or of a token's holder. None for a
    /// token that names no holder.
    pub(crate) fn identity(&self) -> Option<&str> {
        match self.actor.as_str().rsplit_once(" token ") {
            _ if self.revocation_ids.is_empty() => Some(self.actor.as_str()),
            Some((holder, _)) => Some(holder),
            None => None,
        }
    }

    /// # Errors
    /// The caller may not do this with the key, or its time has ended.
    pub(crate) fn check(&self, operation: TokenOperation, key: &KeyId) -> Result<()> {
        if self.authority.permits(operation, key) { Ok(()) } else { Err(ApiError::forbidden()) }
    }

    /// # Errors
    /// The caller may not do this in its tenant.
    pub(crate) fn check_tenant(&self, operation: TokenOperation) -> Result<()> {
        if self.authority.permits_in_tenant(operation) { Ok(()) } else { Err(ApiError::forbidden()) }
    }

    /// # Errors
    /// The credential has expired.
    pub(crate) fn check_time(&self, now: Timestamp) -> Result<()> {
        if self.authority.has_expired(now) { Err(ApiError::forbidden()) } else { Ok(()) }
    }

    /// About how many bytes it takes. The holder of a token can make others of it, without the
    /// service, that name hundreds of keys or thousands of policies.
    fn size(&self) -> usize {
        /// With the memory around its parts.
        const SESSION_LEN: usize = 512;
        /// A key, or an id: its texts and its place in a list.
        const ENTRY_LEN: usize = 192;
        /// A policy: its name, and its place in two lists.
        const NAME_LEN: usize = 96;
        let Authority { keys, policies, .. } = &self.authority;
        let entries = keys.as_ref().map_or(0, BTreeSet::len) + self.revocation_ids.len();
        SESSION_LEN + ENTRY_LEN * entries + NAME_LEN * policies.iter().map(Vec::len).sum::<usize>()
    }

    /// Counts so many requests.
    ///
    /// # Errors
    /// The caller has made too many, or the tenant.
    pub(crate) fn count(&self, requests: u32) -> Result<()> {
        if let Some(limiter) = &self.limiter {
            limiter.check(requests, "too many requests")?;
        }
        self.quota.as_ref().map_or(Ok(()), |quota| quota.count_requests(requests))
    }
}

/// A number that grows whenever a cached verdict may be wrong: a token was revoked, or a root
/// key changed.
pub(crate) type Epoch = u64;

/// The digest of a credential. Credentials themselves are not kept, and a lookup compares no secret
/// byte by byte.
pub(crate) type CredentialDigest = [u8; 32];

/// The most sessions that are cached. A caller with more valid tokens only makes the service
/// verify them again.
const MAX_SESSIONS: usize = 65_536;
/// The most bytes that they take, about: as much as so many tokens that name a few policies or no
/// key.
const MAX_SESSION_BYTES: usize = 64 << 20;

/// Sessions by the digest of their credential, all of one epoch.
#[derive(Debug, Default)]
pub(crate) struct SessionCache(Mutex<CachedSessions>);

#[derive(Debug, Default)]
struct CachedSessions {
    epoch: Epoch,
    /// About how many bytes the sessions take.
    bytes: usize,
    sessions: HashMap<CredentialDigest, Arc<Session>>,
}

impl SessionCache {
    pub(crate) fn get(&self, digest: &CredentialDigest, epoch: Epoch) -> Option<Arc<Session>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.epoch == epoch { cached.sessions.get(digest).cloned() } else { None }
    }

    /// Remembers a session that was verified in `epoch`, unless another thread did meanwhile, and
    /// returns the one that counts.
    pub(crate) fn insert(&self, digest: CredentialDigest, epoch: Epoch, session: Session) -> Arc<Session> {
        self.insert_shared(digest, epoch, Arc::new(session))
    }

    /// As [`SessionCache::insert`], for a session that another cache shares.
    pub(crate) fn insert_shared(
        &self,
        digest: CredentialDigest,
        epoch: Epoch,
        session: Arc<Session>,
    ) -> Arc<Session> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.epoch > epoch {
            return session;
        }
        if let Some(known) = cached.sessions.get(&digest).filter(|_| cached.epoch == epoch) {
            return Arc::clone(known);
        }
        let size = session.size();
        let is_full = cached.sessions.len() >= MAX_SESSIONS || cached.bytes + size > MAX_SESSION_BYTES;
        if cached.epoch < epoch || is_full {
            *cached = CachedSessions { epoch, ..CachedSessions::default() };
        }
        cached.bytes += size;
        cached.sessions.insert(digest, Arc::clone(&session));
        session
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Authority, OperationSet};
    use super::*;

    fn session() -> Session {
        let operations = OperationSet::ALL;
        let tenant = "local".parse().unwrap();
        Session {
            authority: Authority {
                tenant,
                operations,
                keys: None,
                policies: Vec::new(),
                expires: None,
                can_mint_tokens: false,
            },
            home: None,
            actor: "somebody".parse().unwrap(),
            limiter: None,
            quota: None,
            revocation_ids: Vec::new(),
            acls: Vec::new(),
        }
    }

    #[test]
    fn a_session_is_remembered_for_its_epoch_and_not_beyond() {
        let sessions = SessionCache::default();
        assert!(sessions.get(&[1; 32], 0).is_none());
        let kept = sessions.insert([1; 32], 0, session());
        assert!(Arc::ptr_eq(&kept, &sessions.get(&[1; 32], 0).unwrap()));
        assert!(
            Arc::ptr_eq(&kept, &sessions.insert([1; 32], 0, session())),
            "the first one counts the requests"
        );
        assert!(sessions.get(&[2; 32], 0).is_none());
        assert!(sessions.get(&[1; 32], 1).is_none());
        sessions.insert([2; 32], 1, session());
        assert!(sessions.get(&[1; 32], 1).is_none() && sessions.get(&[2; 32], 1).is_some());
        // It was verified before the revocation, and must not be cached after it.
        sessions.insert([3; 32], 0, session());
        assert!(sessions.get(&[3; 32], 0).is_none() && sessions.get(&[3; 32], 1).is_none());
    }

    #[test]
    fn sessions_do_not_grow_without_bound() {
        let sessions = SessionCache::default();
        for number in 0..2 * MAX_SESSIONS as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            sessions.insert(digest, 0, session());
        }
        assert!(sessions.0.lock().unwrap().sessions.len() <= MAX_SESSIONS);
    }

    #[test]
    fn sessions_that_name_much_take_the_room_of_many() {
        let key = |number: u64| format!("a/b/ed25519/00000000-0000-7000-8000-{number:012x}").parse().unwrap();
        let keys: BTreeSet<KeyId> = (0..200).map(key).collect();
        let names: Vec<Name> = (0..3000).map(|number| format!("p{number}").parse().unwrap()).collect();
        for (keys, policies) in [(Some(keys), Vec::new()), (None, vec![names])] {
            let mut large = session();
            (large.authority.keys, large.authority.policies) = (keys, policies);
            let (sessions, most) = (SessionCache::default(), MAX_SESSION_BYTES / large.size());
            assert!(most < MAX_SESSIONS / 20, "it takes more than twenty others");
            for number in 0..2 * most as u64 {
                let mut digest = [0; 32];
                digest[..8].copy_from_slice(&number.to_le_bytes());
                sessions.insert(digest, 0, large.at_mount(&"local".parse().unwrap()));
            }
            let remembered = sessions.0.lock().unwrap().sessions.len();
            assert!((1..=most).contains(&remembered), "{remembered} of {most}");
        }
    }
}
