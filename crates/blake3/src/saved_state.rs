//! Saving and restoring a hasher: the format of `spec/blake3-state.md`.

use crate::compact::{CompactHasher, UnfinishedChunk};
use crate::hasher::Hasher;
use crate::kernel::functions;
use crate::keyed_kernel::KeyedKernel;
use crate::spec::{
    BLOCK_LEN, CHUNK_LEN, DERIVE_KEY_MATERIAL, IV, KEY_LEN, KEYED_HASH, OUT_LEN, Words, key_bytes, key_words,
    max_subtree_len,
};
use crate::tree::Stack;
use arrayvec::ArrayVec;
use core::fmt;
use core::ops::Deref;

const MAGIC: &[u8; 8] = b"bullab3s";

/// The versions of the format. They differ in what a state contains of the unfinished chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateVersion {
    /// The bytes of the chunk.
    Bytes = 1,
    /// The last block of the chunk, and the chaining value before it: all that a [`CompactHasher`]
    /// has.
    Block = 2,
}

/// The number of bytes before the chaining values.
const HEADER_LEN: usize = 64;

/// The maximum length of a saved state in bytes.
pub const MAX_STATE_LEN: usize = HEADER_LEN + 54 * OUT_LEN + CHUNK_LEN - 1;

/// The state of a [`Hasher`], as bytes that any version of this project, in any language, can
/// restore, or that of a [`CompactHasher`], as bytes that another `CompactHasher` can restore.
///
/// **It contains the key of a keyed hash and the last bytes of the input.**
#[derive(Clone, PartialEq, Eq)]
pub struct SavedState(ArrayVec<u8, MAX_STATE_LEN>);

impl SavedState {
    /// Everything before the unfinished chunk, which has `rest` bytes in the state.
    fn begin(
        version: StateVersion,
        key: &Words,
        flags: u32,
        stack: &Stack,
        [offset, count]: [u64; 2],
        rest: usize,
    ) -> Self {
        let mode = match flags {
            KEYED_HASH => 1,
            DERIVE_KEY_MATERIAL => 2,
            _ => 0,
        };
        let len = HEADER_LEN + stack.values().len() * OUT_LEN + rest;
        let mut state = SavedState(ArrayVec::new());
        state.extend(MAGIC);
        state.extend(&[version as u8, mode, 0, 0]);
        state.extend(&(len as u32).to_le_bytes());
        state.extend(&offset.to_le_bytes());
        state.extend(&count.to_le_bytes());
        state.extend(&key_bytes(key));
        state.extend(stack.values().as_flattened());
        state
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.0.try_extend_from_slice(bytes).expect("no state is longer than the specification says");
    }
}

impl Deref for SavedState {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for SavedState {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Shows only the length.
impl fmt::Debug for SavedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedState").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for SavedState {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// The reason why bytes are not a saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes do not begin like a state.
    Magic,
    /// The state has a version that this program does not know, or that only a [`CompactHasher`]
    /// can restore.
    Version(u8),
    /// The mode is unknown.
    Mode(u8),
    /// A reserved field is not zero.
    Reserved,
    /// There are too few or too many bytes: the state is cut off, or followed by something else.
    Length,
    /// The mode is plain hashing, but the key is not the IV.
    Key,
    /// The input offset is not a multiple of 1024, or the input does not fit after it.
    Offset,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Magic => f.write_str("these bytes are not a saved BLAKE3 state"),
            StateError::Version(version) => {
                write!(f, "a saved BLAKE3 state of version {version}, which this hasher cannot restore")
            }
            StateError::Mode(mode) => write!(f, "a saved BLAKE3 state of an unknown mode, {mode}"),
            StateError::Reserved => {
                f.write_str("a saved BLAKE3 state with a reserved field that is not zero")
            }
            StateError::Length => f.write_str("a saved BLAKE3 state of the wrong length"),
            StateError::Key => f.write_str("a saved BLAKE3 state of plain hashing with a key"),
            StateError::Offset => f.write_str("a saved BLAKE3 state whose input does not fit its offset"),
        }
    }
}

impl core::error::Error for StateError {}

