//! The threads that hash one long input.
//!
//! They are not rayon's global pool: threads do not exist in a process that `fork` makes, where
//! that pool would wait for them forever. So each process has a pool of its own.
//!
//! There is no lock, because another thread could hold it in the moment of the fork: the new
//! process would wait for that thread forever.

use bulla_blake3::MIN_PARALLEL_LEN;
use rayon_core::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The pool of a process. It is never freed: in a process that `fork` made, this would wait for the
/// threads of the parent process.
struct Pool {
    process: u32,
    threads: ThreadPool,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Whether a call started the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolStart {
    Now,
    Before,
}

/// The pool for an input of `len` bytes. `None` if one thread is enough, or if no threads can be
/// had: then the caller's thread hashes the input.
pub(crate) fn pool(len: usize) -> Option<&'static ThreadPool> {
    if len < MIN_PARALLEL_LEN {
        return None;
    }
    let (pool, _) = process_pool(None).ok()?;
    (pool.threads.current_num_threads() > 1).then_some(&pool.threads)
}

/// Starts the pool with so many threads, unless it has started: 0 means the default.
#[cfg(feature = "native")]
pub(crate) fn start(count: usize) -> Result<PoolStart, ThreadPoolBuildError> {
    process_pool(Some(count)).map(|(_, start)| start)
}

/// The pool of this process. If it starts now and nobody says with how many threads, it gets as
/// many as that of the parent process, whose program may have chosen them.
fn process_pool(count: Option<usize>) -> Result<(&'static Pool, PoolStart), ThreadPoolBuildError> {
    let last = POOL.load(Ordering::Acquire);
    // SAFETY: it is NULL, or a box that was leaked below.
    let last_pool = unsafe { last.as_ref() };
    if let Some(pool) = last_pool.filter(|pool| pool.process == process::id()) {
        return Ok((pool, PoolStart::Before));
    }
    let count = count.or(last_pool.map(|parents| parents.threads.current_num_threads()));
    let threads = ThreadPoolBuilder::new().num_threads(count.unwrap_or(0)).build()?;
    let pool = Box::into_raw(Box::new(Pool { process: process::id(), threads }));
    match POOL.compare_exchange(last, pool, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it came from a box, and nobody frees it any more.
        Ok(_) => Ok((unsafe { &*pool }, PoolStart::Now)),
        // Another thread was faster.
        Err(faster) => {
            // SAFETY: `pool` came from a box, and nobody else saw it.
            drop(unsafe { Box::from_raw(pool) });
            // SAFETY: it is a leaked box: nobody stores NULL.
            Ok((unsafe { &*faster }, PoolStart::Before))
        }
    }
}
