//! Shared code of the kernels for several inputs: it prepares inputs of different lengths, lane by
//! lane.

use crate::plan::{Lane, MAX_LANES};
use crate::spec::{BLOCK_LEN, CHUNK_START};
use bulla_simd::{Columns, Vector};
use core::mem::MaybeUninit;

/// One block of each lane: that of lane i is at `pointers[i] + offset`. There are as many pointers
/// as lanes.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) pointers: *const *const u8,
    pub(crate) offset: usize,
}

/// Inputs of at most one chunk each, in W lanes. All arrays are indexed by lane.
///
/// `tails` point into `padded`. So once it is filled, there must be no exclusive reference to the
/// whole value, for example by a method with `&mut self`: it would invalidate those pointers.
#[repr(C, align(64))]
pub(crate) struct LaneInputs<const W: usize> {
    pub(crate) counter_low: [u32; W],
    pub(crate) counter_high: [u32; W],
    /// The lane's number of blocks: 1 to 16.
    pub(crate) blocks: [u32; W],
    /// The number of bytes in the lane's last block.
    pub(crate) last_len: [u32; W],
    pub(crate) last_flags: [u32; W],
    /// The lane's block b is at `pointers[lane] + 64 b`.
    pub(crate) pointers: [*const u8; W],
    /// The largest of `blocks`, and a lane that has it.
    pub(crate) max_blocks: usize,
    pub(crate) longest: usize,
    /// Bit b is set if a lane changes at block b: it ends there, or has ended before it.
    changes: u32,
    /// A zero-padded copy of the lane's last block, if that is shorter than 64 bytes.
    padded: [MaybeUninit<[u8; BLOCK_LEN]>; W],
    /// Pointers to the lane's last block.
    pub(crate) tails: [*const u8; W],
}

impl<const W: usize> LaneInputs<W> {
    /// Nothing prepared yet.
    #[inline(always)]
    pub(crate) fn empty() -> Self {
        LaneInputs {
            counter_low: [0; W],
            counter_high: [0; W],
            blocks: [0; W],
            last_len: [0; W],
            last_flags: [0; W],
            pointers: [core::ptr::null(); W],
            max_blocks: 0,
            longest: 0,
            changes: 1 << 1,
            padded: [const { MaybeUninit::uninit() }; W],
            tails: [core::ptr::null(); W],
        }
    }

    /// Takes the inputs. Lanes without an input repeat the work of lane 0. The lanes point into
    /// `self`, which must not move from here on.
    ///
    /// # Safety
    ///
    /// The CPU must have the instruction set of V. There must be at least one input.
    #[inline(always)]
    pub(crate) unsafe fn fill<V: Vector<Word = u32>>(&mut self, inputs: &[Lane<'_>]) {
        let mut i = 0;
        while i < W {
            let lane = if i < inputs.len() { &inputs[i] } else { &inputs[0] };
            let blocks = lane.input.len().div_ceil(BLOCK_LEN).max(1);
            let at = (blocks - 1) * BLOCK_LEN;
            let last = lane.input.len() - at;
            self.counter_low[i] = lane.counter as u32;
            self.counter_high[i] = (lane.counter >> 32) as u32;
            self.blocks[i] = blocks as u32;
            self.last_len[i] = last as u32;
            self.last_flags[i] = lane.last_flags;
            self.pointers[i] = lane.input.as_ptr();
            self.tails[i] = lane.input.as_ptr().wrapping_add(at);
            if last < BLOCK_LEN {
                let to = self.padded[i].as_mut_ptr().cast::<u8>();
                // SAFETY: the last block of an input; the copy has room for a whole block.
                unsafe { V::copy_padded(self.tails[i], last, to) };
                self.tails[i] = to;
            }
            if blocks > self.max_blocks {
                (self.max_blocks, self.longest) = (blocks, i);
            }
            self.changes |= 3 << (blocks - 1);
            i += 1;
        }
    }

    /// The first block after `block` at which something changes.
    #[inline(always)]
    pub(crate) fn next_change(&self, block: usize) -> usize {
        let later = self.changes & (u32::MAX << (block + 1));
        (later.trailing_zeros() as usize).min(self.max_blocks)
    }
}

/// Sets the `pointers` of [`LaneInputs`] for a block at which a lane changes: lanes that end with
/// it read their last block, and lanes that have ended (`dead`) read the data of the longest lane,
/// which is available until the end.
#[inline(always)]
pub(crate) fn redirect_pointers<const W: usize>(
    pointers: &mut [*const u8; W],
    tails: &[*const u8; W],
    longest: usize,
    (block, ending, dead): (usize, u32, u32),
) {
    for i in bits(ending) {
        pointers[i] = tails[i].wrapping_sub(BLOCK_LEN * block);
    }
    for i in bits(dead) {
        pointers[i] = pointers[longest];
    }
}

/// The positions of the set bits among the low [`MAX_LANES`] bits.
#[inline(always)]
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask & (u32::MAX >> (32 - MAX_LANES));
    core::iter::from_fn(move || {
        let i = left.trailing_zeros() as usize;
        (left != 0).then(|| {
            left &= left - 1;
            i
        })
    })
}