impl Hasher {
    /// The state, which you can restore later: also with another kernel, on another machine, or in
    /// another language of this project.
    ///
    /// **It contains the key of a keyed hash and the last bytes of the input**: protect it like
    /// these.
    pub fn save(&self) -> SavedState {
        let (stack, tail) = self.canonical();
        let KeyedKernel { key, flags, .. } = &self.kernel;
        let place = [self.offset * CHUNK_LEN as u64, self.count()];
        let mut state = SavedState::begin(StateVersion::Bytes, key, *flags, &stack, place, tail.len());
        state.extend(tail);
        state
    }

    /// Restores the hasher of a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the bytes are not exactly one complete state of a known version. It cannot
    /// detect changed bytes inside the key, the chaining values or the tail.
    pub fn restore(state: &[u8]) -> Result<Hasher, StateError> {
        let (fields, stack, tail) = parse(state, StateVersion::Bytes)?;
        let mut hasher = Hasher::with(functions(), &key_words(&fields.key), fields.flags);
        hasher.offset = fields.offset / CHUNK_LEN as u64;
        hasher.stack = stack;
        if fields.chunks() > 0 {
            hasher.update_buffer_limit();
        }
        hasher.update(tail);
        Ok(hasher)
    }

    /// The subtrees as the specification defines them, and the bytes of the unfinished chunk.
    fn canonical(&self) -> (Stack, &[u8]) {
        let held = self.buffer.held();
        if self.count() <= CHUNK_LEN as u64 {
            return (Stack::new(), held);
        }
        let kernel = &self.kernel;
        let mut stack = self.stack.clone();
        if let Some(wide) = self.buffer.wide() {
            wide.groups.push_to(kernel, &mut stack);
        }
        let (whole, tail) = held.split_at(held.len() / CHUNK_LEN * CHUNK_LEN);
        stack.absorb(kernel, self.offset, whole);
        let open = tail.is_empty() && stack.chunks.is_multiple_of(2);
        stack.merge(kernel, usize::from(open));
        (stack, tail)
    }
}

impl CompactHasher {
    /// The state, which you can restore later: also with another kernel, or on another machine. It
    /// is version 2 of the format, which a [`Hasher`] cannot restore: it has only the last block of
    /// the unfinished chunk.
    ///
    /// **It contains the key of a keyed hash and the last bytes of the input**: protect it like
    /// these.
    ///
    /// ```
    /// use bulla_blake3::{CompactHasher, hazmat::Mode};
    ///
    /// let state = CompactHasher::new(Mode::Hash).update(b"foo").save();
    /// let mut restored = CompactHasher::restore(&state)?;
    /// assert_eq!(restored.update(b"bar").finalize(), bulla_blake3::hash(b"foobar"));
    /// # Ok::<(), bulla_blake3::StateError>(())
    /// ```
    pub fn save(&self) -> SavedState {
        let kernel = self.keyed_kernel(functions());
        let (mut stack, UnfinishedChunk { value, blocks, block }) = self.parts(&kernel);
        // The parent of two halves may be the root.
        let open = block.is_empty() && stack.chunks.is_power_of_two();
        stack.merge(&kernel, usize::from(open));
        let value = key_bytes(&value);
        let value = if blocks > 0 { &value[..] } else { &[] };
        let (place, rest) = ([0, self.count()], value.len() + block.len());
        let mut state =
            SavedState::begin(StateVersion::Block, &kernel.key, kernel.flags, &stack, place, rest);
        state.extend(value);
        state.extend(block);
        state
    }

    /// Restores the hasher of a state that a [`CompactHasher`] or a [`Hasher`] has saved.
    ///
    /// # Errors
    ///
    /// The errors of [`Hasher::restore`]; [`StateError::Offset`] also if the input did not begin at
    /// 0.
    pub fn restore(state: &[u8]) -> Result<CompactHasher, StateError> {
        let (fields, stack, rest) = parse(state, StateVersion::Block)?;
        if fields.offset != 0 {
            return Err(StateError::Offset);
        }
        let key = key_words(&fields.key);
        let restored =
            |unfinished: &UnfinishedChunk<'_>| CompactHasher::of_parts(&key, fields.flags, stack, unfinished);
        if fields.version == StateVersion::Bytes {
            let mut hasher = restored(&UnfinishedChunk { value: key, blocks: 0, block: &[] });
            hasher.update(rest);
            return Ok(hasher);
        }
        let blocks = (fields.tail().saturating_sub(1) / BLOCK_LEN) as u8;
        let (value, block) = rest.split_at(if blocks > 0 { OUT_LEN } else { 0 });
        let value = value.first_chunk().map_or(key, key_words);
        Ok(restored(&UnfinishedChunk { value, blocks, block }))
    }
}

