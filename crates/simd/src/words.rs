//! The forms of kernels that exist for words of 32 and of 64 bits: BLAKE2s and BLAKE2b.

use crate::vector::Vector;

/// Column form: lane i of every vector belongs to input i.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait WordColumns: Vector {
    /// The sixteen little-endian words of `LANES` blocks, transposed: vector w holds word w of each
    /// block. Block i is at `blocks[i] + offset`; `blocks` points at `LANES` pointers.
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16];
    /// The same for eight words in native byte order. Lane i's words are at `halves[i]`; `halves`
    /// points at `LANES` pointers.
    unsafe fn load_halves(halves: *const *mut Self::Word) -> [Self; 8];
    /// The reverse of `load_halves`.
    unsafe fn store_halves(words: [Self; 8], halves: *const *mut Self::Word);
}

/// Row form: a vector holds one row of four words of one 4x4 state.
#[allow(clippy::missing_safety_doc, reason = "one contract for all, in the crate documentation")]
pub trait WordRows: Vector {
    /// Four words from `from`, which the caller has just stored, perhaps in two halves. A single
    /// load of all four would wait for both stores.
    unsafe fn load_fresh(from: *const Self::Word) -> Self;
    /// The row of these words, made in registers: a load right after four narrow stores would wait
    /// for all of them.
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
