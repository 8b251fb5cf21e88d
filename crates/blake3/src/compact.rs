//! A hasher in memory that its caller allocates, copies and forgets.

use crate::derive_key::hash_raw_context;
use crate::hash::Hash;
use crate::kernel::{Functions, Kernel, functions};
use crate::keyed_kernel::{KeyedKernel, Value};
use crate::output::{Output, OutputReader};
use crate::plan::Prefetch;
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, Mode, OUT_LEN, ROOT, Words, key_words};
use crate::tree::{Stack, fold_stack};
use core::fmt;
use core::mem::MaybeUninit;

/// A [`Hasher`](crate::Hasher) of 1912 bytes without an allocation, for memory that belongs to
/// others.
///
/// It has the size and the alignment of the C library's `blake3_hasher`. It has no destructor, and
/// a copy of its bytes is another hasher in the same state. It holds at most one block of input. So
/// `Hasher` is faster for input in pieces of less than about 16 KiB: it collects them for the
/// widest kernel.
///
/// ```
/// let mut hasher = bulla_blake3::CompactHasher::new(bulla_blake3::hazmat::Mode::Hash);
/// hasher.update(b"foo").update(b"bar");
/// assert_eq!(hasher.finalize(), bulla_blake3::hash(b"foobar"));
/// ```
///
/// In memory of the caller, and by a kernel that the caller chose once:
///
/// ```
/// use bulla_blake3::hazmat::Mode;
/// use bulla_blake3::{CompactHasher, OUT_LEN, kernel};
/// use std::mem::MaybeUninit;
///
/// let kernel = kernel::active();
/// let mut place = MaybeUninit::uninit();
/// let hasher = CompactHasher::init(&mut place, Mode::Hash);
/// hasher.update_by(kernel, b"foo").update_by(kernel, b"bar");
///
/// let mut digest = [0; OUT_LEN];
/// hasher.finalize_into(kernel, &mut digest);
/// assert_eq!(hasher.finalize_by(kernel), bulla_blake3::hash(b"foobar"));
/// assert_eq!(digest, *bulla_blake3::hash(b"foobar").as_bytes());
/// let mut longer = [0; 2 * OUT_LEN];
/// hasher.finalize_xof_by(kernel).fill(&mut longer);
/// assert_eq!(digest, longer[..OUT_LEN]);
///
/// // A context that comes from C need not be UTF-8.
/// let hasher = CompactHasher::init_derive_key_raw(&mut place, kernel, b"example.com 2026 keys");
/// let key = hasher.update(b"material").finalize();
/// assert_eq!(key, bulla_blake3::derive_key("example.com 2026 keys", b"material"));
/// ```
#[derive(Clone)]
#[repr(C)]
pub struct CompactHasher {
    key: Words,
    /// The finished chunks.
    stack: Stack,
    /// The chaining value of the unfinished chunk before its last block.
    value: Words,
    /// The last block of the unfinished chunk, padded with zeros. Without input, zeros.
    block: [u8; BLOCK_LEN],
    /// The number of bytes in the block: 0 only if the chunk is empty.
    len: u8,
    /// The number of compressed blocks of the unfinished chunk, at most 15.
    blocks: u8,
    /// Flags of the mode.
    flags: u8,
}

/// The unfinished chunk of a [`CompactHasher`].
pub(crate) struct UnfinishedChunk<'a> {
    /// The chaining value before the last block.
    pub(crate) value: Words,
    /// The number of blocks before that.
    pub(crate) blocks: u8,
    /// The last block: 1 to 64 bytes, or none of an empty chunk.
    pub(crate) block: &'a [u8],
}

// The C library's callers allocate this much.
const _: () = assert!(size_of::<CompactHasher>() <= 1912 && align_of::<CompactHasher>() <= 8);

impl CompactHasher {
    /// A hasher in this mode.
    pub fn new(mode: Mode<'_>) -> Self {
        let mut place = MaybeUninit::uninit();
        CompactHasher::init(&mut place, mode);
        // SAFETY: `init` has made a hasher there.
        unsafe { place.assume_init() }
    }

    /// Makes a hasher in its final place. This writes about 60 bytes, not all 1912.
    #[inline]
    pub fn init<'p>(place: &'p mut MaybeUninit<Self>, mode: Mode<'_>) -> &'p mut Self {
        let at = place.as_mut_ptr();
        // SAFETY: `at` is writable. Every field that must have a value gets one: `reset` writes the
        // rest.
        unsafe {
            (&raw mut (*at).key).write(mode.key_words());
            (&raw mut (*at).flags).write(mode.flags() as u8);
            Stack::clear_at(&raw mut (*at).stack);
            (&raw mut (*at).len).write(0);
            (&raw mut (*at).blocks).write(0);
            (&raw mut (*at).value).write([0; 8]);
            (&raw mut (*at).block).write([0; BLOCK_LEN]);
            &mut *at
        }
    }

