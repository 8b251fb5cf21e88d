//! Many inputs at once: as many as the kernel has lanes. For one hash function see
//! [`blake2b::many`](crate::blake2b::many) and [`blake2s::many`](crate::blake2s::many); the
//! functions here work for both.
//!
//! Inputs may have any length: when a lane's input has ended, the lane takes the next input. If one
//! input is much longer than all others, put it first.
//!
//! ```
//! use bulla_blake2::blake2b::{Params, many::{HashManyJob, hash_many}};
//!
//! let params = Params::new();
//! let mut jobs = [&b"foo"[..], b"bar", b"baz"].map(|input| HashManyJob::new(&params, input));
//! hash_many(&mut jobs);
//! assert_eq!(jobs[1].to_hash(), params.hash(b"bar"));
//! ```

use crate::hash::Hash;
use crate::job::{CompressJob, Finalization, MAX_LANES, StridedInput};
use crate::kernel::{self, Functions, Kernel};
use crate::params::Params;
use crate::state::State;
use crate::variant::{Blake2b, Blake2s, Variant};
use crate::word::Word;
use arrayvec::ArrayVec;
use core::fmt;

/// The largest value that [`degree`] returns on any machine.
pub const MAX_DEGREE: usize = MAX_LANES;

/// A multiple of this many inputs keeps all lanes busy, with either hash function.
///
/// ```
/// use bulla_blake2::many::{MAX_DEGREE, degree};
///
/// assert!((1..=MAX_DEGREE).contains(&degree()));
/// ```
pub fn degree() -> usize {
    degree_of::<Blake2b>().max(degree_of::<Blake2s>())
}

/// How many inputs the kernel in use takes side by side.
pub(crate) fn degree_of<V: Variant>() -> usize {
    V::functions(kernel::active()).lanes
}

/// Compresses all jobs, which must have the same stride.
///
/// # Safety
///
/// Their inputs must be readable, and the functions those of a kernel that this machine supports.
pub(crate) unsafe fn compress_many<'a, W: Word>(
    functions: &'static Functions<W>,
    jobs: impl Iterator<Item = CompressJob<'a, W>>,
) {
    let mut jobs = jobs.fuse();
    let mut active = ArrayVec::<CompressJob<'a, W>, MAX_LANES>::new();
    loop {
        // Not `extend`: compiled separately, its call that never returns would look like one that
        // may return.
        while active.len() < functions.lanes
            && let Some(job) = jobs.next()
            && active.try_push(job).is_ok()
        {}
        match &mut active[..] {
            [] => return,
            [job] => {
                // SAFETY: as the caller promised.
                unsafe { (functions.compress)(job.words, job.input, job.counter, job.last) };
                active.clear();
            }
            // SAFETY: as the caller promised; no more jobs than lanes.
            _ => unsafe {
                let left = (functions.compress_lanes)(&mut active);
                active.truncate(left);
            },
        }
    }
}

/// Updates any number of [`State`]s, each with its own input.
///
/// ```
/// use bulla_blake2::blake2b::{State, blake2b, many::update_many};
///
/// let mut states = [State::new(), State::new()];
/// update_many(states.iter_mut().zip([b"foo", b"bar"]));
/// assert_eq!(states[1].finalize(), blake2b(b"bar"));
/// ```
pub fn update_many<'a, 'b, V, I, T>(pairs: I)
where
    V: Variant,
    I: IntoIterator<Item = (&'a mut State<V>, &'b T)>,
    T: 'b + AsRef<[u8]> + ?Sized,
{
    let mut pairs = pairs.into_iter().peekable();
    let Some((state, _)) = pairs.peek() else { return };
    let functions = V::functions(state.kernel);
    let jobs = pairs.filter_map(|(state, input)| {
        let input = state.finish_block(input.as_ref());
        let (blocks, rest) = State::<V>::split_blocks(input);
        if !input.is_empty() {
            state.block.as_mut()[..rest.len()].copy_from_slice(rest);
            state.block_len = rest.len() as u8;
        }
        if blocks.is_empty() {
            return None;
        }
        let counter = V::Word::split(state.count);
        state.count = state.count.wrapping_add(blocks.len() as u128);
        Some(CompressJob {
            words: &mut state.words,
            input: serial::<V>(blocks),
            counter,
            last: Finalization::None,
        })
    });
    // SAFETY: the inputs are slices that outlive the call.
    unsafe { compress_many(functions, jobs) }
}

/// An input with consecutive blocks.
fn serial<V: Variant>(input: &[u8]) -> StridedInput {
    StridedInput { from: input.as_ptr(), len: input.len(), stride: V::Word::BLOCK }
}

/// One of the inputs of [`hash_many`], and afterwards its digest.
#[derive(Clone)]
pub struct HashManyJob<'a, V: Variant> {
    words: [V::Word; 8],
    count: u128,
    input: &'a [u8],
    last: Finalization,
    hash_length: u8,
    is_done: bool,
    kernel: Kernel,
}

impl<'a, V: Variant> HashManyJob<'a, V> {
    /// The job to hash `input` with these parameters.
    #[inline]
    pub fn new(params: &Params<V>, input: &'a [u8]) -> Self {
        let (hash_length, kernel, last) = (params.hash_length, params.kernel, params.last_node.end());
        let job = Self { words: params.words, count: 0, input, last, hash_length, is_done: false, kernel };
        if params.key_length == 0 { job } else { job.keyed(params) }
    }

    /// A job whose key block is already compressed.
    #[inline(never)]
    fn keyed(self, params: &Params<V>) -> Self {
        let is_done = self.input.is_empty();
        let (words, count) = params.keyed_words(if is_done { self.last } else { Finalization::None });
        Self { words, count: count as u128, is_done, ..self }
    }

    /// The digest.
    ///
    /// # Panics
    ///
    /// In builds with debug assertions, if [`hash_many`] has not done the job. In other builds, the
    /// result then has no meaning.
    #[inline]
    pub fn to_hash(&self) -> Hash<V> {
        debug_assert!(self.is_done, "hash_many has not done this job yet");
        Hash::new(&self.words, self.hash_length)
    }
}

/// Omits the state's words: with them, others could append to the input.
impl<V: Variant> fmt::Debug for HashManyJob<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashManyJob")
            .field("count", &self.count)
            .field("hash_length", &self.hash_length)
            .field("last_node", &(self.last == Finalization::LastNode))
            .field("input_len", &self.input.len())
            .finish()
    }
}

/// Hashes any number of jobs. It skips jobs that are already done.
pub fn hash_many<'a, 'b, V, I>(hash_many_jobs: I)
where
    'b: 'a,
    V: Variant,
    I: IntoIterator<Item = &'a mut HashManyJob<'b, V>>,
{
    let mut jobs = hash_many_jobs.into_iter().peekable();
    let Some(job) = jobs.peek() else { return };
    let functions = V::functions(job.kernel);
    let jobs = jobs.filter(|job| !job.is_done).map(|job| {
        job.is_done = true;
        let counter = V::Word::split(job.count);
        CompressJob { words: &mut job.words, input: serial::<V>(job.input), counter, last: job.last }
    });
    // SAFETY: the inputs are slices that outlive the call.
    unsafe { compress_many(functions, jobs) }
}
