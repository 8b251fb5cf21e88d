//! Row form: four vectors hold the four rows of the states of 1, 2, 4 or 8 inputs. Its speed is
//! limited by latency: 14 quarter rounds of 12 cycles a block, however many states a vector holds.
//!
//! For the diagonal half of a round, rows a, c and d rotate and b does not: b is the last row to be
//! ready, so no shuffle is on the critical path.

use super::lanes::{Blocks, EqualLenInputs, LaneInputs, redirect_pointers};
use crate::plan::{Lane, MAX_LANES};
use crate::spec::{BLOCK_LEN, CHUNK_START, IV, PARENT, Words};
use bulla_simd::Rows;

/// The most states that any row kernel has side by side.
const MAX_STATES: usize = 8;

/// The four rows of a block's message, from sixteen bytes of each state at a time.
#[inline(always)]
unsafe fn message<V: Rows>(blocks: *const *const u8, offset: usize) -> [V; 4] {
    // SAFETY: the caller promised 64 readable bytes at the offset of each pointer.
    unsafe {
        [
            V::gather_rows(blocks, offset),
            V::gather_rows(blocks, offset + 16),
            V::gather_rows(blocks, offset + 32),
            V::gather_rows(blocks, offset + 48),
        ]
    }
}

/// One compression: rows a and b of the next chaining values.
#[inline(always)]
unsafe fn compress<V: Rows>(h: [V; 2], message: [V; 4], last_row: V) -> [V; 2] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let [a, b, c, d] = rounds([h[0], h[1], V::splat_row(IV.as_ptr()), last_row], message);
        [V::xor(a, c), V::xor(b, d)]
    }
}

#[inline(always)]
unsafe fn splat_words<V: Rows>(words: &Words) -> [V; 2] {
    // SAFETY: the caller has the instruction set of V; eight words are there.
    unsafe { [V::splat_row(words.as_ptr()), V::splat_row(words.as_ptr().add(4))] }
}

/// The last row of the state: counter, block length, flags.
#[inline(always)]
unsafe fn last_row<V: Rows>(counter: u64, len: usize, flags: u32) -> V {
    // SAFETY: the caller has the instruction set of V.
    unsafe { V::splat_u64_pair(counter, len as u64 | u64::from(flags) << 32) }
}

/// The block of an empty input.
static ZERO_BLOCK: [u8; BLOCK_LEN] = [0; BLOCK_LEN];

/// The chaining value of one input of at most a chunk. `last_flags` are the flags that the last
/// block has in addition to `flags`.
#[inline(always)]
pub(crate) unsafe fn chunk<V: Rows>(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    last_flags: u32,
    out: *mut u8,
) {
    // SAFETY: `input` is readable for `len` bytes, `out` writable for 32.
    unsafe {
        let (h, last, len, start) = compress_prefix::<V>(input, len, key, counter, flags);
        let d = last_row(counter, len, flags | start | last_flags);
        let h = compress(h, last, d);
        V::store_row_pairs(h[0], h[1], out);
    }
}

/// Stops before the last compression of a chunk. Writes the chaining value at that point (32 bytes)
/// and the padded last block (64).
#[inline(always)]
pub(crate) unsafe fn chunk_prefix<V: Rows>(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    value: *mut u8,
    block: *mut u8,
) {
    // SAFETY: `input` is readable for `len` bytes, `value` and `block` are writable.
    unsafe {
        let (h, last, ..) = compress_prefix::<V>(input, len, key, counter, flags);
        V::store_row_pairs(h[0], h[1], value);
        V::store_row_pairs(last[0], last[1], block);
        V::store_row_pairs(last[2], last[3], block.add(BLOCK_LEN / 2));
    }
}