    /// Like [`init`](CompactHasher::init), for key derivation with a context that need not be
    /// UTF-8, which this kernel hashes.
    pub fn init_derive_key_raw<'p>(
        place: &'p mut MaybeUninit<Self>,
        kernel: Kernel,
        context: &[u8],
    ) -> &'p mut Self {
        let key = hash_raw_context(kernel.0, context);
        CompactHasher::init(place, Mode::DeriveKeyMaterial(&key))
    }

    /// Resets the hasher to its initial state: same mode, same key, no input.
    pub fn reset(&mut self) -> &mut Self {
        self.stack.clear();
        (self.len, self.blocks, self.block) = (0, 0, [0; BLOCK_LEN]);
        self
    }

    /// The number of bytes hashed so far.
    pub fn count(&self) -> u64 {
        self.stack.chunks * CHUNK_LEN as u64 + self.chunk_len() as u64
    }

    /// Hashes more input, on this thread.
    ///
    /// # Panics
    ///
    /// If [`FORCE_VARIABLE`](crate::kernel::FORCE_VARIABLE) names a kernel that this machine does
    /// not have; so in all methods that name no kernel.
    #[inline]
    pub fn update(&mut self, input: &[u8]) -> &mut Self {
        self.update_with(functions(), input, &Stack::absorb_all)
    }

    /// Like [`update`](CompactHasher::update), by this kernel. A hasher may use another kernel at
    /// every call.
    #[inline]
    pub fn update_by(&mut self, kernel: Kernel, input: &[u8]) -> &mut Self {
        self.update_with(kernel.0, input, &Stack::absorb_all)
    }

    /// Like [`update_by`](CompactHasher::update_by), on this thread and those of the current rayon
    /// pool. Input under 128 KiB is hashed on this thread, in a thread of the pool under 64 KiB.
    ///
    /// ```
    /// use bulla_blake3::hazmat::Mode;
    /// use bulla_blake3::{CompactHasher, kernel};
    ///
    /// let input = vec![7; 1 << 20];
    /// let mut hasher = CompactHasher::new(Mode::Hash);
    /// hasher.update_rayon_by(kernel::active(), &input);
    /// assert_eq!(hasher.finalize(), bulla_blake3::hash(&input));
    /// ```
    #[cfg(feature = "rayon")]
    pub fn update_rayon_by(&mut self, kernel: Kernel, input: &[u8]) -> &mut Self {
        self.update_with(kernel.0, input, &|stack: &mut Stack,
                                            kernel: &KeyedKernel,
                                            input: &[u8],
                                            prefetch| {
            crate::parallel::absorb_all(None, stack, kernel, input, prefetch);
        })
    }

    /// Like [`update_rayon_by`](CompactHasher::update_rayon_by), with the threads of `pool`, which
    /// the caller does not belong to.
    ///
    /// This is not part of the public interface. The package for C has a pool of its own.
    #[cfg(feature = "rayon")]
    #[doc(hidden)]
    pub fn update_in_pool_by(
        &mut self,
        kernel: Kernel,
        pool: &rayon_core::ThreadPool,
        input: &[u8],
    ) -> &mut Self {
        self.update_with(kernel.0, input, &|stack: &mut Stack,
                                            kernel: &KeyedKernel,
                                            input: &[u8],
                                            prefetch| {
            crate::parallel::absorb_all(Some(pool), stack, kernel, input, prefetch);
        })
    }

    #[inline(always)]
    fn update_with(&mut self, functions: &'static Functions, input: &[u8], absorb: &Absorb<'_>) -> &mut Self {
        if self.count() == 0 && input.len() <= BLOCK_LEN {
            // Nothing is compressed before the end is known. The block has only zeros so far.
            copy_block(&mut self.block, input);
            (self.value, self.len) = (self.key, input.len() as u8);
            return self;
        }
        self.update_more(functions, input, absorb);
        self
    }

    #[inline(never)]
    fn update_more(&mut self, functions: &'static Functions, mut input: &[u8], absorb: &Absorb<'_>) {
        if self.len > 0 {
            let (taken, rest) = input.split_at(input.len().min(CHUNK_LEN - self.chunk_len()));
            self.fill_chunk(functions, taken);
            if rest.is_empty() {
                return;
            }
            // More input follows, so this chunk is not the root.
            let value = self.chunk_value(functions, CHUNK_END);
            self.stack.push(&self.keyed_kernel(functions), &value, 1);
            (self.len, self.blocks) = (0, 0);
            input = rest;
        }
        if self.stack.chunks > 0 || input.len() > CHUNK_LEN {
            let (whole, rest) = input.split_at(input.len() / CHUNK_LEN * CHUNK_LEN);
            let kernel = self.keyed_kernel(functions);
            absorb(&mut self.stack, &kernel, whole, Prefetch::for_input(input));
            input = rest;
        }
        if !input.is_empty() {
            self.begin_chunk(functions, input);
        }
    }

    /// Takes the first bytes of a chunk: 1 to 1024.
    fn begin_chunk(&mut self, functions: &'static Functions, input: &[u8]) {
        debug_assert!(self.len == 0 && (1..=CHUNK_LEN).contains(&input.len()));
        let (counter, flags) = (self.stack.chunks, u32::from(self.flags));
        // SAFETY: the input is readable, eight words and a block are writable.
        unsafe {
            let (value, block) = (&mut self.value, self.block.as_mut_ptr());
            (functions.chunk_prefix)(input.as_ptr(), input.len(), &self.key, counter, flags, value, block);
        }
        self.blocks = ((input.len() - 1) / BLOCK_LEN) as u8;
        self.len = (input.len() - usize::from(self.blocks) * BLOCK_LEN) as u8;
    }

    /// Takes more bytes of a chunk that has begun, at most those that it lacks.
    fn fill_chunk(&mut self, functions: &'static Functions, mut input: &[u8]) {
        loop {
            let len = usize::from(self.len);
            let (taken, rest) = input.split_at(input.len().min(BLOCK_LEN - len));
            self.block[len..][..taken.len()].copy_from_slice(taken);
            self.len += taken.len() as u8;
            if rest.is_empty() {
                return;
            }
            self.value = key_words(&self.chunk_value(functions, 0));
            self.blocks += 1;
            self.block = [0; BLOCK_LEN];
            self.len = 0;
            input = rest;
        }
    }

    /// The finished chunks, also a full one that still waits, if it is not the only one, and the
    /// unfinished one.
    pub(crate) fn parts(&self, kernel: &KeyedKernel) -> (Stack, UnfinishedChunk<'_>) {
        let mut stack = self.stack.clone();
        if stack.chunks > 0 && self.chunk_len() == CHUNK_LEN {
            stack.push(kernel, &self.chunk_value(kernel.functions, CHUNK_END), 1);
            return (stack, UnfinishedChunk { value: self.key, blocks: 0, block: &[] });
        }
        let value = if self.blocks > 0 { self.value } else { self.key };
        (stack, UnfinishedChunk { value, blocks: self.blocks, block: &self.block[..usize::from(self.len)] })
    }

    /// A hasher of these parts.
    pub(crate) fn of_parts(key: &Words, flags: u32, stack: Stack, unfinished: &UnfinishedChunk<'_>) -> Self {
        let UnfinishedChunk { value, blocks, block: last } = *unfinished;
        let mut block = [0; BLOCK_LEN];
        block[..last.len()].copy_from_slice(last);
        CompactHasher { key: *key, stack, value, block, len: last.len() as u8, blocks, flags: flags as u8 }
    }

    #[inline(always)]
    pub(crate) fn keyed_kernel(&self, functions: &'static Functions) -> KeyedKernel {
        KeyedKernel::new(functions, &self.key, u32::from(self.flags))
    }

    #[inline(always)]
    fn chunk_len(&self) -> usize {
        usize::from(self.blocks) * BLOCK_LEN + usize::from(self.len)
    }

    /// The flags of the compression of the block.
    #[inline(always)]
    fn block_flags(&self, last_flags: u32) -> u32 {
        let start = if self.blocks == 0 { CHUNK_START } else { 0 };
        u32::from(self.flags) | start | last_flags
    }

    /// The chaining value of the unfinished chunk after its block.
    #[inline(always)]
    fn chunk_value(&self, functions: &'static Functions, last_flags: u32) -> Value {
        let mut out = [0; BLOCK_LEN];
        // SAFETY: a block is readable, another writable.
        unsafe {
            let (block, flags) = (self.block.as_ptr(), self.block_flags(last_flags));
            let (counter, len) = (self.stack.chunks, usize::from(self.len));
            (functions.block)(&self.value, block, counter, len, flags, out.as_mut_ptr());
        }
        *out.first_chunk().expect("half of a block")
    }

    /// The digest of the input so far. The hasher does not change, and can take more input.
    #[inline]
    pub fn finalize(&self) -> Hash {
        self.finalize_with(functions())
    }

    /// Like [`finalize`](CompactHasher::finalize), by this kernel.
    #[inline]
    pub fn finalize_by(&self, kernel: Kernel) -> Hash {
        self.finalize_with(kernel.0)
    }

    #[inline(always)]
    fn finalize_with(&self, functions: &'static Functions) -> Hash {
        let mut out = [0; OUT_LEN];
        self.finalize_into(Kernel(functions), &mut out);
        Hash::from_bytes(out)
    }

    /// Like [`finalize_by`](CompactHasher::finalize_by), without a copy of the digest, which may
    /// take as long as a quarter of a compression.
    #[inline(always)]
    pub fn finalize_into(&self, kernel: Kernel, out: &mut [u8; OUT_LEN]) {
        let functions = kernel.0;
        let flags = u32::from(self.flags);
        if let (Some(pair), 0) = (self.stack.only_pair(), self.len) {
            // SAFETY: a block is readable, 32 bytes are writable.
            unsafe { (functions.parents)(pair.as_ptr(), 1, &self.key, flags | ROOT, out.as_mut_ptr()) }
        } else if self.stack.chunks > 0 {
            let block = self.root_block(functions);
            // SAFETY: as above.
            unsafe { (functions.parents)(block.as_ptr(), 1, &self.key, flags | ROOT, out.as_mut_ptr()) }
        } else if self.blocks == 0 {
            let (block, len) = (self.block.as_ptr(), usize::from(self.len));
            // SAFETY: the block's bytes are readable, 32 bytes are writable.
            unsafe { (functions.chunk)(block, len, &self.key, 0, flags, CHUNK_END | ROOT, out.as_mut_ptr()) }
        } else {
            *out = self.chunk_value(functions, CHUNK_END | ROOT);
        }
    }

    #[inline(never)]
    fn root_block(&self, functions: &'static Functions) -> [u8; BLOCK_LEN] {
        let last = (self.len > 0).then(|| self.chunk_value(functions, CHUNK_END));
        fold_stack(&self.keyed_kernel(functions), &self.stack, last)
    }

    /// Output of any length.
    ///
    /// ```
    /// use bulla_blake3::{CompactHasher, hazmat::Mode};
    ///
    /// let mut hasher = CompactHasher::new(Mode::KeyedHash(&[7; 32]));
    /// let mut bytes = [0; 100];
    /// hasher.update(b"input").finalize_xof().fill(&mut bytes);
    /// assert_eq!(bytes[..32], *bulla_blake3::keyed_hash(&[7; 32], b"input").as_bytes());
    /// assert_eq!((hasher.count(), hasher.reset().count()), (5, 0));
    /// ```
    pub fn finalize_xof(&self) -> OutputReader {
        self.finalize_xof_by(Kernel(functions()))
    }

    /// Like [`finalize_xof`](CompactHasher::finalize_xof), by this kernel.
    pub fn finalize_xof_by(&self, kernel: Kernel) -> OutputReader {
        let functions = kernel.0;
        OutputReader::new(if self.stack.chunks > 0 {
            Output::of_parent(&self.keyed_kernel(functions), &self.root_block(functions))
        } else if self.len == 0 {
            Output::of_chunk(&self.keyed_kernel(functions), &[], 0)
        } else {
            Output::of_block(
                functions,
                &self.value,
                &self.block,
                self.len.into(),
                self.block_flags(CHUNK_END),
            )
        })
    }
}

