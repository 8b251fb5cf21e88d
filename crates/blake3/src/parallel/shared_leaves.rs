//! Leaves that the caller and threads of a pool hash side by side, each taking the next few.
//!
//! `rayon_core::join` from outside of the pool hands the whole work over: the caller sleeps, a
//! thread of the pool wakes, and in the end it wakes the caller. Two wakings cost more than the
//! hash of 64 KiB. Here, the caller begins at once, and threads that wake help with what is left.
//! So a call never waits for a thread that has not begun, and takes no longer than on one thread,
//! apart from asking for helpers.

extern crate std;

use crate::keyed_kernel::{KeyedKernel, Value};
use crate::plan::Prefetch;
use crate::spec::{CHUNK_LEN, OUT_LEN};
use crate::tree::{Stack, root_block_of};
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use rayon_core::ThreadPool;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Instant;
use std::vec::Vec;

use super::Subtree;

/// How many helpers the caller asks for, and how many more each helper asks for: waking a thread
/// takes the time of a leaf, so that nobody should wake all of them.
const HELPERS_PER_THREAD: usize = 2;

/// A thread takes, at a time, a share of the leaves that are left: one divided by this and by the
/// number of threads. So the runs become shorter towards the end, where they must not hold up the
/// caller. The leaves of a run are side by side, because a kernel asks for the memory after its own
/// in advance, which is of use to the same thread alone.
const RUNS_PER_THREAD: usize = 3;

/// How long the caller waits for the last leaves of others before it sleeps.
const MAX_SPIN: Duration = Duration::from_micros(10);

/// The leaves of an input. Helpers that come late own a part of this, and touch nothing else.
struct SharedLeaves {
    kernel: *const KeyedKernel,
    prefetch: Prefetch,
    leaves: Vec<Leaf>,
    values: Vec<UnsafeCell<Value>>,
    /// The threads that may work, the caller among them.
    threads: usize,
    /// The number of leaves that were taken; more if the caller panicked.
    taken: AtomicUsize,
    /// The number of leaves that are done.
    done: AtomicUsize,
    /// The number of helpers that nobody has asked for yet.
    missing_helpers: AtomicUsize,
    caller: Thread,
    /// Whether the caller sleeps, or is about to.
    is_caller_asleep: AtomicBool,
}

struct Leaf {
    input: *const [u8],
    counter: u64,
}

// SAFETY: `work` says why threads may read the input and the kernel, and write the values.
unsafe impl Send for SharedLeaves {}
// SAFETY: as above.
unsafe impl Sync for SharedLeaves {}

