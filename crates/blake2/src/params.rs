//! Parameters of a hash.

use crate::hash::Hash;
use crate::job::{Finalization, StridedInput};
use crate::kernel::{self, Functions, Kernel};
use crate::variant::Variant;
use crate::word::Word;
use core::fmt;

/// Parameters of a hash: a builder (RFC 7693, section 2.5, and the BLAKE2 paper, section 2.8).
///
/// Each method with a length or a slice panics if it is too long. Everything except the key,
/// `last_node` and the kernel is part of the parameter block, so other parameters give another
/// digest.
///
/// ```
/// use bulla_blake2::blake2b::Params;
///
/// let mut params = Params::new();
/// params.hash_length(32).key(b"a secret");
/// let all_at_once = params.hash(b"input");
/// let in_pieces = params.to_state().update(b"in").update(b"put").finalize();
/// assert_eq!(all_at_once, in_pieces);
/// ```
///
/// ```
/// use bulla_blake2::blake2b::Params;
///
/// // The leaves of a tree with two levels, and its root.
/// let mut params = Params::new();
/// params.fanout(2).max_depth(2).max_leaf_length(4096).inner_hash_length(64);
/// params.salt(b"a salt").personal(b"example");
/// let first = params.node_offset(0).hash(b"the first half");
/// let second = params.node_offset(1).last_node(true).hash(b"the second half");
/// let mut root = params.node_offset(0).node_depth(1).to_state();
/// root.update(first.as_bytes()).update(second.as_bytes());
/// println!("{}", root.finalize().to_hex());
/// ```
#[derive(Clone)]
pub struct Params<V: Variant> {
    /// The state before any input: the initialization vector and the parameter block.
    pub(crate) words: [V::Word; 8],
    pub(crate) hash_length: u8,
    pub(crate) key_length: u8,
    pub(crate) key_block: V::Block,
    salt: V::Salt,
    personal: V::Salt,
    fanout: u8,
    max_depth: u8,
    max_leaf_length: u32,
    node_offset: u64,
    node_depth: u8,
    inner_hash_length: u8,
    pub(crate) last_node: LastNode,
    pub(crate) kernel: Kernel,
}

/// Whether a node is the last of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastNode {
    Yes,
    No,
}

impl LastNode {
    pub(crate) fn new(is_last: bool) -> Self {
        if is_last { Self::Yes } else { Self::No }
    }

    /// The mark for the end of its input.
    #[inline(always)]
    pub(crate) fn end(self) -> Finalization {
        match self {
            Self::Yes => Finalization::LastNode,
            Self::No => Finalization::LastBlock,
        }
    }
}

impl<V: Variant> Params<V> {
    /// The defaults: a digest of full length, no key, no tree.
    #[inline]
    pub fn new() -> Self {
        Self {
            words: V::PLAIN,
            hash_length: size_of::<V::Digest>() as u8,
            key_length: 0,
            key_block: V::NO_BLOCK,
            salt: V::NO_SALT,
            personal: V::NO_SALT,
            fanout: 1,
            max_depth: 1,
            max_leaf_length: 0,
            node_offset: 0,
            node_depth: 0,
            inner_hash_length: 0,
            last_node: LastNode::No,
            kernel: kernel::active(),
        }
    }

    /// The parameters of the first leaf of a tree.
    pub(crate) fn of_tree(fanout: u8, max_depth: u8, inner_hash_length: u8) -> Self {
        let mut params = Self { fanout, max_depth, inner_hash_length, ..Self::new() };
        params.update_words();
        params
    }

    /// Recomputes the state after a change to the parameter block.
    fn update_words(&mut self) -> &mut Self {
        let fixed = u32::from_le_bytes([self.hash_length, self.key_length, self.fanout, self.max_depth]);
        let (leaf, inner) = (self.max_leaf_length, self.inner_hash_length);
        let head = V::Word::head(fixed, leaf, self.node_offset, self.node_depth, inner);
        let word = |bytes: &V::Salt, i: usize| {
            V::Word::from_le_slice(&bytes.as_ref()[i * V::Word::BYTES..][..V::Word::BYTES])
        };
        let iv = V::Word::IV;
        self.words = [
            iv[0] ^ head[0],
            iv[1] ^ head[1],
            iv[2] ^ head[2],
            iv[3] ^ head[3],
            iv[4] ^ word(&self.salt, 0),
            iv[5] ^ word(&self.salt, 1),
            iv[6] ^ word(&self.personal, 0),
            iv[7] ^ word(&self.personal, 1),
        ];
        self
    }

