use crate::kernel::{Functions, MAX_LANES};
use crate::spec::{CHUNK_END, CHUNK_START, PARENT, ROOT, Words};
use crate::tree::Instance;
use crate::{BLOCK_LEN, OUT_LEN, oneshot};
use bulla_simd::Vector;
use bulla_simd::scalar::U32x1;
use core::fmt;
use core::mem::MaybeUninit;

/// Up to so many output blocks are made one after the other: as wide as the kernel they would cost more.
pub(crate) const FEW_BLOCKS: usize = 2;

/// The last compression of a tree, not yet done: as the root it gives output of any length.
#[derive(Clone)]
pub(crate) struct Output {
    functions: &'static Functions,
    value: Words,
    block: [u8; BLOCK_LEN],
    len: u32,
    flags: u32,
}

impl Output {
    /// Of a chunk of at most 1024 bytes.
    #[inline]
    pub(crate) fn of_chunk(instance: &Instance, chunk: &[u8], counter: u64) -> Self {
        let Instance { functions, key, flags } = instance;
        let mut value = *key;
        let mut start = CHUNK_START;
        let mut rest = chunk;
        while rest.len() > BLOCK_LEN {
            let mut out = [0; BLOCK_LEN];
            // SAFETY: a whole block is readable, 64 bytes are writable.
            unsafe {
                let flags = *flags | start;
                (functions.block)(&value, rest.as_ptr(), counter, BLOCK_LEN, flags, out.as_mut_ptr());
            }
            value = oneshot::key_words(out.first_chunk().unwrap_or(&[0; OUT_LEN]));
            start = 0;
            rest = &rest[BLOCK_LEN..];
        }
        let mut padded = MaybeUninit::<[u8; BLOCK_LEN]>::uninit();
        // SAFETY: the rest of a chunk is at most a block; all 64 bytes are written. One lane needs no instruction set.
        let block = unsafe {
            U32x1::copy_padded(rest.as_ptr(), rest.len(), padded.as_mut_ptr().cast());
            padded.assume_init()
        };
        let flags = flags | start | CHUNK_END;
        Output { functions, value, block, len: rest.len() as u32, flags }
    }

    /// Of a parent with this block.
    pub(crate) fn of_parent(instance: &Instance, block: &[u8; BLOCK_LEN]) -> Self {
        let Instance { functions, key, flags } = instance;
        Output { functions, value: *key, block: *block, len: BLOCK_LEN as u32, flags: flags | PARENT }
    }

    /// Output blocks from number `first` on; `out` is a whole number of them.
    #[inline]
    fn blocks(&self, first: u64, out: &mut [u8]) {
        let Output { functions, value, block, len, flags } = self;
        let (block, flags) = (block.as_ptr(), flags | ROOT);
        let group = functions.lanes * BLOCK_LEN;
        let groups = out.len() / group;
        let (wide, rest) = out.split_at_mut(groups * group);
        let mut counter = first;
        if groups > 0 {
            // SAFETY: a block is readable, as many as lanes are writable for each group.
            unsafe { (functions.output)(value, block, counter, (*len, flags), groups, wide.as_mut_ptr()) };
            counter = counter.wrapping_add((groups * functions.lanes) as u64);
        }
        if rest.len() > FEW_BLOCKS * BLOCK_LEN {
            let mut room = [MaybeUninit::<[u8; BLOCK_LEN]>::uninit(); MAX_LANES];
            // SAFETY: a block is readable, as many are writable as the most lanes of any kernel; more than `rest` are written.
            unsafe {
                (functions.output)(value, block, counter, (*len, flags), 1, room.as_mut_ptr().cast());
                rest.copy_from_slice(core::slice::from_raw_parts(room.as_ptr().cast(), rest.len()));
            }
            return;
        }
        for out in rest.chunks_exact_mut(BLOCK_LEN) {
            // SAFETY: a block is readable, another writable.
            unsafe { (functions.block)(value, block, counter, *len as usize, flags, out.as_mut_ptr()) };
            counter = counter.wrapping_add(1);
        }
    }
}

/// Output of any length, from any position: an extendable-output function.
///
/// The first 32 bytes are the ordinary digest. Positions go up to 2^64 - 1.
#[derive(Clone)]
pub struct OutputReader {
    output: Output,
    position: u64,
}

impl OutputReader {
    #[inline]
    pub(crate) fn new(output: Output) -> Self {
        OutputReader { output, position: 0 }
    }

    /// Fills `out` with the next bytes, and advances by as many.
    #[inline]
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut out = out;
        let within = (self.position % BLOCK_LEN as u64) as usize;
        if within > 0 {
            out = self.part(within, out);
        }
        let whole = out.len() / BLOCK_LEN * BLOCK_LEN;
        let (blocks, out) = out.split_at_mut(whole);
        self.output.blocks(self.position / BLOCK_LEN as u64, blocks);
        self.position = self.position.wrapping_add(whole as u64);
        if !out.is_empty() {
            self.part(0, out);
        }
    }

    /// Fills as much of `out` as the current block has after its first `within` bytes, and returns the rest.
    fn part<'o>(&mut self, within: usize, out: &'o mut [u8]) -> &'o mut [u8] {
        let mut block = [0; BLOCK_LEN];
        self.output.blocks(self.position / BLOCK_LEN as u64, &mut block);
        let (now, later) = out.split_at_mut(out.len().min(BLOCK_LEN - within));
        now.copy_from_slice(&block[within..][..now.len()]);
        self.position = self.position.wrapping_add(now.len() as u64);
        later
    }

    /// How many bytes come before the next one.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to any position.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader").field("position", &self.position).finish_non_exhaustive()
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
    /// Fails with `InvalidInput` for a position before the start, and relative to the end, which there is none of.
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let invalid = |why| std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        self.position = match to {
            std::io::SeekFrom::Start(position) => position,
            std::io::SeekFrom::Current(by) => {
                let position = i128::from(self.position) + i128::from(by);
                u64::try_from(position.min(i128::from(u64::MAX)))
                    .map_err(|_| invalid("a position before the start of the output"))?
            }
            std::io::SeekFrom::End(_) => return Err(invalid("the output has no end to seek from")),
        };
        Ok(self.position)
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for OutputReader {
    fn zeroize(&mut self) {
        let Output { functions: _, value, block, len, flags } = &mut self.output;
        value.zeroize();
        block.zeroize();
        len.zeroize();
        flags.zeroize();
        self.position.zeroize();
    }
}
