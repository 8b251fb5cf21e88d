//! The portable kernel: one input at a time, through the column form of one lane, which is the
//! plain scalar algorithm.

use super::table::{Functions, KernelShape, Tuning};
use crate::generic::columns;
use crate::plan::{Group, Lane, MAX_LANES, Prefetch};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, CHUNK_START, OUT_LEN, PARENT, Words};
use bulla_simd::cpu::Isa;
use bulla_simd::scalar::U32x1;
use bulla_simd::{Columns, Vector};
use core::mem::MaybeUninit;

/// The number of chunks in a group. Nothing is parallel here; with four, the tree works as it does
/// with the other kernels.
const LANES: usize = 4;

pub(super) static PORTABLE: Functions = Functions {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    shapes: &[KernelShape::SCALAR],
    lanes: LANES,
    serial_tail_max: 2 * BLOCK_LEN,
    chunk,
    block,
    chunk_prefix,
    group,
    two_groups: None,
    merge,
    transpose_out,
    hash_lanes,
    hash_equal_len,
    parents,
    output,
};

/// The next chaining value.
///
/// # Safety
///
/// `block` must be readable for 64 bytes.
#[inline(always)]
unsafe fn compress(h: &[U32x1; 8], block: *const u8, counter: u64, len: usize, flags: u32) -> [U32x1; 8] {
    // SAFETY: one lane needs no instruction set; the caller promised 64 readable bytes.
    unsafe {
        let m = U32x1::load_blocks(&raw const block, 0);
        let counter = (U32x1::splat(counter as u32), U32x1::splat((counter >> 32) as u32));
        columns::compress(h, &m, counter, U32x1::splat(len as u32), U32x1::splat(flags))
    }
}

unsafe fn chunk(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    last_flags: u32,
    out: *mut u8,
) {
    // SAFETY: the table's caller promised `len` readable bytes and 32 writable ones.
    unsafe {
        let (h, mut last, len, start) = compress_prefix(input, len, key, counter, flags);
        let mut padded = MaybeUninit::<[u8; BLOCK_LEN]>::uninit();
        if len < BLOCK_LEN {
            U32x1::copy_padded(last, len, padded.as_mut_ptr().cast());
            last = padded.as_ptr().cast();
        }
        U32x1::store_chaining_values(compress(&h, last, counter, len, flags | start | last_flags), out);
    }
}

unsafe fn chunk_prefix(
    input: *const u8,
    len: usize,
    key: &Words,
    counter: u64,
    flags: u32,
    value: &mut Words,
    block: *mut u8,
) {
    // SAFETY: the table's caller promised `len` readable bytes and 64 writable ones.
    unsafe {
        let (h, last, len, _) = compress_prefix(input, len, key, counter, flags);
        for (to, word) in value.iter_mut().zip(h) {
            word.store(to);
        }
        U32x1::copy_padded(last, len, block);
    }
}

/// The chaining value before a chunk's last block, the position and length of that block, and
/// `CHUNK_START` if it is the only block.
///
/// # Safety
///
/// `input` must be readable for `len` bytes.
#[inline(always)]
unsafe fn compress_prefix(
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

unsafe fn block(value: &Words, block: *const u8, counter: u64, len: usize, flags: u32, out: *mut u8) {
    // SAFETY: the table's caller promised 64 readable and 64 writable bytes.
    unsafe { columns::output::<U32x1>(value, block, counter, (len as u32, flags), 1, out) }
}

unsafe fn group(input: *const u8, key: &Words, counter: u64, flags: u32, _: Prefetch, out: *mut Group) {
    for i in 0..LANES {
        // SAFETY: the table's caller promised four chunks; a group has room for four chaining
        // values.
        unsafe {
            let value = out.cast::<u8>().add(OUT_LEN * i);
            chunk(input.add(CHUNK_LEN * i), CHUNK_LEN, key, counter + i as u64, flags, CHUNK_END, value);
        }
    }
}

unsafe fn merge(left: *const Group, right: *const Group, key: &Words, flags: u32, out: *mut Group) {
    // SAFETY: both groups hold four chaining values; if `out` is one of the groups, each half of it
    // is written after it was read: `right` is read before the second half of the result is
    // written, because parents come from a copy.
    unsafe {
        let mut values = MaybeUninit::<[[u8; OUT_LEN * LANES]; 2]>::uninit();
        let to = values.as_mut_ptr().cast::<u8>();
        core::ptr::copy_nonoverlapping(left.cast(), to, OUT_LEN * LANES);
        core::ptr::copy_nonoverlapping(right.cast(), to.add(OUT_LEN * LANES), OUT_LEN * LANES);
        parents(to, LANES, key, flags, out.cast());
    }
}

unsafe fn transpose_out(group: *const Group, out: *mut u8) {
    // SAFETY: the table's caller promised room for four chaining values.
    unsafe { core::ptr::copy_nonoverlapping(group.cast(), out, OUT_LEN * LANES) }
}

unsafe fn hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) {
    for (i, lane) in inputs.iter().enumerate() {
        // SAFETY: the inputs are slices, and the table's caller promised room for their chaining
        // values.
        unsafe {
            let value = out.add(OUT_LEN * i);
            chunk(lane.input.as_ptr(), lane.input.len(), key, lane.counter, flags, lane.last_flags, value);
        }
    }
}

unsafe fn hash_equal_len(
    inputs: &[*const u8; MAX_LANES],
    n: usize,
    len: usize,
    key: &Words,
    (counter, step): (u64, u64),
    (flags, last_flags): (u32, u32),
    out: *mut u8,
) {
    for (i, input) in inputs[..n].iter().enumerate() {
        // SAFETY: the table's caller promised readable inputs and room for their chaining values.
        unsafe {
            let counter = counter.wrapping_add(i as u64 * step);
            chunk(*input, len, key, counter, flags, last_flags, out.add(OUT_LEN * i));
        }
    }
}

unsafe fn parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
    for i in 0..n {
        // SAFETY: the table's caller promised 2 n chaining values; parent i is written where only
        // children up to i have been.
        unsafe {
            let h = key.map(|word| U32x1::splat(word));
            let parent = compress(&h, values.add(BLOCK_LEN * i), 0, BLOCK_LEN, flags | PARENT);
            U32x1::store_chaining_values(parent, out.add(OUT_LEN * i));
        }
    }
}

unsafe fn output(
    value: &Words,
    block: *const u8,
    counter: u64,
    len_and_flags: (u32, u32),
    groups: usize,
    out: *mut u8,
) {
    // SAFETY: the table's caller promised room for four blocks a group.
    unsafe { columns::output::<U32x1>(value, block, counter, len_and_flags, LANES * groups, out) }
}
