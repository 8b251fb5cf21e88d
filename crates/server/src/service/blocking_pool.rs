//! Slow work, divided fairly between the callers who ask for it.
//!
//! A job has steps. After each of them it goes back to the end of its caller's queue, and the next
//! caller has its turn: so nobody waits for more than a step of somebody else's work.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulla_kms::{Code, KmsError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::error::{ApiError, Result};

/// The result of one step of a job.
pub(crate) enum JobStep<T> {
    /// There is more to do.
    More,
    /// The result of the job.
    Done(T),
}

/// How much is done at once, and how much may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLimits {
    pub(super) max_threads: usize,
    /// The most threads that work for one caller. Others always find a thread that is free or soon
    /// will be.
    pub(super) max_threads_per_caller: usize,
    /// The most jobs of one caller that wait.
    pub(super) max_waiting_jobs: usize,
    /// The most bytes that the results of one caller's jobs will have. A single job may have more.
    pub(super) max_result_bytes: usize,
}

/// The jobs of all callers.
pub(crate) struct BlockingPool {
    limits: PoolLimits,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    callers: HashMap<Arc<str>, CallerJobs>,
    /// The callers who have a job that may begin a step. The first one is next.
    turns: VecDeque<Arc<str>>,
    threads: usize,
    next_id: u64,
    closed: bool,
}

/// The jobs of one caller.
#[derive(Default)]
struct CallerJobs {
    waiting: VecDeque<Job>,
    running: usize,
    /// How many may run.
    max_running: usize,
    /// How many bytes the results of jobs will have whose caller waits for them.
    results: usize,
    /// Whether the caller is among those who have turns.
    has_turn: bool,
}

impl CallerJobs {
    /// Whether there is nothing to remember of the caller.
    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.running == 0 && self.results == 0 && !self.has_turn
    }
}

/// A job that waits or runs. If it is dropped, its caller gets an error.
struct Job {
    id: u64,
    /// Does a step, and returns whether there is more to do.
    step: Box<dyn FnMut() -> bool + Send>,
}

/// Removes a job whose caller has gone.
struct JobTicket<'a> {
    work: &'a BlockingPool,
    caller: Arc<str>,
    id: u64,
    results: usize,
}

impl Drop for JobTicket<'_> {
    fn drop(&mut self) {
        // Dropped only when the lock is released: a job may hold what takes long to close.
        let removed = self.work.state().remove(self);
        drop(removed);
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingPool").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl BlockingPool {
    pub(super) fn new(limits: PoolLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// Does all steps of a job, each on a thread that may wait. `max_running` bounds how many jobs
    /// of the caller are done at once, below what the pool permits. The result will have so many
    /// bytes. If the future is dropped, no further step begins.
    ///
    /// # Errors
    /// Too many jobs of the caller wait, or their results are too long; a step panicked; the
    /// service stops.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        (caller, max_running): (&str, Option<usize>),
        results: usize,
        mut step: impl FnMut() -> JobStep<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let mut sender = Some(sender);
        let step = move || {
            let gone = || sender.as_ref().is_none_or(oneshot::Sender::is_closed);
            if gone() {
                return false;
            }
            match step() {
                JobStep::More => !gone(),
                JobStep::Done(result) => {
                    // The caller may have gone just now.
                    let _ = sender.take().map(|sender| sender.send(result));
                    false
                }
            }
        };
        let _ticket = self.begin((caller, max_running), results, Box::new(step))?;
        receiver.await.map_err(|_| match self.state().closed {
            true => KmsError::new(Code::ShuttingDown, "the service stops").into(),
            false => ApiError::panicked(),
        })
    }

    fn begin(
        self: &Arc<Self>,
        (caller, max_running): (&str, Option<usize>),
        results: usize,
        step: Box<dyn FnMut() -> bool + Send>,
    ) -> Result<JobTicket<'_>> {
        let mut state = self.state();
        if state.closed {
            return Err(KmsError::new(Code::ShuttingDown, "the service stops").into());
        }
        let caller: Arc<str> = caller.into();
        let jobs = state.callers.entry(Arc::clone(&caller)).or_default();
        let is_long = jobs.results > 0 && jobs.results.saturating_add(results) > self.limits.max_result_bytes;
        if jobs.waiting.len() >= self.limits.max_waiting_jobs || (results > 0 && is_long) {
            let message = "too much slow work of this caller waits: wait for its answers, and try again";
            return Err(KmsError::new(Code::Busy, message).into());
        }
        jobs.results += results;
        jobs.max_running = max_running
            .map_or(self.limits.max_threads_per_caller, |most| most.min(self.limits.max_threads_per_caller));
        let id = state.next_id;
        state.next_id += 1;
        state.put(&caller, Job { id, step });
        if state.threads < self.limits.max_threads && !state.turns.is_empty() {
            state.threads += 1;
            let work = Arc::clone(self);
            spawn_blocking(move || work.work());
        }
        drop(state);
        Ok(JobTicket { work: self, caller, id, results })
    }

    /// Does steps until no job may begin one.
    fn work(&self) {
        loop {
            let mut state = self.state();
            let Some((caller, mut job)) = state.take() else {
                state.threads -= 1;
                return;
            };
            drop(state);
            // A job that panicked is dropped, so its caller gets an error.
            let more = catch_unwind(AssertUnwindSafe(|| (job.step)())).unwrap_or(false);
            let left = if more { Some(job) } else { drop_apart(job) };
            self.state().give_back(&caller, left);
        }
    }

    /// Drops all waiting jobs. No step begins after this.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.turns.clear();
        let jobs: Vec<_> = state.callers.values_mut().map(|jobs| std::mem::take(&mut jobs.waiting)).collect();
        drop(state);
        drop(jobs);
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a caller as many waiting jobs as it may have. None of them ever begins.
    #[cfg(test)]
    pub(super) fn fill(&self, caller: &str) {
        let mut state = self.state();
        let waiting = &mut state.callers.entry(caller.into()).or_default().waiting;
        let ids = (0..u64::MAX).rev().take(self.limits.max_waiting_jobs);
        waiting.extend(ids.map(|id| Job { id, step: Box::new(|| false) }));
    }
}

