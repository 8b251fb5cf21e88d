//! A batcher's queue, without threads and without a clock: which calls wait, which come next, and
//! when a batch begins.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::id::Name;

/// How a queue behaves. All lengths are numbers of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) target: usize,
    pub(super) max: usize,
    pub(super) max_wait: Duration,
    pub(super) capacity: usize,
    pub(super) tenant_capacity: usize,
    pub(super) workers: NonZeroUsize,
}

/// One step of the widest kernel computes this many. Fewer take as long.
const LANES: usize = 8;

/// Why a batch begins.
///
/// ```
/// use bulla_kms::batcher::Reason;
///
/// // The values of a label, for example of a metric.
/// let words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
/// assert_eq!(words, ["full", "idle", "deadline", "closing"]);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Enough calls wait: waiting for more would gain nothing.
    Full,
    /// No worker is busy, so there is no reason to wait.
    Idle,
    /// The oldest call has waited for the longest time that is allowed.
    Deadline,
    /// The batcher is being closed.
    Closing,
}

impl Reason {
    /// All reasons.
    pub const ALL: &[Self] = &[Self::Full, Self::Idle, Self::Deadline, Self::Closing];

    /// The reason as a word that never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Closing => "closing",
        }
    }
}

/// The next step of an idle worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take this many calls, for this reason.
    Take(usize, Reason),
    /// Wait for this time, or until something changes.
    WaitFor(Duration),
    /// Wait until something changes.
    Wait,
    /// End: no call will come any more.
    End,
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many calls wait.
    Full,
    /// Too many calls of the tenant wait.
    TenantFull,
    /// The queue is closed.
    Closed,
}

/// A call in the queue.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    number: u64,
    pub(super) since: Duration,
    pub(super) call: T,
}

/// The calls of each tenant, in the order in which they came. Times are those of the caller's
/// clock.
#[derive(Debug)]
pub(super) struct Queue<T> {
    shape: Shape,
    tenants: BTreeMap<Name, VecDeque<Waiting<T>>>,
    /// Tenants that have calls. It is the first one's turn.
    turns: VecDeque<Name>,
    len: usize,
    next_number: u64,
    /// How many workers are busy, and how many calls they have.
    running: usize,
    computing: usize,
    /// How many workers sleep, and how many of these were woken but do not run yet.
    sleeping: usize,
    woken: usize,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            tenants: BTreeMap::new(),
            turns: VecDeque::new(),
            len: 0,
            next_number: 0,
            running: 0,
            computing: 0,
            sleeping: 0,
            woken: 0,
            closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether no call waits and no worker is busy.
    pub(super) fn is_idle(&self) -> bool {
        self.len == 0 && self.running == 0
    }

    /// Adds a call and returns its number, which is unique within its tenant; or returns the call
    /// if it is refused.
    pub(super) fn push(&mut self, tenant: &Name, now: Duration, call: T) -> Result<u64, (Refused, T)> {
        if self.closed {
            return Err((Refused::Closed, call));
        }
        if self.len >= self.shape.capacity {
            return Err((Refused::Full, call));
        }
        let number = self.next_number;
        let waiting = Waiting { number, since: now, call };
        match self.tenants.get_mut(tenant) {
            Some(calls) if calls.len() >= self.shape.tenant_capacity => {
                return Err((Refused::TenantFull, waiting.call));
            }
            Some(calls) => calls.push_back(waiting),
            None => {
                self.tenants.insert(tenant.clone(), VecDeque::from([waiting]));
                self.turns.push_back(tenant.clone());
            }
        }
        self.len += 1;
        self.next_number += 1;
        Ok(number)
    }

    /// Removes a call whose caller has gone; `None` if a worker has it already.
    pub(super) fn remove(&mut self, tenant: &Name, number: u64) -> Option<T> {
        let calls = self.tenants.get_mut(tenant)?;
        let place = calls.binary_search_by_key(&number, |waiting| waiting.number).ok()?;
        let waiting = calls.remove(place)?;
        if calls.is_empty() {
            self.tenants.remove(tenant);
            self.turns.retain(|other| other != tenant);
        }
        self.len -= 1;
        Some(waiting.call)
    }

