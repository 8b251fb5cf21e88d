//! The WebAssembly module inside the npm package `bulla`: BLAKE3 over windows of its own memory.
//!
//! Nothing is imported, nothing is allocated, and the memory never grows, so that the views which JavaScript has of it stay
//! valid. All pointers are byte offsets into the exported `memory`. Lengths that do not fit trap.
//!
//! What is done in one call takes its input at `input`. A hasher that takes input piece by piece collects it in the window at
//! `buffer`; what is there is *held*. Only when the window overflows does it become part of the live state (`update`). Results are at
//! `out_ptr`.
//!
//! There is one live state, and one reader of extended output. JavaScript keeps those that are not in use, as the bytes at
//! `state_ptr` and `reader_ptr`, which are good for this module only; `save` writes the portable format.
//!
//! A mode is 0 for plain hashing, 1 for keyed hashing with the key at `key_ptr`, 2 for key derivation with the key of a
//! context there.
//!
//! The crate has its own small tree over whole windows instead of the one of `bulla-blake3`, and of that crate only the two forms of
//! the kernel: the module is a third as large for it. Built for any other machine, the crate is empty.

#![cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#![no_std]

mod kernel;
mod memory;
mod saved;
mod spec;
mod state;
mod tree;

use core::arch::wasm32::unreachable;
use kernel::{Instance, digests};
use memory::{INPUT, Memory, OUT, WINDOW, memory};
use spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, DERIVE_KEY_CONTEXT, OUT_LEN, ROOT};
use tree::Node;

pub use state::{begin, finalize, restore, root, save, save_of, state_len, state_ptr, update};

/// A panic is a fault of the caller: the engine raises its error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unreachable()
}

/// Traps unless the caller kept to the limits.
#[inline(always)]
fn require(holds: bool) {
    if !holds {
        unreachable()
    }
}

/// What was found; traps where nothing was. Indexing would do the same with a message, which nobody here can print, and
/// which is four kilobytes of code.
#[inline(always)]
fn found<T>(it: Option<T>) -> T {
    match it {
        Some(it) => it,
        None => unreachable(),
    }
}

/// Where the input of a hasher is collected: the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *mut u8 {
    memory().window.as_mut_ptr()
}

/// Bytes in the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_len() -> usize {
    WINDOW
}

/// Where the input of everything that is done in one call goes.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut u8 {
    memory().input.as_mut_ptr()
}

/// The most bytes of such input.
#[unsafe(no_mangle)]
pub extern "C" fn input_len() -> usize {
    INPUT
}

/// Where the 32 bytes of the key are.
#[unsafe(no_mangle)]
pub extern "C" fn key_ptr() -> *mut u8 {
    memory().key.as_mut_ptr().cast()
}

/// Where results are: at a multiple of 64.
#[unsafe(no_mangle)]
pub extern "C" fn out_ptr() -> *mut u8 {
    memory().out.as_mut_ptr()
}

/// The most bytes of results.
#[unsafe(no_mangle)]
pub extern "C" fn out_len() -> usize {
    OUT
}

/// `out_len` bytes of output for the first `len` bytes of the input, in plain mode.
#[unsafe(no_mangle)]
pub extern "C" fn hash(len: usize, out_len: usize) {
    let Memory { input, out, .. } = memory();
    Instance::PLAIN.output(input, len, out, out_len);
}

/// As [`hash`], in any mode.
#[unsafe(no_mangle)]
pub extern "C" fn hash_keyed(mode: u32, len: usize, out_len: usize) {
    let Memory { input, out, key, .. } = memory();
    Instance::of(mode, key).output(input, len, out, out_len);
}

/// As [`hash_keyed`], for the first `held` bytes of the window.
#[unsafe(no_mangle)]
pub extern "C" fn hash_of(mode: u32, held: usize, out_len: usize) {
    let Memory { window, out, key, .. } = memory();
    Instance::of(mode, key).output(window, held, out, out_len);
}

/// Writes the key of the context whose UTF-8 text is the first `len` bytes of the input to the place of the key.
#[unsafe(no_mangle)]
pub extern "C" fn context_key(len: usize) {
    let Memory { input, out, key, .. } = memory();
    Instance { flags: DERIVE_KEY_CONTEXT, ..Instance::PLAIN }.output(input, len, out, OUT_LEN);
    *key = kernel::words(out.first_chunk().expect("room for a key"));
}

/// The digests of `count` inputs of `part_len` bytes, at most 1024, which lie end to end: 32 bytes each, end to end.
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
    *reader = Instance::of(mode, key).root(&window[..held]);
}

/// Writes `len` bytes of the reader's output to the output area, from the position whose 32-bit halves are given.
#[unsafe(no_mangle)]
pub extern "C" fn read(position_low: u32, position_high: u32, len: usize) {
    let Memory { out, reader, .. } = memory();
    require(len <= OUT);
    reader.read(u64::from(position_high) << 32 | u64::from(position_low), &mut out[..len]);
}

/// Where the reader is.
#[unsafe(no_mangle)]
pub extern "C" fn reader_ptr() -> *mut u8 {
    (&raw mut memory().reader).cast()
}

/// Bytes of the reader.
#[unsafe(no_mangle)]
pub extern "C" fn reader_len() -> usize {
    size_of::<Node>()
}

/// Overwrites everything with zeros.
#[unsafe(no_mangle)]
pub extern "C" fn wipe() {
    memory().wipe();
}

impl Instance {
    /// `out_len` bytes of output for the first `len` bytes of an area.
    #[inline(always)]
    fn output(&self, area: &[u8; INPUT], len: usize, out: &mut [u8; OUT], out_len: usize) {
        require(len <= INPUT && out_len <= OUT);
        if len <= CHUNK_LEN && out_len <= BLOCK_LEN {
            // All in one: the last block's compression gives 64 bytes of output.
            let edges = (CHUNK_START, CHUNK_END | ROOT);
            return self.fold(&area[..len], 0, edges, out.first_chunk_mut().expect("room for a block"));
        }
        self.root(&area[..len]).read(0, &mut out[..out_len]);
    }
}
