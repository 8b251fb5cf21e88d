//! Threads that take work in order, and hand results on in order, in bounded memory.
//!
//! The work is a line of places. A place is a feed, from which the next job comes; a job that a
//! thread works on; or a result that waits for its turn. A thread takes the first job that it
//! finds. A job may leave a feed behind it: a folder leaves its content. So threads list folders
//! side by side, and read files meanwhile.
//!
//! No thread but the caller's starts before there is work for it. A thread that has nothing else to
//! do helps with a large file.

use crate::meter::Meter;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// How many jobs may wait for each thread: a slow first job must not fill the memory with the
/// results of later ones.
const AHEAD: usize = 32;

/// Where jobs come from, one after another. `next` is called by one thread at a time, and should be
/// quick.
pub trait Feed<J>: Send {
    /// The next job.
    fn next(&mut self) -> Option<J>;

    /// Whether there may be another one.
    fn has_more(&self) -> bool;
}

/// What comes of a job.
pub struct Outcome<J, R> {
    /// Its result.
    pub result: R,
    /// Jobs whose results come right after this one.
    pub then: Option<Box<dyn Feed<J>>>,
}

impl<J, R> From<R> for Outcome<J, R> {
    fn from(result: R) -> Self {
        Self { result, then: None }
    }
}

/// A large piece of work that idle threads take a part of.
pub trait Shared: Send + Sync {
    /// Whether a part is left to take.
    fn has_more(&self) -> bool;

    /// Works until no part is left.
    fn help(&self, meter: &dyn Meter);
}

/// The other threads, for a job that is too large for one.
pub trait Others {
    /// Lets idle threads help, as long as `piece` has more.
    fn share(&self, piece: Arc<dyn Shared>);

    /// Whether there may be others.
    fn may_help(&self) -> bool;
}

/// A place in the line.
enum Place<J, R> {
    Feed(Box<dyn Feed<J>>),
    Taken,
    Done(R),
}

struct Line<J, R> {
    places: VecDeque<(u64, Place<J, R>)>,
    next_id: u64,
    shared: Vec<Arc<dyn Shared>>,
    /// A thread is handing on results.
    handing_on: bool,
    ended: bool,
}

/// What a thread does next.
enum Next<J> {
    Job(u64, J),
    Help(Arc<dyn Shared>),
    End,
}

struct Team<'a, J, R, W, E, F> {
    line: Mutex<Line<J, R>>,
    changed: Condvar,
    threads: usize,
    work: W,
    hand_on: Mutex<(F, Option<E>)>,
    are_started: AtomicBool,
    meter: &'a dyn Meter,
    /// Called once, before other threads start or when the first job is done and there are more.
    at_length: &'a (dyn Fn() + Sync),
}

/// How a team works.
pub struct Plan<'a> {
    /// The number of threads, at least 1.
    pub threads: usize,
    /// Says when to stop.
    pub meter: &'a dyn Meter,
    /// Called once, when it turns out that the work is more than a few small files.
    pub at_length: &'a (dyn Fn() + Sync),
}

/// Does all work of `feed` and of what follows from it, and hands the results on in order.
///
/// `each` is called by one thread at a time, but not always by the same. Its first error ends the
/// work. If the meter says that the work is stopped, no further job is taken; the results of the
/// jobs before the first one that was not taken are handed on.
///
/// # Errors
/// The error of `each`.
///
/// # Panics
/// If `work` or `each` panics.
pub fn in_order<J, R, W, E, F>(plan: &Plan<'_>, feed: Box<dyn Feed<J>>, work: W, each: F) -> Result<(), E>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Others) -> Outcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    let line = Line {
        places: VecDeque::from([(0, Place::Feed(feed))]),
        next_id: 1,
        shared: Vec::new(),
        handing_on: false,
        ended: false,
    };
    let team = Team {
        line: Mutex::new(line),
        changed: Condvar::new(),
        threads: plan.threads,
        work,
        hand_on: Mutex::new((each, None)),
        are_started: AtomicBool::new(false),
        meter: plan.meter,
        at_length: plan.at_length,
    };
    std::thread::scope(|scope| Member { team: &team, scope }.work());
    let (_, error) = team.hand_on.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(()), Err)
}

