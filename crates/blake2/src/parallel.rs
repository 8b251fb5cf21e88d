//! BLAKE2bp and BLAKE2sp: a tree of two levels. Its 4 or 8 leaves take the blocks of the input in
//! turn and are hashed at once (the BLAKE2 paper, section 2.10).
//! [`blake2bp`](crate::blake2b::blake2bp) and [`blake2sp`](crate::blake2s::blake2sp) name the types
//! for each.

use crate::hash::Hash;
use crate::job::{CompressJob, Finalization, StridedInput};
use crate::kernel::{self, Functions, Kernel};
use crate::many::compress_many;
use crate::params::{Params as NodeParams, compress};
use crate::variant::{MAX_LEAVES, Variant};
use crate::word::Word;
use core::fmt;

/// The number of bytes that may wait: two stripes. A stripe is one block of every leaf. It is the
/// same for both functions.
const BUFFER_LEN: usize = 1024;

/// The length of a stripe in bytes: one block for each leaf.
const fn stripe<V: Variant>() -> usize {
    V::LEAVES * V::Word::BLOCK
}

/// The states of the leaves; BLAKE2bp uses the first four.
type Leaves<V> = [[<V as Variant>::Word; 8]; MAX_LEAVES];

/// Parameters of BLAKE2bp or BLAKE2sp: a builder.
///
/// ```
/// use bulla_blake2::blake2b::blake2bp::Params;
/// use bulla_blake2::kernel;
///
/// let mut params = Params::new();
/// params.hash_length(32).key(b"a secret").kernel(kernel::active());
/// let all_at_once = params.hash(b"input");
/// let in_pieces = params.to_state().update(b"in").update(b"put").finalize();
/// assert_eq!(all_at_once, in_pieces);
/// ```
#[derive(Clone)]
pub struct Params<V: Variant> {
    /// The common parameters of all nodes.
    node: NodeParams<V>,
}

impl<V: Variant> Params<V> {
    /// The defaults: a digest of full length, no key.
    pub fn new() -> Self {
        // Inner digests have full length, whatever the root's length: as in the reference code and
        // the published vectors.
        let node = NodeParams::of_tree(V::LEAVES as u8, 2, size_of::<V::Digest>() as u8);
        Self { node }
    }

    /// The length of the digest in bytes: from 1 to `OUTBYTES`, which is the default.
    ///
    /// # Panics
    ///
    /// If the length is outside these limits.
    pub fn hash_length(&mut self, length: usize) -> &mut Self {
        self.node.hash_length(length);
        self
    }

    /// A secret key, which makes the hash a MAC. An empty key is no key.
    ///
    /// # Panics
    ///
    /// If it is longer than `KEYBYTES`.
    pub fn key(&mut self, key: &[u8]) -> &mut Self {
        self.node.key(key);
        self
    }

    /// Hashes by this kernel instead of the process's kernel.
    pub fn kernel(&mut self, kernel: Kernel) -> &mut Self {
        self.node.kernel(kernel);
        self
    }

    /// The digest of `input`.
    pub fn hash(&self, input: &[u8]) -> Hash<V> {
        if self.node.key_length > 0 {
            return self.to_state().update(input).finalize();
        }
        let mut leaves = self.leaves();
        compress_leaves::<V>(self.node.functions(), &mut leaves, input, 0, EndOfInput::Yes);
        root(self.node.functions(), self.root(), &leaves, self.node.hash_length)
    }

    /// A [`State`] that takes its input in pieces.
    pub fn to_state(&self) -> State<V> {
        State::with_params(self)
    }

    fn leaves(&self) -> Leaves<V> {
        let mut leaves = [self.node.words; MAX_LEAVES];
        for (i, words) in leaves[..V::LEAVES].iter_mut().enumerate() {
            *words = self.node.node(i as u64, 0);
        }
        leaves
    }

    /// The root's state. The root has no key block.
    fn root(&self) -> [V::Word; 8] {
        self.node.node(0, 1)
    }
}

/// The digest of `input` with the default parameters.
pub(crate) fn plain<V: Variant>(input: &[u8]) -> Hash<V> {
    let functions = V::functions(kernel::active());
    let (mut leaves, root_words) = V::PLAIN_TREE;
    compress_leaves::<V>(functions, &mut leaves, input, 0, EndOfInput::Yes);
    root(functions, root_words, &leaves, size_of::<V::Digest>() as u8)
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
            .field("hash_length", &self.node.hash_length)
            .field("key_length", &self.node.key_length)
            .finish()
    }
}

/// A hasher that takes its input in pieces.
///
/// ```
/// use bulla_blake2::blake2b::blake2bp::{State, blake2bp};
///
/// let mut state = State::new();
/// state.update(b"foo").update(b"bar");
/// assert_eq!(state.finalize(), blake2bp(b"foobar"));
/// assert_eq!(state.count(), 6);
/// ```
#[derive(Clone)]
pub struct State<V: Variant> {
    leaves: Leaves<V>,
    root: [V::Word; 8],
    /// The waiting input. A stripe is compressed only when each leaf is known to have more.
    buffer: [u8; BUFFER_LEN],
    buffered: u16,
    /// The number of bytes that were compressed, including the key blocks.
    count: u128,
    hash_length: u8,
    is_keyed: bool,
    kernel: Kernel,
}

impl<V: Variant> State<V> {
    /// A state with the default parameters.
    pub fn new() -> Self {
        Self::with_params(&Params::new())
    }

