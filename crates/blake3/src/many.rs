//! Independent inputs at once, one per lane.
//!
//! Inputs are processed 64 at a time. Each of their chunks is a lane with its own counter. The
//! chunks are sorted by length, so that lanes which run together end together. Then the parents of
//! all inputs are computed level by level, as wide as the kernel.

use crate::hash::Hash;
use crate::kernel::{Functions, Kernel, functions};
use crate::keyed_kernel::Value;
use crate::oneshot::digest;
use crate::plan::{EMPTY_LANE, Lane, MAX_LANES};
use crate::spec::{
    BLOCK_LEN, CHUNK_END, CHUNK_LEN, IV, KEY_LEN, KEYED_HASH, OUT_LEN, ROOT, Words, key_words,
};
use core::mem::MaybeUninit;

/// The number of inputs processed at a time.
const BATCH_LEN: usize = 64;

/// The number of chunks of the longest input that shares lanes with others. Longer inputs fill the
/// kernel by themselves.
const MAX_SHARED_CHUNKS: usize = 8;

/// Hashes independent inputs of any lengths side by side. For short inputs, this is many times
/// faster than hashing one after the other.
///
/// ```
/// use bulla_blake3::{Hash, hash, hash_many};
///
/// let mut digests = [Hash::from_bytes([0; 32]); 3];
/// hash_many(&[b"one", b"two", b"three"], &mut digests);
/// assert_eq!(digests[2], hash(b"three"));
/// ```
///
/// # Panics
///
/// If `out` is not as long as `inputs`.
pub fn hash_many(inputs: &[&[u8]], out: &mut [Hash]) {
    hash_many_in(functions(), &IV, 0, inputs, out);
}

/// Like [`hash_many`], with a key: the same as [`keyed_hash`](crate::keyed_hash) of each input.
///
/// # Panics
///
/// If `out` is not as long as `inputs`.
///
/// ```
/// let mut tags = [bulla_blake3::hash(b""); 2];
/// bulla_blake3::keyed_hash_many(&[7; 32], &[b"one", b"two"], &mut tags);
/// assert_eq!(tags[1], bulla_blake3::keyed_hash(&[7; 32], b"two"));
/// ```
pub fn keyed_hash_many(key: &[u8; KEY_LEN], inputs: &[&[u8]], out: &mut [Hash]) {
    hash_many_in(functions(), &key_words(key), KEYED_HASH, inputs, out);
}

impl Kernel {
    /// Like [`hash_many`], but by this kernel instead of the process's kernel.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as `inputs`.
    pub fn hash_many(self, inputs: &[&[u8]], out: &mut [Hash]) {
        hash_many_in(self.0, &IV, 0, inputs, out);
    }
}

pub(crate) fn hash_many_in(
    functions: &'static Functions,
    key: &Words,
    flags: u32,
    inputs: &[&[u8]],
    out: &mut [Hash],
) {
    assert_eq!(inputs.len(), out.len(), "as many digests as inputs");
    for (inputs, out) in inputs.chunks(BATCH_LEN).zip(out.chunks_mut(BATCH_LEN)) {
        let lens = inputs.iter().map(|input| input.len());
        let (shortest, longest) = (lens.clone().min().unwrap_or(0), lens.max().unwrap_or(0));
        let mut batch = Batch { functions, key, flags, inputs, out };
        if longest <= CHUNK_LEN && shortest == longest {
            // SAFETY: they are as long as the shortest and the longest of them.
            unsafe { batch.hash_uniform(longest) };
        } else if longest <= CHUNK_LEN {
            batch.hash_chunks();
        } else {
            batch.hash_trees();
        }
    }
}

/// Up to 64 inputs, and the places for their digests.
struct Batch<'a> {
    functions: &'static Functions,
    key: &'a Words,
    flags: u32,
    inputs: &'a [&'a [u8]],
    out: &'a mut [Hash],
}

/// A lane, and the place for its chaining value.
#[derive(Clone, Copy)]
struct LaneJob<'a> {
    lane: Lane<'a>,
    place: usize,
}

