//! A large file in blocks, each a whole subtree of BLAKE3, which threads take one after another.

use crate::hashing::HashMode;
use crate::map_trial::{Trial, Way};
use crate::reading::{Meter, ReadError};
use bulla_blake3::OutputReader;
use bulla_blake3::hazmat::{ChainingValue, HasherExt, merge_subtrees_non_root, merge_subtrees_root_xof};
use bulla_mmap::MappedFile;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// The fewest bytes that one thread takes at a time: a whole subtree.
const MIN_BLOCK_LEN: u64 = 512 << 10;

/// The most bytes that one thread takes at a time of a mapped file. The system makes the entries of
/// the page table faster for many pages at once, and the hash then asks for memory in advance.
const MAX_BLOCK_LEN: u64 = 8 << 20;

/// A mapped file has at least this many blocks, so that all threads get some and both ways are
/// tried.
const MIN_MAPPED_BLOCKS: u64 = 32;

/// The most blocks of a file: each takes 32 bytes of memory. A sparse file may say that it has
/// exabytes.
const MAX_BLOCKS: u64 = 1 << 20;

/// The size from which more than one thread hashes a file.
pub const MIN_SHARED_LEN: u64 = 2 << 20;

/// The bytes that one system call reads. They stay in the cache of the core that hashes them.
pub(crate) const READ_LEN: usize = 128 << 10;

/// The size from which a file may be mapped. Making and removing a map costs as much as reading
/// some hundred KiB.
pub(crate) const MIN_MAPPED_LEN: u64 = 8 << 20;

/// With more threads, a file on tmpfs is read. Each of its pages is entered into the page table by
/// itself there, and the threads wait for each other. The trial does not show that: while it
/// measures one way, half of the threads take the other one.
const MAX_TMPFS_MAP_THREADS: usize = 7;

/// The blocks of one file. Threads take them in the order of the file, so that a disk sees one
/// nearly sequential read.
pub(crate) struct Blocks {
    len: u64,
    /// The length of all blocks but the last one: a power of two.
    block_len: u64,
    map: Option<MappedFile>,
    trial: Trial,
    /// The number of threads that take blocks.
    threads: AtomicUsize,
    next: AtomicU64,
    results: Mutex<BlockResults>,
    /// Notified when the last block is done.
    all_done: Condvar,
}

struct BlockResults {
    values: Vec<ChainingValue>,
    done: u64,
    failure: Option<ReadError>,
}

/// The file that the blocks are of, and the mode they are hashed in.
#[derive(Clone, Copy)]
pub(crate) struct BlockSource<'a> {
    pub(crate) file: &'a File,
    pub(crate) mode: &'a HashMode,
}

impl Blocks {
    /// The blocks of `file`, which has `len` bytes: at least two blocks.
    pub(crate) fn new(file: &File, len: u64) -> Self {
        let map = if len >= MIN_MAPPED_LEN { MappedFile::new(file, len).ok() } else { None };
        let block_len = if map.is_some() { mapped_block_len(len) } else { MIN_BLOCK_LEN };
        let block_len = block_len.max(len.div_ceil(MAX_BLOCKS).next_power_of_two());
        let blocks = len.div_ceil(block_len);
        debug_assert!(blocks >= 2, "the root needs two children");
        let values = vec![ChainingValue::default(); blocks as usize];
        let results = Mutex::new(BlockResults { values, done: 0, failure: None });
        let max_map_threads = if is_on_tmpfs(file) { MAX_TMPFS_MAP_THREADS } else { usize::MAX };
        let trial = Trial::new(blocks, max_map_threads);
        let (threads, next) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { len, block_len, map, trial, threads, next, results, all_done: Condvar::new() }
    }

    /// How many threads hash the file in the shortest time, if enough processors are idle. Starting
    /// and ending a thread costs about as much as hashing half a MiB, so more threads for a small
    /// file would make it slower.
    pub(crate) fn max_threads(&self) -> usize {
        usize::try_from((self.len / MIN_BLOCK_LEN).isqrt()).unwrap_or(usize::MAX)
    }