/// Hashes subtrees, and adds them to the stack, with up to `helpers` threads of `pool`; of the
/// global pool, if there is none. All subtrees together have at least two leaves.
pub(super) fn absorb(
    stack: &mut Stack,
    kernel: &KeyedKernel,
    prefetch: Prefetch,
    subtrees: &[Subtree<'_>],
    leaf_len: usize,
    helpers: usize,
    pool: Option<&ThreadPool>,
) {
    let mut leaves = Vec::new();
    for Subtree { input, counter, .. } in subtrees {
        for (counter, input) in (*counter..).step_by(leaf_len / CHUNK_LEN).zip(input.chunks(leaf_len)) {
            leaves.push(Leaf { input, counter });
        }
    }
    debug_assert!(leaves.len() > 1, "a leaf that is the whole tree has no value");
    let helpers = helpers.min(leaves.len() - 1);
    let shared = Arc::new(SharedLeaves {
        kernel,
        prefetch,
        values: leaves.iter().map(|_| UnsafeCell::new([0; OUT_LEN])).collect(),
        leaves,
        threads: helpers + 1,
        taken: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        missing_helpers: AtomicUsize::new(helpers),
        caller: thread::current(),
        is_caller_asleep: AtomicBool::new(false),
    });
    {
        let _all_done = WaitOnDrop(&shared);
        ask_helpers(&shared, pool);
        shared.work();
    }
    assert!(shared.is_done());
    // SAFETY: no thread writes a value any more, this one has seen all that were written, and late
    // helpers do not look at them.
    let values = unsafe {
        core::slice::from_raw_parts_mut(UnsafeCell::raw_get(shared.values.as_ptr()), shared.values.len())
    };
    let mut rest = &mut *values;
    for Subtree { input, .. } in subtrees {
        let (own, after) = rest.split_at_mut(input.len().div_ceil(leaf_len));
        push_subtree(stack, kernel, own, (input.len() / CHUNK_LEN) as u64);
        rest = after;
    }
    // With a key, the values are secret, and a late helper keeps them in memory.
    for value in values {
        // SAFETY: the reference is valid.
        unsafe { core::ptr::write_volatile(value, [0; OUT_LEN]) };
    }
}

/// Adds a subtree of `chunks` chunks whose leaves have these values, a power of two of them. The
/// root of the whole input may be among its two halves' parents, but is no leaf.
fn push_subtree(stack: &mut Stack, kernel: &KeyedKernel, values: &mut [Value], chunks: u64) {
    let mut count = values.len();
    while count > 2 {
        count /= 2;
        let mut done = 0;
        while done < count {
            let step = kernel.lanes().min(count - done);
            let at = values.as_mut_ptr();
            // SAFETY: the parents `done..done + step` come from the values at twice these places,
            // and are written at or before the first of these.
            unsafe {
                let (children, out) = (at.add(2 * done), at.add(done));
                (kernel.functions.parents)(children.cast(), step, &kernel.key, kernel.flags, out.cast());
            }
            done += step;
        }
    }
    for value in &values[..count] {
        stack.push(kernel, value, chunks / count as u64);
    }
}

/// Asks for some of the missing helpers, if leaves are left for them. A helper does the same first.
fn ask_helpers(shared: &Arc<SharedLeaves>, pool: Option<&ThreadPool>) {
    for _ in 0..HELPERS_PER_THREAD {
        let is_left = shared.taken.load(Ordering::Relaxed) < shared.leaves.len();
        let take_one = |missing: usize| missing.checked_sub(1);
        let counter = &shared.missing_helpers;
        if !is_left || counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_err() {
            return;
        }
        let shared = shared.clone();
        let help = move || {
            ask_helpers(&shared, None);
            shared.work();
        };
        match pool {
            Some(pool) => pool.spawn(help),
            None => rayon_core::spawn(help),
        }
    }
}

/// The leaves that a thread takes if `taken` of `leaves` are taken. `None` if none is left.
fn next_run(taken: usize, leaves: usize, threads: usize) -> Option<Range<usize>> {
    let left = leaves.checked_sub(taken).filter(|left| *left > 0)?;
    Some(taken..taken + (left / (RUNS_PER_THREAD * threads)).max(1))
}

impl SharedLeaves {
    /// Hashes leaves until none is left.
    fn work(&self) {
        while let Some(run) = self.take_run() {
            let _counted = CountOnDrop(self, run.len());
            for (leaf, value) in self.leaves[run.clone()].iter().zip(&self.values[run]) {
                // SAFETY: this thread alone has taken the leaf, and it is not counted yet. So the
                // caller waits, whose input and kernel these are, and reads no value.
                unsafe {
                    let (kernel, input) = (&*self.kernel, &*leaf.input);
                    let block = root_block_of(kernel, input, leaf.counter, self.prefetch);
                    *value.get() = kernel.parent(&block, 0);
                }
            }
        }
    }

    /// Takes leaves that nobody has taken. `None` if none is left.
    fn take_run(&self) -> Option<Range<usize>> {
        let run = |taken| next_run(taken, self.leaves.len(), self.threads);
        let end = |taken| run(taken).map(|run| run.end);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
        taken.ok().and_then(run)
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst) == self.leaves.len()
    }

    /// Waits until other threads have done the leaves that they took.
    fn wait(&self) {
        let mut start = None;
        while !self.is_done() {
            if start.get_or_insert_with(Instant::now).elapsed() < MAX_SPIN {
                spin_loop();
                continue;
            }
            self.is_caller_asleep.store(true, Ordering::SeqCst);
            if !self.is_done() {
                thread::park();
            }
        }
    }
}

/// Counts leaves as done, also if hashing one panics: the caller must not wait forever.
struct CountOnDrop<'s>(&'s SharedLeaves, usize);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        let Self(shared, count) = self;
        let done = shared.done.fetch_add(*count, Ordering::SeqCst) + *count;
        if done == shared.leaves.len() && shared.is_caller_asleep.load(Ordering::SeqCst) {
            shared.caller.unpark();
        }
    }
}

/// Waits for all leaves, also if the caller panics: others read its memory. Leaves that nobody
/// took then count as taken and done.
struct WaitOnDrop<'s>(&'s SharedLeaves);

impl Drop for WaitOnDrop<'_> {
    fn drop(&mut self) {
        let Self(shared) = self;
        let taken = shared.taken.fetch_add(shared.leaves.len(), Ordering::Relaxed);
        shared.done.fetch_add(shared.leaves.len().saturating_sub(taken), Ordering::SeqCst);
        shared.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::next_run;

    #[test]
    fn runs_take_each_leaf_once_and_become_shorter() {
        for (leaves, threads) in [(1, 2), (8, 2), (64, 16), (8192, 2), (8192, 16)] {
            let (mut taken, mut longest) = (0, leaves);
            while let Some(run) = next_run(taken, leaves, threads) {
                assert!(run.start == taken && (1..=longest).contains(&run.len()), "{run:?} of {leaves}");
                // No thread takes so much that the others have to wait for it.
                assert!(run.len() == 1 || run.len() * threads * 2 < leaves - taken, "{run:?} of {leaves}");
                (taken, longest) = (run.end, run.len());
            }
            assert_eq!((taken, longest), (leaves, 1), "{threads} threads");
        }
        assert_eq!(next_run(9, 8, 2), None, "after a panic");
    }
}
