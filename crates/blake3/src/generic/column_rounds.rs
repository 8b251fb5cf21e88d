//! The rounds of the column form, and the messages that they work on.

use super::lanes::Blocks;
use crate::spec::SCHEDULE;
use bulla_simd::lanes::Lanes;
use bulla_simd::scalar::U32x1;
use bulla_simd::{Columns, Vector, half_round};

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
    type Room;

    /// Begins with these blocks. The value must not be used longer than the room.
    unsafe fn begin(room: *mut Self::Room, blocks: Blocks) -> Self;

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
    type Room = ();

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
