//! The live state of a hasher: finished subtrees. The bytes in the window are not part of it. And
//! the portable form of a state: `spec/blake3-state.md`.

use crate::kernel::{CHUNK_LEN, DERIVE_KEY_MATERIAL, IV, KEYED_HASH, KeyedKernel, OUT_LEN, Value, words};
use crate::memory::{OUT_AREA_LEN, values};
use crate::tree::{Node, join};
use crate::{found, require};

/// The most subtrees that can be side by side: one per bit of a chunk count, and one that is not
/// merged yet.
const MAX_STACK_LEN: usize = 55;

/// Finished subtrees, the largest first. Neighbors of equal size merge only when the next subtree
/// comes, because their parent might be the root.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HasherState {
    pub(crate) kernel: KeyedKernel,
    len: u32,
    /// The number of chunks in the subtrees.
    pub(crate) chunks: u64,
    /// The counter of the first chunk: 0, except for a subtree.
    pub(crate) offset: u64,
    stack: [Value; MAX_STACK_LEN],
}

impl HasherState {
    /// All zeros.
    pub(crate) const NONE: Self = HasherState {
        kernel: KeyedKernel { key: [0; 8], flags: 0 },
        len: 0,
        chunks: 0,
        offset: 0,
        stack: [[0; 32]; MAX_STACK_LEN],
    };

    /// A state without input.
    pub(crate) fn new(kernel: KeyedKernel, offset: u64) -> Self {
        HasherState { kernel, offset, ..Self::NONE }
    }

    /// The subtrees' chaining values.
    pub(crate) fn values(&self) -> &[Value] {
        &self.stack[..(self.len as usize).min(MAX_STACK_LEN)]
    }

    /// Adds a subtree of `chunks` chunks, a power of two that divides the number of chunks before
    /// it.
    pub(crate) fn push(&mut self, value: &Value, chunks: u64) {
        self.merge(0);
        self.put(value);
        self.chunks += chunks;
    }

    /// Adds a value without knowing its subtree.
    pub(crate) fn put(&mut self, value: &Value) {
        *found(self.stack.get_mut(self.len as usize)) = *value;
        self.len += 1;
    }

    /// Merges neighbors of equal size, until there are at most `spare` more subtrees than set bits
    /// in the chunk count.
    pub(crate) fn merge(&mut self, spare: u32) {
        while self.len > self.chunks.count_ones() + spare {
            let [.., left, right] = self.values() else { return };
            let value = self.kernel.parent(&join(left, right));
            self.len -= 2;
            self.put(&value);
        }
    }

    /// The most chunks, up to 64, that may follow as one subtree, complete or not.
    fn max_next_chunks(&self) -> usize {
        1 << self.chunks.trailing_zeros().min(6)
    }

    /// Takes whole chunks, subtree by subtree, each as its two halves.
    pub(crate) fn absorb(&mut self, mut input: &[u8]) {
        let values = values();
        while !input.is_empty() {
            let fits = 1 << (usize::BITS - 1 - (input.len() / CHUNK_LEN).leading_zeros());
            let (subtree, rest) = found(input.split_at_checked(CHUNK_LEN * self.max_next_chunks().min(fits)));
            let chunks = self.kernel.leaves(subtree, self.offset + self.chunks, values);
            let n = self.kernel.ascend(values, chunks, 2);
            for value in found(values.get(..n)) {
                self.push(value, (chunks / n) as u64);
            }
            input = rest;
        }
    }

    /// The root of the tree over the state and `held`.
    pub(crate) fn root(mut self, mut held: &[u8]) -> Node {
        if self.chunks == 0 {
            return self.kernel.root(held);
        }
        while held.len() > CHUNK_LEN * self.max_next_chunks() {
            let (subtree, rest) = found(held.split_at_checked(CHUNK_LEN * self.max_next_chunks()));
            self.absorb(subtree);
            held = rest;
        }
        let mut right = if held.is_empty() {
            self.len -= 1;
            *found(self.stack.get(self.len as usize))
        } else {
            self.merge(0);
            let values = values();
            let n = self.kernel.leaves(held, self.offset + self.chunks, values);
            self.kernel.ascend(values, n, 1);
            values[0]
        };
        let [first, others @ ..] = self.values() else { return Node::NONE };
        for left in others.iter().rev() {
            right = self.kernel.parent(&join(left, &right));
        }
        self.kernel.node(first, &right)
    }
}

const MAGIC: &[u8; 8] = b"bullab3s";
const VERSION: u8 = 1;

/// A problem with a saved state.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(crate) enum StateError {
    Magic = -1,
    Version = -2,
    Mode = -3,
    Reserved = -4,
    Length = -5,
    Key = -6,
    Offset = -7,
}

/// The number of bytes before the chaining values.
const HEADER_LEN: usize = 64;

/// Writes the state and the held input. Returns the number of bytes.
pub(crate) fn save(state: &HasherState, held: &[u8], out: &mut [u8; OUT_AREA_LEN]) -> usize {
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
    let len = HEADER_LEN + values.len() + tail.len();
    let mode = match state.kernel.flags {
        KEYED_HASH => 1,
        DERIVE_KEY_MATERIAL => 2,
        _ => 0,
    };
    require(len <= OUT_AREA_LEN);
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&[VERSION, mode, 0, 0]);
    out[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    out[16..24].copy_from_slice(&(state.offset * CHUNK_LEN as u64).to_le_bytes());
    out[24..32].copy_from_slice(&count.to_le_bytes());
    for (bytes, word) in out[32..HEADER_LEN].as_chunks_mut::<4>().0.iter_mut().zip(state.kernel.key) {
        *bytes = word.to_le_bytes();
    }
    out[HEADER_LEN..HEADER_LEN + values.len()].copy_from_slice(values);
    out[len - tail.len()..len].copy_from_slice(tail);
    len
}

/// The state in `bytes`, and the input that it contains.
pub(crate) fn restore(bytes: &[u8]) -> Result<(HasherState, &[u8]), StateError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(StateError::Length)?;
    let u64_at = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| header[at + i]));
    if header[..8] != *MAGIC {
        return Err(StateError::Magic);
    }
    if header[8] != VERSION {
        return Err(StateError::Version);
    }
    if header[9] > 2 {
        return Err(StateError::Mode);
    }
    if header[10] != 0 || header[11] != 0 {
        return Err(StateError::Reserved);
    }
    if header[12..16] != (bytes.len() as u32).to_le_bytes() {
        return Err(StateError::Length);
    }
    let key = words(&core::array::from_fn(|i| header[32 + i]));
    if header[9] == 0 && key != IV {
        return Err(StateError::Key);
    }
    let (offset, count) = (u64_at(16), u64_at(24));
    if !fits(offset, count) {
        return Err(StateError::Offset);
    }
    let mut state = HasherState::new(KeyedKernel::of(header[9].into(), &key), offset / CHUNK_LEN as u64);
    state.chunks = if count <= CHUNK_LEN as u64 { 0 } else { count / CHUNK_LEN as u64 };
    let tail = (count - state.chunks * CHUNK_LEN as u64) as usize;
    let open = state.chunks > 0 && tail == 0 && state.chunks.is_multiple_of(2);
    let values = state.chunks.count_ones() as usize + usize::from(open);
    if rest.len() != OUT_LEN * values + tail {
        return Err(StateError::Length);
    }
    let (values, tail) = rest.split_at_checked(OUT_LEN * values).ok_or(StateError::Length)?;
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
