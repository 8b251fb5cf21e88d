//! What BLAKE2b and BLAKE2s differ in.

use crate::kernel::{Functions, Kernel};
use arrayvec::ArrayString;
use core::{fmt, ops::BitXor};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for super::Blake2b {}
    impl Sealed for super::Blake2s {}
}
use sealed::Sealed;

/// A word of the state: `u64` for BLAKE2b, `u32` for BLAKE2s.
pub trait Word: Sealed + Copy + Eq + Default + fmt::Debug + BitXor<Output = Self> + 'static {
    /// Bytes in a word.
    const BYTES: usize = size_of::<Self>();
    /// Bytes in a block: what one compression takes.
    const BLOCK: usize = 16 * Self::BYTES;
    /// How many rounds a compression has (RFC 7693, section 2.1).
    const ROUNDS: usize;
    /// Initialisation vector (RFC 7693, section 2.6).
    const IV: [Self; 8];
    /// All bits set: a finalisation flag.
    const ONES: Self;

    /// The word of these little-endian bytes.
    ///
    /// # Panics
    ///
    /// When there are not as many as a word has.
    fn from_le_slice(bytes: &[u8]) -> Self;
    /// Writes the word, little-endian.
    ///
    /// # Panics
    ///
    /// When there is not as much room as a word needs.
    fn write_le(self, out: &mut [u8]);
    /// The low two words of `count`.
    fn split(count: u128) -> [Self; 2];
    /// The word of this small number.
    fn small(number: usize) -> Self;
    /// `counter`, low word first, and `bytes` more.
    fn advance(counter: [Self; 2], bytes: usize) -> [Self; 2];
    /// The first half of the parameter block (RFC 7693, section 2.5, and the BLAKE2 paper, section 2.8): lengths of digest and key, fanout
    /// and depth as one number, then length of leaves, node offset, node depth and inner length.
    fn head(fixed: u32, leaf_length: u32, node_offset: u64, node_depth: u8, inner_length: u8) -> [Self; 4];
    /// How many blocks can be added to the low word of `counter` before it wraps.
    fn blocks_to_carry(counter: [Self; 2]) -> usize;
}

macro_rules! word {
    ($word:ty, $rounds:literal, $iv:expr, |$fixed:ident, $leaf:ident, $offset:ident, $tree:ident| $head:expr) => {
        impl Word for $word {
            const ROUNDS: usize = $rounds;
            const IV: [Self; 8] = $iv;
            const ONES: Self = <$word>::MAX;

            #[inline(always)]
            fn from_le_slice(bytes: &[u8]) -> Self {
                <$word>::from_le_bytes(bytes.try_into().expect("as many bytes as a word has"))
            }

            #[inline(always)]
            fn write_le(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn split(count: u128) -> [Self; 2] {
                [count as $word, (count >> <$word>::BITS) as $word]
            }

            #[inline(always)]
            fn small(number: usize) -> Self {
                number as $word
            }

            #[inline(always)]
            fn advance([low, high]: [Self; 2], bytes: usize) -> [Self; 2] {
                let (low, carry) = low.overflowing_add(bytes as $word);
                [low, high.wrapping_add(<$word>::from(carry))]
            }

            #[inline(always)]
            fn head($fixed: u32, $leaf: u32, $offset: u64, node_depth: u8, inner_length: u8) -> [Self; 4] {
                let $tree = u16::from_le_bytes([node_depth, inner_length]);
                $head
            }

            #[inline(always)]
            fn blocks_to_carry([low, _]: [Self; 2]) -> usize {
                usize::try_from((<$word>::MAX - low) / Self::BLOCK as $word).unwrap_or(usize::MAX)
            }
        }
    };
}

word!(
    u64,
    12,
    [
        0x6A09_E667_F3BC_C908,
        0xBB67_AE85_84CA_A73B,
        0x3C6E_F372_FE94_F82B,
        0xA54F_F53A_5F1D_36F1,
        0x510E_527F_ADE6_82D1,
        0x9B05_688C_2B3E_6C1F,
        0x1F83_D9AB_FB41_BD6B,
        0x5BE0_CD19_137E_2179,
    ],
    |fixed, leaf, offset, tree| [u64::from(leaf) << 32 | u64::from(fixed), offset, u64::from(tree), 0]
);
word!(
    u32,
    10,
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19],
    // The node offset has 48 bits here.
    |fixed, leaf, offset, tree| [fixed, leaf, offset as u32, u32::from(tree) << 16 | (offset >> 32) as u32]
);

/// The most leaves of either parallel mode.
pub(crate) const MAX_LEAVES: usize = 8;

/// One of the two hash functions. All types of this crate are generic over it; [`blake2b`](mod@crate::blake2b) and
/// [`blake2s`](mod@crate::blake2s) name them for each.
pub trait Variant: Sealed + Copy + fmt::Debug + 'static {
    /// A word of the state.
    type Word: Word;
    /// What [`State::count`](crate::State::count) returns: two words.
    type Count: Copy + fmt::Debug;
    /// A digest of full length, and a key of full length.
    type Digest: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// A block.
    type Block: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// A salt, and a personalization.
    type Salt: Copy + AsRef<[u8]> + AsMut<[u8]> + fmt::Debug;
    /// A digest in hexadecimal digits.
    type Hex: Default + fmt::Write;

    /// Leaves of the parallel mode: of BLAKE2bp or BLAKE2sp.
    const LEAVES: usize;
    /// Bytes that the node offset has among the parameters: those that [`Word::head`] takes.
    const NODE_OFFSET_BYTES: usize;
    /// The state before any input, with the default parameters. A constant, since a state that is put together just before its use makes wide
    /// loads wait for narrow stores.
    #[doc(hidden)]
    const PLAIN: [Self::Word; 8];
    /// The same of the nodes of the parallel mode: the leaves, and the root. BLAKE2bp has no more than four leaves.
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
                // Two levels, inner digests of full length, and the place of the node: see `Word::head`.
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
