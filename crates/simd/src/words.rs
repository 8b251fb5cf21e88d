//! Words of 32 or 64 bits, for hash functions that come in both: BLAKE2s and BLAKE2b.

/// Several words, all treated alike.
///
/// The four rotates of a quarter round are numbered in their order: right by 32, 24, 16 and 63 bits for words of 64 bits; by 16, 12, 8 and 7
/// for words of 32 (RFC 7693, section 2.1).
///
/// See the crate documentation for what every `unsafe` here asks.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait Words: Copy + 'static {
    /// A word.
    type Word: Copy + 'static;
    /// Words in a vector.
    const LANES: usize;

    /// `word` in every lane.
    unsafe fn splat(word: Self::Word) -> Self;
    /// `LANES` words from `from`, which needs no alignment.
    unsafe fn load(from: *const Self::Word) -> Self;
    /// `LANES` words to `to`, which needs no alignment.
    unsafe fn store(self, to: *mut Self::Word);
    /// Lane-wise sum modulo 2^32 or 2^64.
    unsafe fn add(a: Self, b: Self) -> Self;
    /// Lane-wise exclusive or.
    unsafe fn xor(a: Self, b: Self) -> Self;
    /// Every lane rotated right by the distance of rotate number `I`, from 0 to 3.
    unsafe fn rotate<const I: usize>(a: Self) -> Self;
    /// The same value, of which the optimiser knows nothing: keeps `(a + m) + b` from becoming `a + (m + b)`.
    unsafe fn pin(a: Self) -> Self;

    /// `n` bytes from `from`, and zeros after them, to the sixteen words at `to`; the two must not overlap, and n is at most as much.
    ///
    /// Short pieces that overlap each other: a call of `memcpy` would cost as much as a tenth of a compression.
    #[inline(always)]
    unsafe fn copy_block(from: *const u8, n: usize, to: *mut u8) {
        // SAFETY: n bytes are readable and a block writable; every piece below lies within the n bytes.
        unsafe {
            to.write_bytes(0, 16 * size_of::<Self::Word>());
            macro_rules! both_ends {
                ($size:literal) => {{
                    from.copy_to_nonoverlapping(to, $size);
                    from.add(n - $size).copy_to_nonoverlapping(to.add(n - $size), $size);
                }};
            }
            match n {
                64.. => both_ends!(64),
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
pub trait WordColumns: Words {
    /// The sixteen little-endian words of `LANES` blocks, transposed: vector w holds word w of each block. Block i is at
    /// `blocks[i] + offset`; `blocks` points at `LANES` pointers.
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16];
    /// The same for eight words, in the order of the machine: those of lane i are at `halves[i]`, which points at `LANES` pointers.
    unsafe fn load_halves(halves: *const *mut Self::Word) -> [Self; 8];
    /// The reverse of `load_halves`.
    unsafe fn store_halves(words: [Self; 8], halves: *const *mut Self::Word);
}

/// Row form: a vector holds one row of four words of one 4x4 state.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait WordRows: Words {
    /// Four words from `from`, which the caller has just stored, maybe in two halves: a load of all four would then wait for both stores.
    unsafe fn load_fresh(from: *const Self::Word) -> Self;
    /// The row of these words, made in registers: a load just after four narrow stores would wait for all of them.
    unsafe fn row(words: [Self::Word; 4]) -> Self;
    /// The little-endian words A, B, C and D of the block of sixteen words at `block`.
    unsafe fn gather<const A: usize, const B: usize, const C: usize, const D: usize>(
        block: *const u8,
    ) -> Self;
    /// Row (w1, w2, w3, w0).
    unsafe fn turn1(a: Self) -> Self;
    /// Row (w2, w3, w0, w1).
    unsafe fn turn2(a: Self) -> Self;
    /// Row (w3, w0, w1, w2).
    unsafe fn turn3(a: Self) -> Self;
}
