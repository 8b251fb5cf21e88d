//! The exports for JavaScript: positions in memory, hashing in one call, the reader of output, and
//! hashers, which take input in pieces and whose state is the live one.

use crate::kernel::{
    self, BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, DERIVE_KEY_CONTEXT, KeyedKernel, OUT_LEN, ROOT,
    digests,
};
use crate::memory::{INPUT_LEN, Memory, OUT_AREA_LEN, WINDOW_LEN, memory};
use crate::state::{self, HasherState};
use crate::tree::Node;
use crate::{found, require};

/// The position of the window, in which a hasher's input is collected.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *mut u8 {
    memory().window.as_mut_ptr()
}

/// The number of bytes in the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_len() -> usize {
    WINDOW_LEN
}

/// The position of the input of one-shot calls.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut u8 {
    memory().input.as_mut_ptr()
}

/// The maximum length of such input.
#[unsafe(no_mangle)]
pub extern "C" fn input_len() -> usize {
    INPUT_LEN
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
    OUT_AREA_LEN
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

/// Writes the key of the context whose UTF-8 text is the first `len` bytes of the input to the
/// place of the key.
#[unsafe(no_mangle)]
pub extern "C" fn context_key(len: usize) {
    let Memory { input, out, key, .. } = memory();
    KeyedKernel { flags: DERIVE_KEY_CONTEXT, ..KeyedKernel::PLAIN }.output(input, len, out, OUT_LEN);
    *key = kernel::words(out.first_chunk().expect("room for a key"));
}

/// The digests of `count` inputs of `part_len` bytes, at most 1024, end to end: 32 bytes each, end
/// to end.
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
    require(held <= WINDOW_LEN);
    *reader = KeyedKernel::of(mode, key).root(&window[..held]);
}

/// Writes `len` bytes of the reader's output to the output area, from the position whose 32-bit
/// halves are given.
#[unsafe(no_mangle)]
pub extern "C" fn read(position_low: u32, position_high: u32, len: usize) {
    let Memory { out, reader, .. } = memory();
    require(len <= OUT_AREA_LEN);
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

/// The first `held` bytes of the window.
fn held(window: &[u8; WINDOW_LEN], held: usize) -> &[u8] {
    require(held <= WINDOW_LEN);
    &window[..held]
}

/// Starts a new live state in a mode.
#[unsafe(no_mangle)]
pub extern "C" fn begin(mode: u32) {
    let Memory { state, key, .. } = memory();
    *state = HasherState::new(KeyedKernel::of(mode, key), 0);
}

/// The live state takes the first `len` bytes of the window: whole chunks. A single chunk must not
/// be the whole input.
#[unsafe(no_mangle)]
pub extern "C" fn update(len: usize) {
    let Memory { window, state, .. } = memory();
    require(len.is_multiple_of(CHUNK_LEN));
    state.absorb(held(window, len));
}

/// `out_len` bytes of output for the live state and the first `held` bytes of the window. Neither
/// changes.
#[unsafe(no_mangle)]
pub extern "C" fn finalize(held: usize, out_len: usize) {
    let Memory { window, out, state, .. } = memory();
    require(out_len <= OUT_AREA_LEN);
    state.root(self::held(window, held)).read(0, &mut out[..out_len]);
}

/// Makes the reader of that output.
#[unsafe(no_mangle)]
pub extern "C" fn root(held: usize) {
    let Memory { window, state, reader, .. } = memory();
    *reader = state.root(self::held(window, held));
}

/// The position of the live state.
#[unsafe(no_mangle)]
pub extern "C" fn state_ptr() -> *mut u8 {
    (&raw mut memory().state).cast()
}

/// The number of bytes of the live state.
#[unsafe(no_mangle)]
pub extern "C" fn state_len() -> usize {
    size_of::<HasherState>()
}

/// Writes the live state and the first `held` bytes of the window to the output area in the
/// portable format; returns its length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn save(held: usize) -> usize {
    let Memory { window, out, state, .. } = memory();
    state::save(state, self::held(window, held), out)
}

/// Like [`save`], for a hasher of a mode whose whole input is in the window.
#[unsafe(no_mangle)]
pub extern "C" fn save_of(mode: u32, held: usize) -> usize {
    let Memory { window, out, key, .. } = memory();
    state::save(&HasherState::new(KeyedKernel::of(mode, key), 0), self::held(window, held), out)
}

/// Makes the portable state in the first `len` bytes of the input the live one, copies the input
/// that it contains to the start of the window, and returns its length. For anything else, it
/// returns an error code and keeps the live state: -1 the magic, -2 the version, -3 the mode, -4 a
/// reserved field, -5 the length, -6 the key, -7 the offset.
#[unsafe(no_mangle)]
pub extern "C" fn restore(len: usize) -> i32 {
    let Memory { window, input, state, .. } = memory();
    match state::restore(held(input, len)) {
        Ok((restored, tail)) => {
            *state = restored;
            for (to, byte) in window.iter_mut().zip(tail) {
                *to = *byte;
            }
            tail.len() as i32
        }
        Err(error) => error as i32,
    }
}

impl KeyedKernel {
    /// `out_len` bytes of output for the first `len` bytes of an area.
    #[inline(always)]
    fn output(&self, area: &[u8; INPUT_LEN], len: usize, out: &mut [u8; OUT_AREA_LEN], out_len: usize) {
        require(len <= INPUT_LEN && out_len <= OUT_AREA_LEN);
        if len <= CHUNK_LEN && out_len <= BLOCK_LEN {
            // One compression is enough: that of the last block gives 64 bytes of output.
            let edges = (CHUNK_START, CHUNK_END | ROOT);
            return self.fold(&area[..len], 0, edges, out.first_chunk_mut().expect("room for a block"));
        }
        self.root(&area[..len]).read(0, &mut out[..out_len]);
    }
}
