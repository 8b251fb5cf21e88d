//! Hashing of input in pieces.

use crate::hash::Hash;
use crate::job::Finalization;
use crate::kernel::{self, Kernel};
use crate::params::{LastNode, Params, compress};
use crate::variant::Variant;
use crate::word::Word;
use core::fmt;

/// A hasher that takes its input in pieces. [`Params::to_state`] makes one with parameters.
///
/// ```
/// use bulla_blake2::blake2b::{State, blake2b};
///
/// let mut state = State::new();
/// state.update(b"foo");
/// assert_eq!(state.finalize(), blake2b(b"foo"));
/// state.update(b"bar");
/// assert_eq!(state.finalize(), blake2b(b"foobar"));
/// ```
///
/// ```
/// use bulla_blake2::blake2b::{Params, State};
///
/// // The last leaf of a tree.
/// let mut params = Params::new();
/// params.fanout(2).max_depth(2).node_offset(1).inner_hash_length(64);
/// let mut leaf = params.to_state();
/// leaf.set_last_node(true);
/// assert_ne!(leaf.finalize(), State::new().finalize());
/// assert_eq!(leaf.count(), 0);
/// ```
#[derive(Clone)]
pub struct State<V: Variant> {
    pub(crate) words: [V::Word; 8],
    /// The number of bytes that were compressed, including the key block.
    pub(crate) count: u128,
    /// The waiting input. A block is compressed only when it is known not to be the last one.
    pub(crate) block: V::Block,
    pub(crate) block_len: u8,
    pub(crate) last_node: LastNode,
    hash_length: u8,
    is_keyed: bool,
    pub(crate) kernel: Kernel,
}

impl<V: Variant> State<V> {
    /// A state with the default parameters.
    pub fn new() -> Self {
        Self {
            words: V::PLAIN,
            count: 0,
            block: V::NO_BLOCK,
            block_len: 0,
            last_node: LastNode::No,
            hash_length: size_of::<V::Digest>() as u8,
            is_keyed: false,
            kernel: kernel::active(),
        }
    }

    pub(crate) fn with_params(params: &Params<V>) -> Self {
        let is_keyed = params.key_length > 0;
        Self {
            words: params.words,
            block: params.key_block,
            block_len: if is_keyed { V::Word::BLOCK as u8 } else { 0 },
            last_node: params.last_node,
            hash_length: params.hash_length,
            is_keyed,
            kernel: params.kernel,
            ..Self::new()
        }
    }

    /// Takes as much as fits into the block, and returns the rest.
    #[inline(always)]
    fn fill<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let len = usize::from(self.block_len);
        let (taken, rest) = input.split_at(input.len().min(V::Word::BLOCK - len));
        self.block.as_mut()[len..len + taken.len()].copy_from_slice(taken);
        self.block_len += taken.len() as u8;
        rest
    }

    /// Completes the waiting block and compresses it, if the input is longer than that. Returns the
    /// rest.
    #[inline(always)]
    pub(crate) fn finish_block<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        if self.block_len == 0 {
            return input;
        }
        let rest = self.fill(input);
        if !rest.is_empty() {
            compress(
                V::functions(self.kernel),
                &mut self.words,
                self.block.as_ref(),
                self.count,
                Finalization::None,
            );
            self.count = self.count.wrapping_add(V::Word::BLOCK as u128);
            self.block_len = 0;
        }
        rest
    }

    /// The whole blocks at the front of `input`, except the last one if nothing follows it; and the
    /// rest.
    #[inline(always)]
    pub(crate) fn split_blocks(input: &[u8]) -> (&[u8], &[u8]) {
        let blocks = input.len().saturating_sub(1) / V::Word::BLOCK;
        input.split_at(blocks * V::Word::BLOCK)
    }

    /// Takes more input.
    pub fn update(&mut self, input: &[u8]) -> &mut Self {
        let input = self.finish_block(input);
        let (blocks, rest) = Self::split_blocks(input);
        if !blocks.is_empty() {
            compress(V::functions(self.kernel), &mut self.words, blocks, self.count, Finalization::None);
            self.count = self.count.wrapping_add(blocks.len() as u128);
        }
        self.fill(rest);
        self
    }

    /// The digest of the input so far. More input may follow.
    pub fn finalize(&self) -> Hash<V> {
        let mut words = self.words;
        let rest = &self.block.as_ref()[..usize::from(self.block_len)];
        compress(V::functions(self.kernel), &mut words, rest, self.count, self.last_node.end());
        Hash::new(&words, self.hash_length)
    }

    /// Says whether the node is the last of its level, as [`Params::last_node`] does, at any time
    /// before `finalize`.
    pub fn set_last_node(&mut self, last_node: bool) -> &mut Self {
        self.last_node = LastNode::new(last_node);
        self
    }

    /// The number of bytes of input so far, without the key.
    pub fn count(&self) -> V::Count {
        let key = if self.is_keyed { V::Word::BLOCK as u128 } else { 0 };
        V::count(self.count.wrapping_add(u128::from(self.block_len)).wrapping_sub(key))
    }
}

impl<V: Variant> Params<V> {
    /// A [`State`] that takes its input in pieces.
    pub fn to_state(&self) -> State<V> {
        State::with_params(self)
    }
}

impl<V: Variant> Default for State<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the state's words: with them, others could append to the input.
impl<V: Variant> fmt::Debug for State<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("count", &self.count())
            .field("hash_length", &self.hash_length)
            .field("last_node", &(self.last_node == LastNode::Yes))
            .finish()
    }
}

/// Writes cannot fail.
#[cfg(feature = "std")]
impl<V: Variant> std::io::Write for State<V> {
    fn write(&mut self, input: &[u8]) -> std::io::Result<usize> {
        self.update(input);
        Ok(input.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Clears the key and the input. Afterwards the state is a new one.
#[cfg(feature = "zeroize")]
impl<V: Variant<Word: zeroize::Zeroize>> zeroize::Zeroize for State<V> {
    fn zeroize(&mut self) {
        self.block.as_mut().zeroize();
        self.words.iter_mut().for_each(zeroize::Zeroize::zeroize);
        *self = Self::new();
    }
}