/// The rows of the chaining value before a chunk's last block, the rows of that block, its length
/// in bytes, and `CHUNK_START` if it is the only block.
#[inline(always)]
unsafe fn compress_prefix<V: Rows>(
    mut input: *const u8,
    mut len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
) -> ([V; 2], [V; 4], usize, u32) {
    // SAFETY: `input` is readable for `len` bytes.
    unsafe {
        let mut h = splat_words::<V>(key);
        let mut start = CHUNK_START;
        while len > BLOCK_LEN {
            let d = last_row(counter, BLOCK_LEN, flags | start);
            h = compress(h, message(&raw const input, 0), d);
            start = 0;
            input = input.add(BLOCK_LEN);
            len -= BLOCK_LEN;
        }
        let last = match len {
            BLOCK_LEN => message(&raw const input, 0),
            // There is nothing to read, and nothing to wait for.
            0 => message(&ZERO_BLOCK.as_ptr(), 0),
            _ => V::padded_rows(input, len),
        };
        (h, last, len, start)
    }
}

/// One compression of a whole block held as words. The first half of the result is the next
/// chaining value; the second half completes an output block.
#[inline(always)]
pub(crate) unsafe fn block<V: Rows>(
    value: &Words,
    block: *const u8,
    counter: u64,
    len: usize,
    flags: u32,
    out: *mut u8,
) {
    // SAFETY: `block` is readable and `out` writable for 64 bytes.
    unsafe {
        let h = splat_words::<V>(value);
        let d = last_row(counter, len, flags);
        let [a, b, c, d] = rounds([h[0], h[1], V::splat_row(IV.as_ptr()), d], message(&raw const block, 0));
        V::store_row_pairs(V::xor(a, c), V::xor(b, d), out);
        V::store_row_pairs(V::xor(c, h[0]), V::xor(d, h[1]), out.add(BLOCK_LEN / 2));
    }
}

/// The `n <= STATES` parents of the consecutive chaining values at `values`, 32 bytes each. Writes
/// `STATES` chaining values to `out`; only the first n are meaningful. `out` may be `values`.
#[inline(always)]
pub(crate) unsafe fn parents<V: Rows>(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
    // SAFETY: 64 n bytes are readable at `values`; dead lanes read lane 0's.
    unsafe {
        let mut blocks = [values; MAX_STATES];
        let mut i = 1;
        while i < V::STATES {
            blocks[i] = if i < n { values.add(BLOCK_LEN * i) } else { values };
            i += 1;
        }
        let d = last_row(0, BLOCK_LEN, flags | PARENT);
        let h = compress(splat_words::<V>(key), message(blocks.as_ptr(), 0), d);
        V::store_row_pairs(h[0], h[1], out);
    }
}

/// The difference between a state's counter and the first one's, for steps 0 and 1, as its last
/// row.
const COUNTER_OFFSETS: [[[u32; 4]; MAX_STATES]; 2] = {
    let mut offsets = [[[0; 4]; MAX_STATES]; 2];
    let mut i = 0;
    while i < MAX_STATES {
        offsets[1][i][0] = i as u32;
        i += 1;
    }
    offsets
};

/// The counters of the states, `step` (0 or 1) apart, in the low halves of their last rows.
#[inline(always)]
unsafe fn counter_row<V: Rows>(counter: u64, step: u64) -> V {
    // SAFETY: the caller has the instruction set of V; all arrays have as many rows as V has
    // states, or more.
    unsafe {
        if counter as u32 <= u32::MAX - MAX_STATES as u32 {
            let offsets = &COUNTER_OFFSETS[(step & 1) as usize];
            return V::add(V::splat_u64_pair(counter, 0), V::load(offsets.as_ptr().cast()));
        }
        let mut rows = [[0u32; 4]; MAX_STATES];
        for (i, row) in rows.iter_mut().enumerate() {
            let counter = counter.wrapping_add(i as u64 * step);
            *row = [counter as u32, (counter >> 32) as u32, 0, 0];
        }
        V::load(rows.as_ptr().cast())
    }
}