    fn with_params(params: &Params<V>) -> Self {
        let is_keyed = params.node.key_length > 0;
        let mut buffer = [0; BUFFER_LEN];
        if is_keyed {
            // Each leaf begins with the block of the key.
            for block in buffer[..stripe::<V>()].chunks_exact_mut(V::Word::BLOCK) {
                block.copy_from_slice(params.node.key_block.as_ref());
            }
        }
        Self {
            leaves: params.leaves(),
            root: params.root(),
            buffer,
            buffered: if is_keyed { stripe::<V>() as u16 } else { 0 },
            count: 0,
            hash_length: params.node.hash_length,
            is_keyed,
            kernel: params.node.kernel,
        }
    }

    /// Compresses whole stripes, which are not the end.
    fn compress_stripes(&mut self, stripes: &[u8]) {
        let functions = V::functions(self.kernel);
        compress_leaves::<V>(functions, &mut self.leaves, stripes, self.count, EndOfInput::No);
        self.count = self.count.wrapping_add(stripes.len() as u128);
    }

    /// Takes as much as fits into the buffer, and returns the rest.
    fn fill<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let len = usize::from(self.buffered);
        let (taken, rest) = input.split_at(input.len().min(BUFFER_LEN - len));
        self.buffer[len..len + taken.len()].copy_from_slice(taken);
        self.buffered += taken.len() as u16;
        rest
    }

    /// The number of bytes after a stripe that ensure that its last leaf has more.
    const MIN_FOLLOWING_LEN: usize = stripe::<V>() - V::Word::BLOCK + 1;

    /// Takes more input.
    pub fn update(&mut self, mut input: &[u8]) -> &mut Self {
        if self.buffered > 0 {
            input = self.fill(input);
            if usize::from(self.buffered) == BUFFER_LEN {
                self.compress_first_stripe();
            }
            if input.len() >= Self::MIN_FOLLOWING_LEN {
                // The remaining stripe.
                let buffer = self.buffer;
                self.compress_stripes(&buffer[..stripe::<V>()]);
                self.buffered = 0;
            }
        }
        if self.buffered == 0 {
            let stripes =
                (input.len() + stripe::<V>()).saturating_sub(Self::MIN_FOLLOWING_LEN) / stripe::<V>();
            let (whole, rest) = input.split_at(stripes.saturating_sub(1) * stripe::<V>());
            if !whole.is_empty() {
                self.compress_stripes(whole);
            }
            input = rest;
        }
        self.fill(input);
        self
    }

    /// Compresses the first of two waiting stripes.
    fn compress_first_stripe(&mut self) {
        let buffer = self.buffer;
        let (first, second) = buffer.split_at(stripe::<V>());
        self.compress_stripes(first);
        self.buffer[..second.len()].copy_from_slice(second);
        self.buffered = second.len() as u16;
    }

    /// The digest of the input so far. More input may follow.
    pub fn finalize(&self) -> Hash<V> {
        let functions = V::functions(self.kernel);
        let mut leaves = self.leaves;
        let rest = &self.buffer[..usize::from(self.buffered)];
        compress_leaves::<V>(functions, &mut leaves, rest, self.count, EndOfInput::Yes);
        root(functions, self.root, &leaves, self.hash_length)
    }

    /// The number of bytes of input so far, without the key.
    pub fn count(&self) -> V::Count {
        let keys = if self.is_keyed { stripe::<V>() as u128 } else { 0 };
        V::count(self.count.wrapping_add(u128::from(self.buffered)).wrapping_sub(keys))
    }
}

/// Whether an input is the end of all leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndOfInput {
    Yes,
    No,
}

/// Compresses each leaf's blocks of `input`. `count` bytes come before it, and it has whole stripes
/// unless it is the end.
fn compress_leaves<V: Variant>(
    functions: &'static Functions<V::Word>,
    leaves: &mut Leaves<V>,
    input: &[u8],
    count: u128,
    end: EndOfInput,
) {
    let (block, stripe) = (V::Word::BLOCK, stripe::<V>());
    let counter = V::Word::split(count / V::LEAVES as u128);
    let jobs = leaves[..V::LEAVES].iter_mut().enumerate().map(|(i, words)| {
        let in_last_stripe = (input.len() % stripe).saturating_sub(block * i).min(block);
        let len = input.len() / stripe * block + in_last_stripe;
        let last = match end {
            EndOfInput::No => Finalization::None,
            EndOfInput::Yes if i == V::LEAVES - 1 => Finalization::LastNode,
            EndOfInput::Yes => Finalization::LastBlock,
        };
        let from = input.as_ptr().wrapping_add(block * i);
        CompressJob { words, input: StridedInput { from, len, stride: stripe }, counter, last }
    });
    // SAFETY: the blocks of all leaves are within the input; a leaf without blocks reads nothing.
    unsafe { compress_many(functions, jobs) }
}

/// The root's digest of the leaves' digests.
fn root<V: Variant>(
    functions: &'static Functions<V::Word>,
    mut words: [V::Word; 8],
    leaves: &Leaves<V>,
    hash_length: u8,
) -> Hash<V> {
    let mut digests = [0; 256];
    for (word, out) in leaves.as_flattened().iter().zip(digests.chunks_exact_mut(V::Word::BYTES)) {
        word.write_le(out);
    }
    compress(functions, &mut words, &digests, 0, Finalization::LastNode);
    Hash::new(&words, hash_length)
}

impl<V: Variant> Default for State<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the states' words: with them, others could append to the input.
impl<V: Variant> fmt::Debug for State<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("count", &self.count()).field("hash_length", &self.hash_length).finish()
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
