//! Vectors of plain arrays. They define every operation lane by lane, without an instruction set.
//!
//! No shipped kernel uses them: the portable kernels have one lane. Tests run the generic bodies of
//! kernels over them where there are no vector registers. The main case is Miri, which supports
//! neither most intrinsics nor assembly.

use crate::vector::{Columns, Rows, Vector, WordColumns, WordRows};

/// An array whose element i is `$value`. It is not a closure, because Miri takes ten times as long
/// for a call as for a step of a loop.
macro_rules! each {
    ($i:ident => $value:expr) => {{
        let mut words = [0; N];
        let mut $i = 0;
        while $i < N {
            words[$i] = $value;
            $i += 1;
        }
        Array(words)
    }};
}

/// `N` words. The methods need no instruction set. The words in memory are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<W, const N: usize>(pub [W; N]);

/// Writes a word `at` bytes after `to`.
///
/// # Safety
///
/// Its bytes must be writable.
unsafe fn write<W>(to: *mut u8, at: usize, word: W) {
    // SAFETY: as the caller promised.
    unsafe { to.add(at).cast::<W>().write_unaligned(word) }
}

/// The word `at` bytes after pointer number `i` of `blocks`.
///
/// # Safety
///
/// There must be more than `i` pointers, and the word must be readable.
unsafe fn word_of<W>(blocks: *const *const u8, i: usize, at: usize) -> W {
    // SAFETY: as the caller promised.
    unsafe { (*blocks.add(i)).wrapping_add(at).cast::<W>().read_unaligned() }
}

impl<const N: usize> Columns for Array<u32, N> {
    #[inline(never)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        let mut words = [Array([0; N]); 16];
        for (w, word) in words.iter_mut().enumerate() {
            // SAFETY: the caller promised N pointers, with a block readable at the offset of each.
            *word = unsafe { each!(lane => word_of(blocks, lane, offset + 4 * w)) };
        }
        words
    }

    #[inline(never)]
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8) {
        for (w, column) in words.into_iter().enumerate() {
            for (lane, word) in column.0.into_iter().enumerate() {
                // SAFETY: the caller promised 32 writable bytes a lane.
                unsafe { write(to, 32 * lane + 4 * w, word) }
            }
        }
    }

    #[inline(never)]
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8) {
        for (w, column) in words.into_iter().enumerate() {
            for (lane, word) in column.0.into_iter().enumerate() {
                // SAFETY: the caller promised 64 writable bytes a lane.
                unsafe { write(to, 64 * lane + 4 * w, word) }
            }
        }
    }

    #[inline(never)]
    unsafe fn unzip(left: Self, right: Self) -> (Self, Self) {
        let word = |i: usize| if i < N { left.0[i] } else { right.0[i - N] };
        (each!(i => word(2 * i)), each!(i => word(2 * i + 1)))
    }

    #[inline(never)]
    unsafe fn equal(a: Self, b: Self) -> u32 {
        (0..N).map(|i| u32::from(a.0[i] == b.0[i]) << i).sum()
    }

    #[inline(never)]
    unsafe fn select(mask: u32, yes: Self, no: Self) -> Self {
        each!(i => if mask >> i & 1 == 1 { yes.0[i] } else { no.0[i] })
    }
}

impl<const N: usize> Rows for Array<u32, N> {
    #[inline(never)]
    unsafe fn splat_row(row: *const u32) -> Self {
        // SAFETY: the caller promised four readable words.
        unsafe { each!(i => row.add(i % 4).read_unaligned()) }
    }

    #[inline(never)]
    unsafe fn splat_u64_pair(low: u64, high: u64) -> Self {
        let row = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
        each!(i => row[i % 4])
    }

    #[inline(never)]
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self {
        // SAFETY: the caller promised a pointer for each state, with 16 bytes readable at the
        // offset.
        unsafe { each!(i => word_of(blocks, i / 4, offset + 4 * (i % 4))) }
    }