/// Drops a job without the lock, even if that panics.
fn drop_apart(job: Job) -> Option<Job> {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
    None
}

impl PoolState {
    /// Puts a job at the end of its caller's queue.
    fn put(&mut self, caller: &Arc<str>, job: Job) {
        self.callers.entry(Arc::clone(caller)).or_default().waiting.push_back(job);
        self.give_turn(caller);
    }

    /// Lets a caller have a turn, if it has a job for one.
    fn give_turn(&mut self, caller: &Arc<str>) {
        let Some(jobs) = self.callers.get_mut(caller) else { return };
        if jobs.is_over() {
            self.callers.remove(caller);
        } else if !jobs.has_turn && !jobs.waiting.is_empty() && jobs.running < jobs.max_running {
            jobs.has_turn = true;
            self.turns.push_back(Arc::clone(caller));
        }
    }

    /// The first job of the caller whose turn it is.
    fn take(&mut self) -> Option<(Arc<str>, Job)> {
        loop {
            let caller = self.turns.pop_front()?;
            let Some(jobs) = self.callers.get_mut(&caller) else { continue };
            jobs.has_turn = false;
            // Its jobs may have been removed meanwhile.
            let job = jobs.waiting.pop_front();
            jobs.running += usize::from(job.is_some());
            self.give_turn(&caller);
            if let Some(job) = job {
                return Some((caller, job));
            }
        }
    }

    /// A step has ended. If there is more to do, `job` waits for its next turn.
    fn give_back(&mut self, caller: &Arc<str>, job: Option<Job>) {
        if let Some(jobs) = self.callers.get_mut(caller) {
            jobs.running -= 1;
            jobs.waiting.extend(job.filter(|_| !self.closed));
        }
        if !self.closed {
            self.give_turn(caller);
        }
    }

    /// Removes a job whose caller has gone. Returns the job if it has not begun.
    fn remove(&mut self, ticket: &JobTicket<'_>) -> Option<Job> {
        let jobs = self.callers.get_mut(&ticket.caller)?;
        jobs.results -= ticket.results;
        let place = jobs.waiting.iter().position(|job| job.id == ticket.id);
        let job = place.and_then(|place| jobs.waiting.remove(place));
        if jobs.is_over() {
            self.callers.remove(&ticket.caller);
        }
        job
    }
}