/// The chaining values of the first `STATES` inputs of `len` bytes, at most one chunk, with
/// counters `step` apart; writes `STATES` chaining values at `out`.
#[inline(always)]
pub(crate) unsafe fn hash_equal_len<V: Rows, const W: usize>(
    inputs: &[*const u8; MAX_LANES],
    len: usize,
    key: &Words,
    (counter, step): (u64, u64),
    (flags, last_flags): (u32, u32),
    out: *mut u8,
) {
    // SAFETY: every input is readable, `out` has room for STATES chaining values.
    unsafe {
        let mut job = EqualLenInputs::<W>::empty();
        job.fill::<V>(inputs, len);
        let mut h = splat_words::<V>(key);
        let counters = counter_row::<V>(counter, step);
        for (from, to, edge) in job.runs(last_flags) {
            let len = if to == job.blocks { job.last_len } else { BLOCK_LEN };
            let d = V::xor(counters, last_row(0, len, flags | edge));
            for block in from..to {
                let Blocks { pointers, offset } = job.block(inputs, block);
                h = compress(h, message(pointers, offset), d);
            }
        }
        V::store_row_pairs(h[0], h[1], out);
    }
}

/// The chaining values of `inputs.len() <= STATES` inputs of at most one chunk each; writes
/// `STATES` chaining values at `out`.
#[inline(always)]
pub(crate) unsafe fn hash_lanes<V: Rows, const W: usize>(
    inputs: &[Lane<'_>],
    key: &Words,
    flags: u32,
    out: *mut u8,
) {
    // SAFETY: the lanes' inputs are slices, `out` has room for STATES chaining values.
    unsafe {
        let mut job = LaneInputs::<W>::empty();
        job.fill::<V>(inputs);
        let mut h = splat_words::<V>(key);
        let mut block = 0;
        let mut last_rows = [[0u32; 4]; MAX_STATES];
        while block < job.max_blocks {
            let start = if block == 0 { CHUNK_START } else { 0 };
            let (mut ending, mut dead) = (0, 0);
            let mut i = 0;
            while i < V::STATES {
                let ends = block + 1 == job.blocks[i] as usize;
                ending |= u32::from(ends) << i;
                dead |= u32::from(block >= job.blocks[i] as usize) << i;
                let (len, edge) = if ends { (job.last_len[i], job.last_flags[i]) } else { (64, 0) };
                last_rows[i] = [job.counter_low[i], job.counter_high[i], len, flags | start | edge];
                i += 1;
            }
            redirect_pointers(&mut job.pointers, &job.tails, job.longest, (block, ending, dead));
            let d = V::load(last_rows.as_ptr().cast());
            let end = job.next_change(block);
            let frozen = h;
            while block < end {
                h = compress(h, message(job.pointers.as_ptr(), BLOCK_LEN * block), d);
                block += 1;
            }
            if dead != 0 {
                h = restore(frozen, h, dead);
            }
        }
        V::store_row_pairs(h[0], h[1], out);
    }
}

/// The states of `dead` from `old`, the others from `new`. This goes through memory, once per
/// segment.
#[inline(always)]
unsafe fn restore<V: Rows>(old: [V; 2], new: [V; 2], dead: u32) -> [V; 2] {
    let mut result = [new[0]; 2];
    let mut half = 0;
    while half < 2 {
        let (mut was, mut is) = ([[0u32; 4]; MAX_STATES], [[0u32; 4]; MAX_STATES]);
        // SAFETY: both arrays have room for the widest vector.
        unsafe {
            old[half].store(was.as_mut_ptr().cast());
            new[half].store(is.as_mut_ptr().cast());
            let mut i = 0;
            while i < V::STATES {
                if dead >> i & 1 == 1 {
                    is[i] = was[i];
                }
                i += 1;
            }
            result[half] = V::load(is.as_ptr().cast());
        }
        half += 1;
    }
    result
}

/// The four rows of the states.
struct RowState<V> {
    a: V,
    b: V,
    c: V,
    d: V,
}

impl<V: Rows> RowState<V> {
    #[inline(always)]
    unsafe fn first_half(&mut self, m: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::opaque(V::add(self.a, m)), self.b);
            self.d = V::xor_rotr16(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::xor_rotr12(self.b, self.c);
        }
    }

    #[inline(always)]
    unsafe fn second_half(&mut self, m: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::opaque(V::add(self.a, m)), self.b);
            self.d = V::xor_rotr8(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::xor_rotr7(self.b, self.c);
        }
    }

    #[inline(always)]
    unsafe fn diagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::rotate_words_left::<3>(self.a);
            self.d = V::rotate_words_left::<2>(self.d);
            self.c = V::rotate_words_left::<1>(self.c);
        }
    }

    #[inline(always)]
    unsafe fn undiagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::rotate_words_left::<1>(self.a);
            self.d = V::rotate_words_left::<2>(self.d);
            self.c = V::rotate_words_left::<3>(self.c);
        }
    }
}