    /// How many calls make a batch while other workers are busy: the share of one worker.
    fn worth(&self) -> usize {
        let share = (self.len + self.computing).div_ceil(self.shape.workers.get());
        share.max(LANES).min(self.shape.target)
    }

    /// The next step of a free worker.
    pub(super) fn next(&self, now: Duration) -> Next {
        if self.len == 0 {
            return if self.closed { Next::End } else { Next::Wait };
        }
        let waited = || now.saturating_sub(self.oldest());
        let reason = if self.closed {
            Reason::Closing
        } else if self.len >= self.worth() {
            Reason::Full
        } else if self.running == 0 {
            Reason::Idle
        } else if waited() >= self.shape.max_wait {
            Reason::Deadline
        } else {
            return Next::WaitFor(self.shape.max_wait - waited());
        };
        // The free workers share the waiting calls, in whole steps of the kernel.
        let free = self.shape.workers.get().saturating_sub(self.running).max(1);
        let share = self.len.div_ceil(free).next_multiple_of(LANES).max(LANES);
        Next::Take(share.min(self.len).min(self.shape.max), reason)
    }

    fn oldest(&self) -> Duration {
        let fronts = self.tenants.values().filter_map(VecDeque::front);
        fronts.map(|waiting| waiting.since).min().unwrap_or_default()
    }

    /// Removes calls, one of each tenant in turn, and counts a worker as busy until
    /// [`Queue::done`].
    pub(super) fn take(&mut self, count: usize) -> Vec<Waiting<T>> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Some(tenant) = self.turns.pop_front() else { break };
            let Some(calls) = self.tenants.get_mut(&tenant) else { continue };
            taken.extend(calls.pop_front());
            if calls.is_empty() {
                self.tenants.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
        self.len -= taken.len();
        self.begin(taken.len());
        taken
    }

    /// Counts a worker as busy.
    pub(super) fn begin(&mut self, calls: usize) {
        self.running += 1;
        self.computing += calls;
    }

    /// A worker has finished this many calls.
    pub(super) fn done(&mut self, calls: usize) {
        self.running -= 1;
        self.computing -= calls;
    }

    /// Counts a worker as asleep until [`Queue::wake`].
    pub(super) fn sleep(&mut self) {
        self.sleeping += 1;
    }

    /// A worker is awake again.
    pub(super) fn wake(&mut self) {
        self.sleeping -= 1;
        // It may also have woken by itself. Then a worker is woken once too often, which does no
        // harm.
        self.woken = self.woken.saturating_sub(1);
    }

    /// Whether to wake a worker after a call came in. Not every call needs one.
    pub(super) fn wakes_for_call(&mut self) -> bool {
        let is_worth = self.running < self.shape.workers.get() && self.len >= self.worth();
        (self.len == 1 || is_worth) && self.wakes()
    }

    /// Whether to wake a worker for the calls that are left after another worker took its part or
    /// finished.
    pub(super) fn wakes_for_rest(&mut self) -> bool {
        self.len > 0 && self.wakes()
    }

    /// Whether there is a sleeping worker that nobody has woken. It counts as woken from now on. A
    /// worker that was woken may still wait long for a processor, so others are woken too.
    fn wakes(&mut self) -> bool {
        let sleeps = self.sleeping > self.woken;
        self.woken += usize::from(sleeps);
        sleeps
    }

