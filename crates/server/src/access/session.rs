//! Callers whose credentials were verified, and the cache of their sessions.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
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

/// When a credential was verified. Two numbers are in it: one grows whenever any verdict may be
/// wrong, because a root key changed for example, and one with the list of revoked tokens. The
/// holder of a token can revoke as many as it likes, and nobody else's is verified again for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epoch {
    const REVOCATION: u64 = 1;
    const ANY_VERDICT: u64 = 1 << 32;

    /// The number that grows whenever any verdict may be wrong.
    fn of_verdicts(self) -> u64 {
        self.0 / Self::ANY_VERDICT
    }
}

/// The epoch that counts now.
#[derive(Debug, Default)]
pub(crate) struct CurrentEpoch(AtomicU64);

impl CurrentEpoch {
    pub(crate) fn get(&self) -> Epoch {
        Epoch(self.0.load(Ordering::Acquire))
    }

    /// Any verdict of before may be wrong.
    pub(crate) fn forget_verdicts(&self) {
        self.0.fetch_add(Epoch::ANY_VERDICT, Ordering::Release);
    }

    /// The list of revoked tokens has changed.
    pub(crate) fn look_at_revocations(&self) {
        self.0.fetch_add(Epoch::REVOCATION, Ordering::Release);
    }
}

/// The digest of a credential. Credentials themselves are not kept, and a lookup compares no secret
/// byte by byte.
pub(crate) type CredentialDigest = [u8; 32];

/// The most sessions that are cached. A caller with more valid tokens only makes the service
/// verify them again.
const MAX_SESSIONS: usize = 65_536;
/// The most bytes that they take, about, and once more those of all threads together: as much as so
/// many tokens that name a few policies or no key.
const MAX_SESSION_BYTES: usize = 64 << 20;

/// Sessions by the digest of their credential, all of one epoch of verdicts.
#[derive(Debug)]
pub(crate) struct SessionCache {
    cached: Mutex<CachedSessions>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct CachedSessions {
    epoch: Epoch,
    /// About how many bytes the sessions take.
    bytes: usize,
    sessions: HashMap<CredentialDigest, CachedSession>,
}

#[derive(Debug)]
struct CachedSession {
    session: Arc<Session>,
    /// When it was last known not to be revoked.
    epoch: Epoch,
}

impl SessionCache {
    /// One of so many caches, which together take as much memory as a single one may.
    pub(crate) fn one_of(caches: usize) -> Self {
        Self { cached: Mutex::default(), most_bytes: MAX_SESSION_BYTES / caches.max(1) }
    }

    /// The session of a credential, if it still counts. `is_revoked` is asked whether one was
    /// revoked, if any was since.
    pub(crate) fn get(
        &self,
        digest: &CredentialDigest,
        epoch: Epoch,
        is_revoked: impl FnOnce(&Session) -> bool,
    ) -> Option<Arc<Session>> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cached.sessions.get_mut(digest)?;
        if known.epoch != epoch {
            if known.epoch.of_verdicts() != epoch.of_verdicts() || is_revoked(&known.session) {
                return None;
            }
            known.epoch = epoch;
        }
        Some(Arc::clone(&known.session))
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
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_cache, of_session) = (cached.epoch.of_verdicts(), epoch.of_verdicts());
        if of_cache > of_session {
            return session;
        }
        if let Some(known) = cached.sessions.get(&digest).filter(|_| of_cache == of_session) {
            return Arc::clone(&known.session);
        }
        let size = session.size();
        let is_full = cached.sessions.len() >= MAX_SESSIONS || cached.bytes + size > self.most_bytes;
        if of_cache < of_session || is_full {
            *cached = CachedSessions { epoch, ..CachedSessions::default() };
        }
        cached.bytes += size;
        cached.sessions.insert(digest, CachedSession { session: Arc::clone(&session), epoch });
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
        let (sessions, current) = (SessionCache::one_of(1), CurrentEpoch::default());
        let get = |number: u8, epoch| sessions.get(&[number; 32], epoch, |_| panic!("nothing was revoked"));
        let first = current.get();
        assert!(get(1, first).is_none());
        let kept = sessions.insert([1; 32], first, session());
        assert!(Arc::ptr_eq(&kept, &get(1, first).unwrap()));
        assert!(
            Arc::ptr_eq(&kept, &sessions.insert([1; 32], first, session())),
            "the first one counts the requests"
        );
        assert!(get(2, first).is_none());
        current.forget_verdicts();
        let second = current.get();
        assert!(get(1, second).is_none());
        sessions.insert([2; 32], second, session());
        assert!(get(1, second).is_none() && get(2, second).is_some());
        // It was verified before the change, and must not be cached after it.
        sessions.insert([3; 32], first, session());
        assert!(get(3, first).is_none() && get(3, second).is_none());
    }

    #[test]
    fn a_revocation_ends_the_sessions_that_it_names_and_keeps_the_others() {
        let (sessions, current) = (SessionCache::one_of(1), CurrentEpoch::default());
        let of = |id: &str| Session { revocation_ids: vec![id.to_owned()], ..session() };
        let [good, bad] = [[1; 32], [2; 32]];
        let before = current.get();
        let kept = sessions.insert(good, before, of("good"));
        sessions.insert(bad, before, of("bad"));
        current.look_at_revocations();
        let is_revoked = |session: &Session| session.revocation_ids == ["bad"];
        for _ in 0..2 {
            assert!(Arc::ptr_eq(&kept, &sessions.get(&good, current.get(), is_revoked).unwrap()));
            assert!(sessions.get(&bad, current.get(), is_revoked).is_none());
        }
        // Verified before a revocation, and remembered after it: it is looked at again.
        let late = [3; 32];
        sessions.insert(late, before, of("bad"));
        assert!(sessions.get(&late, current.get(), is_revoked).is_none());
        // Once it was looked at, nobody asks.
        assert!(sessions.get(&good, current.get(), |_| panic!("it was asked before")).is_some());
        current.forget_verdicts();
        assert!(sessions.get(&good, current.get(), is_revoked).is_none());
    }

    #[test]
    fn sessions_do_not_grow_without_bound() {
        let sessions = SessionCache::one_of(1);
        for number in 0..2 * MAX_SESSIONS as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            sessions.insert(digest, Epoch::default(), session());
        }
        assert!(sessions.cached.lock().unwrap().sessions.len() <= MAX_SESSIONS);
    }

    #[test]
    fn sessions_that_name_much_take_the_room_of_many() {
        let key = |number: u64| format!("a/b/ed25519/00000000-0000-7000-8000-{number:012x}").parse().unwrap();
        let keys: BTreeSet<KeyId> = (0..200).map(key).collect();
        let names: Vec<Name> = (0..3000).map(|number| format!("p{number}").parse().unwrap()).collect();
        for (keys, policies) in [(Some(keys), Vec::new()), (None, vec![names])] {
            let mut large = session();
            (large.authority.keys, large.authority.policies) = (keys, policies);
            // The caches of two threads have a half each.
            let (sessions, most) = (SessionCache::one_of(2), MAX_SESSION_BYTES / 2 / large.size());
            assert!(most < MAX_SESSIONS / 20, "it takes more than twenty others");
            for number in 0..2 * most as u64 {
                let mut digest = [0; 32];
                digest[..8].copy_from_slice(&number.to_le_bytes());
                sessions.insert(digest, Epoch::default(), large.at_mount(&"local".parse().unwrap()));
            }
            let remembered = sessions.cached.lock().unwrap().sessions.len();
            assert!((1..=most).contains(&remembered), "{remembered} of {most}");
        }
    }
}
