//! The WebAssembly module inside the npm package `bulla`: BLAKE3 over a window of its own memory.
//!
//! Nothing is imported, nothing is allocated, and the memory never grows, so that the views which JavaScript has of it stay
//! valid. All pointers are byte offsets into the exported `memory`. Lengths that do not fit trap.
//!
//! What is done in one call takes its input at [`input`]. A hasher that takes input piece by piece collects it in the window at
//! [`buffer`], and has a live state only once the window overflowed: before that, its digest is that of [`hash_of`]. Results are
//! at [`out_ptr`].
//!
//! There is one live state of a hasher and one reader of extended output. Those that are not in use are kept by JavaScript, as the bytes
//! at [`state_ptr`] and [`reader_ptr`], which are good for the same instance of the module only; [`save`] writes the portable
//! format.
//!
//! Built for another machine than wasm32 this is an ordinary library, and its tests run there.

#![cfg_attr(target_arch = "wasm32", no_std)]

mod memory;
mod state;

use bulla_blake3::hazmat::{self, HasherExt as _};
use bulla_blake3::{Hash, Hasher, KEY_LEN, OUT_LEN, hash_many};
use memory::{Memory, memory};

pub use state::{
    begin, finalize, read, reader_len, reader_ptr, restore, root, root_of, save, state_len, state_ptr, update,
};

/// A panic is a fault of the caller, such as a length beyond the window: the engine raises its error.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn trap(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Where input of the live state goes: the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *mut u8 {
    memory().window.as_mut_ptr()
}

/// Bytes in the window.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_len() -> usize {
    memory::WINDOW
}

/// Where input of everything that is done in one call goes.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut u8 {
    memory().input.as_mut_ptr()
}

/// The most bytes of such input.
#[unsafe(no_mangle)]
pub extern "C" fn input_len() -> usize {
    memory::INPUT
}

/// Where the 32 bytes of the key are.
#[unsafe(no_mangle)]
pub extern "C" fn key_ptr() -> *mut u8 {
    memory().key.as_mut_ptr()
}

/// Where results are.
#[unsafe(no_mangle)]
pub extern "C" fn out_ptr() -> *mut u8 {
    memory().out.as_mut_ptr()
}

/// The most bytes of results.
#[unsafe(no_mangle)]
pub extern "C" fn out_len() -> usize {
    memory::OUT
}

/// `out_len` bytes of output for the first `len` bytes of the input, in plain mode.
#[unsafe(no_mangle)]
pub extern "C" fn hash(len: usize, out_len: usize) {
    let Memory { input, out, .. } = memory();
    let input = &input[..len];
    if out_len == OUT_LEN {
        out[..OUT_LEN].copy_from_slice(bulla_blake3::hash(input).as_bytes());
    } else {
        Hasher::new().update(input).finalize_xof().fill(&mut out[..out_len]);
    }
}

/// `out_len` bytes of output for the first `len` bytes of the input, in a mode: 0 plain, 1 keyed, 2 key derivation with the
/// key of a context.
#[unsafe(no_mangle)]
pub extern "C" fn hash_keyed(mode: u32, len: usize, out_len: usize) {
    let Memory { input, out, key, .. } = memory();
    hasher(mode, key).update(&input[..len]).finalize_xof().fill(&mut out[..out_len]);
}

/// As [`hash_keyed`], for the first `len` bytes of the window.
#[unsafe(no_mangle)]
pub extern "C" fn hash_of(mode: u32, len: usize, out_len: usize) {
    let Memory { window, out, key, .. } = memory();
    hasher(mode, key).update(&window[..len]).finalize_xof().fill(&mut out[..out_len]);
}

/// Writes the key of the context whose UTF-8 text is the first `len` bytes of the input to the place of the key.
#[unsafe(no_mangle)]
pub extern "C" fn context_key(len: usize) {
    let Memory { input, key, .. } = memory();
    // SAFETY: the caller promised text in UTF-8.
    let context = unsafe { core::str::from_utf8_unchecked(&input[..len]) };
    *key = hazmat::hash_derive_key_context(context);
}

/// The digests of `count` inputs of `part_len` bytes, which lie end to end: 32 bytes each, end to end.
#[unsafe(no_mangle)]
pub extern "C" fn many(count: usize, part_len: usize) {
    let Memory { input, out, .. } = memory();
    digests(input, &mut out[..OUT_LEN * count], |_| part_len);
}

/// As [`many`], for inputs of any lengths: first come `count` words of 32 bits that say how long they are, then the inputs.
#[unsafe(no_mangle)]
pub extern "C" fn many_mixed(count: usize) {
    let Memory { input, out, .. } = memory();
    let (lens, inputs) = input.split_at(size_of::<u32>() * count);
    let (lens, _) = lens.as_chunks();
    digests(inputs, &mut out[..OUT_LEN * count], |i| u32::from_le_bytes(lens[i]) as usize);
}

/// Inputs that are handed over at a time.
const BATCH: usize = 64;

/// Fills `out` with the digests of inputs that lie end to end, the i-th `len(i)` bytes long.
fn digests(mut inputs: &[u8], out: &mut [u8], len: impl Fn(usize) -> usize) {
    let mut i = 0;
    for out in out.chunks_mut(OUT_LEN * BATCH) {
        let (mut parts, mut hashes) = ([[].as_slice(); BATCH], [Hash::from_bytes([0; OUT_LEN]); BATCH]);
        let n = out.len() / OUT_LEN;
        for part in &mut parts[..n] {
            (*part, inputs) = inputs.split_at(len(i));
            i += 1;
        }
        hash_many(&parts[..n], &mut hashes[..n]);
        for (out, hash) in out.chunks_exact_mut(OUT_LEN).zip(&hashes) {
            out.copy_from_slice(hash.as_bytes());
        }
    }
}

/// Forgets everything: key, state, reader, window and results.
#[unsafe(no_mangle)]
pub extern "C" fn wipe() {
    memory().wipe();
}

/// A new hasher of a mode: 0 plain, 1 keyed, 2 key derivation.
fn hasher(mode: u32, key: &[u8; KEY_LEN]) -> Hasher {
    match mode {
        0 => Hasher::new(),
        1 => Hasher::new_keyed(key),
        2 => Hasher::new_from_context_key(key),
        _ => panic!("no such mode"),
    }
}
