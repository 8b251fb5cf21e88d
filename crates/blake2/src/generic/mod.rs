//! The kernels, each written once over the traits of `bulla-simd`.
//!
//! Everything here is `#[inline(always)]` and becomes part of the `#[target_feature]` functions
//! that `crate::kernel` makes for each instruction set. All functions have the same requirements:
//! the CPU must have the vector type's instruction set, and pointers must be valid for the memory
//! that the function says it reads and writes.

pub(crate) mod columns;
#[cfg(any(
    all(target_arch = "x86_64", target_feature = "sse2"),
    target_arch = "s390x",
    all(test, target_endian = "little")
))]
pub(crate) mod rows;

use crate::word::Word;
use bulla_simd::Vector;
use core::mem::MaybeUninit;

/// `SIGMA[r][i]` is the message word that round r uses at place i. Places 2j and 2j + 1 belong to
/// the j-th of the round's eight quarter rounds (RFC 7693, section 2.7). Rounds 10 and 11 repeat 0
/// and 1.
pub(crate) const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// A block of zeros, the last one of an empty input.
#[repr(align(64))]
struct ZeroBlock([u8; 128]);

static ZERO_BLOCK: ZeroBlock = ZeroBlock([0; 128]);

/// The next block of an input, of which `len` bytes are left at `from`: that place, or the last
/// block padded in `padded`. Of an empty input nothing is read: a slice without bytes may point to
/// no memory, and a load from there takes longer than a compression, even with a mask without bits.
#[inline(always)]
unsafe fn next_block<V: Vector<Word: Word>>(
    from: *const u8,
    len: usize,
    padded: &mut MaybeUninit<[u8; 128]>,
) -> *const u8 {
    if len >= V::Word::BLOCK {
        return from;
    }
    if len == 0 {
        return ZERO_BLOCK.0.as_ptr();
    }
    // SAFETY: the caller has the instruction set of V, and so many readable bytes; there is room
    // for a block.
    unsafe { V::copy_padded(from, len, padded.as_mut_ptr().cast()) };
    padded.as_ptr().cast()
}

/// The rounds in order, for words of either size.
macro_rules! all_rounds {
    ($round:ident, $word:ty) => {
        $round!(0);
        $round!(1);
        $round!(2);
        $round!(3);
        $round!(4);
        $round!(5);
        $round!(6);
        $round!(7);
        $round!(8);
        $round!(9);
        if <$word as Word>::ROUNDS == 12 {
            $round!(0);
            $round!(1);
        }
    };
}
use all_rounds;

#[cfg(test)]
mod tests {
    use super::{ZERO_BLOCK, next_block};
    use bulla_simd::scalar::{U32x1, U64x1};
    use core::mem::MaybeUninit;
    use core::ptr;

    /// A pointer to no memory, as slices without bytes have.
    const NOWHERE: *const u8 = ptr::dangling();

    #[test]
    fn the_block_of_an_empty_input_is_a_constant() {
        let mut padded = MaybeUninit::uninit();
        // SAFETY: no byte has to be readable.
        let blocks = unsafe {
            [next_block::<U64x1>(NOWHERE, 0, &mut padded), next_block::<U32x1>(NOWHERE, 0, &mut padded)]
        };
        assert_eq!(blocks, [ZERO_BLOCK.0.as_ptr(); 2]);
        assert_eq!(ZERO_BLOCK.0, [0; 128]);
    }
}