    /// The state of another node of the same tree. These must be the parameters of the first leaf.
    pub(crate) fn node(&self, offset: u64, depth: u8) -> [V::Word; 8] {
        debug_assert!((self.node_offset, self.node_depth) == (0, 0), "the first leaf");
        let mut words = self.words;
        for (word, place) in words.iter_mut().zip(V::Word::head(0, 0, offset, depth, 0)) {
            *word = *word ^ place;
        }
        words
    }

    #[inline(always)]
    pub(crate) fn functions(&self) -> &'static Functions<V::Word> {
        V::functions(self.kernel)
    }

    /// The state after the key block, and how many bytes it has. `last` is the mark of the key
    /// block if no input follows.
    pub(crate) fn keyed_words(&self, last: Finalization) -> ([V::Word; 8], usize) {
        let mut words = self.words;
        if self.key_length == 0 {
            return (words, 0);
        }
        let block = self.key_block.as_ref();
        let input = StridedInput { from: block.as_ptr(), len: block.len(), stride: block.len() };
        // SAFETY: the functions are those of a kernel that this machine supports, and the block is
        // readable.
        unsafe { (self.functions().compress)(&mut words, input, V::Word::split(0), last) };
        (words, block.len())
    }

    /// The digest of `input`.
    #[inline]
    pub fn hash(&self, input: &[u8]) -> Hash<V> {
        let last = self.last_node.end();
        if self.key_length > 0 && input.is_empty() {
            return Hash::new(&self.keyed_words(last).0, self.hash_length);
        }
        let (mut words, count) = self.keyed_words(Finalization::None);
        compress(self.functions(), &mut words, input, count as u128, last);
        Hash::new(&words, self.hash_length)
    }

    /// The length of the digest in bytes: from 1 to `OUTBYTES`, which is the default.
    ///
    /// # Panics
    ///
    /// If the length is outside these limits.
    #[inline]
    pub fn hash_length(&mut self, length: usize) -> &mut Self {
        let most = size_of::<V::Digest>();
        assert!((1..=most).contains(&length), "bad hash length: {length} is not from 1 to {most}");
        self.hash_length = length as u8;
        self.update_words()
    }

    /// A secret key, which makes the hash a MAC. An empty key is no key.
    ///
    /// # Panics
    ///
    /// If it is longer than `KEYBYTES`.
    #[inline]
    pub fn key(&mut self, key: &[u8]) -> &mut Self {
        let most = size_of::<V::Digest>();
        assert!(key.len() <= most, "bad key length: {} is more than {most}", key.len());
        self.key_length = key.len() as u8;
        self.key_block = V::NO_BLOCK;
        self.key_block.as_mut()[..key.len()].copy_from_slice(key);
        self.update_words()
    }

    /// The length of a key, at most that of a digest. The key block itself is not given here, but
    /// as input.
    #[cfg(feature = "digest")]
    pub(crate) fn key_length(&mut self, length: usize) -> &mut Self {
        let most = size_of::<V::Digest>();
        assert!(length <= most, "bad key length: {length} is more than {most}");
        self.key_length = length as u8;
        self.update_words()
    }

    /// A salt, padded with zeros.
    ///
    /// # Panics
    ///
    /// If it is longer than `SALTBYTES`.
    #[inline]
    pub fn salt(&mut self, salt: &[u8]) -> &mut Self {
        self.salt = padded::<V>(salt, "salt");
        self.update_words()
    }

    /// A personalization, which names the purpose of the hash; padded with zeros.
    ///
    /// # Panics
    ///
    /// If it is longer than `PERSONALBYTES`.
    #[inline]
    pub fn personal(&mut self, personalization: &[u8]) -> &mut Self {
        self.personal = padded::<V>(personalization, "personalization");
        self.update_words()
    }

    /// The number of children of a node: 0 means no limit, 1 (the default) means no tree.
    #[inline]
    pub fn fanout(&mut self, fanout: u8) -> &mut Self {
        self.fanout = fanout;
        self.update_words()
    }

    /// The number of levels of the tree: 255 means no limit, 1 (the default) means no tree, 0 is
    /// for BLAKE2X.
    #[inline]
    pub fn max_depth(&mut self, depth: u8) -> &mut Self {
        self.max_depth = depth;
        self.update_words()
    }

    /// The number of bytes of a leaf: 0 (the default) means no limit, or no tree.
    #[inline]
    pub fn max_leaf_length(&mut self, length: u32) -> &mut Self {
        self.max_leaf_length = length;
        self.update_words()
    }

    /// The position of the node in its level. The first has 0, the default.
    ///
    /// # Panics
    ///
    /// With BLAKE2s, which has 48 bits for it, if it is 2^48 or more.
    #[inline]
    pub fn node_offset(&mut self, offset: u64) -> &mut Self {
        let bits = 8 * V::NODE_OFFSET_BYTES as u32;
        assert!(
            offset.checked_shr(bits).unwrap_or(0) == 0,
            "bad node offset: {offset} has more than {bits} bits"
        );
        self.node_offset = offset;
        self.update_words()
    }

    /// The level of the node: 0, the default, is the level of the leaves.
    #[inline]
    pub fn node_depth(&mut self, depth: u8) -> &mut Self {
        self.node_depth = depth;
        self.update_words()
    }

    /// The length of the digests of inner nodes in bytes: from 0 (the default, for no tree) to
    /// `OUTBYTES`.
    ///
    /// # Panics
    /// If the length is larger.
    #[inline]
    pub fn inner_hash_length(&mut self, length: usize) -> &mut Self {
        let most = size_of::<V::Digest>();
        assert!(length <= most, "bad inner hash length: {length} is more than {most}");
        self.inner_hash_length = length as u8;
        self.update_words()
    }

    /// Whether the node is the last of its level.
    /// [`State::set_last_node`](crate::State::set_last_node) can set it later.
    #[inline]
    pub fn last_node(&mut self, last_node: bool) -> &mut Self {
        self.last_node = LastNode::new(last_node);
        self
    }

    /// Hashes by this kernel instead of the process's kernel.
    ///
    /// ```
    /// use bulla_blake2::blake2b::{Params, blake2b};
    /// use bulla_blake2::kernel::Kernel;
    ///
    /// let portable = Kernel::by_name("portable").unwrap();
    /// assert_eq!(Params::new().kernel(portable).hash(b"input"), blake2b(b"input"));
    /// ```
    #[inline]
    pub fn kernel(&mut self, kernel: Kernel) -> &mut Self {
        self.kernel = kernel;
        self
    }
}