/// The plan: each line is a half round, the shuffles before it (`name = immediate a b`), and the
/// step to or from the diagonals after it.
macro_rules! plan {
    ($state:ident, $( ($($row:ident = $imm:literal $a:ident $b:ident),*) $half:ident $m:ident $($turn:ident)?; )*) => { $(
        $( let $row = V::shuffle::<$imm>($a, $b); )*
        $state.$half($m);
        $( $state.$turn(); )?
    )* };
}

/// The seven rounds on rows a, b, c, d with the quarters of the message.
///
/// Each half round needs four vectors of message words: for the columns words (0, 2, 4, 6) and (1,
/// 3, 5, 7) of the round's schedule, for the diagonals (14, 8, 10, 12) and (15, 9, 11, 13), rotated
/// like the rows. All 28 are made from the block's four quarters with 38 shuffles of two words each
/// (`shufps`), which take one cycle. A search over intermediate vectors that bring two pairs of
/// later rows together found the plan. Each shuffle comes right before its result is needed.
#[inline(always)]
pub(crate) unsafe fn rounds<V: Rows>(rows: [V; 4], quarters: [V; 4]) -> [V; 4] {
    let mut s = RowState { a: rows[0], b: rows[1], c: rows[2], d: rows[3] };
    let [q0, q1, q2, q3] = quarters;
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        plan! {
            s,
            // Round 0
            (t4 = 136 q0 q1, t5 = 221 q0 q1, t6 = 198 q2 q3, t7 = 198 q3 q2, t8 = 136 t7 t6, t9 = 119 t6 t7) first_half t4;
            (t10 = 62 q0 q1, t11 = 98 t8 q1) second_half t5 diagonalize;
            (t12 = 124 q2 t11) first_half t8;
            (t13 = 52 q0 t9, t14 = 130 t11 t13) second_half t9 undiagonalize;
            // Round 1
            (t15 = 103 t13 t6) first_half t10;
            (t16 = 200 t5 t13, t17 = 77 t4 t8) second_half t14 diagonalize;
            (t18 = 215 t17 q2, t19 = 225 q3 t10) first_half t15;
            (t20 = 135 t19 t17, t21 = 148 t6 t10) second_half t12 undiagonalize;
            // Round 2
            (t22 = 130 t21 t19) first_half t22;
            (t23 = 104 t6 q3, t24 = 195 t4 t17) second_half t20 diagonalize;
            (t25 = 125 t10 t13) first_half t18;
            (t26 = 135 t21 t25) second_half t16 undiagonalize;
            // Round 3
            (t27 = 151 t25 t12) first_half t23;
            (t28 = 182 t6 q3) second_half t26 diagonalize;
            (t29 = 45 t7 q2) first_half t27;
            (t30 = 158 q1 t16) second_half t24 undiagonalize;
            // Round 4
            (t31 = 118 t4 q0) first_half t28;
            (t32 = 109 t11 t15, t33 = 131 t19 q0) second_half t29 diagonalize;
            (t34 = 135 t5 t11) first_half t30;
            (t35 = 206 t25 t18) second_half t31 undiagonalize;
            // Round 5
            (t36 = 45 q2 t35) first_half t36;
            (t37 = 153 t12 t35, t38 = 99 t13 t18) second_half t32 diagonalize;
            (t39 = 215 t14 t19) first_half t33;
            (t40 = 142 t19 t32) second_half t34 undiagonalize;
            // Round 6
            (t41 = 232 t40 q0) first_half t37;
            () second_half t38 diagonalize;
            () first_half t41;
            () second_half t39 undiagonalize;
        }
    }
    [s.a, s.b, s.c, s.d]
}
