//! Row form: four vectors hold the four rows of the state of one input. Its speed is limited by
//! latency: two quarter rounds a round.
//!
//! For the diagonal half of a round, rows a, c and d rotate and b does not: b is the last row to be
//! ready, so no shuffle is on the critical path.

use super::{SIGMA, all_rounds, next_block};
use crate::job::{Finalization, StridedInput};
use crate::word::Word;
use bulla_simd::{Vector, WordRows};
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// An implementation of the rounds of the row form.
#[allow(
    clippy::missing_safety_doc,
    reason = "the CPU must have the instruction set of the vector, as everywhere here"
)]
pub(crate) trait Rounds: Copy {
    /// The vector that holds a row.
    type Row: WordRows<Word: Word>;

    /// All rounds on the rows a, b, c and d, with the block at `m`.
    unsafe fn rounds(rows: [Self::Row; 4], m: *const u8) -> [Self::Row; 4];
}

/// The rounds below, in the order that the compiler chooses.
#[derive(Clone, Copy)]
pub(crate) struct CompiledRounds<V>(PhantomData<V>);

impl<V: WordRows<Word: Word>> Rounds for CompiledRounds<V> {
    type Row = V;

    #[inline(always)]
    unsafe fn rounds(rows: [V; 4], m: *const u8) -> [V; 4] {
        // SAFETY: as the caller promised.
        unsafe { rounds(rows, m) }
    }
}

/// The rounds for any vector.
#[inline(always)]
unsafe fn rounds<V: WordRows<Word: Word>>([mut a, mut b, mut c, mut d]: [V; 4], m: *const u8) -> [V; 4] {
    // SAFETY: the caller has the instruction set of V, and a readable block.
    unsafe {
        /// The words at these places of a round's schedule.
        macro_rules! words {
            ($r:literal, $a:literal $b:literal $c:literal $d:literal) => {
                V::gather::<{ SIGMA[$r][$a] }, { SIGMA[$r][$b] }, { SIGMA[$r][$c] }, { SIGMA[$r][$d] }>(m)
            };
        }
        /// Four quarter rounds side by side.
        macro_rules! quarter_rounds {
            ($x:expr, $y:expr) => {
                a = V::add(V::opaque(V::add(a, $x)), b);
                d = V::rotate::<0>(V::xor(d, a));
                c = V::add(c, d);
                b = V::rotate::<1>(V::xor(b, c));
                a = V::add(V::opaque(V::add(a, $y)), b);
                d = V::rotate::<2>(V::xor(d, a));
                c = V::add(c, d);
                b = V::rotate::<3>(V::xor(b, c));
            };
        }
        macro_rules! round {
            ($r:literal) => {
                quarter_rounds!(words!($r, 0 2 4 6), words!($r, 1 3 5 7));
                (a, c, d) = (V::rotate_words_left::<3>(a), V::rotate_words_left::<1>(c), V::rotate_words_left::<2>(d));
                quarter_rounds!(words!($r, 14 8 10 12), words!($r, 15 9 11 13));
                (a, c, d) = (V::rotate_words_left::<1>(a), V::rotate_words_left::<3>(c), V::rotate_words_left::<2>(d));
            };
        }
        all_rounds!(round, V::Word);
        [a, b, c, d]
    }
}

/// A word of a row.
type WordOf<R> = <<R as Rounds>::Row as Vector>::Word;

/// One compression of the block at `m`: the rows of the next state.
#[inline(always)]
unsafe fn compress<R: Rounds>(
    h: [R::Row; 2],
    m: *const u8,
    [t0, t1]: [WordOf<R>; 2],
    [f0, f1]: [WordOf<R>; 2],
) -> [R::Row; 2] {
    // SAFETY: the caller has the instruction set of the row, and a readable block.
    unsafe {
        let iv = &WordOf::<R>::IV;
        let last = R::Row::xor(R::Row::load(iv.as_ptr().add(4)), R::Row::from_words([t0, t1, f0, f1]));
        let [a, b, c, d] = R::rounds([h[0], h[1], R::Row::load(iv.as_ptr()), last], m);
        [R::Row::xor(h[0], R::Row::xor(a, c)), R::Row::xor(h[1], R::Row::xor(b, d))]
    }
}

/// Compresses one input into the state `words`. `counter` bytes come before it. The last block has
/// its own copy of the rounds: then no block asks whether it is the last.
#[inline(always)]
pub(crate) unsafe fn compress_input<R: Rounds>(
    words: &mut [WordOf<R>; 8],
    input: StridedInput,
    mut counter: [WordOf<R>; 2],
    last: Finalization,
) {
    let StridedInput { mut from, mut len, stride } = input;
    let block_len = WordOf::<R>::BLOCK;
    // SAFETY: the caller has the instruction set of the row, and readable input; the state has
    // eight words.
    unsafe {
        let mut state =
            [R::Row::load_just_stored(words.as_ptr()), R::Row::load_just_stored(words.as_ptr().add(4))];
        while len > block_len {
            counter = Word::advance(counter, block_len);
            state = compress::<R>(state, from, counter, Finalization::None.flags());
            from = from.wrapping_add(stride);
            len -= block_len;
        }
        let mut padded = MaybeUninit::<[u8; 128]>::uninit();
        from = next_block::<R::Row>(from, len, &mut padded);
        counter = Word::advance(counter, len);
        let [low, high] = compress::<R>(state, from, counter, last.flags());
        low.store(words.as_mut_ptr());
        high.store(words.as_mut_ptr().add(4));
    }
}
