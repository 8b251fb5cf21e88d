//! The last compression of a tree, and output of any length from it.

use crate::kernel::Functions;
use crate::keyed_kernel::KeyedKernel;
use crate::plan::{MAX_LANES, MAX_SERIAL_BLOCKS};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_START, PARENT, ROOT, Words};
use core::fmt;
use core::mem::MaybeUninit;

/// The last compression of a tree, not computed yet. As the root, it gives output of any length.
#[derive(Clone)]
pub(crate) struct Output {
    functions: &'static Functions,
    value: Words,
    block: [u8; BLOCK_LEN],
    len: u32,
    flags: u32,
    /// The number of the reader's current block. It is a field here, so that a reader contains
    /// nothing else, and is constructed in its final place.
    counter: u64,
    /// The number of bytes of that block that were already read, at most 63.
    within: u8,
}

impl Output {
    /// The last compression of a chunk of at most 1024 bytes.
    #[inline]
    pub(crate) fn of_chunk(kernel: &KeyedKernel, chunk: &[u8], counter: u64) -> Self {
        let KeyedKernel { functions, key, flags } = kernel;
        // At least one block is left: the last one, of 0 to 64 bytes.
        let len = chunk.len() - chunk.len().saturating_sub(1) / BLOCK_LEN * BLOCK_LEN;
        let start = if len == chunk.len() { CHUNK_START } else { 0 };
        let (len, last_flags) = (len as u32, flags | start | CHUNK_END);
        let (value, block) = ([0; 8], [0; BLOCK_LEN]);
        let mut output = Output { functions, value, block, len, flags: last_flags, counter: 0, within: 0 };
        let Output { value, block, .. } = &mut output;
        // SAFETY: the chunk is readable, eight words and a block are writable.
        unsafe {
            let (chunk, len) = (chunk.as_ptr(), chunk.len());
            (functions.chunk_prefix)(chunk, len, key, counter, *flags, value, block.as_mut_ptr());
        }
        output
    }

    /// The last compression of a chunk: its last block, of that many bytes, with all flags but that
    /// of the root.
    pub(crate) fn of_block(
        functions: &'static Functions,
        value: &Words,
        block: &[u8; BLOCK_LEN],
        len: u32,
        flags: u32,
    ) -> Self {
        Output { functions, value: *value, block: *block, len, flags, counter: 0, within: 0 }
    }

    /// The last compression of a parent with this block.
    pub(crate) fn of_parent(kernel: &KeyedKernel, block: &[u8; BLOCK_LEN]) -> Self {
        let KeyedKernel { functions, key, flags } = kernel;
        let (len, flags) = (BLOCK_LEN as u32, flags | PARENT);
        Output { functions, value: *key, block: *block, len, flags, counter: 0, within: 0 }
    }

    /// Writes output block number `counter` to `out`.
    #[inline]
    fn block(&self, counter: u64, out: &mut [u8; BLOCK_LEN]) {
        let Output { functions, value, block, len, flags, .. } = self;
        // SAFETY: a block is readable, another writable.
        unsafe {
            let (len, flags) = (*len as usize, flags | ROOT);
            (functions.block)(value, block.as_ptr(), counter, len, flags, out.as_mut_ptr());
        }
    }

    /// Writes the output blocks from number `first` on. The length of `out` is a whole number of
    /// blocks.
    #[inline]
    fn blocks(&self, first: u64, out: &mut [u8]) {
        let Output { functions, value, block, len, flags, .. } = self;
        let (block, flags) = (block.as_ptr(), flags | ROOT);
        // A shift, not a division: the number of lanes is a power of two.
        let shift = (functions.lanes * BLOCK_LEN).trailing_zeros();
        let groups = out.len() >> shift;
        let (wide, rest) = out.split_at_mut(groups << shift);
        let mut counter = first;
        if groups > 0 {
            // SAFETY: a block is readable, as many as lanes are writable for each group.
            unsafe { (functions.output)(value, block, counter, (*len, flags), groups, wide.as_mut_ptr()) };
            counter = counter.wrapping_add((groups * functions.lanes) as u64);
        }
        if rest.len() > MAX_SERIAL_BLOCKS * BLOCK_LEN {
            let mut room = [MaybeUninit::<[u8; BLOCK_LEN]>::uninit(); MAX_LANES];
            // SAFETY: a block is readable, as many are writable as the most lanes of any kernel;
            // more than `rest` are written.
            unsafe {
                (functions.output)(value, block, counter, (*len, flags), 1, room.as_mut_ptr().cast());
                rest.copy_from_slice(core::slice::from_raw_parts(room.as_ptr().cast(), rest.len()));
            }
            return;
        }
        for out in rest.as_chunks_mut().0 {
            self.block(counter, out);
            counter = counter.wrapping_add(1);
        }
    }
}