    /// Whether the queue refuses new calls.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Refuses new calls from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape {
        target: 64,
        max: 256,
        max_wait: Duration::from_micros(500),
        capacity: 1000,
        tenant_capacity: 400,
        workers: NonZeroUsize::MIN,
    };
    const NOW: Duration = Duration::from_secs(1);

    fn tenant(number: usize) -> Name {
        format!("tenant-{number}").parse().unwrap()
    }

    fn calls(taken: Vec<Waiting<usize>>) -> Vec<usize> {
        taken.into_iter().map(|waiting| waiting.call).collect()
    }

    #[test]
    fn a_lone_call_does_not_wait() {
        let mut queue = Queue::new(SHAPE);
        assert_eq!(queue.next(NOW), Next::Wait);
        queue.sleep();
        queue.push(&tenant(0), NOW, 7).unwrap();
        assert!(queue.wakes_for_call());
        queue.wake();
        assert_eq!(queue.next(NOW), Next::Take(1, Reason::Idle));
        assert_eq!(calls(queue.take(1)), [7]);
        assert_eq!(queue.next(NOW), Next::Wait);
    }

    #[test]
    fn while_another_batch_is_computed_calls_gather_until_the_deadline() {
        let mut queue = Queue::new(Shape { workers: 2.try_into().unwrap(), ..SHAPE });
        queue.push(&tenant(0), NOW, 0).unwrap();
        queue.take(1);
        queue.push(&tenant(0), NOW, 1).unwrap();
        let later = NOW + Duration::from_micros(100);
        queue.push(&tenant(1), later, 2).unwrap();
        assert_eq!(queue.next(later), Next::WaitFor(Duration::from_micros(400)), "the oldest call decides");
        assert_eq!(queue.next(NOW + SHAPE.max_wait), Next::Take(2, Reason::Deadline));
        queue.done(1);
        assert_eq!(queue.next(later), Next::Take(2, Reason::Idle), "what was waited for is done");
    }

    #[test]
    fn while_another_batch_is_computed_the_target_begins_one() {
        let mut queue = Queue::new(Shape { workers: 2.try_into().unwrap(), ..SHAPE });
        queue.begin(500);
        for call in 0..63 {
            queue.push(&tenant(0), NOW, call).unwrap();
            assert!(matches!(queue.next(NOW), Next::WaitFor(_)), "{call}");
        }
        queue.sleep();
        queue.push(&tenant(0), NOW, 63).unwrap();
        assert!(queue.wakes_for_call());
        assert_eq!(queue.next(NOW), Next::Take(64, Reason::Full));
    }

    #[test]
    fn only_a_worker_that_sleeps_is_woken() {
        let mut queue = Queue::new(Shape { workers: 2.try_into().unwrap(), ..SHAPE });
        for call in 0..20 {
            queue.push(&tenant(0), NOW, call).unwrap();
            assert!(!queue.wakes_for_call() && !queue.wakes_for_rest(), "{call}");
        }
        queue.take(8);
        queue.sleep();
        queue.sleep();
        assert!(queue.wakes_for_call() && queue.wakes_for_rest(), "each is woken");
        assert!(!queue.wakes_for_call() && !queue.wakes_for_rest(), "once");
        queue.wake();
        assert!(!queue.wakes_for_call() && !queue.wakes_for_rest(), "though one has come");
        queue.wake();
        assert!(!queue.wakes_for_call() && !queue.wakes_for_rest());
    }

    #[test]
    fn few_callers_are_shared_among_the_workers() {
        let mut queue = Queue::new(Shape { workers: 2.try_into().unwrap(), ..SHAPE });
        for call in 0..64 {
            queue.push(&tenant(0), NOW, call).unwrap();
        }
        assert_eq!(queue.next(NOW), Next::Take(32, Reason::Full));
        queue.take(32);
        assert_eq!(queue.next(NOW), Next::Take(32, Reason::Full));
    }

    #[test]
    fn a_batch_has_no_more_than_the_maximum() {
        let mut queue = Queue::new(SHAPE);
        for call in 0..300 {
            queue.push(&tenant(call % 2), NOW, call).unwrap();
        }
        assert_eq!(queue.next(NOW), Next::Take(256, Reason::Full));
    }

    #[test]
    fn tenants_take_turns_however_much_one_of_them_has() {
        let mut queue = Queue::new(SHAPE);
        for call in 0..300 {
            queue.push(&tenant(0), NOW, call).unwrap();
        }
        for call in [1000, 1001] {
            queue.push(&tenant(1), NOW, call).unwrap();
        }
        queue.push(&tenant(2), NOW, 2000).unwrap();
        assert_eq!(calls(queue.take(8)), [0, 1000, 2000, 1, 1001, 2, 3, 4]);
        // The tenant that was served last waits for the others, also across batches.
        queue.push(&tenant(1), NOW, 1002).unwrap();
        assert_eq!(calls(queue.take(3)), [5, 1002, 6]);
    }

    #[test]
    fn the_queue_is_bounded_in_all_and_for_each_tenant() {
        let mut queue = Queue::new(SHAPE);
        for call in 0..400 {
            queue.push(&tenant(0), NOW, call).unwrap();
        }
        assert_eq!(queue.push(&tenant(0), NOW, 9).unwrap_err(), (Refused::TenantFull, 9));
        for call in 0..600 {
            queue.push(&tenant(1 + call / 300), NOW, call).unwrap();
        }
        assert_eq!(queue.push(&tenant(3), NOW, 9).unwrap_err(), (Refused::Full, 9));
        queue.take(1);
        queue.push(&tenant(3), NOW, 9).unwrap();
        queue.close();
        assert_eq!(queue.push(&tenant(4), NOW, 9).unwrap_err(), (Refused::Closed, 9));
    }

    #[test]
    fn a_closed_queue_is_emptied_and_then_ends() {
        let mut queue = Queue::new(SHAPE);
        queue.push(&tenant(0), NOW, 1).unwrap();
        queue.begin(1);
        queue.close();
        assert_eq!(queue.next(NOW), Next::Take(1, Reason::Closing));
        queue.take(1);
        assert_eq!(queue.next(NOW), Next::End);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Remove(prop::sample::Index),
        Take(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0_usize..5).prop_map(Step::Push),
            1 => any::<prop::sample::Index>().prop_map(Step::Remove),
            1 => (1_usize..9).prop_map(Step::Take),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Compares the queue with a plain list of all calls.
        #[test]
        fn every_call_is_taken_once_or_removed_and_those_of_a_tenant_in_their_order(steps in steps()) {
            let mut queue = Queue::new(SHAPE);
            let mut waiting: Vec<(usize, u64)> = Vec::new();
            for (call, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(number) => {
                        let id = queue.push(&tenant(number), NOW, (number, call)).unwrap();
                        waiting.push((number, id));
                    }
                    Step::Remove(index) if !waiting.is_empty() => {
                        let (number, id) = waiting.remove(index.index(waiting.len()));
                        prop_assert_eq!(queue.remove(&tenant(number), id).map(|call| call.0), Some(number));
                        prop_assert!(queue.remove(&tenant(number), id).is_none());
                    }
                    Step::Remove(_) => {}
                    Step::Take(count) => {
                        let taken = queue.take(count);
                        prop_assert_eq!(taken.len(), count.min(waiting.len()));
                        let mut per_tenant = [0_usize; 5];
                        for Waiting { number: id, call: (number, _), .. } in taken {
                            let first = waiting.iter().position(|(other, _)| *other == number).unwrap();
                            prop_assert_eq!(waiting.remove(first).1, id);
                            per_tenant[number] += 1;
                        }
                        // No tenant that still waits got two calls fewer than another tenant.
                        let most = per_tenant.iter().max().copied().unwrap_or(0);
                        for (number, _) in &waiting {
                            prop_assert!(per_tenant[*number] + 1 >= most);
                        }
                    }
                }
                prop_assert_eq!(queue.len(), waiting.len());
                prop_assert_eq!(queue.turns.len(), queue.tenants.len());
            }
        }
    }
}
