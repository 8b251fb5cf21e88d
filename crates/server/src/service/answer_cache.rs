//! The answers to requests with an idempotency key, so that a repetition gets the same one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, StatusCode};
use bulla_kms::Name;
use bulla_kms::audit_log::Actor;
use hyper::body::Bytes;

/// How long an answer is kept.
const ANSWER_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most keys of one caller that are remembered.
const MAX_KEYS_PER_CALLER: usize = 128;
/// The most bytes of answers to one caller.
const MAX_BYTES_PER_CALLER: usize = 256 << 10;
/// The most callers of one tenant.
const MAX_CALLERS_PER_TENANT: usize = 256;

/// The digest of a request.
pub(crate) type RequestDigest = [u8; 32];

/// The caller who sent the key. Callers do not see each other's keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnswerOwner {
    pub(crate) tenant: Name,
    pub(crate) actor: Actor,
}

/// An answer, to be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAnswer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub(crate) enum RequestOutcome {
    /// An answer to keep.
    Answered(StoredAnswer),
    /// An answer that is not kept, because it contains a secret or is unknown. A repetition must
    /// not make the change again.
    Unkept,
    /// Nothing was changed, and the caller may try again.
    Retryable,
}

/// The state of a key when a request arrives with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PriorRequest {
    /// The key is new: the caller must run the request, and then call [`AnswerCache::end`].
    None,
    /// The key was used for another request.
    AnotherRequest,
    /// The first request is still running.
    Running,
    Answered(StoredAnswer),
    /// The request ended, and its answer was not kept.
    Unkept,
    /// The caller, or its tenant, has too many requests that are still running.
    TooMany,
}

#[derive(Debug)]
struct KnownRequest {
    request: RequestDigest,
    begun: Instant,
    state: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    Running,
    Answered(StoredAnswer),
    Unkept,
}

impl KnownRequest {
    fn is_running(&self) -> bool {
        matches!(self.state, AnswerState::Running)
    }

    fn bytes(&self) -> usize {
        match &self.state {
            AnswerState::Answered(answer) => answer.body.len(),
            AnswerState::Running | AnswerState::Unkept => 0,
        }
    }
}

/// The known requests of one caller.
#[derive(Debug)]
struct CallerAnswers {
    keys: HashMap<String, KnownRequest>,
    /// The keys, the oldest first.
    order: VecDeque<String>,
    used: Instant,
}

impl CallerAnswers {
    fn new(now: Instant) -> Self {
        Self { keys: HashMap::new(), order: VecDeque::new(), used: now }
    }

    fn remove(&mut self, key: &str) {
        self.keys.remove(key);
        self.order.retain(|other| other != key);
    }

    /// Forgets the oldest key whose request is not running, if there is one.
    fn remove_oldest(&mut self) -> Option<()> {
        let is_done = |key: &&String| self.keys.get(*key).is_none_or(|known| !known.is_running());
        let oldest = self.order.iter().find(is_done)?.clone();
        self.remove(&oldest);
        Some(())
    }

    fn remove_expired(&mut self, now: Instant) {
        let is_over = |known: &KnownRequest| {
            !known.is_running() && now.saturating_duration_since(known.begun) >= ANSWER_LIFETIME
        };
        self.keys.retain(|_, known| !is_over(known));
        let keys = &self.keys;
        self.order.retain(|key| keys.contains_key(key));
    }

    fn bytes(&self) -> usize {
        self.keys.values().map(KnownRequest::bytes).sum()
    }

    fn has_running(&self) -> bool {
        self.keys.values().any(KnownRequest::is_running)
    }
}

/// The callers of one tenant.
type TenantAnswers = HashMap<Actor, CallerAnswers>;

/// The answers to requests with an idempotency key.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache(Mutex<HashMap<Name, TenantAnswers>>);

