//! Hashing of complete input. Up to one chunk, there is nothing between the call and the kernel.

use crate::hash::Hash;
use crate::kernel::{Functions, Kernel, functions};
use crate::keyed_kernel::KeyedKernel;
use crate::plan::Prefetch;
use crate::spec::{CHUNK_END, CHUNK_LEN, IV, KEY_LEN, KEYED_HASH, Mode, OUT_LEN, ROOT, Words, key_words};
use crate::tree::{LevelValues, root_block_of};
use core::mem::MaybeUninit;

/// The digest of `input`.
///
/// For long input that is read in pieces, use [`Hasher`](crate::Hasher); for more than 32 bytes of
/// output, [`Hasher::finalize_xof`](crate::Hasher::finalize_xof); for many inputs at once,
/// [`hash_many`](crate::hash_many).
#[inline]
pub fn hash(input: &[u8]) -> Hash {
    digest(functions(), input, &IV, 0)
}

/// Writes the digest of `len` bytes at `input` to `out`, without a copy: a C caller has its own
/// memory.
///
/// # Safety
///
/// `len` bytes must be readable, and 32 writable, which may be a part of the input. Nobody else may
/// use them meanwhile.
#[doc(hidden)]
#[inline]
pub unsafe fn hash_into(input: *const u8, len: usize, out: *mut u8) {
    let functions = functions();
    // SAFETY: the caller promised it. A kernel writes the digest after it has read the chunk.
    unsafe {
        if len <= CHUNK_LEN {
            (functions.chunk)(input, len, &IV, 0, 0, CHUNK_END | ROOT, out);
        } else {
            let digest = digest_of_tree(functions, core::slice::from_raw_parts(input, len), &IV, 0);
            out.cast::<Hash>().write(digest);
        }
    }
}

/// The digest of `input` under a key: a message authentication code.
///
/// ```
/// let tag = bulla_blake3::keyed_hash(&[7; 32], b"message");
/// // The comparison takes constant time.
/// assert!(tag == bulla_blake3::keyed_hash(&[7; 32], b"message"));
/// ```
#[inline]
pub fn keyed_hash(key: &[u8; KEY_LEN], input: &[u8]) -> Hash {
    digest(functions(), input, &key_words(key), KEYED_HASH)
}

/// The root's digest by the given kernel.
#[inline(always)]
pub(crate) fn digest(functions: &'static Functions, input: &[u8], key: &Words, flags: u32) -> Hash {
    if input.len() > CHUNK_LEN {
        return digest_of_tree(functions, input, key, flags);
    }
    let mut out = MaybeUninit::<[u8; OUT_LEN]>::uninit();
    // SAFETY: the input is readable; the function writes all 32 bytes.
    unsafe {
        let out_ptr = out.as_mut_ptr().cast();
        (functions.chunk)(input.as_ptr(), input.len(), key, 0, flags, CHUNK_END | ROOT, out_ptr);
        Hash::from_bytes(out.assume_init())
    }
}

#[inline(never)]
fn digest_of_tree(functions: &'static Functions, input: &[u8], key: &Words, flags: u32) -> Hash {
    let kernel = KeyedKernel::new(functions, key, flags);
    if input.len() <= functions.lanes * CHUNK_LEN {
        let mut values = LevelValues::new();
        values.hash_chunks(&kernel, input, 0, Prefetch::Off);
        values.ascend_to(&kernel, 2);
        return Hash::from_bytes(values.parent(&kernel, ROOT));
    }
    let block = root_block_of(&kernel, input, 0, Prefetch::for_input(input));
    Hash::from_bytes(kernel.parent(&block, ROOT))
}

impl Kernel {
    /// Like [`hash`], but by this kernel instead of the process's kernel.
    #[inline]
    pub fn hash(self, input: &[u8]) -> Hash {
        digest(self.0, input, &IV, 0)
    }

    /// The digest of `input` in any mode, by this kernel.
    ///
    /// ```
    /// use bulla_blake3::{hazmat::Mode, kernel};
    ///
    /// let kernel = kernel::active();
    /// let digest = kernel.hash_in(Mode::KeyedHash(&[7; 32]), b"input");
    /// assert_eq!(digest, bulla_blake3::keyed_hash(&[7; 32], b"input"));
    /// assert_eq!(kernel.hash_in(Mode::Hash, b"input"), kernel.hash(b"input"));
    /// ```
    #[inline]
    pub fn hash_in(self, mode: Mode<'_>, input: &[u8]) -> Hash {
        digest(self.0, input, &mode.key_words(), mode.flags())
    }
}