/// Copies at most a block to the beginning of another. Where it can, it makes no call.
#[inline(always)]
fn copy_block(to: &mut [u8; BLOCK_LEN], from: &[u8]) {
    fn two_ends<const N: usize>(to: &mut [u8; BLOCK_LEN], from: &[u8]) {
        if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
            to[..N].copy_from_slice(first);
            to[from.len() - N..from.len()].copy_from_slice(last);
        }
    }
    match from.len() {
        0 => {}
        1..4 => {
            (to[0], to[from.len() / 2], to[from.len() - 1]) =
                (from[0], from[from.len() / 2], from[from.len() - 1]);
        }
        4..8 => two_ends::<4>(to, from),
        8..16 => two_ends::<8>(to, from),
        16..32 => two_ends::<16>(to, from),
        _ => two_ends::<32>(to, from),
    }
}

/// Takes whole chunks onto the stack: on one thread or on several.
type Absorb<'a> = dyn Fn(&mut Stack, &KeyedKernel, &[u8], Prefetch) + 'a;

impl fmt::Debug for CompactHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactHasher").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for CompactHasher {
    /// Clears the key, the held input and all chaining values. The hasher must not be used
    /// afterwards.
    fn zeroize(&mut self) {
        self.key.zeroize();
        self.stack.zeroize();
        self.value.zeroize();
        self.block.zeroize();
        (self.len, self.blocks) = (0, 0);
    }
}