impl AnswerCache {
    /// Looks a key up. If it is new, its request counts as running from now on.
    pub(crate) fn begin(
        &self,
        owner: &AnswerOwner,
        key: &str,
        request: RequestDigest,
        now: Instant,
    ) -> PriorRequest {
        let mut tenants = self.lock();
        let callers = tenants.entry(owner.tenant.clone()).or_default();
        if !callers.contains_key(&owner.actor) && callers.len() >= MAX_CALLERS_PER_TENANT {
            let idle = callers.iter().filter(|(_, caller)| !caller.has_running());
            let Some(longest) = idle.min_by_key(|(_, caller)| caller.used).map(|(actor, _)| actor.clone())
            else {
                return PriorRequest::TooMany;
            };
            callers.remove(&longest);
        }
        let caller = callers.entry(owner.actor.clone()).or_insert_with(|| CallerAnswers::new(now));
        caller.used = now;
        caller.remove_expired(now);
        if let Some(known) = caller.keys.get(key) {
            return match &known.state {
                _ if known.request != request => PriorRequest::AnotherRequest,
                AnswerState::Running => PriorRequest::Running,
                AnswerState::Answered(answer) => PriorRequest::Answered(answer.clone()),
                AnswerState::Unkept => PriorRequest::Unkept,
            };
        }
        if caller.keys.len() >= MAX_KEYS_PER_CALLER && caller.remove_oldest().is_none() {
            return PriorRequest::TooMany;
        }
        caller.keys.insert(key.to_owned(), KnownRequest { request, begun: now, state: AnswerState::Running });
        caller.order.push_back(key.to_owned());
        PriorRequest::None
    }

