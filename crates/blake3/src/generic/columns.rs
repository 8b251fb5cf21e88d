//! Column form: vector i holds word i of the states of `LANES` inputs. Its speed is limited by throughput: 784
//! operations a block, and the transpose of the message.

use super::lanes::{Prepared, Uniform, counters, point_at};
use crate::lane::{Group, Lane, MAX_LANES};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, IV, PARENT, SCHEDULE, Words};
use bulla_simd::{Columns, half_round};
use core::mem::MaybeUninit;

/// Whether a kernel prefetches the cache lines of the next group while it works on this one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// The input is expected to be in the caches: prefetching would cost 4 %.
    No,
    /// The input comes from far memory; hardware does not follow 16 short streams in time.
    Yes,
}

/// A vector with the rounds of the column form: the ones below, or its own faster ones.
#[allow(
    clippy::missing_safety_doc,
    reason = "the CPU must have the instruction set of the vector, as everywhere here"
)]
pub(crate) trait Rounds: Columns {
    /// The seven rounds on the sixteen words of the state.
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        macro_rules! round {
            ($($r:literal)*) => { $(
                half_round!(v, m, SCHEDULE[$r], 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, SCHEDULE[$r], 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            )* };
        }
        // SAFETY: the caller has the instruction set.
        unsafe {
            round!(0 1 2 3 4 5 6);
        }
    }
}

impl Rounds for bulla_simd::scalar::U32x1 {}

/// The sixteen state words after the seven rounds, before the feed-forward.
#[inline(always)]
pub(crate) unsafe fn rounds<V: Rounds>(
    h: &[V; 8],
    m: &[V; 16],
    counter: (V, V),
    len: V,
    flags: V,
) -> [V; 16] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let iv = [V::splat(IV[0]), V::splat(IV[1]), V::splat(IV[2]), V::splat(IV[3])];
        let mut v = [
            h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], iv[0], iv[1], iv[2], iv[3], counter.0, counter.1,
            len, flags,
        ];
        V::rounds(&mut v, m);
        v
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
        let v = rounds(h, m, counter, len, flags);
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

/// Aligns the function's stack frame like the vectors. The compiler does so only for variables in memory; otherwise, in three
/// frames of four, spilled registers would cross cache lines.
#[inline(always)]
pub(super) fn align_frame<V>() {
    let mut variable = MaybeUninit::<V>::uninit();
    core::hint::black_box(&raw mut variable);
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

/// Hashes `LANES` consecutive whole chunks at `input`, and writes their chaining values, in columns, to `out`.
#[inline(always)]
pub(crate) unsafe fn group<V: Rounds>(
    input: *const u8,
    key: &Words,
    counter: u64,
    flags: u32,
    out: *mut Group,
    prefetch: Prefetch,
) {
    align_frame::<V>();
    // SAFETY: `input` is readable for LANES chunks, `out` is writable.
    unsafe {
        let mut blocks = [input; MAX_LANES];
        let mut i = 1;
        while i < V::LANES {
            blocks[i] = input.add(i * CHUNK_LEN);
            i += 1;
        }
        let mut h = splat_words::<V>(key);
        let counter = counters::<V>(counter, 1);
        let len = V::splat(BLOCK_LEN as u32);
        // Segments with constant flags, so that the loop does not test for the first or the last block.
        let segments = [(0, 1, CHUNK_START), (1, 15, 0), (15, 16, CHUNK_END)];
        for (from, to, edge) in segments {
            let flags = V::splat(flags | edge);
            for block in from..to {
                let m = V::load_blocks(blocks.as_ptr(), BLOCK_LEN * block);
                if prefetch == Prefetch::Yes {
                    let mut i = 0;
                    while i < V::LANES {
                        fetch(blocks[i].wrapping_add(BLOCK_LEN * block + CHUNK_LEN * V::LANES));
                        i += 1;
                    }
                }
                h = compress(&h, &m, counter, len, flags);
            }
        }
        store_group(&h, out);
    }
}

/// Prefetches the cache line at `p`, which need not be readable.
#[inline(always)]
fn fetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
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

/// The parents of the `2 * LANES` neighbours in two groups. `out` may be one of them.
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
pub(crate) unsafe fn ungroup<V: Rounds>(group: *const Group, out: *mut u8) {
    // SAFETY: `out` has room for LANES chaining values.
    unsafe { V::store_halves(load_group::<V>(group), out) }
}

/// The `n <= LANES` parents of the consecutive chaining values at `values`, 32 bytes each. Writes `LANES` chaining
/// values to `out`; only the first n are meaningful. `out` may be `values`.
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
        V::store_halves(compress_parents(&m, key, flags), out);
    }
}

