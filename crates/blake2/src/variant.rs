//! The differences between BLAKE2b and BLAKE2s.

use crate::kernel::{Functions, Kernel};
use crate::word::{Word, sealed::Sealed};
use arrayvec::ArrayString;
use core::fmt;

/// The most leaves of either parallel mode.
pub(crate) const MAX_LEAVES: usize = 8;

/// One of the two hash functions. All types of this crate are generic over it;
/// [`blake2b`](mod@crate::blake2b) and [`blake2s`](mod@crate::blake2s) name them for each.
pub trait Variant: Sealed + Copy + fmt::Debug + 'static {
    /// A word of the state.
    type Word: Word;
    /// The result of [`State::count`](crate::State::count): two words.
    type Count: Copy + fmt::Debug;
    /// A digest of full length, and a key of full length.
    type Digest: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// A block.
    type Block: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// A salt, and a personalization.
    type Salt: Copy + AsRef<[u8]> + AsMut<[u8]> + fmt::Debug;
    /// A digest in hexadecimal digits.
    type Hex: Default + fmt::Write;

    /// The number of leaves of the parallel mode, BLAKE2bp or BLAKE2sp.
    const LEAVES: usize;
    /// The number of bytes of the node offset in the parameter block, as for [`Word::head`].
    const NODE_OFFSET_BYTES: usize;
    /// The state before any input, with the default parameters. It is a constant, because
    /// assembling a state right before its use makes wide loads wait for narrow stores.
    #[doc(hidden)]
    const PLAIN: [Self::Word; 8];
    /// The states before any input for the nodes of the parallel mode: the leaves, and the root.
    /// BLAKE2bp uses only four leaves.
    #[doc(hidden)]
    const PLAIN_TREE: ([[Self::Word; 8]; MAX_LEAVES], [Self::Word; 8]);
    /// Zeros.
    const NO_DIGEST: Self::Digest;
    /// Zeros.
    const NO_BLOCK: Self::Block;
    /// Zeros.
    const NO_SALT: Self::Salt;

    /// `count` as the public type.
    fn count(count: u128) -> Self::Count;
    #[doc(hidden)]
    fn functions(kernel: Kernel) -> &'static Functions<Self::Word>;
}

/// BLAKE2b: words of 64 bits, digests of up to 64 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Blake2b;

/// BLAKE2s: words of 32 bits, digests of up to 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Blake2s;

macro_rules! variant {
    (
        $type:ident, $word:ty, $count:ty, $bytes:literal, $leaves:literal, $offset:literal,
        node depth in word $tree:literal from bit $tree_shift:literal, $functions:ident
    ) => {
        impl Sealed for $type {}

        impl Variant for $type {
            type Word = $word;
            type Count = $count;
            type Digest = [u8; 8 * $bytes];
            type Block = [u8; 16 * $bytes];
            type Salt = [u8; 2 * $bytes];
            type Hex = ArrayString<{ 2 * 8 * $bytes }>;

            const LEAVES: usize = $leaves;
            const NODE_OFFSET_BYTES: usize = $offset;
            // A digest of full length, no key, one node in one level.
            const PLAIN: [$word; 8] = {
                let mut words = <$word as Word>::IV;
                words[0] ^= 8 * $bytes | 1 << 16 | 1 << 24;
                words
            };
            const PLAIN_TREE: ([[$word; 8]; MAX_LEAVES], [$word; 8]) = {
                // Two levels, inner digests of full length, and the place of the node: see
                // `Word::head`.
                let mut root = <$word as Word>::IV;
                root[0] ^= 8 * $bytes | $leaves << 16 | 2 << 24;
                root[$tree] ^= 8 * $bytes << ($tree_shift + 8);
                let mut leaves = [root; MAX_LEAVES];
                let mut i = 0;
                while i < $leaves {
                    leaves[i][$tree - 1] ^= i as $word;
                    i += 1;
                }
                root[$tree] ^= 1 << $tree_shift;
                (leaves, root)
            };
            const NO_DIGEST: Self::Digest = [0; 8 * $bytes];
            const NO_BLOCK: Self::Block = [0; 16 * $bytes];
            const NO_SALT: Self::Salt = [0; 2 * $bytes];

            #[inline(always)]
            fn count(count: u128) -> $count {
                count as $count
            }

            #[inline(always)]
            fn functions(kernel: Kernel) -> &'static Functions<$word> {
                kernel.0.$functions
            }
        }
    };
}

variant!(Blake2b, u64, u128, 8, 4, 8, node depth in word 2 from bit 0, blake2b);
variant!(Blake2s, u32, u64, 4, 8, 6, node depth in word 3 from bit 16, blake2s);