impl Batch<'_> {
    /// Hashes all inputs, each of at most one chunk.
    fn hash_chunks(&mut self) {
        let mut order = [0u8; BATCH_LEN];
        let order = sort_by_blocks(self.inputs.len(), &mut order, |i| self.inputs[i].len());
        let lanes = self.functions.lanes;
        for group in order.chunks(lanes) {
            let mut inputs = [EMPTY_LANE; MAX_LANES];
            for (lane, i) in inputs.iter_mut().zip(group) {
                let input = self.inputs[usize::from(*i)];
                *lane = Lane { input, counter: 0, last_flags: CHUNK_END | ROOT };
            }
            let mut values = [[0; OUT_LEN]; MAX_LANES];
            self.run(&inputs[..group.len()], &mut values);
            for (value, i) in values.iter().zip(group) {
                self.out[usize::from(*i)] = Hash::from_bytes(*value);
            }
        }
    }

    /// Hashes all inputs, which have one length.
    ///
    /// # Safety
    ///
    /// Each must have `len` bytes, at most a chunk.
    unsafe fn hash_uniform(&mut self, len: usize) {
        let lanes = self.functions.lanes;
        for (inputs, out) in self.inputs.chunks(lanes).zip(self.out.chunks_mut(lanes)) {
            let mut pointers = [inputs[0].as_ptr(); MAX_LANES];
            for (pointer, input) in pointers.iter_mut().zip(inputs) {
                *pointer = input.as_ptr();
            }
            let mut values = [MaybeUninit::<Value>::uninit(); MAX_LANES];
            // SAFETY: all inputs have this length, as the caller promised; there is room for the
            // most lanes of any kernel.
            let values = unsafe {
                let (flags, to) = ((self.flags, CHUNK_END | ROOT), values.as_mut_ptr().cast());
                (self.functions.hash_equal_len)(&pointers, inputs.len(), len, self.key, (0, 0), flags, to);
                core::slice::from_raw_parts(values.as_ptr().cast::<Value>(), inputs.len())
            };
            for (out, value) in out.iter_mut().zip(values) {
                *out = Hash::from_bytes(*value);
            }
        }
    }

    /// Computes the chaining values of up to `lanes` inputs.
    fn run(&self, inputs: &[Lane<'_>], values: &mut [Value; MAX_LANES]) {
        assert!(!inputs.is_empty() && inputs.len() <= self.functions.lanes);
        // SAFETY: no more inputs than lanes; there is room for the most lanes of any kernel.
        unsafe { (self.functions.hash_lanes)(inputs, self.key, self.flags, values.as_mut_ptr().cast()) }
    }

    /// Hashes all inputs, some of which have several chunks.
    fn hash_trees(&mut self) {
        let mut values = [[[0; OUT_LEN]; MAX_SHARED_CHUNKS]; BATCH_LEN];
        let mut counts = [0; BATCH_LEN];
        self.leaves(&mut values, &mut counts);
        while counts.iter().any(|n| *n > 2) {
            self.level(&mut values, &mut counts, |n| n > 2, 0);
        }
        self.level(&mut values, &mut counts, |n| n == 2, ROOT);
        for (i, input) in self.inputs.iter().enumerate() {
            self.out[i] = match counts[i] {
                1 => Hash::from_bytes(values[i][0]),
                _ => digest(self.functions, input, self.key, self.flags),
            };
        }
    }

    /// The chaining values of the chunks of all inputs of at most `MAX_SHARED_CHUNKS` chunks;
    /// `counts` says how many each has, 0 for longer inputs.
    fn leaves(&self, values: &mut [[Value; MAX_SHARED_CHUNKS]; BATCH_LEN], counts: &mut [usize; BATCH_LEN]) {
        let mut jobs = [LaneJob { lane: EMPTY_LANE, place: 0 }; BATCH_LEN];
        let mut n = 0;
        for (i, input) in self.inputs.iter().enumerate() {
            let chunks = input.len().div_ceil(CHUNK_LEN).max(1);
            if chunks > MAX_SHARED_CHUNKS {
                continue;
            }
            counts[i] = chunks;
            let last_flags = if chunks == 1 { CHUNK_END | ROOT } else { CHUNK_END };
            for counter in 0..chunks {
                let chunk = &input[CHUNK_LEN * counter..];
                let chunk = &chunk[..chunk.len().min(CHUNK_LEN)];
                let lane = Lane { input: chunk, counter: counter as u64, last_flags };
                jobs[n] = LaneJob { lane, place: MAX_SHARED_CHUNKS * i + counter };
                n += 1;
                if n == BATCH_LEN {
                    self.run_sorted(&jobs, values.as_flattened_mut());
                    n = 0;
                }
            }
        }
        self.run_sorted(&jobs[..n], values.as_flattened_mut());
    }

    fn run_sorted(&self, jobs: &[LaneJob<'_>], values: &mut [Value]) {
        let mut order = [0u8; BATCH_LEN];
        let order = sort_by_blocks(jobs.len(), &mut order, |i| jobs[i].lane.input.len());
        for group in order.chunks(self.functions.lanes) {
            let mut inputs = [EMPTY_LANE; MAX_LANES];
            for (lane, i) in inputs.iter_mut().zip(group) {
                *lane = jobs[usize::from(*i)].lane;
            }
            let mut results = [[0; OUT_LEN]; MAX_LANES];
            self.run(&inputs[..group.len()], &mut results);
            for (result, i) in results.iter().zip(group) {
                values[jobs[usize::from(*i)].place] = *result;
            }
        }
    }

    /// Computes one level of parents, for the inputs whose number of values satisfies `which`.
    fn level(
        &self,
        values: &mut [[Value; MAX_SHARED_CHUNKS]; BATCH_LEN],
        counts: &mut [usize; BATCH_LEN],
        which: fn(usize) -> bool,
        extra_flags: u32,
    ) {
        let lanes = self.functions.lanes;
        let mut children = [[0; BLOCK_LEN]; MAX_LANES];
        let mut places = [(0, 0); MAX_LANES];
        let mut n = 0;
        for i in 0..self.inputs.len() {
            if !which(counts[i]) {
                continue;
            }
            let pairs = counts[i] / 2;
            for pair in 0..pairs {
                children[n][..OUT_LEN].copy_from_slice(&values[i][2 * pair]);
                children[n][OUT_LEN..].copy_from_slice(&values[i][2 * pair + 1]);
                places[n] = (i, pair);
                n += 1;
                if n == lanes {
                    self.parents(&children[..n], &places, values, extra_flags);
                    n = 0;
                }
            }
            if counts[i] % 2 == 1 {
                // An odd value moves up unchanged. Its new place is after all pairs that are still
                // waiting, so the value there was either read above or is not needed.
                values[i][pairs] = values[i][counts[i] - 1];
            }
            counts[i] = counts[i].div_ceil(2);
        }
        self.parents(&children[..n], &places, values, extra_flags);
    }

    fn parents(
        &self,
        children: &[[u8; BLOCK_LEN]],
        places: &[(usize, usize); MAX_LANES],
        values: &mut [[Value; MAX_SHARED_CHUNKS]; BATCH_LEN],
        extra_flags: u32,
    ) {
        if children.is_empty() {
            return;
        }
        let mut results = [[0; OUT_LEN]; MAX_LANES];
        // SAFETY: the children are readable, and there is room for the most lanes of any kernel.
        unsafe {
            let (from, to) = (children.as_ptr().cast(), results.as_mut_ptr().cast());
            (self.functions.parents)(from, children.len(), self.key, self.flags | extra_flags, to);
        }
        for (result, (i, place)) in results.iter().zip(&places[..children.len()]) {
            values[*i][*place] = *result;
        }
    }
}

/// Sorts the numbers below n by the inputs' number of blocks, longest first: a counting sort. No
/// input is longer than a chunk.
fn sort_by_blocks(n: usize, order: &mut [u8; BATCH_LEN], len: impl Fn(usize) -> usize) -> &[u8] {
    let blocks = |i: usize| len(i).div_ceil(BLOCK_LEN).max(1);
    let mut starts = [0u8; CHUNK_LEN / BLOCK_LEN + 2];
    for i in 0..n {
        // Longest first: inputs with more blocks come earlier.
        starts[16 - blocks(i) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    for i in 0..n {
        let slot = &mut starts[16 - blocks(i)];
        order[usize::from(*slot)] = i as u8;
        *slot += 1;
    }
    &order[..n]
}
