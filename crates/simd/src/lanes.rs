//! Vectors for architectures whose vector types stable Rust does not have: arrays, of which the
//! compiler makes vector instructions.
//!
//! It does so for a loop over lanes with a large body, such as the rounds of one lane: it runs all
//! iterations at once, in registers. In straight code with four words side by side, it finds
//! vectors only if its estimate says that they pay, which differs between processors. So kernels
//! with these vectors have their rounds as such loops, and the code here is for the rest of a
//! compression.
//!
//! Nothing here needs an instruction set. If the compiler does not find the vectors, the results
//! are the same.

use crate::vector::{Columns, Rows, Vector, WordColumns, WordRows};
use core::mem::MaybeUninit;

/// `N` words, aligned like a register. The words have the byte order of the machine.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Lanes<W, const N: usize>(pub [W; N]);

/// Four words of 32 bits.
pub type U32x4 = Lanes<u32, 4>;

/// Four words of 64 bits, which take two registers: of a loop over two lanes the compiler makes no
/// vectors.
pub type U64x4 = Lanes<u64, 4>;

/// Lanes whose number `$i` is `$value`.
macro_rules! each {
    ($i:ident => $value:expr) => {{
        let mut words = [0; N];
        let mut $i = 0;
        while $i < N {
            words[$i] = $value;
            $i += 1;
        }
        Lanes(words)
    }};
}

/// The word traits, for words of one size.
macro_rules! words {
    ($word:ty, $rotates:expr) => {
        impl<const N: usize> Vector for Lanes<$word, N> {
            type Word = $word;
            const LANES: usize = N;

            #[inline(always)]
            unsafe fn splat(word: $word) -> Self {
                Lanes([word; N])
            }

            #[inline(always)]
            unsafe fn load(from: *const $word) -> Self {
                // SAFETY: the caller promised N readable words.
                unsafe { each!(i => from.add(i).read_unaligned()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $word) {
                let mut i = 0;
                while i < N {
                    // SAFETY: the caller promised N writable words.
                    unsafe { to.add(i).write_unaligned(self.0[i]) };
                    i += 1;
                }
            }

            #[inline(always)]
            unsafe fn add(a: Self, b: Self) -> Self {
                each!(i => a.0[i].wrapping_add(b.0[i]))
            }

            #[inline(always)]
            unsafe fn xor(a: Self, b: Self) -> Self {
                each!(i => a.0[i] ^ b.0[i])
            }

            #[inline(always)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                const ROTATES: [u32; 4] = $rotates;
                each!(i => a.0[i].rotate_right(ROTATES[I]))
            }

            #[inline(always)]
            unsafe fn opaque(a: Self) -> Self {
                a
            }
        }

        impl<const N: usize> WordColumns for Lanes<$word, N> {
            #[inline(always)]
            unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
                let mut words = [Lanes([0; N]); 16];
                let mut lane = 0;
                while lane < N {
                    // SAFETY: the caller promised N pointers, with a block readable at the offset
                    // of each.
                    let block = unsafe { (*blocks.add(lane)).wrapping_add(offset).cast::<$word>() };
                    let mut w = 0;
                    while w < 16 {
                        // SAFETY: as above.
                        words[w].0[lane] = <$word>::from_le(unsafe { block.add(w).read_unaligned() });
                        w += 1;
                    }
                    lane += 1;
                }
                words
            }

            #[inline(always)]
            unsafe fn load_states(states: *const *mut $word) -> [Self; 8] {
                let mut words = [Lanes([0; N]); 8];
                let mut lane = 0;
                while lane < N {
                    let mut w = 0;
                    while w < 8 {
                        // SAFETY: the caller promised N pointers, each at eight words.
                        words[w].0[lane] = unsafe { *(*states.add(lane)).add(w) };
                        w += 1;
                    }
                    lane += 1;
                }
                words
            }

            #[inline(always)]
            unsafe fn store_states(words: [Self; 8], states: *const *mut $word) {
                let mut lane = 0;
                while lane < N {
                    let mut w = 0;
                    while w < 8 {
                        // SAFETY: the caller promised N pointers, each at eight words.
                        unsafe { *(*states.add(lane)).add(w) = words[w].0[lane] };
                        w += 1;
                    }
                    lane += 1;
                }
            }
        }

        impl WordRows for Lanes<$word, 4> {
            #[inline(always)]
            unsafe fn load_just_stored(from: *const $word) -> Self {
                // SAFETY: the caller promised four readable words.
                unsafe { Self::load(from) }
            }

            #[inline(always)]
            unsafe fn from_words(words: [$word; 4]) -> Self {
                Lanes(words)
            }

            #[inline(always)]
            unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(
                block: *const u8,
            ) -> Self {
                let block = block.cast::<$word>();
                // SAFETY: the caller promised a block of sixteen words.
                let words = unsafe {
                    [
                        block.add(A).read_unaligned(),
                        block.add(B).read_unaligned(),
                        block.add(C).read_unaligned(),
                        block.add(D).read_unaligned(),
                    ]
                };
                let [a, b, c, d] = words;
                Lanes([<$word>::from_le(a), <$word>::from_le(b), <$word>::from_le(c), <$word>::from_le(d)])
            }

            #[inline(always)]
            unsafe fn rotate_words_left<const K: i32>(a: Self) -> Self {
                let [w0, w1, w2, w3] = a.0;
                Lanes(match K {
                    1 => [w1, w2, w3, w0],
                    2 => [w2, w3, w0, w1],
                    _ => [w3, w0, w1, w2],
                })
            }
        }
    };
}