/// A thread of the team.
struct Member<'scope, 'env, 'a, J, R, W, E, F> {
    team: &'scope Team<'a, J, R, W, E, F>,
    scope: &'scope Scope<'scope, 'env>,
}

/// Ends the work of all threads if this one panics: they would wait for ever.
struct EndOnPanic<'t, 'a, J, R, W, E, F>(&'t Team<'a, J, R, W, E, F>);

impl<J, R, W, E, F> Drop for EndOnPanic<'_, '_, J, R, W, E, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().ended = true;
            self.0.changed.notify_all();
        }
    }
}

impl<J, R, W, E, F> Team<'_, J, R, W, E, F> {
    fn lock(&self) -> MutexGuard<'_, Line<J, R>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, R> Line<J, R> {
    /// Takes the first job, if there is one. `may_go_ahead` is the most places that may be taken or
    /// done.
    fn take(&mut self, may_go_ahead: usize) -> Option<(u64, J)> {
        let mut at = 0;
        while at < self.places.len().min(may_go_ahead) {
            let Place::Feed(feed) = &mut self.places[at].1 else {
                at += 1;
                continue;
            };
            let Some(job) = feed.next() else {
                self.places.remove(at);
                continue;
            };
            let id = self.next_id;
            self.next_id += 1;
            match feed.has_more() {
                true => self.places.insert(at, (id, Place::Taken)),
                false => self.places[at] = (id, Place::Taken),
            }
            return Some((id, job));
        }
        None
    }

    /// Whether a job is left that another thread could take.
    fn has_more(&self) -> bool {
        self.places.iter().any(|(_, place)| matches!(place, Place::Feed(feed) if feed.has_more()))
    }

    fn put(&mut self, id: u64, outcome: Outcome<J, R>) {
        // A job that was stopped behind work that is not done has lost its place.
        let Some(at) = self.places.iter().position(|(other, _)| *other == id) else { return };
        self.places[at].1 = Place::Done(outcome.result);
        if let Some(feed) = outcome.then.filter(|feed| feed.has_more()) {
            self.places.insert(at + 1, (self.next_id, Place::Feed(feed)));
            self.next_id += 1;
        }
    }

    /// The results whose turn it is.
    fn ready(&mut self) -> Vec<R> {
        let mut ready = Vec::new();
        while matches!(self.places.front(), Some((_, Place::Done(_)))) {
            if let Some((_, Place::Done(result))) = self.places.pop_front() {
                ready.push(result);
            }
        }
        ready
    }

    /// No further job is taken. What comes after a job that nobody took is dropped: results without
    /// a gap are left.
    fn stop(&mut self) {
        let is_left = |(_, place): &(u64, Place<J, R>)| matches!(place, Place::Feed(feed) if feed.has_more());
        let end = self.places.iter().position(is_left).unwrap_or(self.places.len());
        self.places.truncate(end);
        self.places.retain(|(_, place)| !matches!(place, Place::Feed(_)));
    }
}

