//! The answers to requests with an idempotency key, so that a repetition gets the same one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, StatusCode};
use bulla_kms::Name;
use bulla_kms::audit_log::Actor;
use hyper::body::Bytes;

/// How long an answer is kept.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most keys of one caller that are remembered.
const MOST_KEYS: usize = 128;
/// The most bytes of answers to one caller.
const MOST_BYTES: usize = 256 << 10;
/// The most callers of one tenant.
const MOST_CALLERS: usize = 256;

/// The digest of a request.
pub(crate) type RequestDigest = [u8; 32];

/// The caller who sent the key. Callers do not see each other's keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) tenant: Name,
    pub(crate) actor: Actor,
}

/// An answer, to be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// What a request ended with.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// An answer to keep.
    Answered(Answer),
    /// An answer that is not kept, because it contains a secret or is unknown. A repetition must
    /// not make the change again.
    Unkept,
    /// Nothing was changed, and the caller may try again.
    Again,
}

/// The state of a key when a request arrives with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// The key is new: the caller must run the request, and then call [`Answers::end`].
    Nothing,
    /// It is the key of another request.
    AnotherRequest,
    /// The first request is still running.
    Running,
    /// The answer.
    Answered(Answer),
    /// The request ended, and its answer was not kept.
    Unkept,
    /// The caller, or its tenant, has too many requests that are still running.
    TooMany,
}

#[derive(Debug)]
struct Remembered {
    request: RequestDigest,
    begun: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Running,
    Answered(Answer),
    Unkept,
}

impl Remembered {
    fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    fn bytes(&self) -> usize {
        match &self.state {
            State::Answered(answer) => answer.body.len(),
            State::Running | State::Unkept => 0,
        }
    }
}

/// What is remembered of one caller.
#[derive(Debug)]
struct OfCaller {
    keys: HashMap<String, Remembered>,
    /// The keys, the oldest first.
    order: VecDeque<String>,
    used: Instant,
}

impl OfCaller {
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
        let is_over = |known: &Remembered| {
            !known.is_running() && now.saturating_duration_since(known.begun) >= LIFETIME
        };
        self.keys.retain(|_, known| !is_over(known));
        let keys = &self.keys;
        self.order.retain(|key| keys.contains_key(key));
    }

    fn bytes(&self) -> usize {
        self.keys.values().map(Remembered::bytes).sum()
    }

    fn has_running(&self) -> bool {
        self.keys.values().any(Remembered::is_running)
    }
}

/// The callers of one tenant.
type OfTenant = HashMap<Actor, OfCaller>;

/// The answers to requests with an idempotency key.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<Name, OfTenant>>);

impl Answers {
    /// Looks a key up. If it is new, its request counts as running from now on.
    pub(crate) fn begin(&self, owner: &Owner, key: &str, request: RequestDigest, now: Instant) -> Before {
        let mut tenants = self.lock();
        let callers = tenants.entry(owner.tenant.clone()).or_default();
        if !callers.contains_key(&owner.actor) && callers.len() >= MOST_CALLERS {
            let idle = callers.iter().filter(|(_, caller)| !caller.has_running());
            let Some(longest) = idle.min_by_key(|(_, caller)| caller.used).map(|(actor, _)| actor.clone())
            else {
                return Before::TooMany;
            };
            callers.remove(&longest);
        }
        let caller = callers.entry(owner.actor.clone()).or_insert_with(|| OfCaller::new(now));
        caller.used = now;
        caller.remove_expired(now);
        if let Some(known) = caller.keys.get(key) {
            return match &known.state {
                _ if known.request != request => Before::AnotherRequest,
                State::Running => Before::Running,
                State::Answered(answer) => Before::Answered(answer.clone()),
                State::Unkept => Before::Unkept,
            };
        }
        if caller.keys.len() >= MOST_KEYS && caller.remove_oldest().is_none() {
            return Before::TooMany;
        }
        caller.keys.insert(key.to_owned(), Remembered { request, begun: now, state: State::Running });
        caller.order.push_back(key.to_owned());
        Before::Nothing
    }

