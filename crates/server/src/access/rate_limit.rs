//! How many requests a caller may make.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiErrorCode};

/// A rate: requests per second, and the most at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRate {
    /// Requests a second over a long time.
    pub per_second: NonZeroU32,
    /// The most requests at once.
    pub burst: NonZeroU32,
}

/// How many nodes share the rates. Each gives a caller its part.
#[derive(Clone, Debug)]
pub(crate) struct NodeCount(Arc<AtomicU32>);

impl NodeCount {
    /// A service that shares them with no other node.
    pub(crate) fn one() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }

    /// Sets the number for all requests from now on.
    pub(crate) fn set(&self, number: u32) {
        self.0.store(number.max(1), Ordering::Relaxed);
    }

    fn number(&self) -> u64 {
        u64::from(self.0.load(Ordering::Relaxed))
    }
}

/// Holds a caller to a rate, by the generic cell rate algorithm (ITU-T I.371): one time says how
/// much of the burst is used.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    start: Instant,
    /// When the caller could have made its requests at the steady rate, in nanoseconds after
    /// `start`.
    due: AtomicU64,
    /// The time between two requests, if all of them come to this node.
    interval: u64,
    tolerance: u64,
    nodes: NodeCount,
}

impl RateLimiter {
    /// Holds a caller to this node's part of a rate.
    pub(crate) fn new(rate: RequestRate, nodes: &NodeCount) -> Self {
        let interval = Duration::from_nanos(1_000_000_000 / u64::from(rate.per_second.get()));
        Self { nodes: nodes.clone(), ..Self::spaced(interval, rate.burst) }
    }

    /// One request in each `interval`, and at most `burst` at once after a pause.
    pub(crate) fn spaced(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let tolerance = interval.saturating_mul(u64::from(burst.get() - 1));
        Self { start: Instant::now(), due: AtomicU64::new(0), interval, tolerance, nodes: NodeCount::one() }
    }

    /// Counts `requests`, or refuses all of them and returns how long to wait.
    pub(crate) fn take(&self, requests: u32) -> Result<(), Duration> {
        self.take_at(requests, self.now())
    }

    /// Counts `requests` as [`RateLimiter::take`] does.
    ///
    /// # Errors
    /// All are refused: `why`, and how long to wait.
    pub(crate) fn check(&self, requests: u32, why: &str) -> Result<(), ApiError> {
        self.take(requests).map_err(|wait| {
            let message = format!("{why}: try again in {} ms", wait.as_millis() + 1);
            ApiError::new(ApiErrorCode::RateLimited, message)
        })
    }

    /// Whether the caller could make its whole burst at once.
    fn is_idle(&self) -> bool {
        self.due.load(Ordering::Relaxed) <= self.now()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn take_at(&self, requests: u32, now: u64) -> Result<(), Duration> {
        let cost = self.interval.saturating_mul(u64::from(requests));
        // Of N nodes, each waits N times as long. A batch of the whole burst passes nonetheless, if
        // the caller made no requests before.
        let paid = cost.saturating_mul(self.nodes.number());
        let mut due = self.due.load(Ordering::Relaxed);
        loop {
            let begin = due.max(now);
            // The first request of a batch is due like a single one. The others follow it.
            let last = begin.saturating_add(cost - self.interval.min(cost));
            let wait = last.saturating_sub(now.saturating_add(self.tolerance));
            if wait > 0 {
                return Err(Duration::from_nanos(wait));
            }
            let next = begin.saturating_add(paid);
            match self.due.compare_exchange_weak(due, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => due = other,
            }
        }
    }
}

/// The most limiters that are kept. Each is one token that an operator minted, so callers cannot
/// fill them.
const MAX_LIMITERS: usize = 65_536;

/// The limiters of tokens, each by the id of the token from which its holder may have made others.
#[derive(Debug)]
pub(crate) struct TokenRateLimiters {
    table: Mutex<LimiterTable>,
    nodes: NodeCount,
}

#[derive(Debug)]
struct LimiterTable {
    /// None lets everything pass.
    rate: Option<RequestRate>,
    by_id: HashMap<String, Arc<RateLimiter>>,
}

impl TokenRateLimiters {
    pub(crate) fn new(rate: Option<RequestRate>) -> Self {
        Self { table: Mutex::new(LimiterTable { rate, by_id: HashMap::new() }), nodes: NodeCount::one() }
    }

    /// How many nodes share the rates.
    pub(crate) fn nodes(&self) -> &NodeCount {
        &self.nodes
    }

    /// Sets everybody's rate. If it differs from the old one, all limiters start again.
    pub(crate) fn set_rate(&self, rate: Option<RequestRate>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.rate != rate {
            *table = LimiterTable { rate, by_id: HashMap::new() };
        }
    }

