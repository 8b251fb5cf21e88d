//! Column form: vector i holds word i of the states of `LANES` inputs. Bound by throughput: 14 operations a quarter round, and
//! the transpose of the message. With one lane it is the plain scalar algorithm.

use super::{SIGMA, State, all_rounds, each_block};
use crate::kernel::{Input, Lane, Last, Step};
use crate::variant::Word;
use bulla_simd::WordColumns;
use core::mem::MaybeUninit;

/// Four quarter rounds side by side, on columns or diagonals.
macro_rules! half_round {
    ($v:ident, $m:ident, $r:literal, $at:literal, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $( $v[$a] = Self::add($v[$a], $m[SIGMA[$r][$at + 2 * $a]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<0>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<1>(Self::xor($v[$b], $v[$c])); )*
        $( $v[$a] = Self::add($v[$a], $m[SIGMA[$r][$at + 2 * $a + 1]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<2>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<3>(Self::xor($v[$b], $v[$c])); )*
    };
}

/// A vector whose column form has rounds: those below, or better ones of its own.
#[allow(
    clippy::missing_safety_doc,
    reason = "the CPU must have the instruction set of the vector, as everywhere here"
)]
pub(crate) trait Rounds: WordColumns<Word: Word> {
    /// All rounds on the sixteen words of the state.
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        macro_rules! round {
            ($r:literal) => {
                half_round!(v, m, $r, 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, $r, 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            };
        }
        // SAFETY: the caller has the instruction set.
        unsafe {
            all_rounds!(round, Self::Word);
        }
    }
}

impl Rounds for bulla_simd::scalar::U32x1 {}
impl Rounds for bulla_simd::scalar::U64x1 {}

/// One compression: the next states. `t` and `f` are the counters and the finalisation flags.
#[inline(always)]
unsafe fn compress<V: Rounds>(h: &[V; 8], m: &[V; 16], t: [V; 2], f: [V; 2]) -> [V; 8] {
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        // No closure here and below: what takes vectors by closures is compiled for itself, too, outside the kernels.
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

/// The state of one input, in vectors of one lane.
#[derive(Clone, Copy)]
struct One<V>([V; 8]);

impl<V: Rounds> State for One<V> {
    type Vector = V;

    #[inline(always)]
    unsafe fn compress(self, block: *const u8, counter: [V::Word; 2], flags: [V::Word; 2]) -> Self {
        // SAFETY: the caller has a readable block, and V has one lane.
        unsafe {
            let m = V::load_blocks(&raw const block, 0);
            let counter = [V::splat(counter[0]), V::splat(counter[1])];
            One(compress(&self.0, &m, counter, [V::splat(flags[0]), V::splat(flags[1])]))
        }
    }
}

/// Compresses one input into the state `words`, with a vector of one lane.
#[inline(always)]
pub(crate) unsafe fn input<V: Rounds>(
    words: &mut [V::Word; 8],
    input: Input,
    counter: [V::Word; 2],
    last: Last,
) {
    // SAFETY: the caller has the instruction set of V, and readable input.
    unsafe {
        let mut state = [V::splat(words[0]); 8];
        for (lane, word) in state.iter_mut().zip(&*words) {
            *lane = V::splat(*word);
        }
        let One(state) = each_block(One(state), input, counter, last);
        for (word, lane) in words.iter_mut().zip(state) {
            lane.store(word);
        }
    }
}

/// One step of 1 to `W == LANES` lanes.
#[inline(always)]
pub(crate) unsafe fn lanes<V: Rounds, const W: usize>(lanes: &mut [Lane<V::Word>], step: Step) {
    // SAFETY: the caller has the instruction set of V, at least one lane, readable blocks and tails; a record is as long as a block.
    unsafe {
        // Lanes without an input do the work of lane 0 again.
        let lane = |i: usize| &lanes[if i < lanes.len() { i } else { 0 }];
        let mut records = [core::ptr::null(); W];
        let (mut from, mut tails) = (records, records);
        let mut padded = [const { MaybeUninit::<[u8; 128]>::uninit() }; W];
        let mut i = 0;
        while i < W {
            let lane = lane(i);
            records[i] = (&raw const lane.record).cast::<u8>();
            from[i] = lane.from;
            tails[i] = lane.tail;
            if lane.tail_len < V::Word::BLOCK {
                V::copy_block(lane.tail, lane.tail_len, padded[i].as_mut_ptr().cast());
                tails[i] = padded[i].as_ptr().cast();
            }
            i += 1;
        }
        let [h0, h1, h2, h3, h4, h5, h6, h7, mut t0, t1, tail0, tail1, f0, f1, _, _] =
            V::load_blocks(records.as_ptr(), 0);
        let mut h = [h0, h1, h2, h3, h4, h5, h6, h7];
        let (zero, block) = (V::splat(V::Word::default()), V::splat(V::Word::small(V::Word::BLOCK)));
        let mut at = 0;
        for _ in 0..step.blocks {
            t0 = V::add(t0, block);
            let m = V::load_blocks(from.as_ptr(), at);
            h = compress(&h, &m, [t0, t1], [zero, zero]);
            at = at.wrapping_add(step.stride);
        }
        let m = V::load_blocks(tails.as_ptr(), 0);
        h = compress(&h, &m, [tail0, tail1], [f0, f1]);
        let mut states = [[V::Word::default(); 8]; W];
        V::store_halves(h, states.as_mut_ptr().cast());
        for (lane, words) in lanes.iter_mut().zip(states) {
            lane.record.words = words;
        }
    }
}