/// The parts of a state of at most that version: its fields, its finished chunks, and what it has
/// of the unfinished one.
fn parse(state: &[u8], newest: StateVersion) -> Result<(StateFields, Stack, &[u8]), StateError> {
    let (header, rest) = state.split_first_chunk::<HEADER_LEN>().ok_or(StateError::Length)?;
    let fields = StateFields::parse(header, state.len(), newest)?;
    let (values, rest) = rest.split_at_checked(OUT_LEN * fields.values()).ok_or(StateError::Length)?;
    if rest.len() != fields.rest() {
        return Err(StateError::Length);
    }
    let stack = Stack::from_values(values.as_chunks().0, fields.chunks());
    Ok((fields, stack, rest))
}

/// The header of a state, checked.
struct StateFields {
    version: StateVersion,
    flags: u32,
    offset: u64,
    count: u64,
    key: [u8; KEY_LEN],
}

impl StateFields {
    fn parse(header: &[u8; HEADER_LEN], len: usize, newest: StateVersion) -> Result<Self, StateError> {
        let u64_at =
            |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("a field of the header"));
        if &header[..8] != MAGIC {
            return Err(StateError::Magic);
        }
        let version = match header[8] {
            1 => StateVersion::Bytes,
            2 if newest == StateVersion::Block => StateVersion::Block,
            version => return Err(StateError::Version(version)),
        };
        let flags = match header[9] {
            0 => 0,
            1 => KEYED_HASH,
            2 => DERIVE_KEY_MATERIAL,
            mode => return Err(StateError::Mode(mode)),
        };
        if header[10..12] != [0, 0] {
            return Err(StateError::Reserved);
        }
        if header[12..16] != u32::try_from(len).map_err(|_| StateError::Length)?.to_le_bytes() {
            return Err(StateError::Length);
        }
        let key = *header[32..].first_chunk().expect("the last field of the header");
        if flags == 0 && key != key_bytes(&IV) {
            return Err(StateError::Key);
        }
        let fields = StateFields { version, flags, offset: u64_at(16), count: u64_at(24), key };
        fields.check_offset()?;
        Ok(fields)
    }

    fn check_offset(&self) -> Result<(), StateError> {
        let fits = self.offset.is_multiple_of(CHUNK_LEN as u64)
            && self.offset.checked_add(self.count).is_some()
            && max_subtree_len(self.offset).is_none_or(|most| self.count <= most);
        if fits { Ok(()) } else { Err(StateError::Offset) }
    }

    /// The number of finished chunks.
    fn chunks(&self) -> u64 {
        if self.count <= CHUNK_LEN as u64 { 0 } else { self.count / CHUNK_LEN as u64 }
    }

    /// The length of the unfinished chunk.
    fn tail(&self) -> usize {
        (self.count - self.chunks() * CHUNK_LEN as u64) as usize
    }

    /// The number of bytes that the state has of the unfinished chunk.
    fn rest(&self) -> usize {
        match (self.version, self.tail()) {
            (StateVersion::Bytes, len) => len,
            (StateVersion::Block, len) if len <= BLOCK_LEN => len,
            (StateVersion::Block, len) => OUT_LEN + (len - 1) % BLOCK_LEN + 1,
        }
    }

    /// The number of chaining values in the state.
    fn values(&self) -> usize {
        let chunks = self.chunks();
        let halves = match self.version {
            StateVersion::Bytes => chunks > 0 && chunks.is_multiple_of(2),
            StateVersion::Block => chunks.is_power_of_two(),
        };
        let open = halves && self.tail() == 0;
        chunks.count_ones() as usize + usize::from(open)
    }
}
