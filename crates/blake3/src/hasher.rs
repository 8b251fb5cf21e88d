//! Hashing of input in pieces.

use crate::buffer::Buffer;
use crate::derive_key::context_key;
use crate::hash::Hash;
use crate::kernel::{Functions, Kernel, functions};
use crate::keyed_kernel::KeyedKernel;
use crate::output::{Output, OutputReader};
use crate::plan::Prefetch;
use crate::spec::{
    CHUNK_END, CHUNK_LEN, DERIVE_KEY_MATERIAL, IV, KEY_LEN, KEYED_HASH, Mode, OUT_LEN, ROOT, Words,
    check_subtree_len, key_words,
};
use crate::tree::{Stack, Tree, root_block};
use core::fmt;

/// Hashes input that comes in pieces, in any of the three modes.
///
/// The hasher collects small updates, so that they reach the widest kernel. With the standard
/// library, the value itself takes about 3 KiB and is cheap to make and to move. After more than
/// 1024 bytes of input, the hasher allocates a buffer of 16 KiB and 3 KiB for the tree. Each thread
/// keeps one of these for its next hasher, cleared if a mode with a key used it. Without the
/// standard library, the buffer is 4 KiB and part of the value, which takes about 9 KiB.
///
/// ```
/// let mut hasher = bulla_blake3::Hasher::new();
/// hasher.update(b"foo").update(b"bar");
/// assert_eq!(hasher.finalize(), bulla_blake3::hash(b"foobar"));
/// ```
///
/// ```
/// use bulla_blake3::Hasher;
///
/// let mut mac = Hasher::new_keyed(&[7; 32]);
/// assert_eq!(mac.update(b"one").count(), 3);
/// assert_eq!(mac.reset().update(b"two").finalize(), bulla_blake3::keyed_hash(&[7; 32], b"two"));
///
/// let mut key = [0; 64];
/// let mut hasher = Hasher::new_derive_key("example.com 2026-11-28 sessions");
/// hasher.update(b"secret").finalize_xof().fill(&mut key);
/// ```
#[derive(Clone)]
pub struct Hasher {
    pub(crate) kernel: KeyedKernel,
    /// The counter of the first chunk: 0, except for a subtree.
    pub(crate) offset: u64,
    pub(crate) stack: Stack,
    pub(crate) buffer: Buffer,
}

impl Hasher {
    /// A hasher for plain hashing, like [`hash`](crate::hash).
    #[inline(always)]
    pub fn new() -> Self {
        Hasher::with(functions(), &IV, 0)
    }

    /// A hasher for keyed hashing, like [`keyed_hash`](crate::keyed_hash).
    #[inline(always)]
    pub fn new_keyed(key: &[u8; KEY_LEN]) -> Self {
        Hasher::with(functions(), &key_words(key), KEYED_HASH)
    }

    /// A hasher for key derivation, like [`derive_key`](crate::derive_key): the input is the key
    /// material.
    #[inline]
    pub fn new_derive_key(context: &str) -> Self {
        let key = context_key(context);
        Hasher::with(functions(), &key, DERIVE_KEY_MATERIAL)
    }

    #[inline(always)]
    pub(crate) fn with(functions: &'static Functions, key: &Words, flags: u32) -> Self {
        let kernel = KeyedKernel::new(functions, key, flags);
        Hasher { kernel, offset: 0, stack: Stack::new(), buffer: Buffer::new() }
    }

    /// Resets the hasher to its initial state: same mode, same key, no input.
    pub fn reset(&mut self) -> &mut Self {
        self.offset = 0;
        self.stack.clear();
        self.buffer.clear();
        self
    }

    /// Hashes more input, on this thread.
    ///
    /// # Panics
    ///
    /// Only after [`HasherExt::set_input_offset`](crate::hazmat::HasherExt::set_input_offset), when
    /// the input is longer than the subtree may be.
    #[inline]
    pub fn update(&mut self, input: &[u8]) -> &mut Self {
        self.check_length(input.len());
        if !self.buffer.try_extend(input) {
            self.update_tree(input);
        }
        self
    }

    #[inline(always)]
    pub(crate) fn check_length(&self, more: usize) {
        if self.offset != 0 {
            check_subtree_len(self.offset, self.count(), more as u64);
        }
    }

    /// Takes input that does not fit into the buffer.
    #[inline(never)]
    fn update_tree(&mut self, mut input: &[u8]) {
        let Hasher { kernel, offset, stack, buffer } = self;
        let (kernel, offset) = (&*kernel, *offset);
        let wide = buffer.widen();
        let prefetch = Prefetch::for_input(input);
        wide.update_limit(kernel, stack);
        loop {
            let (held, groups) = wide.parts();
            let mut tree = Tree { kernel, offset, stack, groups };
            if held.is_empty() {
                // Hash directly from the caller's slice.
                let whole = tree.absorbable_len(input);
                tree.absorb(&input[..whole], prefetch);
                input = &input[whole..];
                wide.update_limit(kernel, stack);
            }
            input = wide.fill(input);
            if input.is_empty() {
                return;
            }
            // The buffer is full, and more comes.
            let (held, groups) = wide.parts();
            Tree { kernel, offset, stack, groups }.absorb(held, Prefetch::Off);
            wide.drain();
            wide.update_limit(kernel, stack);
        }
    }