/// Inputs of one length, of at most one chunk each, in W lanes. The rule of [`LaneInputs`] on
/// exclusive references applies here too.
pub(crate) struct EqualLenInputs<const W: usize> {
    pub(crate) blocks: usize,
    /// The number of bytes in the last block.
    pub(crate) last_len: usize,
    /// Pointers to zero-padded copies of the last blocks, if these are shorter than 64 bytes.
    tails: [*const u8; W],
    padded: [MaybeUninit<[u8; BLOCK_LEN]>; W],
}

impl<const W: usize> EqualLenInputs<W> {
    /// Nothing prepared yet.
    #[inline(always)]
    pub(crate) fn empty() -> Self {
        EqualLenInputs {
            blocks: 0,
            last_len: 0,
            tails: [core::ptr::null(); W],
            padded: [const { MaybeUninit::uninit() }; W],
        }
    }

    /// Takes W inputs of `len` bytes. The lanes may point into `self`, which must not move from
    /// here on.
    ///
    /// # Safety
    ///
    /// Every input must be readable.
    #[inline(always)]
    pub(crate) unsafe fn fill<V: Vector<Word = u32>>(&mut self, inputs: &[*const u8; MAX_LANES], len: usize) {
        self.blocks = len.div_ceil(BLOCK_LEN).max(1);
        let before = (self.blocks - 1) * BLOCK_LEN;
        self.last_len = len - before;
        if self.last_len < BLOCK_LEN {
            let mut i = 0;
            while i < W {
                let to = self.padded[i].as_mut_ptr().cast::<u8>();
                // SAFETY: the last block of a readable input; the copy has room for a whole block.
                unsafe { V::copy_padded(inputs[i].wrapping_add(before), self.last_len, to) };
                self.tails[i] = to;
                i += 1;
            }
        }
    }

    /// Block number `block` of every lane.
    #[inline(always)]
    pub(crate) fn block(&self, inputs: &[*const u8; MAX_LANES], block: usize) -> Blocks {
        if block + 1 == self.blocks && self.last_len < BLOCK_LEN {
            Blocks { pointers: self.tails.as_ptr(), offset: 0 }
        } else {
            Blocks { pointers: inputs.as_ptr(), offset: BLOCK_LEN * block }
        }
    }

    /// The blocks in runs of equal flags: the first, the last (excluded), and the flags that this
    /// run has in addition to the common ones.
    #[inline(always)]
    pub(crate) fn runs(&self, last_flags: u32) -> [(usize, usize, u32); 3] {
        let last = self.blocks - 1;
        if last == 0 {
            return [(0, 0, 0), (0, 0, 0), (0, 1, CHUNK_START | last_flags)];
        }
        [(0, 1, CHUNK_START), (1, last, 0), (last, last + 1, last_flags)]
    }
}

/// The difference between a lane's counter and the first one's, for steps 0 and 1: low words by
/// lane.
const COUNTER_OFFSETS: [[u32; MAX_LANES]; 2] =
    [[0; MAX_LANES], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]];

/// The low and the high words of the counters of all lanes, `step` (0 or 1) apart. Nothing passes
/// through memory: a load right after narrow stores would wait for them.
#[inline(always)]
pub(crate) unsafe fn counters<V: Columns>(counter: u64, step: u64) -> (V, V) {
    let (low, high) = (counter as u32, (counter >> 32) as u32);
    let offsets = &COUNTER_OFFSETS[(step & 1) as usize];
    // SAFETY: the caller has the instruction set of V; there are as many offsets as lanes, or more.
    unsafe {
        let (lows, mut highs) = (V::add(V::splat(low), V::load(offsets.as_ptr())), V::splat(high));
        if low > u32::MAX - MAX_LANES as u32 && step == 1 {
            // From the lane that is as far from the first one as 0 is from its low word, they
            // carry.
            let carries = u32::MAX << low.wrapping_neg();
            highs = V::select(carries, V::splat(high.wrapping_add(1)), highs);
        }
        (lows, highs)
    }
}
