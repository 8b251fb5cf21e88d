//! The traits of vectors, and the forms of kernels: of BLAKE3, with words of 32 bits, and of
//! BLAKE2, with words of 32 and of 64 bits.

use core::mem::MaybeUninit;

/// Several words of 32 or 64 bits. Every operation applies to all of them.
///
/// The four rotates of a quarter round are numbered in their order: right by 16, 12, 8 and 7 bits
/// for words of 32 bits (BLAKE3, and BLAKE2s by RFC 7693, section 2.1); by 32, 24, 16 and 63 for
/// words of 64 (BLAKE2b).
///
/// The crate documentation says what every `unsafe` method here requires.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Vector: Copy + 'static {
    /// The type of a word.
    type Word: Copy + 'static;
    /// The number of words in a vector.
    const LANES: usize;
    /// The number of registers that it takes.
    const REGISTERS: usize = 1;

    /// `word` in every lane.
    unsafe fn splat(word: Self::Word) -> Self;
    /// Loads `LANES` words from `from`, which need not be aligned.
    unsafe fn load(from: *const Self::Word) -> Self;
    /// Stores `LANES` words to `to`, which need not be aligned.
    unsafe fn store(self, to: *mut Self::Word);
    /// Lane-wise sum modulo 2^32 or 2^64.
    unsafe fn add(a: Self, b: Self) -> Self;
    /// Lane-wise exclusive or.
    unsafe fn xor(a: Self, b: Self) -> Self;
    /// Every lane rotated right by the distance of rotate number `I`, from 0 to 3.
    unsafe fn rotate<const I: usize>(a: Self) -> Self;
    /// `a`, as a value that the optimizer cannot look into. So `(a + m) + b` does not become
    /// `a + (m + b)`, which would put a second addition on the critical path of a round.
    unsafe fn opaque(a: Self) -> Self;

    /// Copies `n` bytes from `from`, followed by zeros, to the block of sixteen words at `to`. The
    /// two must not overlap, and n is at most the block's length.
    ///
    /// It copies short pieces that overlap each other: a call of `memcpy` would cost a fifth of a
    /// compression.
    #[inline(always)]
    unsafe fn copy_padded(from: *const u8, n: usize, to: *mut u8) {
        // SAFETY: n bytes are readable and a block is writable; every piece below is within the n
        // bytes.
        unsafe {
            to.write_bytes(0, 16 * size_of::<Self::Word>());
            macro_rules! both_ends {
                ($size:literal) => {{
                    from.copy_to_nonoverlapping(to, $size);
                    from.add(n - $size).copy_to_nonoverlapping(to.add(n - $size), $size);
                }};
            }
            match n {
                64.. if size_of::<Self::Word>() == 8 => both_ends!(64),
                32.. => both_ends!(32),
                16.. => both_ends!(16),
                8.. => both_ends!(8),
                4.. => both_ends!(4),
                2.. => both_ends!(2),
                1 => to.write(from.read()),
                0 => {}
            }
        }
    }
}

/// Column form for BLAKE3: lane i of every vector belongs to input i.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Columns: Vector<Word = u32> {
    /// The sixteen little-endian words of `LANES` blocks of 64 bytes, transposed: vector w holds
    /// word w of each block. Block i is at `blocks[i] + offset`; `blocks` points at `LANES`
    /// pointers.
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16];
    /// Writes the chaining values in `words`: 32 bytes for each lane, one lane after the other, at
    /// `to`.
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8);
    /// Writes the blocks in `words`: 64 bytes for each lane, one lane after the other, at `to`.
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8);
    /// Of the `2 * LANES` words of `left` followed by `right`, the words at even places and the
    /// words at odd places.
    unsafe fn unzip(left: Self, right: Self) -> (Self, Self);
    /// Bit i says whether lane i of `a` and `b` are equal.
    unsafe fn equal(a: Self, b: Self) -> u32;
    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    unsafe fn select(mask: u32, yes: Self, no: Self) -> Self;
}

