//! Words of the state, and the constants of BLAKE2b and BLAKE2s for them.

use core::{fmt, ops::BitXor};

/// Prevents other crates from implementing this crate's traits.
pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}
use sealed::Sealed;

/// A word of the state: `u64` for BLAKE2b, `u32` for BLAKE2s.
pub trait Word: Sealed + Copy + Eq + Default + fmt::Debug + BitXor<Output = Self> + 'static {
    /// The length of a word in bytes.
    const BYTES: usize = size_of::<Self>();
    /// The length of a block, the input of one compression, in bytes.
    const BLOCK: usize = 16 * Self::BYTES;
    /// The number of rounds of a compression (RFC 7693, section 2.1).
    const ROUNDS: usize;
    /// Initialization vector (RFC 7693, section 2.6).
    const IV: [Self; 8];
    /// All bits set: a finalization flag.
    const ONES: Self;

    /// The word of these little-endian bytes.
    ///
    /// # Panics
    ///
    /// If `bytes` is not as long as a word.
    fn from_le_slice(bytes: &[u8]) -> Self;
    /// Writes the word, little-endian.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as a word.
    fn write_le(self, out: &mut [u8]);
    /// The low two words of `count`.
    fn split(count: u128) -> [Self; 2];
    /// The word of this small number.
    fn small(number: usize) -> Self;
    /// `counter`, low word first, plus `bytes`.
    fn advance(counter: [Self; 2], bytes: usize) -> [Self; 2];
    /// The first half of the parameter block (RFC 7693, section 2.5, and the BLAKE2 paper, section
    /// 2.8): lengths of digest and key, fanout and depth as one number, then length of leaves, node
    /// offset, node depth and inner length.
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
