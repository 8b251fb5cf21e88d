//! A pool of threads that take jobs in order, and deliver results in order, in bounded memory.
//!
//! The work is a queue of slots. A slot has a feed, from which the next job comes; or it belongs to
//! a job that a thread works on; or it has a result that waits for its turn. A thread takes the
//! first job that it finds. A job may leave a feed behind it: a folder leaves its content. So
//! threads list folders side by side, and read files meanwhile.
//!
//! No thread but the caller's starts before there is work for it. A thread that has nothing else to
//! do helps with a large file.

use crate::reading::{Meter, Threads};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Scope};

/// The maximum number of slots for each thread: a slow first job must not fill the memory with the
/// results of later ones.
const MAX_JOBS_PER_THREAD: usize = 32;

/// A source of jobs, one after another. One thread at a time calls `next`, which should be quick.
pub trait Feed<J>: Send {
    /// The next job.
    fn next(&mut self) -> Option<J>;

    /// Whether there may be another one.
    fn has_more(&self) -> bool;
}

/// The result of a job, and the jobs that follow from it.
pub struct JobOutcome<J, R> {
    /// The job's result.
    pub result: R,
    /// Jobs whose results come right after this one.
    pub then: Option<Box<dyn Feed<J>>>,
}

impl<J, R> From<R> for JobOutcome<J, R> {
    fn from(result: R) -> Self {
        Self { result, then: None }
    }
}

/// A large piece of work, of which idle threads take parts.
pub trait SharedWork: Send + Sync {
    /// Whether a part is left.
    fn has_more(&self) -> bool;

    /// Works until no part is left.
    fn help(&self, meter: &dyn Meter);

    /// How many threads may be worth starting for this work, beside the one that has it.
    fn max_helpers(&self) -> usize {
        usize::MAX
    }
}

/// The other threads, for a job that is too large for one thread.
pub trait Helpers {
    /// Lets idle threads help, as long as `piece` has more.
    fn share(&self, piece: Arc<dyn SharedWork>);
}

/// The state of one job, or a feed of jobs.
enum Slot<J, R> {
    Feed(Box<dyn Feed<J>>),
    Taken,
    Done(R),
}

struct Queue<J, R> {
    slots: VecDeque<(u64, Slot<J, R>)>,
    next_id: u64,
    shared: Vec<Arc<dyn SharedWork>>,
    /// Whether a thread delivers results now.
    is_delivering: bool,
    ended: bool,
}

/// The next step of a thread.
enum NextStep<J> {
    Job(u64, J),
    Help(Arc<dyn SharedWork>),
    End,
}

struct OrderedPool<'a, J, R, W, E, F> {
    queue: Mutex<Queue<J, R>>,
    changed: Condvar,
    threads: Threads,
    /// The number of the threads, when it is known.
    thread_count: OnceLock<usize>,
    work: W,
    deliver: Mutex<(F, Option<E>)>,
    /// The number of threads that were started.
    started_workers: AtomicUsize,
    is_large: AtomicBool,
    meter: &'a dyn Meter,
    /// Called once, before other threads start or when the first job is done and there are more.
    on_large: &'a (dyn Fn() + Sync),
}

/// How a pool works.
pub struct PoolOptions<'a> {
    /// The threads. How many processors there are is only asked when a second thread starts: asking
    /// reads several files of the system, which takes longer than hashing a small file.
    pub threads: Threads,
    /// Progress and cancellation.
    pub meter: &'a dyn Meter,
    /// Called once, when it turns out that the work is more than a few small files.
    pub on_large: &'a (dyn Fn() + Sync),
}

/// Does all jobs of `feed` and the jobs that follow from them, and delivers the results to `each`
/// in order.
///
/// One thread at a time calls `each`, but not always the same thread. Its first error ends the
/// work. If the meter says that the work is stopped, no further job is taken; the results of the
/// jobs before the first one that was not taken are delivered.
///
/// # Errors
/// The error of `each`.
///
/// # Panics
/// If `work` or `each` panics.
pub fn run_in_order<J, R, W, E, F>(
    options: &PoolOptions<'_>,
    feed: Box<dyn Feed<J>>,
    work: W,
    each: F,
) -> Result<(), E>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Helpers) -> JobOutcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    let queue = Queue {
        slots: VecDeque::from([(0, Slot::Feed(feed))]),
        next_id: 1,
        shared: Vec::new(),
        is_delivering: false,
        ended: false,
    };
    let pool = OrderedPool {
        queue: Mutex::new(queue),
        changed: Condvar::new(),
        threads: options.threads,
        thread_count: OnceLock::new(),
        work,
        deliver: Mutex::new((each, None)),
        started_workers: AtomicUsize::new(0),
        is_large: AtomicBool::new(false),
        meter: options.meter,
        on_large: options.on_large,
    };
    std::thread::scope(|scope| Worker { pool: &pool, scope }.work());
    let (_, error) = pool.deliver.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(()), Err)
}

