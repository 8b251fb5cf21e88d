//! The threads that hash one long input.

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// How many pools of different sizes are kept for the next input.
const MAX_POOLS: usize = 4;

/// How many threads may hash an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The caller's own.
    One,
    /// At most so many.
    AtMost(NonZeroUsize),
    /// As many as there are processors.
    Auto,
}

/// The pools of a process, the one that was used last at the end. They are not rayon's global pool:
/// the threads of a pool do not exist in a process that `fork` makes, where that pool would wait
/// for them forever.
struct Pools {
    process: u32,
    pools: Vec<Arc<ThreadPool>>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { process: 0, pools: Vec::new() });

/// How many processors this process may use. To find out, Rust's library reads files of the system,
/// which takes as long as to hash 200 KiB.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

/// A pool of so many threads, and never of more than there are processors. `None` if one thread is
/// enough, or no more can be had.
pub(crate) fn pool(threads: Threads) -> Option<Arc<ThreadPool>> {
    let size = match threads {
        Threads::One => return None,
        Threads::AtMost(most) => most.get().min(processors()),
        Threads::Auto => processors(),
    };
    if size < 2 {
        return None;
    }
    let mut kept = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.process != process::id() {
        // Those of the process that forked this one: to end their threads would wait for them.
        kept.pools.drain(..).for_each(std::mem::forget);
        kept.process = process::id();
    }
    let pool = match kept.pools.iter().position(|pool| pool.current_num_threads() == size) {
        Some(place) => kept.pools.remove(place),
        None => Arc::new(ThreadPoolBuilder::new().num_threads(size).build().ok()?),
    };
    if kept.pools.len() == MAX_POOLS {
        kept.pools.remove(0);
    }
    kept.pools.push(Arc::clone(&pool));
    Some(pool)
}