/// Row form for BLAKE3: a vector holds one row of four words of one or more 4x4 states.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Rows: Vector<Word = u32> {
    /// States in a vector: `LANES / 4`.
    const STATES: usize = Self::LANES / 4;

    /// The four words at `row` for every state.
    unsafe fn splat_row(row: *const u32) -> Self;
    /// The row with the words of `low` and then those of `high` (least significant word first), for
    /// every state. It is made in registers: a load right after four narrow stores
    /// would wait for all of them.
    unsafe fn splat_u64_pair(low: u64, high: u64) -> Self;
    /// 16 bytes from `blocks[i] + offset` for state i; `blocks` points at `STATES` pointers.
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self;
    /// The four rows of a block that has only n bytes, 1 to 63, padded with zeros; for a vector of
    /// one state.
    #[inline(always)]
    unsafe fn padded_rows(block: *const u8, n: usize) -> [Self; 4] {
        let mut padded = MaybeUninit::<[u8; 64]>::uninit();
        // SAFETY: as the caller promised; the copy has all 64 bytes.
        unsafe {
            Self::copy_padded(block, n, padded.as_mut_ptr().cast());
            let words = padded.as_ptr().cast::<u32>();
            [Self::load(words), Self::load(words.add(4)), Self::load(words.add(8)), Self::load(words.add(12))]
        }
    }
    /// Two rows of every state, 32 bytes a state, one state after the other (`32 * STATES` bytes at
    /// `to`).
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8);
    /// The row of every state, rotated left by N words: from (w0, w1, w2, w3) to (w1, w2, w3, w0)
    /// for
    /// 1. N is 1, 2 or 3.
    unsafe fn rotate_words_left<const N: i32>(a: Self) -> Self;
    /// `a ^ b` rotated right by 16 bits, where `b` is ready later than `a`. A backend may use more
    /// instructions for a shorter path from `b` to the result. The same holds for the three methods
    /// below.
    #[inline(always)]
    unsafe fn xor_rotr16(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Self::rotate::<0>(Self::xor(a, b)) }
    }
    /// `a ^ b` rotated right by 12 bits.
    #[inline(always)]
    unsafe fn xor_rotr12(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Self::rotate::<1>(Self::xor(a, b)) }
    }
    /// `a ^ b` rotated right by 8 bits.
    #[inline(always)]
    unsafe fn xor_rotr8(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Self::rotate::<2>(Self::xor(a, b)) }
    }
    /// `a ^ b` rotated right by 7 bits.
    #[inline(always)]
    unsafe fn xor_rotr7(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Self::rotate::<3>(Self::xor(a, b)) }
    }
    /// Two words of `a`, then two of `b`, for every state; two bits of `I` choose each of the four,
    /// the lowest bits first.
    unsafe fn shuffle<const I: i32>(a: Self, b: Self) -> Self;
}

/// Column form for BLAKE2: lane i of every vector belongs to input i.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait WordColumns: Vector {
    /// The sixteen little-endian words of `LANES` blocks, transposed: vector w holds word w of each
    /// block. Block i is at `blocks[i] + offset`; `blocks` points at `LANES` pointers.
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16];
    /// The states of `LANES` inputs, transposed: eight words each, in native byte order. Those of
    /// lane i are at `states[i]`; `states` points at `LANES` pointers.
    unsafe fn load_states(states: *const *mut Self::Word) -> [Self; 8];
    /// Writes the states in `words`: the reverse of `load_states`.
    unsafe fn store_states(words: [Self; 8], states: *const *mut Self::Word);
}

/// Row form for BLAKE2: a vector holds one row of four words of one 4x4 state.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait WordRows: Vector {
    /// Four words from `from`, which the caller has just stored, perhaps in two halves. A single
    /// load of all four would wait for both stores.
    unsafe fn load_just_stored(from: *const Self::Word) -> Self;
    /// The row of these words, made in registers: a load right after four narrow stores would wait
    /// for all of them.
    unsafe fn from_words(words: [Self::Word; 4]) -> Self;
    /// The little-endian words A, B, C and D of the block of sixteen words at `block`.
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(
        block: *const u8,
    ) -> Self;
    /// The row rotated left by N words: from (w0, w1, w2, w3) to (w1, w2, w3, w0) for 1. N is 1, 2
    /// or 3.
    unsafe fn rotate_words_left<const N: i32>(a: Self) -> Self;
}

/// Half a round in the column form: four quarter rounds side by side, on columns or diagonals `[a b
/// c d]` of the sixteen words `v`. `schedule` says which words of the message `m` the round uses,
/// from place `at` on. For methods of a trait whose `Self` is a [`Vector`](crate::Vector).
#[doc(hidden)]
#[macro_export]
macro_rules! half_round {
    ($v:ident, $m:ident, $schedule:expr, $at:literal, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $( $v[$a] = Self::add($v[$a], $m[$schedule[$at + 2 * $a]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<0>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<1>(Self::xor($v[$b], $v[$c])); )*
        $( $v[$a] = Self::add($v[$a], $m[$schedule[$at + 2 * $a + 1]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<2>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<3>(Self::xor($v[$b], $v[$c])); )*
    };
}
