//! Column form: vector i holds word i of the states of `LANES` inputs. Its speed is limited by
//! throughput: 784 operations a block, and the transpose of the message if vector units do it
//! ([`Messages`]).

use super::lanes::{Blocks, EqualLenInputs, LaneInputs, counters, redirect_pointers};
use crate::plan::{Group, Lane, MAX_LANES, Prefetch};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, IV, PARENT, SCHEDULE, Words};
use bulla_simd::lanes::Lanes;
use bulla_simd::scalar::U32x1;
use bulla_simd::{Columns, Vector, half_round};
use core::mem::MaybeUninit;

/// A vector with the rounds of the column form: the ones below, or its own faster ones.
#[allow(
    clippy::missing_safety_doc,
    reason = "the CPU must have the instruction set of the vector, as everywhere here"
)]
pub(crate) trait Rounds: Columns {
    /// How the messages of blocks one after another come to the rounds.
    type Messages: Messages<Self>;

    /// The seven rounds on the sixteen words of the state.
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        macro_rules! round {
            ($($r:tt)*) => { $(
                half_round!(v, m, SCHEDULE[$r], 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, SCHEDULE[$r], 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            )* };
        }
        // SAFETY: the caller has the instruction set.
        unsafe {
            if cfg!(unoptimized) {
                // Every operation has a place of its own on the stack, and seven rounds one after
                // another need most of the 2 MiB of a thread.
                for r in 0..SCHEDULE.len() {
                    round!(r);
                }
            } else {
                round!(0 1 2 3 4 5 6);
            }
        }
    }
}

/// The messages of the blocks of some lanes, one after another.
///
/// An implementation may load a message while the rounds before it run. So callers say which blocks
/// come next.
#[allow(clippy::missing_safety_doc, reason = "as for the methods of `Rounds`; all blocks must be readable")]
pub(crate) trait Messages<V>: Sized {
    /// Whether this is slower than [`Columns::load_blocks`] for lanes with a single block.
    const ONE_BLOCK_IS_SLOWER: bool;

    /// The memory for messages.
    type Buffer;

    /// Begins with these blocks. The value must not be used longer than the room.
    unsafe fn begin(room: *mut Self::Buffer, blocks: Blocks) -> Self;

    /// The seven rounds on the state `v`, with the blocks that the call before this one named.
    /// `next` are the blocks of the next rounds, if there are more. Their pointers may be in the
    /// place of earlier ones.
    ///
    /// The bytes at the distance `ahead` from each pointer will perhaps be needed soon. They need
    /// not be readable.
    unsafe fn rounds(&mut self, v: &mut [V; 16], next: Option<Blocks>, ahead: usize);
}

/// A vector with the rounds of two groups side by side, in twice as many registers.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
#[allow(clippy::missing_safety_doc, reason = "as for the methods of `Rounds`")]
pub(crate) trait TwoGroupRounds: Rounds {
    /// The seven rounds on two states, with the two messages at `message`. Meanwhile writes the
    /// messages of the blocks `next` to `room`; there are twice as many pointers to them as lanes.
    /// `ahead` is as for [`Messages::rounds`].
    unsafe fn rounds_of_two(
        v: &mut [Self; 32],
        message: *const [Self; 32],
        room: *mut [Self; 32],
        next: Blocks,
        ahead: usize,
    );
}

/// Loads a message after the rounds before it, into registers.
pub(crate) struct LoadBetween<V>([V; 16]);

impl<V: Rounds> Messages<V> for LoadBetween<V> {
    const ONE_BLOCK_IS_SLOWER: bool = false;
    type Buffer = ();

    #[inline(always)]
    unsafe fn begin(_: *mut (), blocks: Blocks) -> Self {
        // SAFETY: the caller has the instruction set, and the blocks are readable.
        LoadBetween(unsafe { V::load_blocks(blocks.pointers, blocks.offset) })
    }

    #[inline(always)]
    unsafe fn rounds(&mut self, v: &mut [V; 16], next: Option<Blocks>, _: usize) {
        // SAFETY: as in `begin`.
        unsafe {
            V::rounds(v, &self.0);
            if let Some(next) = next {
                self.0 = V::load_blocks(next.pointers, next.offset);
            }
        }
    }
}

impl Rounds for U32x1 {
    type Messages = LoadBetween<Self>;
}