fn padded<V: Variant>(bytes: &[u8], what: &str) -> V::Salt {
    let mut padded = V::NO_SALT;
    let most = padded.as_ref().len();
    assert!(bytes.len() <= most, "bad {what} length: {} is more than {most}", bytes.len());
    padded.as_mut()[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Compresses `input`. `count` bytes come before it. It has whole blocks, and at least one, unless
/// it is the last.
#[inline(always)]
pub(crate) fn compress<W: Word>(
    functions: &'static Functions<W>,
    words: &mut [W; 8],
    input: &[u8],
    count: u128,
    last: Finalization,
) {
    debug_assert!(last != Finalization::None || (input.len().is_multiple_of(W::BLOCK) && !input.is_empty()));
    let input = StridedInput { from: input.as_ptr(), len: input.len(), stride: W::BLOCK };
    // SAFETY: the functions are those of a kernel that this machine supports, and the input is a
    // slice.
    unsafe { (functions.compress)(words, input, W::split(count), last) }
}

impl<V: Variant> Default for Params<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the key.
impl<V: Variant> fmt::Debug for Params<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Params")
            .field("hash_length", &self.hash_length)
            .field("key_length", &self.key_length)
            .field("salt", &self.salt)
            .field("personal", &self.personal)
            .field("fanout", &self.fanout)
            .field("max_depth", &self.max_depth)
            .field("max_leaf_length", &self.max_leaf_length)
            .field("node_offset", &self.node_offset)
            .field("node_depth", &self.node_depth)
            .field("inner_hash_length", &self.inner_hash_length)
            .field("last_node", &(self.last_node == LastNode::Yes))
            .finish()
    }
}

/// Clears the key, and all other parameters: afterwards they are the defaults.
#[cfg(feature = "zeroize")]
impl<V: Variant> zeroize::Zeroize for Params<V> {
    fn zeroize(&mut self) {
        self.key_block.as_mut().zeroize();
        *self = Self::new();
    }
}
