//! The WebAssembly module inside the npm package `bulla`: BLAKE3 over windows of its own memory.
//!
//! It imports nothing and allocates nothing, and its memory never grows, so that JavaScript's views
//! of it stay valid. All pointers are byte offsets into the exported `memory`. Lengths that do not
//! fit trap.
//!
//! One-shot calls take their input at `input`. A hasher that takes input in pieces collects it in
//! the window at `buffer`; the bytes there are *held*. Only when the window overflows, they become
//! part of the live state (`update`). Results are at `out_ptr`.
//!
//! There is one live state, and one reader of extended output. JavaScript keeps those that are not
//! in use, as the bytes at `state_ptr` and `reader_ptr`. These bytes are valid only for this
//! module; `save` writes the portable format.
//!
//! A mode is 0 for plain hashing, 1 for keyed hashing with the key at `key_ptr`, 2 for key
//! derivation with the key of a context there.
//!
//! The crate has its own small tree over whole windows, and uses only the two forms of the kernel
//! from `bulla-blake3`. That makes the module a third as large. Built for any other machine, the
//! crate is empty.

#![cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#![no_std]

mod exports;
mod kernel;
mod memory;
mod state;
mod tree;

pub use exports::{
    begin, buffer, buffer_len, context_key, finalize, hash, hash_keyed, hash_of, input, input_len, key_ptr,
    many, out_len, out_ptr, read, reader_len, reader_ptr, restore, root, root_of, save, save_of, state_len,
    state_ptr, update, wipe,
};

use core::arch::wasm32::unreachable;

/// A panic is an error of the caller: the engine raises its own error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unreachable()
}

/// Traps unless the caller respected the limits.
#[inline(always)]
pub(crate) fn require(holds: bool) {
    if !holds {
        unreachable()
    }
}

/// The value that was found; traps if there is none. Indexing would do the same with a message,
/// which cannot be printed here, and needs four kilobytes of code.
#[inline(always)]
pub(crate) fn found<T>(it: Option<T>) -> T {
    match it {
        Some(it) => it,
        None => unreachable(),
    }
}