/// The rounds of one lane in a loop over lanes: the compiler runs all of its iterations at once,
/// see [`bulla_simd::lanes`].
impl<const N: usize> Rounds for Lanes<u32, N> {
    type Messages = LoadBetween<Self>;

    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        let mut lane = 0;
        while lane < N {
            // SAFETY: one lane needs no instruction set.
            unsafe {
                let (mut words, mut message) = ([U32x1::splat(0); 16], [U32x1::splat(0); 16]);
                let mut i = 0;
                while i < 16 {
                    (words[i], message[i]) = (U32x1::splat(v[i].0[lane]), U32x1::splat(m[i].0[lane]));
                    i += 1;
                }
                U32x1::rounds(&mut words, &message);
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

/// Blocks in a chunk.
const BLOCKS: usize = CHUNK_LEN / BLOCK_LEN;

/// The sixteen state words before the seven rounds.
#[inline(always)]
unsafe fn state<V: Rounds>(h: &[V; 8], counter: (V, V), len: V, flags: V) -> [V; 16] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let iv = [V::splat(IV[0]), V::splat(IV[1]), V::splat(IV[2]), V::splat(IV[3])];
        [
            h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], iv[0], iv[1], iv[2], iv[3], counter.0, counter.1,
            len, flags,
        ]
    }
}

/// The next chaining values, from the sixteen state words after the seven rounds.
#[inline(always)]
unsafe fn feed_forward<V: Rounds>(v: &[V; 16]) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        [
            V::xor(v[0], v[8]),
            V::xor(v[1], v[9]),
            V::xor(v[2], v[10]),
            V::xor(v[3], v[11]),
            V::xor(v[4], v[12]),
            V::xor(v[5], v[13]),
            V::xor(v[6], v[14]),
            V::xor(v[7], v[15]),
        ]
    }
}

/// One compression: the next chaining values.
#[inline(always)]
pub(crate) unsafe fn compress<V: Rounds>(
    h: &[V; 8],
    m: &[V; 16],
    counter: (V, V),
    len: V,
    flags: V,
) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let mut v = state(h, counter, len, flags);
        V::rounds(&mut v, m);
        feed_forward(&v)
    }
}

/// The parameters of a compression beside the message: the counter, the block's
/// length, flags.
type BlockParams<V> = ((V, V), V, V);

/// One compression of one of several blocks; `next` and `ahead` as for [`Messages::rounds`].
#[inline(always)]
unsafe fn compress_next<V: Rounds>(
    h: &[V; 8],
    messages: &mut V::Messages,
    (counter, len, flags): BlockParams<V>,
    next: Option<Blocks>,
    ahead: usize,
) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V; the blocks are readable.
    unsafe {
        let mut v = state(h, counter, len, flags);
        messages.rounds(&mut v, next, ahead);
        feed_forward(&v)
    }
}

/// Aligns the function's stack frame like the vectors. The compiler does so only for variables in
/// memory; otherwise, in three frames of four, spilled registers would cross cache lines.
#[inline(always)]
pub(super) fn align_frame<V>() {
    let mut variable = MaybeUninit::<V>::uninit();
    core::hint::black_box(&raw mut variable);
}

/// Room for the messages of [`Messages::begin`].
#[inline(always)]
const fn room<V: Rounds>() -> MaybeUninit<<V::Messages as Messages<V>>::Buffer> {
    MaybeUninit::uninit()
}

/// The key in every lane.
#[inline(always)]
unsafe fn splat_words<V: Rounds>(words: &Words) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let mut h = [V::splat(0); 8];
        let mut i = 0;
        while i < 8 {
            h[i] = V::splat(words[i]);
            i += 1;
        }
        h
    }
}

/// Hashes `LANES` consecutive whole chunks at `input`, and writes their chaining values, in
/// columns, to `out`.
#[inline(always)]
pub(crate) unsafe fn group<V: Rounds>(
    input: *const u8,
    key: &Words,
    counter: u64,
    flags: u32,
    prefetch: Prefetch,
    out: *mut Group,
) {
    align_frame::<V>();
    // SAFETY: `input` is readable for LANES chunks, `out` is writable.
    unsafe {
        let mut pointers = [input; MAX_LANES];
        let mut i = 1;
        while i < V::LANES {
            pointers[i] = input.add(i * CHUNK_LEN);
            i += 1;
        }
        let blocks = |block: usize| Blocks { pointers: pointers.as_ptr(), offset: BLOCK_LEN * block };
        // Far input: the hardware does not follow 16 short streams in time. Near input is in some
        // cache: one block is enough.
        let lead = match prefetch {
            Prefetch::Off => BLOCK_LEN,
            Prefetch::On => CHUNK_LEN * V::LANES,
        };
        let mut room = room::<V>();
        let mut messages = V::Messages::begin(room.as_mut_ptr(), blocks(0));
        let mut h = splat_words::<V>(key);
        let counter = counters::<V>(counter, 1);
        let len = V::splat(BLOCK_LEN as u32);
        let mut block = 0;
        while block < BLOCKS {
            let flags = V::splat(flags | position_flags(block, BLOCKS, CHUNK_END));
            // If the compiler could count, it would write the body twice.
            block = core::hint::black_box(block + 1);
            let next = (block < BLOCKS).then(|| blocks(block));
            h = compress_next::<V>(&h, &mut messages, (counter, len, flags), next, BLOCK_LEN * block + lead);
        }
        store_group(&h, out);
    }
}