/// Output of any length, from any position: an extendable-output function.
///
/// The first 32 bytes are the ordinary digest. [Positions](OutputReader::position) go up to 2^64 -
/// 1, the limit of the specification. Reading further returns the blocks that follow, like the
/// crate `blake3`; their 64-bit positions start again at 0.
///
/// ```
/// let mut output = bulla_blake3::Hasher::new().update(b"input").finalize_xof();
/// let mut bytes = [0; 100];
/// output.fill(&mut bytes);
/// assert_eq!(bytes[..32], *bulla_blake3::hash(b"input").as_bytes());
/// assert_eq!(output.position(), 100);
///
/// let mut again = [0; 10];
/// output.set_position(90);
/// output.fill(&mut again);
/// assert_eq!(again, bytes[90..]);
/// ```
#[derive(Clone)]
pub struct OutputReader {
    output: Output,
}

impl OutputReader {
    #[inline]
    pub(crate) fn new(output: Output) -> Self {
        OutputReader { output }
    }

    /// Fills `out` with the next bytes, and advances by its length.
    #[inline]
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut out = out;
        if self.output.within > 0 {
            out = self.part(out);
        }
        let whole = out.len() / BLOCK_LEN * BLOCK_LEN;
        let (blocks, out) = out.split_at_mut(whole);
        self.output.blocks(self.output.counter, blocks);
        self.output.counter = self.output.counter.wrapping_add((whole / BLOCK_LEN) as u64);
        if !out.is_empty() {
            self.part(out);
        }
    }

    /// Fills as much of `out` as the current block still has, and returns the rest.
    fn part<'o>(&mut self, out: &'o mut [u8]) -> &'o mut [u8] {
        let mut block = [0; BLOCK_LEN];
        self.output.block(self.output.counter, &mut block);
        let within = usize::from(self.output.within);
        let (now, later) = out.split_at_mut(out.len().min(BLOCK_LEN - within));
        now.copy_from_slice(&block[within..][..now.len()]);
        let end = within + now.len();
        self.output.counter = self.output.counter.wrapping_add((end / BLOCK_LEN) as u64);
        self.output.within = (end % BLOCK_LEN) as u8;
        later
    }

    /// The position of the next byte: how many bytes precede it, modulo 2^64.
    pub fn position(&self) -> u64 {
        self.output.counter.wrapping_mul(BLOCK_LEN as u64).wrapping_add(u64::from(self.output.within))
    }

    /// Moves to any position.
    pub fn set_position(&mut self, position: u64) {
        self.output.counter = position / BLOCK_LEN as u64;
        self.output.within = (position % BLOCK_LEN as u64) as u8;
    }
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader").field("position", &self.position()).finish_non_exhaustive()
    }
}

#[cfg(feature = "std")]
impl std::io::Read for OutputReader {
    /// Always fills the buffer; never fails.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.fill(buffer);
        Ok(buffer.len())
    }
}

#[cfg(feature = "std")]
impl std::io::Seek for OutputReader {
    /// Fails with `InvalidInput` for a position before the start, and for one relative to the end,
    /// because the output has no end.
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let invalid = |why| std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        let position = match to {
            std::io::SeekFrom::Start(position) => position,
            std::io::SeekFrom::Current(by) => {
                let position = i128::from(self.position()) + i128::from(by);
                u64::try_from(position.min(i128::from(u64::MAX)))
                    .map_err(|_| invalid("a position before the start of the output"))?
            }
            std::io::SeekFrom::End(_) => return Err(invalid("the output has no end to seek from")),
        };
        self.set_position(position);
        Ok(position)
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for OutputReader {
    fn zeroize(&mut self) {
        let Output { functions: _, value, block, len, flags, counter, within } = &mut self.output;
        value.zeroize();
        block.zeroize();
        len.zeroize();
        flags.zeroize();
        counter.zeroize();
        within.zeroize();
    }
}
