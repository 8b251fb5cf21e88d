//! Column form: vector i holds word i of the states of `LANES` inputs. Its speed is limited by
//! throughput: 14 operations a quarter round, and the transpose of the message. With one lane it is
//! the plain scalar algorithm.

use super::{SIGMA, all_rounds, next_block};
use crate::job::{CompressJob, Finalization, StepEnd, StridedInput};
use crate::word::Word;
use bulla_simd::lanes::Lanes;
use bulla_simd::scalar::{U32x1, U64x1};
use bulla_simd::{Vector, WordColumns, half_round};
use core::mem::MaybeUninit;

/// A vector with the rounds of the column form: the ones below, or its own faster ones.
#[allow(
    clippy::missing_safety_doc,
    reason = "the CPU must have the instruction set of the vector, as everywhere here"
)]
pub(crate) trait Rounds: WordColumns<Word: Word> {
    /// All rounds on the sixteen words of the state.
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        macro_rules! round {
            ($r:expr) => {
                half_round!(v, m, SIGMA[$r], 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, SIGMA[$r], 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            };
        }
        // SAFETY: the caller has the instruction set.
        unsafe {
            if cfg!(unoptimized) {
                // Every operation has a place of its own on the stack, and all rounds one after
                // another need more than the 2 MiB of a thread.
                for r in 0..Self::Word::ROUNDS {
                    round!(r % SIGMA.len());
                }
            } else {
                all_rounds!(round, Self::Word);
            }
        }
    }
}

impl Rounds for U32x1 {}
impl Rounds for U64x1 {}

/// The rounds of one lane in a loop over lanes: the compiler runs all of its iterations at once,
/// see [`bulla_simd::lanes`].
macro_rules! lane_by_lane {
    ($word:ty, $One:ty) => {
        impl<const N: usize> Rounds for Lanes<$word, N> {
            #[inline(always)]
            unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
                let mut lane = 0;
                while lane < N {
                    // SAFETY: one lane needs no instruction set.
                    unsafe {
                        let (mut words, mut message) = ([<$One>::splat(0); 16], [<$One>::splat(0); 16]);
                        let mut i = 0;
                        while i < 16 {
                            words[i] = <$One>::splat(v[i].0[lane]);
                            message[i] = <$One>::splat(m[i].0[lane]);
                            i += 1;
                        }
                        <$One>::rounds(&mut words, &message);
                        let mut i = 0;
                        while i < 16 {
                            words[i].store(&mut v[i].0[lane]);
                            i += 1;
                        }
                    }
                    lane += 1;
                }
            }
        }
    };
}

lane_by_lane!(u32, U32x1);
lane_by_lane!(u64, U64x1);

/// One compression: the next states. `t` and `f` are the counters and the finalization flags.
#[inline(always)]
unsafe fn compress<V: Rounds>(h: &[V; 8], m: &[V; 16], t: [V; 2], f: [V; 2]) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        // No closures here and below: a function that takes vectors through a closure is also
        // compiled separately, outside the kernels.
        let iv = &V::Word::IV;
        let mut v = [
            h[0],
            h[1],
            h[2],
            h[3],
            h[4],
            h[5],
            h[6],
            h[7],
            V::splat(iv[0]),
            V::splat(iv[1]),
            V::splat(iv[2]),
            V::splat(iv[3]),
            V::xor(V::splat(iv[4]), t[0]),
            V::xor(V::splat(iv[5]), t[1]),
            V::xor(V::splat(iv[6]), f[0]),
            V::xor(V::splat(iv[7]), f[1]),
        ];
        V::rounds(&mut v, m);
        let mut next = *h;
        let mut i = 0;
        while i < 8 {
            next[i] = V::xor(h[i], V::xor(v[i], v[i + 8]));
            i += 1;
        }
        next
    }
}

/// Compresses one input into the state `words`, with a vector of one lane. All blocks go through
/// the same copy of the rounds: with a second copy for the last block, Zen 5 takes about 350 cycles
/// longer from three blocks on.
#[inline(always)]
pub(crate) unsafe fn compress_input<V: Rounds>(
    words: &mut [V::Word; 8],
    input: StridedInput,
    mut counter: [V::Word; 2],
    last: Finalization,
) {
    let StridedInput { mut from, mut len, stride } = input;
    let mut padded = MaybeUninit::<[u8; 128]>::uninit();
    // SAFETY: the caller has the instruction set of V, and readable input.
    unsafe {
        let mut state = [V::splat(words[0]); 8];
        for (lane, word) in state.iter_mut().zip(&*words) {
            *lane = V::splat(*word);
        }
        loop {
            let is_last = len <= V::Word::BLOCK;
            from = next_block::<V>(from, len, &mut padded);
            let flags = if is_last { last.flags() } else { Finalization::None.flags() };
            counter = V::Word::advance(counter, len.min(V::Word::BLOCK));
            let m = V::load_blocks(&raw const from, 0);
            let counter = [V::splat(counter[0]), V::splat(counter[1])];
            state = compress(&state, &m, counter, [V::splat(flags[0]), V::splat(flags[1])]);
            if is_last {
                break;
            }
            from = from.wrapping_add(stride);
            len -= V::Word::BLOCK;
        }
        for (word, lane) in words.iter_mut().zip(state) {
            lane.store(word);
        }
    }
}

