//! The live state of a hasher, and the reader of extended output.

use crate::hasher;
use crate::memory::{Memory, memory};
use bulla_blake3::{Hasher, OutputReader, StateError};

/// Begins a new live state in mode 0 (plain), 1 (keyed) or 2 (key derivation, with the key of a context).
#[unsafe(no_mangle)]
pub extern "C" fn begin(mode: u32) {
    let Memory { hasher: live, key, .. } = memory();
    *live = Some(hasher(mode, key));
}

/// The live state takes in the first `len` bytes of the window.
#[unsafe(no_mangle)]
pub extern "C" fn update(len: usize) {
    let Memory { window, hasher, .. } = memory();
    hasher.as_mut().expect("a live state").update(&window[..len]);
}

/// `out_len` bytes of output of the live state, which stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn finalize(out_len: usize) {
    let Memory { out, hasher, .. } = memory();
    hasher.as_ref().expect("a live state").finalize_xof().fill(&mut out[..out_len]);
}

/// Where the live state is.
#[unsafe(no_mangle)]
pub extern "C" fn state_ptr() -> *mut u8 {
    (&raw mut memory().hasher).cast()
}

/// Bytes of the live state.
#[unsafe(no_mangle)]
pub extern "C" fn state_len() -> usize {
    size_of::<Option<Hasher>>()
}

/// Writes the live state to the output area in the portable format; returns its length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn save() -> usize {
    let Memory { out, hasher, .. } = memory();
    let state = hasher.as_ref().expect("a live state").save();
    out[..state.len()].copy_from_slice(&state);
    state.len()
}

/// Makes the portable state in the first `len` bytes of the input the live one, and returns 0; or returns what is wrong with it and leaves
/// the live one: 1 the magic, 2 the version, 3 the mode, 4 a reserved field, 5 the length, 6 the key, 7 the offset.
#[unsafe(no_mangle)]
pub extern "C" fn restore(len: usize) -> u32 {
    let Memory { input, hasher, .. } = memory();
    match Hasher::restore(&input[..len]) {
        Ok(restored) => {
            *hasher = Some(restored);
            0
        }
        Err(StateError::Magic) => 1,
        Err(StateError::Version(_)) => 2,
        Err(StateError::Mode(_)) => 3,
        Err(StateError::Reserved) => 4,
        Err(StateError::Key) => 6,
        Err(StateError::Offset) => 7,
        Err(_) => 5,
    }
}

/// Makes the reader of the live state's output.
#[unsafe(no_mangle)]
pub extern "C" fn root() {
    let Memory { hasher, reader, .. } = memory();
    *reader = Some(hasher.as_ref().expect("a live state").finalize_xof());
}

/// Makes the reader of the output for the first `len` bytes of the window, in a mode as of [`begin`].
#[unsafe(no_mangle)]
pub extern "C" fn root_of(mode: u32, len: usize) {
    let Memory { window, key, reader, .. } = memory();
    *reader = Some(hasher(mode, key).update(&window[..len]).finalize_xof());
}

/// Writes `len` bytes of the reader's output to the output area, from the position whose 32-bit halves are given.
#[unsafe(no_mangle)]
pub extern "C" fn read(position_low: u32, position_high: u32, len: usize) {
    let Memory { out, reader, .. } = memory();
    let reader: &mut OutputReader = reader.as_mut().expect("a reader");
    reader.set_position(u64::from(position_high) << 32 | u64::from(position_low));
    reader.fill(&mut out[..len]);
}

/// Where the reader is.
#[unsafe(no_mangle)]
pub extern "C" fn reader_ptr() -> *mut u8 {
    (&raw mut memory().reader).cast()
}

/// Bytes of the reader.
#[unsafe(no_mangle)]
pub extern "C" fn reader_len() -> usize {
    size_of::<Option<OutputReader>>()
}
