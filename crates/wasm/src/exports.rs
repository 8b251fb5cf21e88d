//! The exports for JavaScript that need no live state: positions, hashing in one call, and the reader of output.

use crate::areas::{INPUT, OUT, WINDOW};
use crate::kernel::{self, KeyedKernel, digests};
use crate::memory::{Memory, memory};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, DERIVE_KEY_CONTEXT, OUT_LEN, ROOT};
use crate::trap::{found, require};
use crate::tree::Node;

/// The position of the window, in which a hasher's input is collected.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *mut u8 {
    memory().window.as_mut_ptr()
}

/// The number of bytes in the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_len() -> usize {
    WINDOW
}

/// The position of the input of one-shot calls.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut u8 {
    memory().input.as_mut_ptr()
}

/// The maximum length of such input.
#[unsafe(no_mangle)]
pub extern "C" fn input_len() -> usize {
    INPUT
}

/// The position of the 32 bytes of the key.
#[unsafe(no_mangle)]
pub extern "C" fn key_ptr() -> *mut u8 {
    memory().key.as_mut_ptr().cast()
}

/// The position of results: a multiple of 64.
#[unsafe(no_mangle)]
pub extern "C" fn out_ptr() -> *mut u8 {
    memory().out.as_mut_ptr()
}

/// The maximum length of results.
#[unsafe(no_mangle)]
pub extern "C" fn out_len() -> usize {
    OUT
}

/// `out_len` bytes of output for the first `len` bytes of the input, in plain mode.
#[unsafe(no_mangle)]
pub extern "C" fn hash(len: usize, out_len: usize) {
    let Memory { input, out, .. } = memory();
    KeyedKernel::PLAIN.output(input, len, out, out_len);
}

/// Like [`hash`], in any mode.
#[unsafe(no_mangle)]
pub extern "C" fn hash_keyed(mode: u32, len: usize, out_len: usize) {
    let Memory { input, out, key, .. } = memory();
    KeyedKernel::of(mode, key).output(input, len, out, out_len);
}

/// Like [`hash_keyed`], for the first `held` bytes of the window.
#[unsafe(no_mangle)]
pub extern "C" fn hash_of(mode: u32, held: usize, out_len: usize) {
    let Memory { window, out, key, .. } = memory();
    KeyedKernel::of(mode, key).output(window, held, out, out_len);
}

/// Writes the key of the context whose UTF-8 text is the first `len` bytes of the input to the place of the key.
#[unsafe(no_mangle)]
pub extern "C" fn context_key(len: usize) {
    let Memory { input, out, key, .. } = memory();
    KeyedKernel { flags: DERIVE_KEY_CONTEXT, ..KeyedKernel::PLAIN }.output(input, len, out, OUT_LEN);
    *key = kernel::words(out.first_chunk().expect("room for a key"));
}

/// The digests of `count` inputs of `part_len` bytes, at most 1024, end to end: 32 bytes each, end to end.
#[unsafe(no_mangle)]
pub extern "C" fn many(count: usize, part_len: usize) {
    require(part_len <= CHUNK_LEN);
    let Memory { input, out, .. } = memory();
    digests(input, part_len, found(out.as_chunks_mut().0.get_mut(..count)));
}

/// Makes the reader of the output for the first `held` bytes of the window, in a mode.
#[unsafe(no_mangle)]
pub extern "C" fn root_of(mode: u32, held: usize) {
    let Memory { window, key, reader, .. } = memory();
    require(held <= WINDOW);
    *reader = KeyedKernel::of(mode, key).root(&window[..held]);
}

/// Writes `len` bytes of the reader's output to the output area, from the position whose 32-bit halves are given.
#[unsafe(no_mangle)]
pub extern "C" fn read(position_low: u32, position_high: u32, len: usize) {
    let Memory { out, reader, .. } = memory();
    require(len <= OUT);
    reader.read(u64::from(position_high) << 32 | u64::from(position_low), &mut out[..len]);
}

/// The position of the reader.
#[unsafe(no_mangle)]
pub extern "C" fn reader_ptr() -> *mut u8 {
    (&raw mut memory().reader).cast()
}

/// The number of bytes of the reader.
#[unsafe(no_mangle)]
pub extern "C" fn reader_len() -> usize {
    size_of::<Node>()
}

/// Overwrites everything with zeros.
#[unsafe(no_mangle)]
pub extern "C" fn wipe() {
    memory().wipe();
}

impl KeyedKernel {
    /// `out_len` bytes of output for the first `len` bytes of an area.
    #[inline(always)]
    fn output(&self, area: &[u8; INPUT], len: usize, out: &mut [u8; OUT], out_len: usize) {
        require(len <= INPUT && out_len <= OUT);
        if len <= CHUNK_LEN && out_len <= BLOCK_LEN {
            // One compression is enough: that of the last block gives 64 bytes of output.
            let edges = (CHUNK_START, CHUNK_END | ROOT);
            return self.fold(&area[..len], 0, edges, out.first_chunk_mut().expect("room for a block"));
        }
        self.root(&area[..len]).read(0, &mut out[..out_len]);
    }
}
