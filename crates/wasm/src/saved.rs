//! The portable form of a state: `spec/blake3-state.md`.

use crate::areas::OUT;
use crate::kernel::{KeyedKernel, words};
use crate::spec::{CHUNK_LEN, DERIVE_KEY_MATERIAL, IV, KEYED_HASH, OUT_LEN};
use crate::state::State;
use crate::trap::require;

const MAGIC: &[u8; 8] = b"bullab3s";
const VERSION: u8 = 1;

/// A problem with a saved state.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(crate) enum Error {
    Magic = -1,
    Version = -2,
    Mode = -3,
    Reserved = -4,
    Length = -5,
    Key = -6,
    Offset = -7,
}

/// The number of bytes before the chaining values.
const HEADER: usize = 64;

/// Writes the state and the held input. Returns the number of bytes.
pub(crate) fn write(state: &State, held: &[u8], out: &mut [u8; OUT]) -> usize {
    let (mut state, mut tail) = (*state, held);
    let count = state.chunks * CHUNK_LEN as u64 + held.len() as u64;
    if count > CHUNK_LEN as u64 {
        let (whole, rest) = held.split_at(held.len() / CHUNK_LEN * CHUNK_LEN);
        state.absorb(whole);
        tail = rest;
        // The last subtree may be the root, so its two halves are stored.
        state.merge(u32::from(tail.is_empty() && state.chunks.is_multiple_of(2)));
    }
    let values = state.values().as_flattened();
    let len = HEADER + values.len() + tail.len();
    let mode = match state.kernel.flags {
        KEYED_HASH => 1,
        DERIVE_KEY_MATERIAL => 2,
        _ => 0,
    };
    require(len <= OUT);
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&[VERSION, mode, 0, 0]);
    out[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    out[16..24].copy_from_slice(&(state.offset * CHUNK_LEN as u64).to_le_bytes());
    out[24..32].copy_from_slice(&count.to_le_bytes());
    for (bytes, word) in out[32..HEADER].as_chunks_mut::<4>().0.iter_mut().zip(state.kernel.key) {
        *bytes = word.to_le_bytes();
    }
    out[HEADER..HEADER + values.len()].copy_from_slice(values);
    out[len - tail.len()..len].copy_from_slice(tail);
    len
}

/// The state in `bytes`, and the input that it contains.
pub(crate) fn read(bytes: &[u8]) -> Result<(State, &[u8]), Error> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Error::Length)?;
    let u64_at = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| header[at + i]));
    if header[..8] != *MAGIC {
        return Err(Error::Magic);
    }
    if header[8] != VERSION {
        return Err(Error::Version);
    }
    if header[9] > 2 {
        return Err(Error::Mode);
    }
    if header[10] != 0 || header[11] != 0 {
        return Err(Error::Reserved);
    }
    if header[12..16] != (bytes.len() as u32).to_le_bytes() {
        return Err(Error::Length);
    }
    let key = words(&core::array::from_fn(|i| header[32 + i]));
    if header[9] == 0 && key != IV {
        return Err(Error::Key);
    }
    let (offset, count) = (u64_at(16), u64_at(24));
    if !fits(offset, count) {
        return Err(Error::Offset);
    }
    let mut state = State::new(KeyedKernel::of(header[9].into(), &key), offset / CHUNK_LEN as u64);
    state.chunks = if count <= CHUNK_LEN as u64 { 0 } else { count / CHUNK_LEN as u64 };
    let tail = (count - state.chunks * CHUNK_LEN as u64) as usize;
    let open = state.chunks > 0 && tail == 0 && state.chunks.is_multiple_of(2);
    let values = state.chunks.count_ones() as usize + usize::from(open);
    if rest.len() != OUT_LEN * values + tail {
        return Err(Error::Length);
    }
    let (values, tail) = rest.split_at_checked(OUT_LEN * values).ok_or(Error::Length)?;
    for value in values.as_chunks().0 {
        state.put(value);
    }
    Ok((state, tail))
}

/// Whether `count` bytes may follow `offset` bytes as one subtree.
fn fits(offset: u64, count: u64) -> bool {
    let chunk = CHUNK_LEN as u64;
    let most = match offset / chunk {
        0 => u64::MAX,
        chunks => chunk.saturating_mul(1 << chunks.trailing_zeros()),
    };
    offset.is_multiple_of(chunk) && count <= most && offset.checked_add(count).is_some()
}