/// Like [`group`], for two groups of neighbors: `out` are the places of the first and of the
/// second.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
#[inline(always)]
pub(crate) unsafe fn two_groups<V: TwoGroupRounds>(
    input: *const u8,
    key: &Words,
    counter: u64,
    flags: u32,
    prefetch: Prefetch,
    out: [*mut Group; 2],
) {
    align_frame::<V>();
    // SAFETY: `input` is readable for 2 * LANES chunks, both of `out` are writable.
    unsafe {
        let mut pointers = [input; 2 * MAX_LANES];
        let mut i = 1;
        while i < 2 * V::LANES {
            pointers[i] = input.add(i * CHUNK_LEN);
            i += 1;
        }
        let lead = match prefetch {
            Prefetch::Off => BLOCK_LEN,
            Prefetch::On => CHUNK_LEN * 2 * V::LANES,
        };
        let mut room = MaybeUninit::<[[V; 32]; 2]>::uninit();
        let mut message: *mut [V; 32] = room.as_mut_ptr().cast();
        let mut other = message.add(1);
        let halves: *mut [V; 16] = message.cast();
        halves.write(V::load_blocks(pointers.as_ptr(), 0));
        halves.add(1).write(V::load_blocks(pointers.as_ptr().add(V::LANES), 0));
        let mut h = [splat_words::<V>(key); 2];
        let counters = [counters::<V>(counter, 1), counters::<V>(counter + V::LANES as u64, 1)];
        let len = V::splat(BLOCK_LEN as u32);
        let mut block = 0;
        while block < BLOCKS {
            let flags = V::splat(flags | position_flags(block, BLOCKS, CHUNK_END));
            // If the compiler could count, it would write the body twice.
            block = core::hint::black_box(block + 1);
            // After the last blocks, these are read once more, as for one group.
            let offset = BLOCK_LEN * if block < BLOCKS { block } else { block - 1 };
            let next = Blocks { pointers: pointers.as_ptr(), offset };
            let mut v = [state(&h[0], counters[0], len, flags), state(&h[1], counters[1], len, flags)];
            V::rounds_of_two(&mut *v.as_mut_ptr().cast(), message, other, next, BLOCK_LEN * block + lead);
            h = [feed_forward(&v[0]), feed_forward(&v[1])];
            core::mem::swap(&mut message, &mut other);
        }
        store_group(&h[0], out[0]);
        store_group(&h[1], out[1]);
    }
}

/// The flags that a block of `blocks` has because of its place.
#[inline(always)]
fn position_flags(block: usize, blocks: usize, last_flags: u32) -> u32 {
    let last = if block + 1 == blocks { last_flags } else { 0 };
    start_flag(block) | last
}

/// The flag of a chunk's first block.
#[inline(always)]
fn start_flag(block: usize) -> u32 {
    if block == 0 { CHUNK_START } else { 0 }
}

#[inline(always)]
unsafe fn store_group<V: Rounds>(h: &[V; 8], out: *mut Group) {
    let mut i = 0;
    while i < 8 {
        // SAFETY: a group has room for eight vectors of the widest kind.
        unsafe { h[i].store(out.cast::<u32>().add(i * V::LANES)) };
        i += 1;
    }
}

#[inline(always)]
unsafe fn load_group<V: Rounds>(group: *const Group) -> [V; 8] {
    // SAFETY: the group was written by `store_group` for the same V.
    unsafe {
        let mut h = [V::splat(0); 8];
        let mut i = 0;
        while i < 8 {
            h[i] = V::load(group.cast::<u32>().add(i * V::LANES));
            i += 1;
        }
        h
    }
}