    /// Stores how a request ended.
    pub(crate) fn end(&self, owner: &AnswerOwner, key: &str, ended: RequestOutcome) {
        let mut tenants = self.lock();
        let Some(caller) = tenants.get_mut(&owner.tenant).and_then(|callers| callers.get_mut(&owner.actor))
        else {
            return;
        };
        let state = match ended {
            RequestOutcome::Retryable => return caller.remove(key),
            RequestOutcome::Answered(answer) if answer.body.len() <= MAX_BYTES_PER_CALLER => {
                AnswerState::Answered(answer)
            }
            RequestOutcome::Answered(_) | RequestOutcome::Unkept => AnswerState::Unkept,
        };
        let bytes = match &state {
            AnswerState::Answered(answer) => answer.body.len(),
            AnswerState::Running | AnswerState::Unkept => 0,
        };
        // In the list the request itself still runs, so it is not removed to make room.
        while caller.bytes() + bytes > MAX_BYTES_PER_CALLER && caller.remove_oldest().is_some() {}
        if let Some(known) = caller.keys.get_mut(key) {
            known.state = state;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, TenantAnswers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(tenant: &str, actor: &str) -> AnswerOwner {
        AnswerOwner { tenant: tenant.parse().unwrap(), actor: actor.parse().unwrap() }
    }

    fn answer(bytes: usize) -> StoredAnswer {
        StoredAnswer { status: StatusCode::OK, content_type: None, body: vec![7; bytes].into() }
    }

    #[test]
    fn a_repetition_gets_the_answer_and_another_request_does_not() {
        let (answers, alice, now) = (AnswerCache::default(), owner("a", "alice"), Instant::now());
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), PriorRequest::None);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), PriorRequest::Running);
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), PriorRequest::AnotherRequest);
        answers.end(&alice, "k", RequestOutcome::Answered(answer(3)));
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), PriorRequest::Answered(answer(3)));
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), PriorRequest::AnotherRequest);
        for other in [owner("a", "bob"), owner("b", "alice")] {
            assert_eq!(
                answers.begin(&other, "k", [2; 32], now),
                PriorRequest::None,
                "keys belong to their caller"
            );
        }
    }

    #[test]
    fn a_day_later_a_key_is_new_unless_its_request_still_runs() {
        let (answers, alice, now) = (AnswerCache::default(), owner("a", "alice"), Instant::now());
        answers.begin(&alice, "k", [1; 32], now);
        answers.begin(&alice, "slow", [1; 32], now);
        answers.end(&alice, "k", RequestOutcome::Unkept);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now + ANSWER_LIFETIME / 2), PriorRequest::Unkept);
        assert_eq!(answers.begin(&alice, "slow", [1; 32], now + ANSWER_LIFETIME), PriorRequest::Running);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now + ANSWER_LIFETIME), PriorRequest::None);
    }

    #[test]
    fn what_may_be_tried_again_is_forgotten() {
        let (answers, alice, now) = (AnswerCache::default(), owner("a", "alice"), Instant::now());
        answers.begin(&alice, "k", [1; 32], now);
        answers.end(&alice, "k", RequestOutcome::Retryable);
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), PriorRequest::None);
    }

    #[test]
    fn the_oldest_answers_make_room_and_running_requests_do_not() {
        let (answers, alice, now) = (AnswerCache::default(), owner("a", "alice"), Instant::now());
        let key = |number: usize| format!("key-{number}");
        for number in 0..MAX_KEYS_PER_CALLER {
            assert_eq!(answers.begin(&alice, &key(number), [1; 32], now), PriorRequest::None);
        }
        assert_eq!(answers.begin(&alice, "more", [1; 32], now), PriorRequest::TooMany);
        answers.end(&alice, &key(5), RequestOutcome::Answered(answer(1)));
        assert_eq!(answers.begin(&alice, "more", [1; 32], now), PriorRequest::None);
        assert_eq!(answers.begin(&alice, &key(5), [1; 32], now), PriorRequest::TooMany, "it was forgotten");
    }

    #[test]
    fn answers_have_a_bound_in_bytes_and_one_that_is_too_long_is_not_kept() {
        let (answers, alice, now) = (AnswerCache::default(), owner("a", "alice"), Instant::now());
        for key in ["a", "b", "c"] {
            answers.begin(&alice, key, [1; 32], now);
            answers.end(&alice, key, RequestOutcome::Answered(answer(MAX_BYTES_PER_CALLER / 2)));
        }
        assert_eq!(
            answers.begin(&alice, "c", [1; 32], now),
            PriorRequest::Answered(answer(MAX_BYTES_PER_CALLER / 2))
        );
        assert_eq!(answers.begin(&alice, "a", [1; 32], now), PriorRequest::None);
        answers.end(&alice, "a", RequestOutcome::Answered(answer(MAX_BYTES_PER_CALLER + 1)));
        assert_eq!(answers.begin(&alice, "a", [1; 32], now), PriorRequest::Unkept);
    }

    #[test]
    fn a_tenant_has_so_many_callers_and_the_idle_ones_make_room() {
        let (answers, now) = (AnswerCache::default(), Instant::now());
        for number in 0..MAX_CALLERS_PER_TENANT {
            let later = now + Duration::from_secs(number as u64);
            let caller = owner("a", &format!("caller {number}"));
            assert_eq!(answers.begin(&caller, "k", [1; 32], later), PriorRequest::None);
            if number > 0 {
                answers.end(&caller, "k", RequestOutcome::Unkept);
            }
        }
        assert_eq!(answers.begin(&owner("a", "new"), "k", [1; 32], now), PriorRequest::None);
        assert_eq!(
            answers.begin(&owner("a", "caller 0"), "k", [1; 32], now),
            PriorRequest::Running,
            "it runs"
        );
        assert_eq!(answers.begin(&owner("a", "caller 2"), "k", [1; 32], now), PriorRequest::Unkept);
        assert_eq!(answers.lock()[&"a".parse::<Name>().unwrap()].len(), MAX_CALLERS_PER_TENANT);
        assert_eq!(answers.begin(&owner("b", "new"), "k", [1; 32], now), PriorRequest::None);
    }
}
