use crate::kernel::Functions;
use crate::spec::{CHUNK_END, CHUNK_START, PARENT, ROOT, Words};
use crate::tree::Instance;
use crate::{BLOCK_LEN, OUT_LEN, oneshot};
use core::fmt;

/// The last compression of a tree, not yet done: as the root it gives output of any length.
#[derive(Clone)]
pub(crate) struct Output {
    functions: &'static Functions,
    value: Words,
    block: [u32; 16],
    len: u32,
    flags: u32,
}

impl Output {
    /// Of a chunk of at most 1024 bytes.
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
        let mut padded = [0; BLOCK_LEN];
        padded[..rest.len()].copy_from_slice(rest);
        let flags = flags | start | CHUNK_END;
        Output { functions, value, block: block_words(&padded), len: rest.len() as u32, flags }
    }

    /// Of a parent with this block.
    pub(crate) fn of_parent(instance: &Instance, block: &[u8; BLOCK_LEN]) -> Self {
        let Instance { functions, key, flags } = instance;
        let (block, len) = (block_words(block), BLOCK_LEN as u32);
        Output { functions, value: *key, block, len, flags: flags | PARENT }
    }

    /// Output blocks from number `first` on; `out` is a whole number of them.
    fn blocks(&self, first: u64, out: &mut [u8]) {
        let functions = self.functions;
        let flags = self.flags | ROOT;
        let mut counter = first;
        let mut wide = out.chunks_exact_mut(functions.lanes * BLOCK_LEN);
        for out in &mut wide {
            // SAFETY: as many blocks as lanes are writable.
            unsafe {
                (functions.output)(&self.value, &self.block, counter, self.len, flags, out.as_mut_ptr())
            };
            counter += functions.lanes as u64;
        }
        let rest = wide.into_remainder();
        if rest.len() > 2 * BLOCK_LEN {
            let mut room = [0; 16 * BLOCK_LEN];
            // SAFETY: sixteen blocks are writable: the most lanes of any kernel.
            unsafe {
                (functions.output)(&self.value, &self.block, counter, self.len, flags, room.as_mut_ptr())
            };
            rest.copy_from_slice(&room[..rest.len()]);
            return;
        }
        let block = block_bytes(&self.block);
        for out in rest.chunks_exact_mut(BLOCK_LEN) {
            // SAFETY: a block is readable, another writable.
            unsafe {
                (functions.block)(
                    &self.value,
                    block.as_ptr(),
                    counter,
                    self.len as usize,
                    flags,
                    out.as_mut_ptr(),
                );
            }
            counter += 1;
        }
    }
}

fn block_words(bytes: &[u8; BLOCK_LEN]) -> [u32; 16] {
    let (words, _) = bytes.as_chunks::<4>();
    core::array::from_fn(|i| u32::from_le_bytes(words[i]))
}

fn block_bytes(words: &[u32; 16]) -> [u8; BLOCK_LEN] {
    let mut bytes = [0; BLOCK_LEN];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
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
    pub(crate) fn new(output: Output) -> Self {
        OutputReader { output, position: 0 }
    }

    /// Fills `out` with the next bytes, and advances by as many.
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