/// The parents of the `2 * LANES` neighbors in two groups. `out` may be one of them.
#[inline(always)]
pub(crate) unsafe fn merge<V: Rounds>(
    left: *const Group,
    right: *const Group,
    key: &Words,
    flags: u32,
    out: *mut Group,
) {
    align_frame::<V>();
    // SAFETY: both groups hold chaining values, `out` is writable.
    unsafe {
        let (left, right) = (load_group::<V>(left), load_group::<V>(right));
        let mut m = [V::splat(0); 16];
        let mut i = 0;
        while i < 8 {
            (m[i], m[i + 8]) = V::unzip(left[i], right[i]);
            i += 1;
        }
        let h = compress_parents(&m, key, flags);
        store_group(&h, out);
    }
}

#[inline(always)]
unsafe fn compress_parents<V: Rounds>(m: &[V; 16], key: &Words, flags: u32) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let zero = V::splat(0);
        let h = splat_words::<V>(key);
        compress(&h, m, (zero, zero), V::splat(BLOCK_LEN as u32), V::splat(flags | PARENT))
    }
}

/// The chaining values of a group as 32 bytes each, in order.
#[inline(always)]
pub(crate) unsafe fn transpose_out<V: Rounds>(group: *const Group, out: *mut u8) {
    // SAFETY: `out` has room for LANES chaining values.
    unsafe { V::store_chaining_values(load_group::<V>(group), out) }
}

/// The `n <= LANES` parents of the consecutive chaining values at `values`, 32 bytes each. Writes
/// `LANES` chaining values to `out`; only the first n are meaningful. `out` may be `values`.
#[inline(always)]
pub(crate) unsafe fn parents<V: Rounds>(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
    align_frame::<V>();
    // SAFETY: 64 n bytes are readable at `values`; dead lanes read lane 0's.
    unsafe {
        let mut blocks = [values; MAX_LANES];
        let mut i = 1;
        while i < V::LANES {
            blocks[i] = if i < n { values.add(BLOCK_LEN * i) } else { values };
            i += 1;
        }
        let m = V::load_blocks(blocks.as_ptr(), 0);
        V::store_chaining_values(compress_parents(&m, key, flags), out);
    }
}

/// The chaining values of the first `LANES` inputs of `len` bytes, at most one chunk, with counters
/// `step` apart; writes `LANES` chaining values at `out`.
#[inline(always)]
pub(crate) unsafe fn hash_equal_len<V: Rounds, const W: usize>(
    inputs: &[*const u8; MAX_LANES],
    len: usize,
    key: &Words,
    (counter, step): (u64, u64),
    (flags, last_flags): (u32, u32),
    out: *mut u8,
) {
    align_frame::<V>();
    // SAFETY: every input is readable, `out` has room for LANES chaining values.
    unsafe {
        let mut job = EqualLenInputs::<W>::empty();
        job.fill::<V>(inputs, len);
        let mut h = splat_words::<V>(key);
        let counter = counters::<V>(counter, step);
        let full = V::splat(BLOCK_LEN as u32);
        let last_len = V::splat(job.last_len as u32);
        if job.blocks == 1 && V::Messages::ONE_BLOCK_IS_SLOWER {
            let blocks = job.block(inputs, 0);
            let m = V::load_blocks(blocks.pointers, blocks.offset);
            h = compress(&h, &m, counter, last_len, V::splat(flags | position_flags(0, 1, last_flags)));
        } else {
            let mut room = room::<V>();
            let mut messages = V::Messages::begin(room.as_mut_ptr(), job.block(inputs, 0));
            let mut block = 0;
            while block < job.blocks {
                let flags = V::splat(flags | position_flags(block, job.blocks, last_flags));
                block += 1;
                let is_last = block == job.blocks;
                let len = if is_last { last_len } else { full };
                let (next, ahead) = ((!is_last).then(|| job.block(inputs, block)), BLOCK_LEN * (block + 1));
                h = compress_next::<V>(&h, &mut messages, (counter, len, flags), next, ahead);
            }
        }
        V::store_chaining_values(h, out);
    }
}