/// A thread of the pool.
struct Worker<'scope, 'env, 'a, J, R, W, E, F> {
    pool: &'scope OrderedPool<'a, J, R, W, E, F>,
    scope: &'scope Scope<'scope, 'env>,
}

/// Ends the work of all threads if this one panics: they would wait for ever.
struct EndOnPanic<'t, 'a, J, R, W, E, F>(&'t OrderedPool<'a, J, R, W, E, F>);

impl<J, R, W, E, F> Drop for EndOnPanic<'_, '_, J, R, W, E, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().ended = true;
            self.0.changed.notify_all();
        }
    }
}

impl<J, R, W, E, F> OrderedPool<'_, J, R, W, E, F> {
    fn lock(&self) -> MutexGuard<'_, Queue<J, R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, R> Queue<J, R> {
    /// Takes the first job, if there is one. At most `max_slots` slots may be taken or done.
    fn take(&mut self, max_slots: usize) -> Option<(u64, J)> {
        let mut at = 0;
        while at < self.slots.len().min(max_slots) {
            let Slot::Feed(feed) = &mut self.slots[at].1 else {
                at += 1;
                continue;
            };
            let Some(job) = feed.next() else {
                self.slots.remove(at);
                continue;
            };
            let id = self.next_id;
            self.next_id += 1;
            match feed.has_more() {
                true => self.slots.insert(at, (id, Slot::Taken)),
                false => self.slots[at] = (id, Slot::Taken),
            }
            return Some((id, job));
        }
        None
    }

    /// Whether a job is left that another thread could take.
    fn has_more(&self) -> bool {
        self.slots.iter().any(|(_, slot)| matches!(slot, Slot::Feed(feed) if feed.has_more()))
    }

    fn put(&mut self, id: u64, outcome: JobOutcome<J, R>) {
        // A job that was stopped behind work that is not done has lost its slot.
        let Some(at) = self.slots.iter().position(|(other, _)| *other == id) else { return };
        self.slots[at].1 = Slot::Done(outcome.result);
        if let Some(feed) = outcome.then.filter(|feed| feed.has_more()) {
            self.slots.insert(at + 1, (self.next_id, Slot::Feed(feed)));
            self.next_id += 1;
        }
    }

    /// The results whose turn it is.
    fn ready(&mut self) -> Vec<R> {
        let mut ready = Vec::new();
        while matches!(self.slots.front(), Some((_, Slot::Done(_)))) {
            if let Some((_, Slot::Done(result))) = self.slots.pop_front() {
                ready.push(result);
            }
        }
        ready
    }

    /// Makes sure that no further job is taken. The slots after a job that no thread took are
    /// dropped, so that the results that are left have no gap.
    fn stop(&mut self) {
        let is_left = |(_, slot): &(u64, Slot<J, R>)| matches!(slot, Slot::Feed(feed) if feed.has_more());
        let end = self.slots.iter().position(is_left).unwrap_or(self.slots.len());
        self.slots.truncate(end);
        self.slots.retain(|(_, slot)| !matches!(slot, Slot::Feed(_)));
    }
}