words!(u32, [16, 12, 8, 7]);
words!(u64, [32, 24, 16, 63]);

/// Writes `W` words of each lane, one lane after the other.
///
/// # Safety
///
/// `4 * N * W` bytes must be writable.
#[inline(always)]
unsafe fn store_columns<const N: usize, const W: usize>(words: &[Lanes<u32, N>; W], to: *mut u8) {
    let mut lane = 0;
    while lane < N {
        let mut w = 0;
        while w < W {
            // SAFETY: as the caller promised.
            unsafe { to.cast::<u32>().add(W * lane + w).write_unaligned(words[w].0[lane].to_le()) };
            w += 1;
        }
        lane += 1;
    }
}

impl<const N: usize> Columns for Lanes<u32, N> {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: as the caller promised.
        unsafe { <Self as WordColumns>::load_blocks(blocks, offset) }
    }

    #[inline(always)]
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 32 writable bytes a lane.
        unsafe { store_columns(&words, to) }
    }

    #[inline(always)]
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 64 writable bytes a lane.
        unsafe { store_columns(&words, to) }
    }

    #[inline(always)]
    unsafe fn unzip(left: Self, right: Self) -> (Self, Self) {
        (
            each!(i => if 2 * i < N { left.0[2 * i] } else { right.0[2 * i - N] }),
            each!(i => if 2 * i + 1 < N { left.0[2 * i + 1] } else { right.0[2 * i + 1 - N] }),
        )
    }

    #[inline(always)]
    unsafe fn equal(a: Self, b: Self) -> u32 {
        let (mut mask, mut i) = (0, 0);
        while i < N {
            mask |= u32::from(a.0[i] == b.0[i]) << i;
            i += 1;
        }
        mask
    }

    #[inline(always)]
    unsafe fn select(mask: u32, yes: Self, no: Self) -> Self {
        each!(i => if mask >> i & 1 == 1 { yes.0[i] } else { no.0[i] })
    }
}

/// Row form, for processors on which the compiler finds vectors in straight code.
impl Rows for U32x4 {
    #[inline(always)]
    unsafe fn splat_row(row: *const u32) -> Self {
        // SAFETY: the caller promised four readable words.
        unsafe { Self::load(row) }
    }

    #[inline(always)]
    unsafe fn splat_u64_pair(low: u64, high: u64) -> Self {
        Lanes([low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32])
    }

    #[inline(always)]
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self {
        // SAFETY: the caller promised one pointer, with 16 readable bytes at the offset.
        unsafe {
            let Lanes([a, b, c, d]) = Self::load((*blocks).wrapping_add(offset).cast());
            Lanes([u32::from_le(a), u32::from_le(b), u32::from_le(c), u32::from_le(d)])
        }
    }

    #[inline(always)]
    unsafe fn padded_rows(block: *const u8, n: usize) -> [Self; 4] {
        let mut padded = MaybeUninit::<[u8; 64]>::uninit();
        // SAFETY: as the caller promised; the copy has all 64 bytes.
        unsafe {
            Self::copy_padded(block, n, padded.as_mut_ptr().cast());
            let block = padded.as_ptr().cast();
            [
                Self::gather_rows(&raw const block, 0),
                Self::gather_rows(&raw const block, 16),
                Self::gather_rows(&raw const block, 32),
                Self::gather_rows(&raw const block, 48),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        let ([a, b, c, d], [e, f, g, h]) = (first.0, second.0);
        let words = [a.to_le(), b.to_le(), c.to_le(), d.to_le(), e.to_le(), f.to_le(), g.to_le(), h.to_le()];
        // SAFETY: the caller promised 32 writable bytes.
        unsafe { to.cast::<[u32; 8]>().write_unaligned(words) }
    }

    #[inline(always)]
    unsafe fn rotate_words_left<const K: i32>(a: Self) -> Self {
        // SAFETY: it asks nothing of its caller.
        unsafe { <Self as WordRows>::rotate_words_left::<K>(a) }
    }

    #[inline(always)]
    unsafe fn shuffle<const I: i32>(a: Self, b: Self) -> Self {
        Lanes([
            a.0[I as usize & 3],
            a.0[I as usize >> 2 & 3],
            b.0[I as usize >> 4 & 3],
            b.0[I as usize >> 6 & 3],
        ])
    }
}
