//! Row form: four vectors hold the four rows of the state of one input. Bound by latency: two quarter rounds a round.
//!
//! For the diagonal half of a round, rows a, c and d turn and b stays: b is the last row to be ready, so no shuffle is on
//! the critical path.

use super::{SIGMA, State, all_rounds, each_block};
use crate::kernel::{Input, Last};
use crate::variant::Word;
use bulla_simd::WordRows;

/// The four rows of the state within a compression.
struct Rows<V> {
    a: V,
    b: V,
    c: V,
    d: V,
}

impl<V: WordRows> Rows<V> {
    /// Four quarter rounds side by side; `x` and `y` are their first and second message words.
    #[inline(always)]
    unsafe fn quarter_rounds(&mut self, x: V, y: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::pin(V::add(self.a, x)), self.b);
            self.d = V::mix::<0>(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::mix::<1>(self.b, self.c);
            self.a = V::add(V::pin(V::add(self.a, y)), self.b);
            self.d = V::mix::<2>(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::mix::<3>(self.b, self.c);
        }
    }
}

/// One compression of the block at `m`: the rows of the next state.
#[inline(always)]
unsafe fn compress<V: WordRows<Word: Word>>(
    h: [V; 2],
    m: *const u8,
    [t0, t1]: [V::Word; 2],
    [f0, f1]: [V::Word; 2],
) -> [V; 2] {
    // SAFETY: the caller has the instruction set of V, and a readable block.
    unsafe {
        let iv = &V::Word::IV;
        let mut s = Rows {
            a: h[0],
            b: h[1],
            c: V::load(iv.as_ptr()),
            d: V::xor(V::load(iv.as_ptr().add(4)), V::row([t0, t1, f0, f1])),
        };
        /// The words at these places of a round's schedule.
        macro_rules! words {
            ($r:literal, $a:literal $b:literal $c:literal $d:literal) => {
                V::gather::<{ SIGMA[$r][$a] }, { SIGMA[$r][$b] }, { SIGMA[$r][$c] }, { SIGMA[$r][$d] }>(m)
            };
        }
        macro_rules! round {
            ($r:literal) => {
                s.quarter_rounds(words!($r, 0 2 4 6), words!($r, 1 3 5 7));
                (s.a, s.c, s.d) = (V::turn3(s.a), V::turn1(s.c), V::turn2(s.d));
                s.quarter_rounds(words!($r, 14 8 10 12), words!($r, 15 9 11 13));
                (s.a, s.c, s.d) = (V::turn1(s.a), V::turn3(s.c), V::turn2(s.d));
            };
        }
        all_rounds!(round, V::Word);
        [V::xor(h[0], V::xor(s.a, s.c)), V::xor(h[1], V::xor(s.b, s.d))]
    }
}

/// The two rows of the state between compressions.
#[derive(Clone, Copy)]
struct Between<V>([V; 2]);

impl<V: WordRows<Word: Word>> State for Between<V> {
    type Vector = V;

    #[inline(always)]
    unsafe fn compress(self, block: *const u8, counter: [V::Word; 2], flags: [V::Word; 2]) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Between(compress(self.0, block, counter, flags)) }
    }
}

/// Compresses one input into the state `words`.
#[inline(always)]
pub(crate) unsafe fn input<V: WordRows<Word: Word>>(
    words: &mut [V::Word; 8],
    input: Input,
    counter: [V::Word; 2],
    last: Last,
) {
    // SAFETY: the caller has the instruction set of V, and readable input; the state has eight words.
    unsafe {
        let state = Between([V::load(words.as_ptr()), V::load(words.as_ptr().add(4))]);
        let Between([low, high]) = each_block(state, input, counter, last);
        low.store(words.as_mut_ptr());
        high.store(words.as_mut_ptr().add(4));
    }
}