    /// The limiter for `id`: the same one each time, also after a session was forgotten.
    pub(crate) fn limiter_for(&self, id: &str) -> Option<Arc<RateLimiter>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = table.rate?;
        if let Some(limiter) = table.by_id.get(id) {
            return Some(Arc::clone(limiter));
        }
        if table.by_id.len() >= MAX_LIMITERS {
            // A new limiter decides like one whose caller is not ahead of its rate.
            table.by_id.retain(|_, limiter| Arc::strong_count(limiter) > 1 || !limiter.is_idle());
        }
        if table.by_id.len() >= MAX_LIMITERS {
            table.by_id.clear();
        }
        let limiter = Arc::new(RateLimiter::new(rate, &self.nodes));
        table.by_id.insert(id.to_owned(), Arc::clone(&limiter));
        Some(limiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn limiter(per_second: u32, burst: u32) -> RateLimiter {
        let (per_second, burst) = (per_second.try_into().unwrap(), burst.try_into().unwrap());
        RateLimiter::new(RequestRate { per_second, burst }, &NodeCount::one())
    }

    /// How many of `tries` single requests at `now` pass.
    fn passing(limiter: &RateLimiter, tries: u32, now: u64) -> u32 {
        (0..tries).map(|_| u32::from(limiter.take_at(1, now).is_ok())).sum()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limiter = limiter(10, 5);
        assert_eq!(passing(&limiter, 100, 0), 5);
        assert_eq!(passing(&limiter, 100, SECOND / 10), 1);
        assert_eq!(passing(&limiter, 100, SECOND / 10 + SECOND / 5), 2);
        assert_eq!(passing(&limiter, 100, 100 * SECOND), 5, "a pause gives the burst back, and no more");
    }

    #[test]
    fn nodes_share_a_rate() {
        let (one, other) = (limiter(12, 6), limiter(12, 6));
        one.nodes.set(3);
        assert_eq!(passing(&one, 100, 0), 2, "a third of the burst");
        let passed: u32 = (1..=40).map(|quarter| passing(&one, 100, quarter * SECOND / 4)).sum();
        assert_eq!(passed, 40, "a third of the rate, for ten seconds");
        assert_eq!(passing(&other, 100, 0), 6, "another service has its own rate");
        // The number of nodes counts from the next request on.
        one.nodes.set(1);
        assert_eq!(passing(&one, 100, 100 * SECOND), 6);
        one.nodes.set(0);
        assert_eq!(passing(&one, 100, 200 * SECOND), 6, "there is at least the node itself");
    }

    #[test]
    fn a_batch_of_the_whole_burst_passes_on_any_number_of_nodes_and_is_paid_for() {
        let limiter = limiter(12, 6);
        limiter.nodes.set(3);
        assert!(limiter.take_at(7, 0).is_err());
        assert!(limiter.take_at(6, 0).is_ok());
        // Six requests of a third of the rate take 1.5 s. Then it has the rest of the burst before
        // it.
        assert!(limiter.take_at(6, SECOND).is_err());
        assert!(limiter.take_at(6, SECOND * 3 / 2).is_ok());
    }

    #[test]
    fn a_batch_counts_as_its_items_and_is_taken_whole_or_not_at_all() {
        let limiter = limiter(10, 5);
        assert!(limiter.take_at(6, 0).is_err());
        assert!(limiter.take_at(5, 0).is_ok());
        let wait = limiter.take_at(1, 0).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(limiter.take_at(1, SECOND / 10).is_ok(), "after that wait it passes");
        assert!(
            limiter.take_at(0, SECOND / 10).is_err(),
            "nothing passes while the caller is ahead of its rate"
        );
    }

    #[test]
    fn an_id_has_one_limiter_until_the_rate_changes() {
        let rate = |per_second: u32| {
            Some(RequestRate { per_second: per_second.try_into().unwrap(), burst: 5.try_into().unwrap() })
        };
        let limiters = TokenRateLimiters::new(None);
        assert!(limiters.limiter_for("a").is_none());
        limiters.set_rate(rate(1));
        let first = limiters.limiter_for("a").unwrap();
        assert!(Arc::ptr_eq(&first, &limiters.limiter_for("a").unwrap()));
        assert!(!Arc::ptr_eq(&first, &limiters.limiter_for("b").unwrap()));
        limiters.set_rate(rate(1));
        assert!(Arc::ptr_eq(&first, &limiters.limiter_for("a").unwrap()));
        limiters.set_rate(rate(2));
        assert!(!Arc::ptr_eq(&first, &limiters.limiter_for("a").unwrap()));
    }

    #[test]
    fn limiters_do_not_grow_without_bound_and_forget_the_idle_first() {
        let second = 1.try_into().unwrap();
        let limiters =
            TokenRateLimiters::new(Some(RequestRate { per_second: second, burst: 5.try_into().unwrap() }));
        let busy = limiters.limiter_for("busy").unwrap();
        busy.take(5).unwrap();
        let address = Arc::as_ptr(&busy);
        drop(busy);
        for number in 0..MAX_LIMITERS {
            limiters.limiter_for(&number.to_string());
        }
        assert!(limiters.table.lock().unwrap().by_id.len() < 10);
        assert_eq!(Arc::as_ptr(&limiters.limiter_for("busy").unwrap()), address);
    }
}