impl<'scope, J, R, W, E, F> Member<'scope, '_, '_, J, R, W, E, F>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Others) -> Outcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    fn work(&self) {
        let _guard = EndOnPanic(self.team);
        loop {
            match self.next() {
                Next::Job(id, job) => {
                    let outcome = (self.team.work)(job, self);
                    self.team.lock().put(id, outcome);
                    self.team.changed.notify_all();
                    self.hand_on();
                }
                Next::Help(piece) => piece.help(self.team.meter),
                Next::End => return,
            }
        }
    }

    /// Waits for something to do.
    fn next(&self) -> Next<J> {
        let team = self.team;
        let mut line = team.lock();
        loop {
            if line.ended {
                return Next::End;
            }
            if team.meter.is_stopped() {
                line.stop();
            }
            if let Some((id, job)) = line.take(AHEAD * team.threads) {
                let is_more = line.has_more();
                drop(line);
                if is_more {
                    self.start_others();
                }
                return Next::Job(id, job);
            }
            line.shared.retain(|piece| piece.has_more());
            if let Some(piece) = line.shared.first() {
                return Next::Help(piece.clone());
            }
            if line.places.is_empty() {
                drop(line);
                team.changed.notify_all();
                return Next::End;
            }
            line = team.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands on the results whose turn it is, unless another thread does.
    fn hand_on(&self) {
        let team = self.team;
        let mut line = team.lock();
        if line.handing_on || line.ended {
            return;
        }
        line.handing_on = true;
        loop {
            let ready = line.ready();
            if ready.is_empty() {
                line.handing_on = false;
                drop(line);
                team.changed.notify_all();
                return;
            }
            drop(line);
            let mut hand_on = team.hand_on.lock().unwrap_or_else(PoisonError::into_inner);
            let (each, error) = &mut *hand_on;
            let failed = ready.into_iter().try_for_each(each).err();
            let is_failed = failed.is_some();
            *error = failed;
            drop(hand_on);
            line = team.lock();
            if is_failed {
                line.ended = true;
                team.changed.notify_all();
                return;
            }
        }
    }

    fn start_others(&self) {
        let team = self.team;
        if team.are_started.swap(true, Ordering::Relaxed) {
            return;
        }
        (team.at_length)();
        for _ in 1..team.threads {
            let (team, scope) = (self.team, self.scope);
            scope.spawn(move || Member { team, scope }.work());
        }
    }
}

impl<J, R, W, E, F> Others for Member<'_, '_, '_, J, R, W, E, F>
where
    J: Send,
    R: Send,
    E: Send,
    W: Fn(J, &dyn Others) -> Outcome<J, R> + Sync,
    F: FnMut(R) -> Result<(), E> + Send,
{
    fn share(&self, piece: Arc<dyn Shared>) {
        self.team.lock().shared.push(piece);
        self.team.changed.notify_all();
        self.start_others();
    }

    fn may_help(&self) -> bool {
        self.team.threads > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Unwatched;
    use std::ops::Range;
    use std::sync::atomic::AtomicUsize;

    struct Numbers(Range<u32>);

    impl Feed<u32> for Numbers {
        fn next(&mut self) -> Option<u32> {
            self.0.next()
        }

        fn has_more(&self) -> bool {
            !self.0.is_empty()
        }
    }

    fn plan(threads: usize) -> Plan<'static> {
        Plan { threads, meter: &Unwatched, at_length: &|| {} }
    }

    fn numbers(range: Range<u32>) -> Box<dyn Feed<u32>> {
        Box::new(Numbers(range))
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_of_what_they_leave_behind() {
        for threads in [1, 2, 7] {
            let mut results = Vec::new();
            // A tree: each number below 100 leaves ten behind.
            let work = |number: u32, _: &dyn Others| {
                let then = (number < 100).then(|| numbers(number * 1000..number * 1000 + 10));
                if number.is_multiple_of(3) {
                    std::thread::yield_now();
                }
                Outcome { result: number, then }
            };
            let each = |number| {
                results.push(number);
                Ok::<_, ()>(())
            };
            in_order(&plan(threads), numbers(1..100), work, each).unwrap();
            let expected: Vec<_> =
                (1..100).flat_map(|n| [n].into_iter().chain(n * 1000..n * 1000 + 10)).collect();
            assert_eq!(results, expected, "{threads} threads");
        }
    }

    #[test]
    fn a_slow_first_job_lets_only_some_later_ones_go_ahead() {
        let ahead = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Others| {
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
            Outcome::from(number)
        };
        in_order(&plan(3), numbers(0..10_000), work, |_| Ok::<_, ()>(())).unwrap();
        let most = most.load(Ordering::SeqCst);
        assert!(most < 3 * AHEAD, "{most} results waited");
    }

    #[test]
    fn the_first_error_of_the_receiver_ends_the_work() {
        let done = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Others| {
            done.fetch_add(1, Ordering::Relaxed);
            Outcome::from(number)
        };
        let each = |number| if number == 5 { Err("enough") } else { Ok(()) };
        assert_eq!(in_order(&plan(4), numbers(0..1_000_000), work, each), Err("enough"));
        assert!(done.load(Ordering::Relaxed) < 1_000_000);
    }

    #[test]
    fn a_panic_of_one_thread_ends_all() {
        let work = |number: u32, _: &dyn Others| {
            assert_ne!(number, 5000);
            Outcome::from(number)
        };
        let run = || in_order(&plan(4), numbers(0..1_000_000), work, |_| Ok::<_, ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn one_job_starts_no_thread() {
        let caller = std::thread::current().id();
        let started = AtomicBool::new(false);
        let at_length = || started.store(true, Ordering::Relaxed);
        let plan = Plan { threads: 8, meter: &Unwatched, at_length: &at_length };
        let work = |number: u32, _: &dyn Others| {
            assert_eq!(std::thread::current().id(), caller);
            Outcome::from(number)
        };
        in_order(&plan, numbers(0..1), work, |_| Ok::<_, ()>(())).unwrap();
        assert!(!started.load(Ordering::Relaxed));
    }

    #[test]
    fn idle_threads_help_with_a_large_job() {
        struct Parts {
            left: Mutex<u32>,
            helpers: Mutex<std::collections::HashSet<std::thread::ThreadId>>,
        }
        impl Shared for Parts {
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
        let work = |number: u32, others: &dyn Others| {
            assert!(others.may_help());
            others.share(parts.clone());
            // It ends only when two others help.
            parts.help(&Unwatched);
            Outcome::from(number)
        };
        in_order(&plan(3), numbers(0..1), work, |_| Ok::<_, ()>(())).unwrap();
        assert_eq!(parts.helpers.lock().unwrap().len(), 3);
    }

    #[test]
    fn what_comes_after_the_rest_of_a_stopped_job_is_not_handed_on() {
        struct Stopped(AtomicBool);
        impl Meter for Stopped {
            fn add(&self, _: u64) {}
            fn is_stopped(&self) -> bool {
                self.0.load(Ordering::SeqCst)
            }
        }
        let meter = Stopped(AtomicBool::new(false));
        let plan = Plan { threads: 2, meter: &meter, at_length: &|| {} };
        let later = AtomicUsize::new(0);
        let work = |number: u32, _: &dyn Others| {
            if number > 1 {
                later.fetch_add(1, Ordering::SeqCst);
                return Outcome::from(number);
            }
            if number == 0 {
                return Outcome::from(number);
            }
            // A thread has done jobs after this one when it stops, and leaves its rest.
            while later.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            meter.0.store(true, Ordering::SeqCst);
            Outcome { result: number, then: Some(numbers(1000..1001)) }
        };
        let mut results = Vec::new();
        let each = |number| {
            results.push(number);
            Ok::<_, ()>(())
        };
        in_order(&plan, numbers(0..100), work, each).unwrap();
        assert_eq!(results, [0, 1]);
    }

    #[test]
    fn a_meter_that_says_stop_leaves_a_complete_beginning() {
        struct StopAt(AtomicUsize);
        impl Meter for StopAt {
            fn add(&self, _: u64) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
            fn is_stopped(&self) -> bool {
                self.0.load(Ordering::SeqCst) <= 100
            }
        }
        let meter = StopAt(AtomicUsize::new(1000));
        let plan = Plan { threads: 3, meter: &meter, at_length: &|| {} };
        let mut results = Vec::new();
        let work = |number: u32, _: &dyn Others| {
            meter.add(1);
            Outcome::from(number)
        };
        let each = |number| {
            results.push(number);
            Ok::<_, ()>(())
        };
        in_order(&plan, numbers(0..1_000_000), work, each).unwrap();
        assert!((900..950).contains(&results.len()), "{}", results.len());
        assert!(results.iter().copied().eq(0..results.len() as u32));
    }
}
