//! Hashing on several threads.
//!
//! A thread of the pool divides the input in halves, again and again, and lets other threads steal
//! one of them. A caller from outside of the pool shares leaves with its threads:
//! `shared_leaves.rs`.

mod shared_leaves;

use crate::hasher::Hasher;
use crate::keyed_kernel::{KeyedKernel, Value, join};
use crate::plan::Prefetch;
use crate::spec::{BLOCK_LEN, CHUNK_LEN};
use crate::tree::{Stack, largest_subtree, root_block_of};
use arrayvec::ArrayVec;
use rayon_core::ThreadPool;

/// A thread of the pool hashes shorter input by itself: waking another one costs as much as hashing
/// about 50 KiB.
///
/// This is not part of the public interface. The packages for C and Python have pools of their own,
/// and start none for less.
pub const MIN_PARALLEL_LEN: usize = 64 * 1024;

/// A caller from outside of the pool hashes shorter input by itself: asking threads that sleep for
/// help costs as much as they gain.
const MIN_SHARED_LEN: usize = 128 * 1024;

/// The fewest bytes that a thread hashes at a time: a group of the widest kernel.
const MIN_LEAF_LEN: usize = 16 * 1024;

/// The most bytes that a thread hashes at a time. Longer leaves gain nothing.
const MAX_LEAF_LEN: usize = 128 * 1024;

/// The leaves for each thread, so that a late or slow one does not hold up the others.
const LEAVES_PER_THREAD: usize = 4;

/// The most subtrees of an input: their lengths, powers of two, first grow and then shrink.
const MAX_SUBTREES: usize = 2 * (usize::BITS - MIN_LEAF_LEN.ilog2()) as usize;

impl Hasher {
    /// Hashes more input, on this thread and those of the current rayon pool. Input under 128 KiB
    /// is hashed on this thread, in a thread of the pool under 64 KiB.
    ///
    /// # Panics
    ///
    /// If [`update`](Hasher::update) panics.
    ///
    /// ```
    /// let input = vec![0; 1 << 20];
    /// let digest = bulla_blake3::Hasher::new().update_rayon(&input).finalize();
    /// assert_eq!(digest, bulla_blake3::hash(&input));
    /// ```
    pub fn update_rayon(&mut self, input: &[u8]) -> &mut Self {
        self.update_in(None, input)
    }

    /// [`Hasher::update_rayon`] with the threads of `pool`, which the caller does not belong to.
    ///
    /// This is not part of the public interface. The packages for C and Python have pools of their
    /// own.
    #[doc(hidden)]
    pub fn update_in_pool(&mut self, pool: &ThreadPool, input: &[u8]) -> &mut Self {
        self.update_in(Some(pool), input)
    }

    fn update_in(&mut self, pool: Option<&ThreadPool>, mut input: &[u8]) -> &mut Self {
        self.check_length(input.len());
        if let Some(leaf) = leaf_len(input.len(), pool) {
            let prefetch = Prefetch::for_input(input);
            input = self.flush_to_stack(input);
            let Hasher { kernel, offset, stack, .. } = self;
            input = absorb_subtrees(stack, &Work { kernel, prefetch, leaf, pool }, *offset, input);
            self.update_buffer_limit();
        }
        self.update(input)
    }
}

/// Takes whole chunks of a tree that begins at counter 0, on all threads of the current rayon pool.
pub(crate) fn absorb_all(
    pool: Option<&ThreadPool>,
    stack: &mut Stack,
    kernel: &KeyedKernel,
    mut input: &[u8],
    prefetch: Prefetch,
) {
    if let Some(leaf) = leaf_len(input.len(), pool) {
        input = absorb_subtrees(stack, &Work { kernel, prefetch, leaf, pool }, 0, input);
    }
    stack.absorb_all(kernel, input, prefetch);
}

/// The bytes that a thread hashes at a time, of an input of `len` bytes. `None` if one thread
/// hashes all of it.
fn leaf_len(len: usize, pool: Option<&ThreadPool>) -> Option<usize> {
    let min_len = if is_outside(pool) { MIN_SHARED_LEN } else { MIN_PARALLEL_LEN };
    if len < min_len {
        return None;
    }
    let threads = thread_count(pool);
    let leaf = (len / (LEAVES_PER_THREAD * threads)).next_power_of_two();
    (threads > 1).then_some(leaf.clamp(MIN_LEAF_LEN, MAX_LEAF_LEN))
}

/// Whether the caller is no thread of the pool.
fn is_outside(pool: Option<&ThreadPool>) -> bool {
    pool.is_some() || rayon_core::current_thread_index().is_none()
}

/// The threads of `pool`, or else of the pool in use here.
fn thread_count(pool: Option<&ThreadPool>) -> usize {
    pool.map_or_else(rayon_core::current_num_threads, ThreadPool::current_num_threads)
}