/// The counters before the next blocks of all lanes, the counters at the end of the last of these
/// blocks, and that block's flags.
struct LaneMarks<V> {
    before: [V; 2],
    end: [V; 2],
    flags: [V; 2],
}

impl<V: Rounds> LaneMarks<V> {
    /// Marks for lanes that are all like the first one.
    #[inline(always)]
    unsafe fn alike(job: &CompressJob<'_, V::Word>, tail: StepEnd<V::Word>) -> Self {
        // SAFETY: the caller has the instruction set of V; so in all functions here.
        unsafe {
            Self {
                before: [V::splat(job.counter[0]), V::splat(job.counter[1])],
                end: [V::splat(tail.counter[0]), V::splat(tail.counter[1])],
                flags: [V::splat(tail.flags[0]), V::splat(tail.flags[1])],
            }
        }
    }

    /// Separate marks for each lane, through memory: the loads wait for all these stores.
    #[inline(always)]
    unsafe fn each<const W: usize>(jobs: &[CompressJob<'_, V::Word>], blocks: usize) -> Self {
        let mut words = [[V::Word::default(); W]; 6];
        let mut i = 0;
        while i < jobs.len() {
            let (job, tail) = (&jobs[i], jobs[i].tail(blocks));
            let mut word = 0;
            while word < 2 {
                words[word][i] = job.counter[word];
                words[2 + word][i] = tail.counter[word];
                words[4 + word][i] = tail.flags[word];
                word += 1;
            }
            i += 1;
        }
        // SAFETY: each array has a word for each lane.
        unsafe {
            let [a, b, c, d, e, f] = &words;
            Self {
                before: [V::load(a.as_ptr()), V::load(b.as_ptr())],
                end: [V::load(c.as_ptr()), V::load(d.as_ptr())],
                flags: [V::load(e.as_ptr()), V::load(f.as_ptr())],
            }
        }
    }
}

/// Compresses 1 to `W == LANES` jobs as far as all of them reach. Moves the jobs with blocks left
/// to the front, and returns how many there are.
#[inline(always)]
pub(crate) unsafe fn compress_lanes<V: Rounds, const W: usize>(
    jobs: &mut [CompressJob<'_, V::Word>],
) -> usize {
    let mut blocks = usize::MAX;
    for job in &*jobs {
        blocks = blocks.min(job.joint_blocks());
    }
    // SAFETY: as the caller promised; no job has fewer blocks, or wraps its counter's low word in
    // any but the last.
    unsafe { compress_blocks::<V, W>(jobs, blocks) };
    let mut left = 0;
    for i in 0..jobs.len() {
        if jobs[i].skip_blocks(blocks) {
            jobs.swap(left, i);
            left += 1;
        }
    }
    left
}

/// Compresses the next `blocks` blocks of 1 to `W == LANES` jobs.
#[inline(always)]
unsafe fn compress_blocks<V: Rounds, const W: usize>(jobs: &mut [CompressJob<'_, V::Word>], blocks: usize) {
    // SAFETY: the caller has the instruction set of V, at least one job and at most W, and readable
    // input.
    unsafe {
        // Lanes without a job repeat the first job's work, into a state that is never read.
        let mut unread = *jobs[0].words;
        let mut states = [&raw mut unread; W];
        let mut from = [jobs[0].input.from; W];
        let first = jobs[0].tail(blocks);
        let mut tails = [first.from; W];
        let mut padded = [const { MaybeUninit::<[u8; 128]>::uninit() }; W];
        let (start, mut alike) = (jobs[0].counter, true);
        let mut i = 0;
        while i < W {
            let tail = if i < jobs.len() {
                let tail = jobs[i].tail(blocks);
                alike &=
                    jobs[i].counter == start && tail.counter == first.counter && tail.flags == first.flags;
                states[i] = jobs[i].words;
                from[i] = jobs[i].input.from;
                tail
            } else {
                first
            };
            tails[i] = next_block::<V>(tail.from, tail.len, &mut padded[i]);
            i += 1;
        }
        let states = states.as_ptr().cast::<*mut V::Word>();
        let mut h = V::load_states(states);
        let marks =
            if alike { LaneMarks::<V>::alike(&jobs[0], first) } else { LaneMarks::each::<W>(jobs, blocks) };
        let none = [V::splat(V::Word::default()); 2];
        let block = V::splat(V::Word::small(V::Word::BLOCK));
        let [mut low, high] = marks.before;
        let (stride, mut at) = (jobs[0].input.stride, 0);
        for _ in 1..blocks {
            low = V::add(low, block);
            let m = V::load_blocks(from.as_ptr(), at);
            h = compress(&h, &m, [low, high], none);
            at = at.wrapping_add(stride);
        }
        let m = V::load_blocks(tails.as_ptr(), 0);
        V::store_states(compress(&h, &m, marks.end, marks.flags), states);
    }
}
