//! Hashing of input that is all there: nothing stands between the call and the kernel up to one chunk.

use crate::context::context_key;
use crate::kernel::{Functions, functions};
use crate::spec::{CHUNK_END, DERIVE_KEY_MATERIAL, IV, KEYED_HASH, ROOT, Words};
use crate::tree::{Distance, Instance, Values, root_block_of};
use crate::{CHUNK_LEN, Hash, KEY_LEN, OUT_LEN};
use core::mem::MaybeUninit;

/// The digest of `input`.
///
/// For long input that is read piece by piece use [`Hasher`](crate::Hasher); for more than 32 bytes of output
/// [`Hasher::finalize_xof`](crate::Hasher::finalize_xof); for many inputs at once [`hash_many`](crate::hash_many).
#[inline]
pub fn hash(input: &[u8]) -> Hash {
    digest(functions(), input, &IV, 0)
}

/// The digest of `input` under a key: a message authentication code.
#[inline]
pub fn keyed_hash(key: &[u8; KEY_LEN], input: &[u8]) -> Hash {
    digest(functions(), input, &key_words(key), KEYED_HASH)
}

/// 32 bytes of key for the purpose `context`, from `key_material`.
///
/// The context should be a constant of the program, unique the world over, such as `example.com 2026-11-20 session tokens v1`; never
/// user input. The key material may have any length but must not be a password. To derive many keys for one purpose use
/// [`DeriveKey`](crate::DeriveKey), which hashes the context once.
#[inline]
pub fn derive_key(context: &str, key_material: &[u8]) -> [u8; OUT_LEN] {
    let key = context_key(context);
    digest(functions(), key_material, &key, DERIVE_KEY_MATERIAL).into()
}

/// The words of a key.
#[inline]
pub(crate) fn key_words(key: &[u8; KEY_LEN]) -> Words {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The bytes of a key.
pub(crate) fn key_bytes(words: &Words) -> [u8; KEY_LEN] {
    let mut bytes = [0; KEY_LEN];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
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
    let instance = Instance::new(functions, key, flags);
    if input.len() <= functions.lanes * CHUNK_LEN {
        let mut values = Values::new();
        values.of_chunks(&instance, input, 0, Distance::Near);
        values.ascend_to(&instance, 2);
        return Hash::from_bytes(values.parent(&instance, ROOT));
    }
    let block = root_block_of(&instance, input, 0, Distance::of(input));
    Hash::from_bytes(instance.parent(&block, ROOT))
}
