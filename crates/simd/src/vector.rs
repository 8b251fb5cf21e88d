//! The traits of vectors, and the forms of kernels with 32-bit words.

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
    /// A word.
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
    /// The same value, hidden from the optimiser. It keeps `(a + m) + b` from becoming `a + (m +
    /// b)`, which would put a second addition on the critical path of a round.
    unsafe fn pin(a: Self) -> Self;

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

/// Column form: lane i of every vector belongs to input i.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Columns: Vector<Word = u32> {
    /// The sixteen little-endian words of `LANES` blocks of 64 bytes, transposed: vector w holds
    /// word w of each block. Block i is at `blocks[i] + offset`; `blocks` points at `LANES`
    /// pointers.
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16];
    /// The reverse for eight words: 32 bytes a lane, one lane after the other (`32 * LANES` bytes
    /// at `to`).
    unsafe fn store_halves(words: [Self; 8], to: *mut u8);
    /// The reverse of `load_blocks`: 64 bytes a lane, one lane after the other (`64 * LANES` bytes
    /// at `to`).
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8);
    /// Of the `2 * LANES` words of `left` followed by `right`, the words at even places and the
    /// words at odd places.
    unsafe fn unzip(left: Self, right: Self) -> (Self, Self);
    /// Bit i says whether lane i of `a` and `b` are equal.
    unsafe fn equal(a: Self, b: Self) -> u32;
    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    unsafe fn select(mask: u32, yes: Self, no: Self) -> Self;
}

/// Row form: a vector holds one row of four words of one or more 4x4 states.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Rows: Vector<Word = u32> {
    /// States in a vector: `LANES / 4`.
    const STATES: usize = Self::LANES / 4;

    /// The four words at `row` for every state.
    unsafe fn splat_row(row: *const u32) -> Self;
    /// The row whose low words are `low` and whose high words are `high` (least significant word
    /// first), for every state. It is made in registers: a load right after four narrow stores
    /// would wait for all of them.
    unsafe fn splat_halves(low: u64, high: u64) -> Self;
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
    /// Row (w1, w2, w3, w0) of every state.
    unsafe fn turn1(a: Self) -> Self;
    /// Row (w2, w3, w0, w1) of every state.
    unsafe fn turn2(a: Self) -> Self;
    /// Row (w3, w0, w1, w2) of every state.
    unsafe fn turn3(a: Self) -> Self;
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
    /// Two words of `a`, then two of `b`, for every state; two bits of `I` pick each of the four,
    /// the lowest bits first.
    unsafe fn pick<const I: i32>(a: Self, b: Self) -> Self;
}