    /// Takes input until nothing is held and everything is on the stack. Returns the rest of the
    /// input.
    #[cfg(feature = "rayon")]
    pub(crate) fn flush_to_stack<'i>(&mut self, mut input: &'i [u8]) -> &'i [u8] {
        let Hasher { kernel, offset, stack, buffer } = self;
        let (kernel, offset) = (&*kernel, *offset);
        let wide = buffer.widen();
        wide.update_limit(kernel, stack);
        if !wide.parts().0.is_empty() {
            input = wide.fill(input);
            let (held, groups) = wide.parts();
            Tree { kernel, offset, stack, groups }.absorb(held, Prefetch::Off);
            wide.drain();
        }
        wide.groups.spill(kernel, stack);
        self.update_buffer_limit();
        input
    }

    /// Tells the buffer the tree's position.
    pub(crate) fn update_buffer_limit(&mut self) {
        self.buffer.widen().update_limit(&self.kernel, &self.stack);
    }

    /// The digest of the input so far. The hasher does not change, and can take more input.
    ///
    /// # Panics
    ///
    /// Only after [`HasherExt::set_input_offset`](crate::hazmat::HasherExt::set_input_offset): a
    /// subtree that does not begin at 0 has a chaining value, but no digest.
    pub fn finalize(&self) -> Hash {
        self.check_root();
        Hash::from_bytes(match self.only_chunk() {
            Some(chunk) => self.chunk_value(chunk, CHUNK_END | ROOT),
            None => self.kernel.parent(&self.root_block(), ROOT),
        })
    }

    /// Output of any length.
    ///
    /// # Panics
    ///
    /// If [`finalize`](Hasher::finalize) panics.
    #[inline]
    pub fn finalize_xof(&self) -> OutputReader {
        self.check_root();
        OutputReader::new(self.root())
    }

    #[inline(always)]
    fn check_root(&self) {
        assert!(self.offset == 0, "a hasher with an input offset has no digest: use finalize_non_root");
    }

    /// The chaining value, as a subtree that is not the root.
    pub(crate) fn finalize_non_root(&self) -> [u8; OUT_LEN] {
        match self.only_chunk() {
            Some(chunk) => self.chunk_value(chunk, CHUNK_END),
            None => self.kernel.parent(&self.root_block(), 0),
        }
    }

    /// The chaining value of a chunk of at most 1024 bytes at this hasher's offset.
    pub(crate) fn chunk_value(&self, chunk: &[u8], last_flags: u32) -> [u8; OUT_LEN] {
        assert!(chunk.len() <= CHUNK_LEN);
        let KeyedKernel { functions, key, flags } = &self.kernel;
        let mut out = [0; OUT_LEN];
        // SAFETY: the chunk is readable and not longer than one may be, 32 bytes are written.
        unsafe {
            (functions.chunk)(
                chunk.as_ptr(),
                chunk.len(),
                key,
                self.offset,
                *flags,
                last_flags,
                out.as_mut_ptr(),
            );
        }
        out
    }

    fn root_block(&self) -> [u8; 64] {
        let groups = self.buffer.wide().map(|wide| &wide.groups);
        root_block(&self.kernel, self.offset, &self.stack, groups, self.buffer.held())
    }

    /// The last compression of the tree, not yet done.
    #[inline]
    pub(crate) fn root(&self) -> Output {
        match self.only_chunk() {
            Some(chunk) => Output::of_chunk(&self.kernel, chunk, self.offset),
            None => Output::of_parent(&self.kernel, &self.root_block()),
        }
    }

    /// The number of bytes hashed so far.
    pub fn count(&self) -> u64 {
        let groups = self.buffer.wide().map_or(0, |wide| wide.groups.chunks(&self.kernel));
        (self.stack.chunks + groups) * CHUNK_LEN as u64 + self.buffer.held().len() as u64
    }

    /// The input, if it is at most one chunk.
    #[inline]
    fn only_chunk(&self) -> Option<&[u8]> {
        let held = self.buffer.held();
        (self.count() == held.len() as u64 && held.len() <= CHUNK_LEN).then_some(held)
    }
}

impl Kernel {
    /// A [`Hasher`] that uses this kernel instead of the process's kernel.
    ///
    /// ```
    /// use bulla_blake3::{hazmat::Mode, kernel};
    ///
    /// // Every kernel of this machine computes the same.
    /// for kernel in kernel::available() {
    ///     let mut hasher = kernel.hasher(Mode::KeyedHash(&[7; 32]));
    ///     hasher.update(b"foo").update(b"bar");
    ///     assert_eq!(hasher.finalize(), bulla_blake3::keyed_hash(&[7; 32], b"foobar"));
    /// }
    /// ```
    pub fn hasher(self, mode: Mode<'_>) -> Hasher {
        Hasher::with(self.0, &mode.key_words(), mode.flags())
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Hasher::new()
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").field("kernel", &self.kernel.functions.isa.name()).finish_non_exhaustive()
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for Hasher {
    /// Clears the key, the held input and all chaining values. The hasher must not be used
    /// afterwards.
    fn zeroize(&mut self) {
        self.kernel.key.zeroize();
        self.stack.zeroize();
        self.buffer.zeroize();
        self.offset = 0;
    }
}