/// Runs work that waits for a disk or a device, or that is slow, on another thread, so that this
/// one goes on serving.
///
/// The work and its result are boxed: so the runtime's task is compiled once, and not for each
/// handler.
///
/// # Errors
/// The work panicked.
pub(crate) async fn run_off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let done = spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::panicked())?;
    Ok(*done.downcast().expect("what the work returned"))
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    const ONE: PoolLimits =
        PoolLimits { max_threads: 1, max_threads_per_caller: 1, max_waiting_jobs: 2, max_result_bytes: 10 };

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// A job that says when its first step begins, and then waits until it is let go.
    fn gate() -> (mpsc::Receiver<()>, mpsc::Sender<()>, impl FnMut() -> JobStep<()> + Send + 'static) {
        let ((begun, begins), (let_go, gone)) = (mpsc::channel(), mpsc::channel());
        let step = move || {
            begun.send(()).unwrap();
            // The sender may be dropped instead.
            let _ = gone.recv();
            JobStep::Done(())
        };
        (begins, let_go, step)
    }

    /// A job of so many steps, each of which writes its name.
    fn steps(
        name: &'static str,
        number: usize,
        written: &Arc<Mutex<Vec<&'static str>>>,
    ) -> impl FnMut() -> JobStep<()> + Send + 'static {
        let (mut left, written) = (number, Arc::clone(written));
        move || {
            written.lock().unwrap().push(name);
            left -= 1;
            if left == 0 { JobStep::Done(()) } else { JobStep::More }
        }
    }

    #[test]
    fn a_caller_with_a_bound_has_fewer_threads_than_others() {
        let limits = PoolLimits { max_threads: 4, max_threads_per_caller: 4, ..ONE };
        runtime().block_on(async {
            let work = BlockingPool::new(limits);
            let ((first_begins, first_go, first), (second_begins, second_go, second)) = (gate(), gate());
            let (third_begins, third_go, third) = gate();
            let bounded = ("a", Some(2));
            let mut jobs = (
                pin!(work.run(bounded, 0, first)),
                pin!(work.run(bounded, 0, second)),
                pin!(work.run(bounded, 0, third)),
            );
            // Each is on a thread before the next one is queued: only a few may wait.
            start(jobs.0.as_mut());
            first_begins.recv().unwrap();
            start(jobs.1.as_mut());
            second_begins.recv().unwrap();
            start(jobs.2.as_mut());
            // Another caller has a thread, and the third job has none.
            work.run(("b", None), 0, || JobStep::Done(())).await.unwrap();
            assert!(third_begins.try_recv().is_err());
            first_go.send(()).unwrap();
            jobs.0.await.unwrap();
            third_begins.recv().unwrap();
            drop((second_go, third_go));
            jobs.1.await.unwrap();
            jobs.2.await.unwrap();
        });
    }

    /// Lets the job be queued.
    fn start<F: Future>(job: std::pin::Pin<&mut F>) {
        assert!(job.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[test]
    fn callers_have_turns_after_each_step_however_much_one_of_them_wants() {
        runtime().block_on(async {
            let (work, written) = (BlockingPool::new(ONE), Arc::default());
            let (begins, let_go, gate) = gate();
            let mut first = pin!(work.run(("a", None), 0, gate));
            start(first.as_mut());
            begins.recv().unwrap();
            let mut a = pin!(work.run(("a", None), 0, steps("a", 4, &written)));
            let mut other = pin!(work.run(("a", None), 0, steps("A", 2, &written)));
            let mut b = pin!(work.run(("b", None), 0, steps("b", 2, &written)));
            start(a.as_mut());
            start(other.as_mut());
            start(b.as_mut());
            let_go.send(()).unwrap();
            for job in [first.await, a.await, other.await, b.await] {
                job.unwrap();
            }
            assert_eq!(*written.lock().unwrap(), ["b", "a", "b", "A", "a", "A", "a", "a"]);
        });
    }

    #[test]
    fn a_caller_has_so_many_jobs_that_wait_and_those_of_a_caller_who_has_gone_make_room() {
        runtime().block_on(async {
            let (work, written) = (BlockingPool::new(ONE), Arc::default());
            let (begins, let_go, gate) = gate();
            let mut first = pin!(work.run(("a", None), 0, gate));
            start(first.as_mut());
            begins.recv().unwrap();
            let mut waiting: Vec<_> =
                ["x", "y"].map(|name| Box::pin(work.run(("a", None), 0, steps(name, 1, &written)))).into();
            waiting.iter_mut().for_each(|job| start(job.as_mut()));
            let refused = work.run(("a", None), 0, steps("z", 1, &written)).await.unwrap_err();
            assert_eq!((refused.body.code, refused.body.retryable), ("busy", true));
            let mut of_other = pin!(work.run(("b", None), 0, steps("b", 1, &written)));
            start(of_other.as_mut());
            drop(waiting.remove(0));
            let mut late = pin!(work.run(("a", None), 0, steps("z", 1, &written)));
            start(late.as_mut());
            let_go.send(()).unwrap();
            first.await.unwrap();
            of_other.await.unwrap();
            late.await.unwrap();
            assert_eq!(*written.lock().unwrap(), ["b", "y", "z"], "what nobody waits for was not done");
            while !work.state().callers.is_empty() {
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn one_caller_does_not_get_all_threads() {
        runtime().block_on(async {
            let work = BlockingPool::new(PoolLimits { max_threads: 2, ..ONE });
            let (gates, others) = (gate(), gate());
            let (mut one, mut two) =
                (pin!(work.run(("a", None), 0, gates.2)), pin!(work.run(("a", None), 0, others.2)));
            start(one.as_mut());
            start(two.as_mut());
            gates.0.recv().unwrap();
            work.run(("b", None), 0, || JobStep::Done(())).await.unwrap();
            assert!(others.0.try_recv().is_err(), "the second job of the same caller waits");
            drop((gates.1, others.1));
            one.await.unwrap();
            two.await.unwrap();
        });
    }

    #[test]
    fn a_job_whose_caller_goes_while_it_runs_ends_with_its_step() {
        runtime().block_on(async {
            let work = BlockingPool::new(ONE);
            let ((begun, begins), (let_go, gone)) = (mpsc::channel(), mpsc::channel());
            let endless = move || -> JobStep<()> {
                begun.send(()).unwrap();
                let _ = gone.recv();
                JobStep::More
            };
            let mut job = Box::pin(work.run(("a", None), 0, endless));
            start(job.as_mut());
            begins.recv().unwrap();
            drop(job);
            drop::<mpsc::Sender<()>>(let_go);
            work.run(("a", None), 0, || JobStep::Done(())).await.unwrap();
            assert!(begins.recv().is_err(), "the job was dropped after one step");
        });
    }

    #[test]
    fn a_panic_is_an_error_of_its_job_alone() {
        runtime().block_on(async {
            let work = BlockingPool::new(ONE);
            let failed =
                work.run(("a", None), 0, || -> JobStep<()> { panic!("on purpose") }).await.unwrap_err();
            assert_eq!(failed.body.code, "internal");
            assert!(work.run(("a", None), 0, || JobStep::Done(true)).await.unwrap());
        });
    }

    #[test]
    fn when_the_service_stops_no_step_begins() {
        runtime().block_on(async {
            let (work, written) = (BlockingPool::new(ONE), Arc::default());
            let (begins, let_go, gate) = gate();
            let mut first = pin!(work.run(("a", None), 0, gate));
            start(first.as_mut());
            begins.recv().unwrap();
            let mut waiting = pin!(work.run(("b", None), 0, steps("b", 1, &written)));
            start(waiting.as_mut());
            work.close();
            assert_eq!(waiting.await.unwrap_err().body.code, "shutting_down");
            assert_eq!(
                work.run(("c", None), 0, || JobStep::Done(())).await.unwrap_err().body.code,
                "shutting_down"
            );
            let_go.send(()).unwrap();
            first.await.unwrap();
            assert!(written.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn results_of_a_caller_have_a_bound_until_nobody_waits_for_them() {
        runtime().block_on(async {
            let work = BlockingPool::new(ONE);
            let (begins, let_go, gate) = gate();
            let mut first = Box::pin(work.run(("a", None), 11, gate));
            start(first.as_mut());
            begins.recv().unwrap();
            assert_eq!(work.run(("a", None), 1, || JobStep::Done(())).await.unwrap_err().body.code, "busy");
            let mut small = pin!(work.run(("a", None), 0, || JobStep::Done(())));
            start(small.as_mut());
            drop(first);
            let mut next = pin!(work.run(("a", None), 10, || JobStep::Done(())));
            start(next.as_mut());
            let_go.send(()).unwrap();
            small.await.unwrap();
            next.await.unwrap();
        });
    }
}
