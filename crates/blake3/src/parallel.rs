//! Hashing on several threads: subtrees, by recursive halving.

use crate::hasher::Hasher;
use crate::instance::{Instance, Value, join};
use crate::plan::Distance;
use crate::spec::CHUNK_LEN;
use crate::tree::{Stack, largest_subtree, root_block_of};

/// The number of bytes that one thread hashes at a time.
const LEAF: usize = 128 * 1024;

/// Shorter input is hashed without the thread pool, and does not start it: waking a thread costs as much as hashing
/// about 50 KiB.
const SMALLEST: usize = 2 * LEAF;

impl Hasher {
    /// Hashes more input, on all threads of the current rayon pool. Input under 256 KiB is hashed on this thread.
    ///
    /// # Panics
    ///
    /// If [`update`](Hasher::update) panics.
    pub fn update_rayon(&mut self, mut input: &[u8]) -> &mut Self {
        self.check_length(input.len());
        let distance = Distance::of(input);
        while input.len() >= SMALLEST {
            input = self.settle(input);
            let subtree = largest_subtree(self.stack.chunks, input.len());
            let (now, rest) = input.split_at(subtree);
            if now.len() >= SMALLEST {
                self.push_in_parallel(now, distance);
            } else {
                self.push_subtree(now);
            }
            input = rest;
        }
        self.update(input)
    }

    /// Adds a subtree of several chunks as its two halves, which are never the root.
    fn push_in_parallel(&mut self, subtree: &[u8], distance: Distance) {
        let instance = &self.instance;
        let counter = self.offset + self.stack.chunks;
        for half in halves(instance, subtree, counter, distance) {
            self.stack.push(instance, &half, (subtree.len() / CHUNK_LEN / 2) as u64);
        }
        self.fit();
    }
}

/// Takes whole chunks of a tree that begins at counter 0, on all threads of the current rayon pool.
pub(crate) fn absorb_all(stack: &mut Stack, instance: &Instance, mut input: &[u8], distance: Distance) {
    while input.len() >= SMALLEST {
        let (subtree, rest) = input.split_at(largest_subtree(stack.chunks, input.len()));
        if subtree.len() >= SMALLEST {
            for half in halves(instance, subtree, stack.chunks, distance) {
                stack.push(instance, &half, (subtree.len() / CHUNK_LEN / 2) as u64);
            }
        } else {
            stack.absorb_subtree(instance, subtree, distance);
        }
        input = rest;
    }
    stack.absorb_all(instance, input, distance);
}

/// The chaining values of both halves of a complete subtree that begins at this counter, each on a thread.
fn halves(instance: &Instance, subtree: &[u8], counter: u64, distance: Distance) -> [Value; 2] {
    let (left, right) = subtree.split_at(subtree.len() / 2);
    let right_counter = counter + (left.len() / CHUNK_LEN) as u64;
    let (left, right) = rayon_core::join(
        || value(instance, left, counter, distance),
        || value(instance, right, right_counter, distance),
    );
    [left, right]
}

/// The chaining value of a complete subtree of several chunks that is not the root.
fn value(instance: &Instance, subtree: &[u8], counter: u64, distance: Distance) -> Value {
    if subtree.len() <= LEAF {
        return instance.parent(&root_block_of(instance, subtree, counter, distance), 0);
    }
    let [left, right] = halves(instance, subtree, counter, distance);
    instance.parent(&join(&left, &right), 0)
}