/// Takes whole chunks as subtrees of at least [`MIN_LEAF_LEN`], all of them side by side. Returns
/// the rest, which is shorter. The tree begins at counter `offset`.
fn absorb_subtrees<'i>(stack: &mut Stack, work: &Work<'_>, offset: u64, input: &'i [u8]) -> &'i [u8] {
    // A subtree begins at a multiple of its length.
    let lead = stack.chunks.wrapping_neg() % (MIN_LEAF_LEN / CHUNK_LEN) as u64;
    let (lead, mut rest) = input.split_at(lead as usize * CHUNK_LEN);
    stack.absorb(work.kernel, offset, lead);
    let mut subtrees = ArrayVec::<_, MAX_SUBTREES>::new();
    let mut position = stack.chunks;
    while rest.len() >= MIN_LEAF_LEN {
        let (input, after) = rest.split_at(largest_subtree(position, rest.len()));
        subtrees.push(Subtree { input, counter: offset + position, halves: [0; BLOCK_LEN] });
        position += (input.len() / CHUNK_LEN) as u64;
        rest = after;
    }
    let leaves: usize = subtrees.iter().map(|subtree| subtree.input.len().div_ceil(work.leaf)).sum();
    if leaves > 1 && is_outside(work.pool) {
        let helpers = thread_count(work.pool) - 1;
        shared_leaves::absorb(stack, work.kernel, work.prefetch, &subtrees, work.leaf, helpers, work.pool);
        return rest;
    }
    work.hash_all(&mut subtrees);
    for Subtree { input, halves, .. } in &subtrees {
        for half in halves.as_chunks().0 {
            stack.push(work.kernel, half, (input.len() / CHUNK_LEN / 2) as u64);
        }
    }
    rest
}

/// A complete subtree of several chunks.
struct Subtree<'i> {
    input: &'i [u8],
    /// The counter of its first chunk.
    counter: u64,
    /// The chaining values of its halves, which are never the root.
    halves: [u8; BLOCK_LEN],
}

/// The parameters that all threads share.
struct Work<'w> {
    kernel: &'w KeyedKernel,
    prefetch: Prefetch,
    leaf: usize,
    /// A pool that the caller does not belong to; otherwise the pool in use here.
    pool: Option<&'w ThreadPool>,
}

impl Work<'_> {
    /// Hashes subtrees side by side.
    fn hash_all(&self, subtrees: &mut [Subtree<'_>]) {
        let Some((first, others)) = subtrees.split_first_mut() else { return };
        let mut hash_first = || first.halves = self.halves(first.input, first.counter);
        if others.is_empty() {
            hash_first();
        } else {
            rayon_core::join(hash_first, || self.hash_all(others));
        }
    }

    /// The chaining values of both halves of a complete subtree of several chunks.
    fn halves(&self, subtree: &[u8], counter: u64) -> [u8; BLOCK_LEN] {
        if subtree.len() <= self.leaf {
            return root_block_of(self.kernel, subtree, counter, self.prefetch);
        }
        let (left, right) = subtree.split_at(subtree.len() / 2);
        let right_counter = counter + (left.len() / CHUNK_LEN) as u64;
        let (left, right) =
            rayon_core::join(|| self.value(left, counter), || self.value(right, right_counter));
        join(&left, &right)
    }

    /// The chaining value of a complete subtree of several chunks that is not the root.
    fn value(&self, subtree: &[u8], counter: u64) -> Value {
        self.kernel.parent(&self.halves(subtree, counter), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LEAF_LEN, MIN_LEAF_LEN, MIN_PARALLEL_LEN, leaf_len};
    use rayon_core::ThreadPoolBuilder;

    #[test]
    fn a_leaf_leaves_work_for_every_thread() {
        for threads in [1, 2, 3, 4, 8, 16] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| {
                assert_eq!(leaf_len(MIN_PARALLEL_LEN - 1, None), None);
                for len in (MIN_PARALLEL_LEN..1 << 20).step_by(1024).chain([1 << 30, usize::MAX]) {
                    let Some(leaf) = leaf_len(len, None) else {
                        assert_eq!(threads, 1, "{len} bytes are for several threads");
                        continue;
                    };
                    assert!(threads > 1 && leaf.is_power_of_two(), "{threads} threads, {len} bytes");
                    assert!((MIN_LEAF_LEN..=MAX_LEAF_LEN).contains(&leaf), "{threads} threads, {len} bytes");
                    assert!(
                        leaf == MIN_LEAF_LEN || len / leaf >= 2 * threads,
                        "{threads} threads, {len} bytes in leaves of {leaf}"
                    );
                }
            });
        }
    }
}