    #[inline(never)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        for i in 0..N {
            let at = 32 * (i / 4) + 4 * (i % 4);
            // SAFETY: the caller promised 32 writable bytes a state.
            unsafe {
                write(to, at, first.0[i]);
                write(to, at + 16, second.0[i]);
            }
        }
    }

    #[inline(never)]
    unsafe fn rotate_words_left<const K: i32>(a: Self) -> Self {
        each!(i => a.0[i / 4 * 4 + (i + K as usize) % 4])
    }

    #[inline(never)]
    unsafe fn shuffle<const I: i32>(a: Self, b: Self) -> Self {
        each!(i => {
            let from = if i % 4 < 2 { &a } else { &b };
            from.0[i / 4 * 4 + (I as usize >> (2 * (i % 4)) & 3)]
        })
    }
}

/// The word traits, for words of one size.
macro_rules! words {
    ($word:ty, $rotates:expr) => {
        impl<const N: usize> Vector for Array<$word, N> {
            type Word = $word;
            const LANES: usize = N;

            #[inline(never)]
            unsafe fn splat(word: $word) -> Self {
                Array([word; N])
            }

            #[inline(never)]
            unsafe fn load(from: *const $word) -> Self {
                // SAFETY: the caller promised N readable words.
                unsafe { each!(i => from.add(i).read_unaligned()) }
            }

            #[inline(never)]
            unsafe fn store(self, to: *mut $word) {
                for (i, word) in self.0.into_iter().enumerate() {
                    // SAFETY: the caller promised N writable words.
                    unsafe { to.add(i).write_unaligned(word) }
                }
            }

            #[inline(never)]
            unsafe fn add(a: Self, b: Self) -> Self {
                each!(i => a.0[i].wrapping_add(b.0[i]))
            }

            #[inline(never)]
            unsafe fn xor(a: Self, b: Self) -> Self {
                each!(i => a.0[i] ^ b.0[i])
            }

            #[inline(never)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                const ROTATES: [u32; 4] = $rotates;
                each!(i => a.0[i].rotate_right(ROTATES[I]))
            }

            unsafe fn opaque(a: Self) -> Self {
                a
            }
        }

        impl<const N: usize> WordColumns for Array<$word, N> {
            #[inline(never)]
            unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
                let mut words = [Array([0; N]); 16];
                for (w, word) in words.iter_mut().enumerate() {
                    // SAFETY: the caller promised N pointers, with a block readable at the offset
                    // of each.
                    *word = unsafe { each!(lane => word_of(blocks, lane, size_of::<$word>() * w + offset)) };
                }
                words
            }

            #[inline(never)]
            unsafe fn load_states(states: *const *mut $word) -> [Self; 8] {
                let mut words = [Array([0; N]); 8];
                for (w, word) in words.iter_mut().enumerate() {
                    // SAFETY: the caller promised N pointers, each at eight words.
                    *word = unsafe { each!(lane => *(*states.add(lane)).add(w)) };
                }
                words
            }

            #[inline(never)]
            unsafe fn store_states(words: [Self; 8], states: *const *mut $word) {
                for (w, column) in words.into_iter().enumerate() {
                    for (lane, word) in column.0.into_iter().enumerate() {
                        // SAFETY: the caller promised N pointers, each at eight words.
                        unsafe { *(*states.add(lane)).add(w) = word }
                    }
                }
            }
        }

        impl WordRows for Array<$word, 4> {
            #[inline(never)]
            unsafe fn load_just_stored(from: *const $word) -> Self {
                // SAFETY: the caller promised four readable words.
                unsafe { Vector::load(from) }
            }

            #[inline(never)]
            unsafe fn from_words(words: [$word; 4]) -> Self {
                Array(words)
            }

            #[inline(never)]
            unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(
                block: *const u8,
            ) -> Self {
                let word = |i: usize| {
                    // SAFETY: the caller promised a block of sixteen words.
                    unsafe { block.cast::<$word>().add(i).read_unaligned() }
                };
                Array([word(A), word(B), word(C), word(D)])
            }

            #[inline(never)]
            unsafe fn rotate_words_left<const K: i32>(a: Self) -> Self {
                let mut words = a.0;
                words.rotate_left(K as usize);
                Array(words)
            }
        }
    };
}

words!(u32, [16, 12, 8, 7]);
words!(u64, [32, 24, 16, 63]);
