//! A large file in blocks, each a whole subtree of BLAKE3, which threads take one after another.

use crate::error::ReadError;
use crate::hashing::HashMode;
use crate::meter::Meter;
use bulla_blake3::OutputReader;
use bulla_blake3::hazmat::{ChainingValue, HasherExt, merge_subtrees_non_root, merge_subtrees_root_xof};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The bytes that one thread takes at a time: a whole subtree.
const BLOCK: u64 = 512 << 10;

/// From this size on, more than one thread is worth its start.
pub const LARGE: u64 = 2 << 20;

/// The bytes that one system call reads. They stay in the cache of the core that hashes them.
pub(crate) const READ: usize = 128 << 10;

/// The blocks of one file. Threads take them in the order of the file, so that a disk sees one
/// nearly sequential read.
pub(crate) struct Blocks {
    len: u64,
    next: AtomicU64,
    found: Mutex<Found>,
    /// Tells when the last block is done.
    all: Condvar,
}

struct Found {
    values: Vec<ChainingValue>,
    done: u64,
    failure: Option<ReadError>,
}

/// The file that the blocks are of, and the mode they are hashed in.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) file: &'a File,
    pub(crate) mode: &'a HashMode,
}

impl Blocks {
    /// The blocks of a file of `len` bytes, at least two blocks.
    pub(crate) fn new(len: u64) -> Self {
        let blocks = len.div_ceil(BLOCK);
        debug_assert!(blocks >= 2, "the root needs two children");
        let values = vec![ChainingValue::default(); blocks as usize];
        let found = Mutex::new(Found { values, done: 0, failure: None });
        Self { len, next: AtomicU64::new(0), found, all: Condvar::new() }
    }

    /// Whether a thread would still find a block to take.
    pub(crate) fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) * BLOCK < self.len
    }

    /// Takes and hashes blocks until none is left.
    pub(crate) fn work(&self, content: Content<'_>, buffer: &mut [u8], meter: &dyn Meter) {
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            let at = block * BLOCK;
            if at >= self.len {
                return;
            }
            let value = hash_block(content, at..self.len.min(at + BLOCK), buffer, meter);
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.done += 1;
            match value {
                Ok(value) => found.values[block as usize] = value,
                Err(error) => {
                    // The blocks that nobody took count as done.
                    let blocks = found.values.len() as u64;
                    let next = self.next.swap(blocks, Ordering::Relaxed).min(blocks);
                    found.done += blocks - next;
                    found.failure.get_or_insert(error);
                }
            }
            if found.done == found.values.len() as u64 {
                self.all.notify_all();
            }
        }
    }

    /// Waits for the other threads' blocks, and assembles the tree.
    pub(crate) fn finish(&self, mode: &HashMode) -> Result<OutputReader, ReadError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        while found.done < found.values.len() as u64 {
            found = self.all.wait(found).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = found.failure.take() {
            return Err(error);
        }
        let (left, right) = found.values.split_at(left_blocks(found.values.len()));
        Ok(merge_subtrees_root_xof(&merge(left, mode), &merge(right, mode), mode.tree()))
    }
}

fn hash_block(
    content: Content<'_>,
    range: Range<u64>,
    buffer: &mut [u8],
    meter: &dyn Meter,
) -> Result<ChainingValue, ReadError> {
    let mut hasher = content.mode.hasher();
    let mut at = range.start;
    hasher.set_input_offset(at);
    while at < range.end {
        if meter.is_stopped() {
            return Err(ReadError::Stopped);
        }
        let bytes = &mut buffer[..(range.end - at).min(READ as u64) as usize];
        read_exact_at(content.file, bytes, at)?;
        hasher.update(bytes);
        meter.add(bytes.len() as u64);
        at += bytes.len() as u64;
    }
    Ok(hasher.finalize_non_root())
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