    /// Stores how a request ended.
    pub(crate) fn end(&self, owner: &Owner, key: &str, ended: Ended) {
        let mut tenants = self.lock();
        let Some(caller) = tenants.get_mut(&owner.tenant).and_then(|callers| callers.get_mut(&owner.actor))
        else {
            return;
        };
        let state = match ended {
            Ended::Again => return caller.remove(key),
            Ended::Answered(answer) if answer.body.len() <= MOST_BYTES => State::Answered(answer),
            Ended::Answered(_) | Ended::Unkept => State::Unkept,
        };
        let bytes = match &state {
            State::Answered(answer) => answer.body.len(),
            State::Running | State::Unkept => 0,
        };
        // In the list the request itself still runs, so it is not removed to make room.
        while caller.bytes() + bytes > MOST_BYTES && caller.remove_oldest().is_some() {}
        if let Some(known) = caller.keys.get_mut(key) {
            known.state = state;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, OfTenant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(tenant: &str, actor: &str) -> Owner {
        Owner { tenant: tenant.parse().unwrap(), actor: actor.parse().unwrap() }
    }

    fn answer(bytes: usize) -> Answer {
        Answer { status: StatusCode::OK, content_type: None, body: vec![7; bytes].into() }
    }

    #[test]
    fn a_repetition_gets_the_answer_and_another_request_does_not() {
        let (answers, alice, now) = (Answers::default(), owner("a", "alice"), Instant::now());
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), Before::Nothing);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), Before::Running);
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), Before::AnotherRequest);
        answers.end(&alice, "k", Ended::Answered(answer(3)));
        assert_eq!(answers.begin(&alice, "k", [1; 32], now), Before::Answered(answer(3)));
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), Before::AnotherRequest);
        for other in [owner("a", "bob"), owner("b", "alice")] {
            assert_eq!(
                answers.begin(&other, "k", [2; 32], now),
                Before::Nothing,
                "keys belong to their caller"
            );
        }
    }

    #[test]
    fn a_day_later_a_key_is_new_unless_its_request_still_runs() {
        let (answers, alice, now) = (Answers::default(), owner("a", "alice"), Instant::now());
        answers.begin(&alice, "k", [1; 32], now);
        answers.begin(&alice, "slow", [1; 32], now);
        answers.end(&alice, "k", Ended::Unkept);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now + LIFETIME / 2), Before::Unkept);
        assert_eq!(answers.begin(&alice, "slow", [1; 32], now + LIFETIME), Before::Running);
        assert_eq!(answers.begin(&alice, "k", [1; 32], now + LIFETIME), Before::Nothing);
    }

    #[test]
    fn what_may_be_tried_again_is_forgotten() {
        let (answers, alice, now) = (Answers::default(), owner("a", "alice"), Instant::now());
        answers.begin(&alice, "k", [1; 32], now);
        answers.end(&alice, "k", Ended::Again);
        assert_eq!(answers.begin(&alice, "k", [2; 32], now), Before::Nothing);
    }

    #[test]
    fn the_oldest_answers_make_room_and_running_requests_do_not() {
        let (answers, alice, now) = (Answers::default(), owner("a", "alice"), Instant::now());
        let key = |number: usize| format!("key-{number}");
        for number in 0..MOST_KEYS {
            assert_eq!(answers.begin(&alice, &key(number), [1; 32], now), Before::Nothing);
        }
        assert_eq!(answers.begin(&alice, "more", [1; 32], now), Before::TooMany);
        answers.end(&alice, &key(5), Ended::Answered(answer(1)));
        assert_eq!(answers.begin(&alice, "more", [1; 32], now), Before::Nothing);
        assert_eq!(answers.begin(&alice, &key(5), [1; 32], now), Before::TooMany, "it was forgotten");
    }

    #[test]
    fn answers_have_a_bound_in_bytes_and_one_that_is_too_long_is_not_kept() {
        let (answers, alice, now) = (Answers::default(), owner("a", "alice"), Instant::now());
        for key in ["a", "b", "c"] {
            answers.begin(&alice, key, [1; 32], now);
            answers.end(&alice, key, Ended::Answered(answer(MOST_BYTES / 2)));
        }
        assert_eq!(answers.begin(&alice, "c", [1; 32], now), Before::Answered(answer(MOST_BYTES / 2)));
        assert_eq!(answers.begin(&alice, "a", [1; 32], now), Before::Nothing);
        answers.end(&alice, "a", Ended::Answered(answer(MOST_BYTES + 1)));
        assert_eq!(answers.begin(&alice, "a", [1; 32], now), Before::Unkept);
    }

    #[test]
    fn a_tenant_has_so_many_callers_and_the_idle_ones_make_room() {
        let (answers, now) = (Answers::default(), Instant::now());
        for number in 0..MOST_CALLERS {
            let later = now + Duration::from_secs(number as u64);
            let caller = owner("a", &format!("caller {number}"));
            assert_eq!(answers.begin(&caller, "k", [1; 32], later), Before::Nothing);
            if number > 0 {
                answers.end(&caller, "k", Ended::Unkept);
            }
        }
        assert_eq!(answers.begin(&owner("a", "new"), "k", [1; 32], now), Before::Nothing);
        assert_eq!(answers.begin(&owner("a", "caller 0"), "k", [1; 32], now), Before::Running, "it runs");
        assert_eq!(answers.begin(&owner("a", "caller 2"), "k", [1; 32], now), Before::Unkept);
        assert_eq!(answers.lock()[&"a".parse::<Name>().unwrap()].len(), MOST_CALLERS);
        assert_eq!(answers.begin(&owner("b", "new"), "k", [1; 32], now), Before::Nothing);
    }
}
