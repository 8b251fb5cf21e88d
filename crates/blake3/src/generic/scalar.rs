//! One input in general registers: the column form of one lane, which is the plain scalar algorithm.

use super::columns;
use crate::spec::{BLOCK_LEN, CHUNK_START, PARENT, Words};
use bulla_simd::scalar::U32x1;
use bulla_simd::{Columns, Vector};
use core::mem::MaybeUninit;

/// The next chaining value.
#[inline(always)]
unsafe fn compress(h: &[U32x1; 8], block: *const u8, counter: u64, len: usize, flags: u32) -> [U32x1; 8] {
    // SAFETY: one lane needs no instruction set; the caller promised 64 readable bytes.
    unsafe {
        let m = U32x1::load_blocks(&raw const block, 0);
        let counter = (U32x1::splat(counter as u32), U32x1::splat((counter >> 32) as u32));
        columns::compress(h, &m, counter, U32x1::splat(len as u32), U32x1::splat(flags))
    }
}

/// The chaining value of one input of at most a chunk. The last block gets `last_flags` too. Reads `len` bytes, writes 32.
#[inline(always)]
pub(crate) unsafe fn chunk(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    last_flags: u32,
    out: *mut u8,
) {
    // SAFETY: the caller promised `len` readable bytes and 32 writable ones.
    unsafe {
        let (h, mut last, len, start) = all_but_last(input, len, key, counter, flags);
        let mut padded = MaybeUninit::<[u8; BLOCK_LEN]>::uninit();
        if len < BLOCK_LEN {
            U32x1::copy_padded(last, len, padded.as_mut_ptr().cast());
            last = padded.as_ptr().cast();
        }
        U32x1::store_halves(compress(&h, last, counter, len, flags | start | last_flags), out);
    }
}

/// Like `chunk`, but it stops before the last block. Writes the chaining value at that point, and the last block, padded to 64 bytes.
#[inline(always)]
pub(crate) unsafe fn before_last(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    value: &mut Words,
    block: *mut u8,
) {
    // SAFETY: the caller promised `len` readable bytes and 64 writable ones.
    unsafe {
        let (h, last, len, _) = all_but_last(input, len, key, counter, flags);
        for (to, word) in value.iter_mut().zip(h) {
            word.store(to);
        }
        U32x1::copy_padded(last, len, block);
    }
}

/// The chaining value before a chunk's last block, the position and length of that block, and `CHUNK_START` if it is the only block.
#[inline(always)]
unsafe fn all_but_last(
    mut input: *const u8,
    mut len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
) -> ([U32x1; 8], *const u8, usize, u32) {
    // SAFETY: one lane needs no instruction set; the caller promised `len` readable bytes.
    unsafe {
        let mut h = key.map(|word| U32x1::splat(word));
        let mut start = CHUNK_START;
        while len > BLOCK_LEN {
            h = compress(&h, input, counter, BLOCK_LEN, flags | start);
            start = 0;
            input = input.add(BLOCK_LEN);
            len -= BLOCK_LEN;
        }
        (h, input, len, start)
    }
}

/// One output block. Reads 64 bytes, writes 64.
#[inline(always)]
pub(crate) unsafe fn block(
    value: &Words,
    block: *const u8,
    counter: u64,
    len: usize,
    flags: u32,
    out: *mut u8,
) {
    // SAFETY: the caller promised 64 readable and 64 writable bytes.
    unsafe { columns::output::<U32x1>(value, block, counter, (len as u32, flags), 1, out) }
}

/// The parent of the two chaining values at `values`. Reads 64 bytes, writes 32; `out` may be `values`.
#[inline(always)]
pub(crate) unsafe fn parent(values: *const u8, key: &Words, flags: u32, out: *mut u8) {
    // SAFETY: the caller promised 64 readable bytes and 32 writable ones; all are read before the first is written.
    unsafe {
        let h = key.map(|word| U32x1::splat(word));
        U32x1::store_halves(compress(&h, values, 0, BLOCK_LEN, flags | PARENT), out);
    }
}