    /// Whether a thread would still find a block to take.
    pub(crate) fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) * self.block_len < self.len
    }

    /// Takes and hashes blocks until none is left.
    pub(crate) fn work(&self, source: BlockSource<'_>, buffer: &mut [u8], meter: &dyn Meter) {
        self.threads.fetch_add(1, Ordering::Relaxed);
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            let at = block * self.block_len;
            if at >= self.len {
                return;
            }
            let value = self.hash_block(block, source, buffer, meter);
            let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            results.done += 1;
            match value {
                Ok(value) => results.values[block as usize] = value,
                Err(error) => {
                    // The blocks that nobody took count as done.
                    let blocks = results.values.len() as u64;
                    let next = self.next.swap(blocks, Ordering::Relaxed).min(blocks);
                    results.done += blocks - next;
                    results.failure.get_or_insert(error);
                }
            }
            if results.done == results.values.len() as u64 {
                self.all_done.notify_all();
            }
        }
    }

    /// Hashes one block in the way that was quicker so far.
    fn hash_block(
        &self,
        block: u64,
        source: BlockSource<'_>,
        buffer: &mut [u8],
        meter: &dyn Meter,
    ) -> Result<ChainingValue, ReadError> {
        let range = block * self.block_len..self.len.min((block + 1) * self.block_len);
        let Some(map) = &self.map else { return read_block(source, range, buffer, meter) };
        let way = self.trial.way_of(block, self.threads.load(Ordering::Relaxed));
        let start = Instant::now();
        if way == Way::Map {
            if meter.is_stopped() {
                return Err(ReadError::Stopped);
            }
            if let Some(value) = hash_mapped_block(map, range.clone(), source.mode) {
                meter.add_bytes(range.end - range.start);
                self.trial.record(way, start.elapsed());
                return Ok(value);
            }
            // The read says why: the file is shorter, or the disk has failed. Where the system
            // just has no such map, the blocks after this one are read as well.
            self.trial.give_up_map();
        }
        let value = read_block(source, range, buffer, meter)?;
        self.trial.record(Way::Read, start.elapsed());
        Ok(value)
    }

    /// Waits for the other threads' blocks, and assembles the tree.
    pub(crate) fn finish(&self, mode: &HashMode) -> Result<OutputReader, ReadError> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        while results.done < results.values.len() as u64 {
            results = self.all_done.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = results.failure.take() {
            return Err(error);
        }
        let (left, right) = results.values.split_at(left_blocks(results.values.len()));
        Ok(merge_subtrees_root_xof(&merge(left, mode), &merge(right, mode), mode.tree()))
    }
}

/// Whether the file is in memory alone, on tmpfs.
#[cfg(target_os = "linux")]
fn is_on_tmpfs(file: &File) -> bool {
    const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_on_tmpfs(_file: &File) -> bool {
    false
}

/// The length of the blocks of a mapped file of `len` bytes.
fn mapped_block_len(len: u64) -> u64 {
    (len / MIN_MAPPED_BLOCKS).max(1).next_power_of_two().clamp(MIN_BLOCK_LEN, MAX_BLOCK_LEN)
}

fn read_block(
    source: BlockSource<'_>,
    range: Range<u64>,
    buffer: &mut [u8],
    meter: &dyn Meter,
) -> Result<ChainingValue, ReadError> {
    let mut hasher = source.mode.hasher();
    let mut at = range.start;
    hasher.set_input_offset(at);
    while at < range.end {
        if meter.is_stopped() {
            return Err(ReadError::Stopped);
        }
        let bytes = &mut buffer[..(range.end - at).min(READ_LEN as u64) as usize];
        read_exact_at(source.file, bytes, at)?;
        hasher.update(bytes);
        meter.add_bytes(bytes.len() as u64);
        at += bytes.len() as u64;
    }
    Ok(hasher.finalize_non_root())
}

/// `None` if the map lacks some of the bytes.
fn hash_mapped_block(map: &MappedFile, range: Range<u64>, mode: &HashMode) -> Option<ChainingValue> {
    map.with_pages(range.clone(), |bytes| {
        let mut hasher = mode.hasher();
        hasher.set_input_offset(range.start);
        hasher.update(bytes);
        hasher.finalize_non_root()
    })
}

/// How many of `blocks` blocks, at least two, are under the left child of their parent: the largest
/// power of two that leaves at least one block for the right child (BLAKE3 specification, section
/// 2.1).
fn left_blocks(blocks: usize) -> usize {
    blocks.next_power_of_two() / 2
}

/// A subtree's chaining value from those of its blocks.
fn merge(values: &[ChainingValue], mode: &HashMode) -> ChainingValue {
    if let [value] = values {
        return *value;
    }
    let (left, right) = values.split_at(left_blocks(values.len()));
    merge_subtrees_non_root(&merge(left, mode), &merge(right, mode), mode.tree())
}

/// Fills `bytes` from `offset`; an earlier end means that the file became shorter.
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
    #[cfg(unix)]
    let read_at = |bytes: &mut [u8], offset| std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    let read_at = |bytes: &mut [u8], offset| std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
    let mut done = 0;
    while done < bytes.len() {
        match read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err(ReadError::Changed),
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn blocks_of_a_mapped_file_grow_with_it() {
        let lens = [8, 32, 33, 128, 512, 4096, 1 << 20].map(|mib| mapped_block_len(mib * MIB) >> 10);
        assert_eq!(lens, [512, 1024, 2048, 4096, 8192, 8192, 8192]);
    }

    #[test]
    fn blocks_of_a_file_that_says_it_has_exabytes_take_little_memory() {
        let file = tempfile::tempfile().unwrap();
        for len in [512 << 30, (512 << 30) + 1, 1 << 50, (1 << 63) - 1] {
            let blocks = Blocks::new(&file, len);
            let values = blocks.results.lock().unwrap().values.len() as u64;
            assert!(values <= MAX_BLOCKS && values * blocks.block_len >= len, "{len}: {values}");
            assert!(blocks.block_len.is_power_of_two() && values >= 2);
        }
    }

    #[test]
    fn a_small_file_wants_few_threads() {
        let file = tempfile::tempfile().unwrap();
        let threads = |mib: u64| {
            file.set_len(mib * MIB).unwrap();
            Blocks::new(&file, mib * MIB).max_threads()
        };
        assert_eq!([2, 4, 8, 32, 128, 512].map(threads), [2, 2, 4, 8, 16, 32]);
    }
}