impl<'scope, J, R, W, E, F> Worker<'scope, '_, '_, J, R, W, E, F>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Helpers) -> JobOutcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    fn work(&self) {
        let _guard = EndOnPanic(self.pool);
        loop {
            match self.next() {
                NextStep::Job(id, job) => {
                    let outcome = (self.pool.work)(job, self);
                    self.pool.lock().put(id, outcome);
                    self.pool.changed.notify_all();
                    self.deliver();
                }
                NextStep::Help(piece) => piece.help(self.pool.meter),
                NextStep::End => return,
            }
        }
    }

    /// Waits for something to do.
    fn next(&self) -> NextStep<J> {
        let pool = self.pool;
        let mut queue = pool.lock();
        loop {
            if queue.ended {
                return NextStep::End;
            }
            if pool.meter.is_stopped() {
                queue.stop();
            }
            if let Some((id, job)) = queue.take(MAX_JOBS_PER_THREAD * self.present_threads()) {
                let is_more = queue.has_more();
                drop(queue);
                if is_more {
                    self.start_workers(usize::MAX);
                }
                return NextStep::Job(id, job);
            }
            queue.shared.retain(|piece| piece.has_more());
            if let Some(piece) = queue.shared.first() {
                return NextStep::Help(piece.clone());
            }
            if queue.slots.is_empty() {
                drop(queue);
                pool.changed.notify_all();
                return NextStep::End;
            }
            queue = pool.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Delivers the results whose turn it is, unless another thread does so.
    fn deliver(&self) {
        let pool = self.pool;
        let mut queue = pool.lock();
        if queue.is_delivering || queue.ended {
            return;
        }
        queue.is_delivering = true;
        loop {
            let ready = queue.ready();
            if ready.is_empty() {
                queue.is_delivering = false;
                drop(queue);
                pool.changed.notify_all();
                return;
            }
            drop(queue);
            let mut deliver = pool.deliver.lock().unwrap_or_else(PoisonError::into_inner);
            let (each, error) = &mut *deliver;
            let failed = ready.into_iter().try_for_each(each).err();
            let is_failed = failed.is_some();
            *error = failed;
            drop(deliver);
            queue = pool.lock();
            if is_failed {
                queue.ended = true;
                pool.changed.notify_all();
                return;
            }
        }
    }

    /// The number of threads when all are there.
    fn max_threads(&self) -> usize {
        *self.pool.thread_count.get_or_init(|| self.pool.threads.number())
    }

    fn present_threads(&self) -> usize {
        1 + self.pool.started_workers.load(Ordering::Relaxed)
    }

    /// Starts threads until there are `wanted` beside the caller's, or as many as there may be.
    fn start_workers(&self, wanted: usize) {
        let pool = self.pool;
        if !pool.is_large.swap(true, Ordering::Relaxed) {
            (pool.on_large)();
        }
        // All may have been started: then the number of processors need not be known.
        if pool.started_workers.load(Ordering::Relaxed) >= wanted {
            return;
        }
        let wanted = wanted.min(self.max_threads() - 1);
        let started = pool.started_workers.fetch_max(wanted, Ordering::Relaxed);
        for _ in started..wanted {
            let (pool, scope) = (self.pool, self.scope);
            let run = move || Worker { pool, scope }.work();
            // The system may have no room for more threads. Those that are there do all the work.
            if Builder::new().spawn_scoped(scope, run).is_err() {
                return;
            }
        }
    }
}

impl<J, R, W, E, F> Helpers for Worker<'_, '_, '_, J, R, W, E, F>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Helpers) -> JobOutcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    fn share(&self, piece: Arc<dyn SharedWork>) {
        let helpers = piece.max_helpers();
        self.pool.lock().shared.push(piece);
        self.pool.changed.notify_all();
        self.start_workers(helpers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::NoProgress;
    use std::ops::Range;

    struct Numbers(Range<u32>);

    impl Feed<u32> for Numbers {
        fn next(&mut self) -> Option<u32> {
            self.0.next()
        }

        fn has_more(&self) -> bool {
            !self.0.is_empty()
        }
    }

    fn plan(threads: usize) -> PoolOptions<'static> {
        PoolOptions { threads: Threads::AtMost(threads), meter: &NoProgress, on_large: &|| {} }
    }

    fn numbers(range: Range<u32>) -> Box<dyn Feed<u32>> {
        Box::new(Numbers(range))
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_of_what_they_leave_behind() {
        for threads in [1, 2, 7] {
            let mut results = Vec::new();
            // A tree: each number below 100 leaves ten behind.
            let work = |number: u32, _: &dyn Helpers| {
                let then = (number < 100).then(|| numbers(number * 1000..number * 1000 + 10));
                if number.is_multiple_of(3) {
                    std::thread::yield_now();
                }
                JobOutcome { result: number, then }
            };
            let each = |number| {
                results.push(number);
                Ok::<_, ()>(())
            };
            run_in_order(&plan(threads), numbers(1..100), work, each).unwrap();
            let expected: Vec<_> =
                (1..100).flat_map(|n| [n].into_iter().chain(n * 1000..n * 1000 + 10)).collect();
            assert_eq!(results, expected, "{threads} threads");
        }
    }

    #[test]
    fn a_slow_first_job_lets_only_some_later_ones_go_ahead() {
        let ahead = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Helpers| {
            if number == 0 {
                // Until the other threads can do no more.
                let mut before = usize::MAX;
                while ahead.load(Ordering::SeqCst) != before {
                    before = ahead.load(Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                most.store(before, Ordering::SeqCst);
            }
            ahead.fetch_add(1, Ordering::SeqCst);
            JobOutcome::from(number)
        };
        run_in_order(&plan(3), numbers(0..10_000), work, |_| Ok::<_, ()>(())).unwrap();
        let most = most.load(Ordering::SeqCst);
        assert!(most < 3 * MAX_JOBS_PER_THREAD, "{most} results waited");
    }

    #[test]
    fn the_first_error_of_the_receiver_ends_the_work() {
        let done = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Helpers| {
            done.fetch_add(1, Ordering::Relaxed);
            JobOutcome::from(number)
        };
        let each = |number| if number == 5 { Err("enough") } else { Ok(()) };
        assert_eq!(run_in_order(&plan(4), numbers(0..1_000_000), work, each), Err("enough"));
        assert!(done.load(Ordering::Relaxed) < 1_000_000);
    }

    #[test]
    fn a_panic_of_one_thread_ends_all() {
        let work = |number: u32, _: &dyn Helpers| {
            assert_ne!(number, 5000);
            JobOutcome::from(number)
        };
        let run = || run_in_order(&plan(4), numbers(0..1_000_000), work, |_| Ok::<_, ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn one_job_starts_no_thread() {
        let caller = std::thread::current().id();
        let started = AtomicBool::new(false);
        let on_large = || started.store(true, Ordering::Relaxed);
        let plan = PoolOptions { threads: Threads::AtMost(8), meter: &NoProgress, on_large: &on_large };
        let work = |number: u32, _: &dyn Helpers| {
            assert_eq!(std::thread::current().id(), caller);
            JobOutcome::from(number)
        };
        run_in_order(&plan, numbers(0..1), work, |_| Ok::<_, ()>(())).unwrap();
        assert!(!started.load(Ordering::Relaxed));
    }

    #[test]
    fn idle_threads_help_with_a_large_job() {
        struct Parts {
            left: Mutex<u32>,
            helpers: Mutex<std::collections::HashSet<std::thread::ThreadId>>,
        }
        impl SharedWork for Parts {
            fn has_more(&self) -> bool {
                *self.left.lock().unwrap() > 0
            }
            fn help(&self, _: &dyn Meter) {
                while self.has_more() {
                    self.helpers.lock().unwrap().insert(std::thread::current().id());
                    if self.helpers.lock().unwrap().len() == 3 {
                        *self.left.lock().unwrap() = 0;
                    }
                    std::thread::yield_now();
                }
            }
        }
        let parts = Arc::new(Parts { left: Mutex::new(1), helpers: Mutex::default() });
        let work = |number: u32, helpers: &dyn Helpers| {
            helpers.share(parts.clone());
            // It ends only when two others help.
            parts.help(&NoProgress);
            JobOutcome::from(number)
        };
        run_in_order(&plan(3), numbers(0..1), work, |_| Ok::<_, ()>(())).unwrap();
        assert_eq!(parts.helpers.lock().unwrap().len(), 3);
    }

    #[test]
    fn what_comes_after_the_rest_of_a_stopped_job_is_not_handed_on() {
        struct Stopped(AtomicBool);
        impl Meter for Stopped {
            fn add_bytes(&self, _: u64) {}
            fn is_stopped(&self) -> bool {
                self.0.load(Ordering::SeqCst)
            }
        }
        let meter = Stopped(AtomicBool::new(false));
        let plan = PoolOptions { threads: Threads::AtMost(2), meter: &meter, on_large: &|| {} };
        let later = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Helpers| {
            if number > 1 {
                later.fetch_add(1, Ordering::SeqCst);
                return JobOutcome::from(number);
            }
            if number == 0 {
                return JobOutcome::from(number);
            }
            // A thread has done jobs after this one when it stops, and leaves its rest.
            while later.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            meter.0.store(true, Ordering::SeqCst);
            JobOutcome { result: number, then: Some(numbers(1000..1001)) }
        };
        let mut results = Vec::new();
        let each = |number| {
            results.push(number);
            Ok::<_, ()>(())
        };
        run_in_order(&plan, numbers(0..100), work, each).unwrap();
        assert_eq!(results, [0, 1]);
    }

    #[test]
    fn a_meter_that_says_stop_leaves_a_complete_beginning() {
        struct StopAt(AtomicUsize);
        impl Meter for StopAt {
            fn add_bytes(&self, _: u64) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
            fn is_stopped(&self) -> bool {
                self.0.load(Ordering::SeqCst) <= 100
            }
        }
        let meter = StopAt(AtomicUsize::new(1000));
        let plan = PoolOptions { threads: Threads::AtMost(3), meter: &meter, on_large: &|| {} };
        let mut results = Vec::new();
        let work = |number: u32, _: &dyn Helpers| {
            meter.add_bytes(1);
            JobOutcome::from(number)
        };
        let each = |number| {
            results.push(number);
            Ok::<_, ()>(())
        };
        run_in_order(&plan, numbers(0..1_000_000), work, each).unwrap();
        assert!((900..950).contains(&results.len()), "{}", results.len());
        assert!(results.iter().copied().eq(0..results.len() as u32));
    }
}
