//! The exports for JavaScript's hashers, which take input in pieces: the live state.

use crate::areas::{OUT, WINDOW};
use crate::kernel::KeyedKernel;
use crate::memory::{Memory, memory};
use crate::saved;
use crate::spec::CHUNK_LEN;
use crate::state::State;
use crate::trap::require;

/// The first `held` bytes of the window.
fn held(window: &[u8; WINDOW], held: usize) -> &[u8] {
    require(held <= WINDOW);
    &window[..held]
}

/// Starts a new live state in a mode.
#[unsafe(no_mangle)]
pub extern "C" fn begin(mode: u32) {
    let Memory { state, key, .. } = memory();
    *state = State::new(KeyedKernel::of(mode, key), 0);
}

/// The live state takes the first `len` bytes of the window: whole chunks. A single chunk must not be the whole input.
#[unsafe(no_mangle)]
pub extern "C" fn update(len: usize) {
    let Memory { window, state, .. } = memory();
    require(len.is_multiple_of(CHUNK_LEN));
    state.absorb(held(window, len));
}

/// `out_len` bytes of output for the live state and the first `held` bytes of the window. Neither changes.
#[unsafe(no_mangle)]
pub extern "C" fn finalize(held: usize, out_len: usize) {
    let Memory { window, out, state, .. } = memory();
    require(out_len <= OUT);
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
    size_of::<State>()
}

/// Writes the live state and the first `held` bytes of the window to the output area in the portable format; returns its length in
/// bytes.
#[unsafe(no_mangle)]
pub extern "C" fn save(held: usize) -> usize {
    let Memory { window, out, state, .. } = memory();
    saved::write(state, self::held(window, held), out)
}

/// Like [`save`], for a hasher of a mode whose whole input is in the window.
#[unsafe(no_mangle)]
pub extern "C" fn save_of(mode: u32, held: usize) -> usize {
    let Memory { window, out, key, .. } = memory();
    saved::write(&State::new(KeyedKernel::of(mode, key), 0), self::held(window, held), out)
}

/// Makes the portable state in the first `len` bytes of the input the live one, copies the input that it contains to the start of the
/// window, and returns its length. For anything else, it returns an error code and keeps the live state: -1 the magic, -2 the version, -3
/// the mode, -4 a reserved field, -5 the length, -6 the key, -7 the offset.
#[unsafe(no_mangle)]
pub extern "C" fn restore(len: usize) -> i32 {
    let Memory { window, input, state, .. } = memory();
    match saved::read(held(input, len)) {
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