/// The chaining values of `inputs.len() <= LANES` inputs of at most one chunk each, each with its
/// own counter and last flags; W is `LANES`. Writes `LANES` chaining values at `out`. Dead lanes
/// read lane 0's data.
#[inline(always)]
pub(crate) unsafe fn hash_lanes<V: Rounds, const W: usize>(
    inputs: &[Lane<'_>],
    key: &Words,
    flags: u32,
    out: *mut u8,
) {
    align_frame::<V>();
    // SAFETY: the lanes' inputs are slices, `out` has room for LANES chaining values.
    unsafe {
        let mut job = LaneInputs::<W>::empty();
        job.fill::<V>(inputs);
        let mut h = splat_words::<V>(key);
        let counter = (V::load(job.counter_low.as_ptr()), V::load(job.counter_high.as_ptr()));
        let blocks = V::load(job.blocks.as_ptr());
        let last_len = V::load(job.last_len.as_ptr());
        let last_flags = V::load(job.last_flags.as_ptr());
        let full = V::splat(BLOCK_LEN as u32);
        if job.max_blocks == 1 && V::Messages::ONE_BLOCK_IS_SLOWER {
            let m = V::load_blocks(job.tails.as_ptr(), 0);
            let flags = V::xor(last_flags, V::splat(flags | CHUNK_START));
            V::store_chaining_values(compress(&h, &m, counter, last_len, flags), out);
            return;
        }
        let (mut ending, mut dead) = lanes_at(blocks, 0);
        redirect_pointers(&mut job.pointers, &job.tails, job.longest, (0, ending, dead));
        let first = Blocks { pointers: job.pointers.as_ptr(), offset: 0 };
        let mut room = room::<V>();
        let mut messages = V::Messages::begin(room.as_mut_ptr(), first);
        let mut block = 0;
        while block < job.max_blocks {
            let plain = V::splat(flags | start_flag(block));
            let len = V::select(ending, last_len, full);
            let flags = V::select(ending, V::xor(last_flags, plain), plain);
            let frozen = dead;
            let end = job.next_change(block);
            while block < end {
                block += 1;
                if block == end && end < job.max_blocks {
                    let (ends, has_ended) = lanes_at(blocks, block as u32);
                    (ending, dead) = (ends, dead | has_ended);
                    redirect_pointers(&mut job.pointers, &job.tails, job.longest, (block, ending, dead));
                }
                let next = Blocks { pointers: job.pointers.as_ptr(), offset: BLOCK_LEN * block };
                let ahead = next.offset + BLOCK_LEN;
                let next = (block < job.max_blocks).then_some(next);
                let value = compress_next::<V>(&h, &mut messages, (counter, len, flags), next, ahead);
                update_live_lanes(&mut h, value, frozen);
            }
        }
        V::store_chaining_values(h, out);
    }
}

/// The lanes for which block number `block` is the last one, and those for which it is the first
/// one that they do not have. `blocks` has the lanes' numbers of blocks.
#[inline(always)]
unsafe fn lanes_at<V: Rounds>(blocks: V, block: u32) -> (u32, u32) {
    // SAFETY: the caller has the instruction set of V.
    unsafe { (V::equal(blocks, V::splat(block + 1)), V::equal(blocks, V::splat(block))) }
}

/// Replaces `h` by `value`, except in the lanes of `frozen`.
#[inline(always)]
unsafe fn update_live_lanes<V: Rounds>(h: &mut [V; 8], value: [V; 8], frozen: u32) {
    if frozen == 0 {
        *h = value;
        return;
    }
    let mut i = 0;
    while i < 8 {
        // SAFETY: the caller has the instruction set of V.
        h[i] = unsafe { V::select(!frozen, value[i], h[i]) };
        i += 1;
    }
}

/// `LANES * groups` output blocks of 64 bytes from the same compression with counters `counter`,
/// `counter + 1`, ...
#[inline(always)]
pub(crate) unsafe fn output<V: Rounds>(
    value: &Words,
    block: *const u8,
    counter: u64,
    (len, flags): (u32, u32),
    groups: usize,
    out: *mut u8,
) {
    align_frame::<V>();
    // SAFETY: `block` is readable, `out` has room for LANES blocks a group.
    unsafe {
        let mut m = [V::splat(0); 16];
        let mut i = 0;
        while i < 16 {
            m[i] = V::splat(u32::from_le(block.cast::<u32>().add(i).read_unaligned()));
            i += 1;
        }
        let mut group = 0;
        while group < groups {
            let first = (group * V::LANES) as u64;
            let h = splat_words::<V>(value);
            let counters = counters::<V>(counter.wrapping_add(first), 1);
            let mut v = state(&h, counters, V::splat(len), V::splat(flags));
            V::rounds(&mut v, &m);
            // Load it from memory again: that frees eight registers during the rounds, which would
            // otherwise be spilled.
            let h = splat_words::<V>(core::hint::black_box(value));
            let mut i = 0;
            while i < 8 {
                v[i] = V::xor(v[i], v[i + 8]);
                v[i + 8] = V::xor(v[i + 8], h[i]);
                i += 1;
            }
            V::store_blocks(v, out.add(BLOCK_LEN * V::LANES * group));
            group += 1;
        }
    }
}