/// The chaining values of the first `LANES` inputs of `len` bytes, at most one chunk, with counters `step` apart; writes
/// `LANES` chaining values at `out`.
#[inline(always)]
pub(crate) unsafe fn uniform<V: Rounds, const W: usize>(
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
        let mut job = Uniform::<W>::empty();
        job.fill::<V>(inputs, len);
        let mut h = splat_words::<V>(key);
        let counter = counters::<V>(counter, step);
        for (from, to, edge) in job.runs(last_flags) {
            let len = if to == job.blocks { job.last_len } else { BLOCK_LEN };
            let (len, flags) = (V::splat(len as u32), V::splat(flags | edge));
            for block in from..to {
                let (pointers, offset) = job.block(inputs, block);
                let m = V::load_blocks(pointers, offset);
                h = compress(&h, &m, counter, len, flags);
            }
        }
        V::store_halves(h, out);
    }
}

/// The chaining values of `inputs.len() <= LANES` inputs of at most one chunk each, each with its own counter and last
/// flags; W is `LANES`. Writes `LANES` chaining values at `out`. Dead lanes read lane 0's data.
#[inline(always)]
pub(crate) unsafe fn lanes<V: Rounds, const W: usize>(
    inputs: &[Lane<'_>],
    key: &Words,
    flags: u32,
    out: *mut u8,
) {
    align_frame::<V>();
    // SAFETY: the lanes' inputs are slices, `out` has room for LANES chaining values.
    unsafe {
        let mut job = Prepared::<W>::empty();
        job.fill::<V>(inputs);
        let mut h = splat_words::<V>(key);
        let counter = (V::load(job.counter_low.as_ptr()), V::load(job.counter_high.as_ptr()));
        let blocks = V::load(job.blocks.as_ptr());
        let last_len = V::load(job.last_len.as_ptr());
        let last_flags = V::load(job.last_flags.as_ptr());
        let full = V::splat(BLOCK_LEN as u32);
        let mut dead = 0;
        let mut block = 0;
        while block < job.most_blocks {
            let ending = V::equal(blocks, V::splat(block as u32 + 1));
            dead |= V::equal(blocks, V::splat(block as u32));
            point_at(&mut job.pointers, &job.tails, job.longest, (block, ending, dead));
            let common = flags | if block == 0 { CHUNK_START } else { 0 };
            let plain = V::splat(common);
            let len = V::select(ending, last_len, full);
            let flags = V::select(ending, V::xor(last_flags, plain), plain);
            let end = job.next_change(block);
            while block < end {
                let m = V::load_blocks(job.pointers.as_ptr(), BLOCK_LEN * block);
                let next = compress(&h, &m, counter, len, flags);
                if dead == 0 {
                    h = next;
                } else {
                    freeze(&mut h, &next, !dead);
                }
                block += 1;
            }
        }
        V::store_halves(h, out);
    }
}

/// Replaces `h` by `next`, only in the lanes of `live`.
#[inline(always)]
unsafe fn freeze<V: Rounds>(h: &mut [V; 8], next: &[V; 8], live: u32) {
    let mut i = 0;
    while i < 8 {
        // SAFETY: the caller has the instruction set of V.
        h[i] = unsafe { V::select(live, next[i], h[i]) };
        i += 1;
    }
}

/// `LANES * groups` output blocks of 64 bytes from the same compression with counters `counter`, `counter + 1`, ...
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
            let mut v = rounds(&h, &m, counters, V::splat(len), V::splat(flags));
            // Load it from memory again: that frees eight registers during the rounds, which would otherwise be
            // spilled.
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
